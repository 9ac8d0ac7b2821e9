import { isDeepStrictEqual } from "node:util";
import { type TSchema, Type } from "@sinclair/typebox";
import { isSecret, notNull, referenceIn } from "../kernel/data/schema.ts";
import { matchesDigest, type SecretValue } from "../kernel/secrets/secret-digest.ts";
import { wallMs } from "../kernel/time/clock.ts";
import { type Field, isFree, isHeaders, type Kind } from "./kinds.ts";

type Values = Readonly<Record<string, unknown>>;

/** Replaces what stands at references: names by ids, or ids by names. */
export type Replace = (section: string, text: string) => string;

/** A value of a field with its references replaced. */
export function replaced(schema: TSchema, value: unknown, replace: Replace): unknown {
  if (value === null || value === undefined) return value;
  const section = referenceIn(schema);
  if (section !== null && typeof value === "string") return replace(section, value);
  const typed = memberFor(schema, value);
  if (typed === undefined || isFree(typed)) return value;
  if (typed !== schema) return replaced(typed, value, replace);
  if (Array.isArray(value)) return value.map((item) => replaced(typed["items"] ?? {}, item, replace));
  if (typeof value !== "object") return value;
  const properties: Readonly<Record<string, TSchema>> = typed["properties"] ?? {};
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      replaced(properties[name] ?? Type.Unknown(), member, replace),
    ]),
  );
}

/** The schema among those of a union that a value has; undefined for none. */
function memberFor(schema: TSchema, value: unknown): TSchema | undefined {
  if (schema["anyOf"] === undefined) return schema;
  const type = Array.isArray(value) ? "array" : typeof value;
  const members = notNull(schema);
  return members.length === 1 ? members[0] : members.find((member) => member["type"] === type);
}

/** The value of a field in the response to a resource. */
export function shownValue(kind: Kind, field: Field, item: Values): unknown {
  const { flattened = "" } = kind.facts;
  const { apiName, isFlattened } = field;
  return currentValue(
    kind,
    field,
    isFlattened ? (item[flattened] as Values | undefined)?.[apiName] : item[apiName],
  );
}

/** What of a value of a field counts now. */
export function currentValue(kind: Kind, { apiName }: Field, value: unknown): unknown {
  const current = kind.facts.current?.[apiName];
  return current === undefined ? value : current(value, wallMs());
}

/** Whether a resource has the value of a file. `digests`: those of its secrets, by field. */
export function isSame(
  field: Field,
  wanted: unknown,
  current: unknown,
  { beside, digests, path }: { readonly beside: Values; readonly digests: Values; readonly path: string },
): boolean {
  const { schema } = field;
  if (isSecret(schema, beside) || isHeaders(path, schema))
    return hasDigest(digests[path], wanted as SecretValue);
  return isEqual(schema, wanted, current, digests, path);
}

function hasDigest(digest: unknown, wanted: SecretValue): boolean {
  const isNone = wanted === null || (typeof wanted === "object" && Object.keys(wanted ?? {}).length === 0);
  if (digest === undefined || isNone) return digest === undefined && isNone;
  return matchesDigest(String(digest), wanted);
}

/** Members that a file omits have their defaults. */
function isEqual(schema: TSchema, wanted: unknown, current: unknown, digests: Values, path: string): boolean {
  if (wanted === null || wanted === undefined || current === null || current === undefined)
    return (wanted ?? null) === (current ?? null);
  const typed = memberFor(schema, wanted);
  if (typed === undefined || isFree(typed) || typeof wanted !== "object")
    return isDeepStrictEqual(wanted, current) || isSameTime(typed, wanted, current);
  if (Array.isArray(wanted)) {
    if (!Array.isArray(current) || current.length !== wanted.length) return false;
    return wanted.every((item, index) =>
      isEqual(typed["items"] ?? {}, item, current[index], digests, `${path}.${index}`),
    );
  }
  const properties: Record<string, TSchema> | undefined = typed["properties"];
  if (properties === undefined) return isDeepStrictEqual(wanted, current);
  return Object.entries(properties).every(([name, property]) => {
    const inner = `${path}.${name}`;
    const member = (wanted as Values)[name];
    if (isSecret(property, wanted as Values))
      return hasDigest(digests[inner], (member ?? null) as SecretValue);
    const shown = (current as Values)[name];
    if (member !== undefined) return isEqual(property, member, shown, digests, inner);
    return (shown ?? null) === null || isDeepStrictEqual(shown, property["default"]);
  });
}

/** Timestamps are compared as times: the server writes each in one form. */
function isSameTime(schema: TSchema | undefined, wanted: unknown, current: unknown): boolean {
  if (schema?.["type"] !== "string" || typeof wanted !== "string" || typeof current !== "string")
    return false;
  const isTime = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/;
  return isTime.test(wanted) && isTime.test(current) && Date.parse(wanted) === Date.parse(current);
}
