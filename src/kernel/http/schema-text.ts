/** A piece of an OpenAPI document. */
export type Json = { readonly [key: string]: unknown };

/**
 * A schema as the API's description shows it: without what is for our own checks only, a union of constants as an
 * `enum`, and "or null" as a second type.
 */
export function publicSchema(schema: unknown): Json {
  return simplified(JSON.parse(JSON.stringify(schema))) as Json;
}

function simplified(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(simplified);
  if (typeof value !== "object" || value === null) return value;
  const { errorMessage: _, ...rest } = value as { [key: string]: unknown };
  const plain: Json = Object.fromEntries(Object.entries(rest).map(([key, part]) => [key, simplified(part)]));
  return Array.isArray(plain["anyOf"]) ? union(plain, plain["anyOf"]) : plain;
}

function union({ anyOf: _, ...rest }: Json, members: readonly Json[]): Json {
  const values = members.filter(({ type }) => type !== "null");
  const joined = values.length === 1 ? values[0] : enumOf(values);
  if (joined === undefined) return { ...rest, anyOf: members };
  const own = values.length < members.length ? orNull(joined) : joined;
  return own === undefined ? { ...rest, anyOf: members } : { ...own, ...rest };
}

/** One schema for constants of one type; undefined for anything else. */
function enumOf(members: readonly Json[]): Json | undefined {
  const [first] = members;
  if (first === undefined || !members.every((one) => "const" in one && one["type"] === first["type"]))
    return undefined;
  return { type: first["type"], enum: members.map((one) => one["const"]) };
}

/** The same with null; undefined where a second type would not say it (an object's own rules stand beside its type). */
function orNull(schema: Json): Json | undefined {
  const { type } = schema;
  if (typeof type !== "string" || type === "object" || type === "array" || "const" in schema)
    return undefined;
  const names = schema["enum"];
  return { ...schema, type: [type, "null"], ...(Array.isArray(names) ? { enum: [...names, null] } : {}) };
}
