import { Kind, type TObject, type TSchema } from "@sinclair/typebox";
import { durationUnitOf, isTimeZone, readDuration } from "../../data/schema.ts";
import { invalidField } from "../../errors.ts";
import { compiledCheck } from "./compiled-check.ts";

/** Names of fields with a time zone: each stands for the others. */
const TIME_ZONE_NAMES: readonly string[] = ["tz", "timezone", "time_zone"];
/** Other names of fields with a duration. */
const DURATION_NAMES: ReadonlyMap<string, string> = new Map([
  ["period_ms", "period"],
  ["grace_ms", "grace"],
]);

/** Fields of an object by their other names. */
export function aliasesOf(
  properties: Readonly<Record<string, TSchema>>,
): ReadonlyMap<string, { readonly field: string; readonly schema: TSchema }> {
  const aliases = Object.entries(properties).flatMap(([field, schema]) =>
    otherNames(field, schema).map((name) => [name, { field, schema }] as const),
  );
  return new Map(aliases.filter(([name]) => !Object.hasOwn(properties, name)));
}

function otherNames(field: string, schema: TSchema): readonly string[] {
  const inner = valueSchema(schema);
  if (isTimeZone(inner)) return TIME_ZONE_NAMES;
  const name = DURATION_NAMES.get(field);
  return name === undefined || durationUnitOf(inner) === null ? [] : [name];
}

/** The schema of a value that may also be null; the schema itself where it is no such one. */
function valueSchema(schema: TSchema): TSchema {
  const members: readonly TSchema[] = schema["anyOf"] ?? [schema];
  const [single = schema, ...others] = members.filter(({ type }) => type !== "null");
  return others.length === 0 ? single : schema;
}

/** Fields with a list of addresses, which accept a single address. */
const ADDRESS_LISTS: readonly string[] = ["to"];

/** Returns a value in the form that its schema checks. What has no such form stays as it is. */
type Reader = (value: unknown) => unknown;
type Members = Readonly<Record<string, unknown>>;

/**
 * Returns a function that reads the other forms of a value: the aliases of fields, a single address in place of a list, and
 * durations as text or number; null if no field of the schema has another form. The function throws ApiError
 * `validation_error` if an alias has an invalid value, and if an object has two names of a field with different values.
 */
export function aliasReader(schema: TSchema): Reader | null {
  const inner = valueSchema(schema);
  const unit = durationUnitOf(inner);
  if (unit !== null) return (value) => readDuration(value, unit);
  if (inner[Kind] === "Array") return itemsReader(inner);
  return inner[Kind] === "Object" ? objectReader(inner as TObject) : null;
}

/** A list that is too long is not worth reading. */
function itemsReader({ items, maxItems = Number.POSITIVE_INFINITY }: TSchema): Reader | null {
  const reader = aliasReader(items);
  if (reader === null) return null;
  return (value) => {
    if (!Array.isArray(value) || value.length > maxItems) return value;
    const read = value.map(reader);
    // The same list without a change: the object around it is copied for a new one, with all of its members.
    return read.every((item, at) => item === value[at]) ? value : read;
  };
}

function objectReader({ properties }: TObject): Reader | null {
  const members = Object.entries<TSchema>(properties).flatMap(([name, schema]) => {
    const reader = memberReader(name, schema);
    return reader === null ? [] : [[name, reader] as const];
  });
  const aliases = aliasesOf(properties);
  if (members.length === 0 && aliases.size === 0) return null;
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const body = value as Members;
    const changed: Record<string, unknown> = {};
    for (const [name, reader] of members) {
      if (!Object.hasOwn(body, name)) continue;
      const read = reader(body[name]);
      if (read !== body[name]) changed[name] = read;
    }
    for (const [name, alias] of aliases) {
      if (Object.hasOwn(body, name) && body[name] !== undefined) addAliased(body, changed, name, alias);
    }
    return Object.keys(changed).length === 0 ? value : withChanges(body, changed);
  };
}

function memberReader(name: string, schema: TSchema): Reader | null {
  const reader = aliasReader(schema);
  if (!ADDRESS_LISTS.includes(name) || schema[Kind] !== "Array") return reader;
  return (value) => (typeof value === "string" ? [value] : (reader?.(value) ?? value));
}

/** Moves the value of an alias to its field in `changed`. */
function addAliased(
  body: Members,
  changed: Record<string, unknown>,
  name: string,
  { field, schema }: { readonly field: string; readonly schema: TSchema },
): void {
  const inner = valueSchema(schema);
  const value = aliasReader(inner)?.(body[name]) ?? body[name];
  if (!compiledCheck(schema).Check(value))
    throw invalidField(name, String(schema["errorMessage"] ?? inner["errorMessage"] ?? "is not valid"));
  const other = Object.hasOwn(changed, field) ? changed[field] : body[field];
  if (other !== undefined && other !== value)
    throw invalidField(name, `has another value than ${field}: send one of them`);
  changed[field] = value;
  changed[name] = undefined;
}

/** A copy of an object with changed members, without those that are changed to undefined. */
function withChanges(body: Members, changed: Members): object {
  const copy = { ...body, ...changed };
  for (const name of Object.keys(changed))
    if (changed[name] === undefined) Reflect.deleteProperty(copy, name);
  return copy;
}
