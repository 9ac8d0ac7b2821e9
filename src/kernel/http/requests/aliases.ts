import { Kind, type TObject, type TSchema } from "@sinclair/typebox";
import { invalidField } from "../../errors.ts";

/** Another name of a field, and how its value is read; undefined if the value has another meaning. */
interface Alias {
  readonly field: string;
  readonly read: (value: unknown) => unknown;
}

const asGiven = (value: unknown): unknown => value;

/** Names that people try for fields of this API. */
const ALIASES: ReadonlyMap<string, Alias> = new Map([
  ["timezone", { field: "tz", read: asGiven }],
  ["time_zone", { field: "tz", read: asGiven }],
  ["period", { field: "period_ms", read: durationMs }],
  ["grace", { field: "grace_ms", read: durationMs }],
]);

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
/** A number of at most nine digits and a unit. */
const DURATION = /^(\d{1,9})(ms|s|m|h|d|w)$/;

/** Milliseconds of a duration such as `90s` or `1h`; undefined for anything else. */
function durationMs(value: unknown): number | undefined {
  const [, amount, unit = ""] = typeof value === "string" ? (DURATION.exec(value) ?? []) : [];
  return amount === undefined ? undefined : Number(amount) * (UNIT_MS[unit] ?? 1);
}

/** Fields with a list of addresses, which accept a single address. */
const ADDRESS_LISTS: readonly string[] = ["to"];

type Reader = (body: object) => object;

/**
 * Returns a function that renames the aliases in a body to the fields of a schema, and reads a single address as a list;
 * null if no field of the schema has another form. The function throws ApiError `validation_error` if a body has both
 * names of a field with different values.
 */
export function aliasReader(schema: TObject): Reader | null {
  const readers = [renamer(schema), listReader(schema), ...membersOf(schema)].filter((one) => one !== null);
  return readers.length === 0 ? null : (body) => readers.reduce((read, reader) => reader(read), body);
}

/** Readers of the objects in an object. */
function membersOf({ properties }: TObject): Reader[] {
  return Object.entries<TSchema>(properties).flatMap(([name, schema]) => {
    const reader = schema[Kind] === "Object" ? aliasReader(schema as TObject) : null;
    if (reader === null) return [];
    return (body: object): object => {
      const member = (body as Readonly<Record<string, unknown>>)[name];
      const isObject = typeof member === "object" && member !== null && Object.hasOwn(body, name);
      return isObject ? { ...body, [name]: reader(member) } : body;
    };
  });
}

function listReader({ properties }: TObject): Reader | null {
  const lists = ADDRESS_LISTS.filter((name) => properties[name]?.[Kind] === "Array");
  if (lists.length === 0) return null;
  return (body) => {
    const given = body as Readonly<Record<string, unknown>>;
    const single = lists.filter((name) => typeof given[name] === "string" && Object.hasOwn(given, name));
    return single.length === 0
      ? body
      : { ...body, ...Object.fromEntries(single.map((name) => [name, [given[name]]])) };
  };
}

function renamer({ properties }: TObject): Reader | null {
  const aliases = [...ALIASES].filter(
    ([name, { field }]) => Object.hasOwn(properties, field) && !Object.hasOwn(properties, name),
  );
  if (aliases.length === 0) return null;
  return (body) => {
    const given = body as Readonly<Record<string, unknown>>;
    const renamed: Record<string, unknown> = {};
    for (const [name, { field, read }] of aliases) {
      const value = Object.hasOwn(given, name) ? read(given[name]) : undefined;
      if (value === undefined) continue;
      const other = Object.hasOwn(renamed, field) ? renamed[field] : given[field];
      if (other !== undefined && other !== value)
        throw invalidField(name, `has another value than ${field}: send one of them`);
      renamed[field] = value;
      renamed[name] = undefined;
    }
    return Object.keys(renamed).length === 0 ? body : withoutUndefined({ ...given, ...renamed });
  };
}

function withoutUndefined(body: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}
