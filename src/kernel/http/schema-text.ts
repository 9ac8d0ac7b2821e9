/** A piece of an OpenAPI document. */
export type Json = { readonly [key: string]: unknown };

/** Named schemas of a description, by name: each stands there once, wherever it is used. */
export type Components = Map<string, Json>;

/**
 * A schema as the API's description shows it: without what is for our own checks only, a union of constants as an
 * `enum`, and "or null" as a second type. With `components`, a schema that has an `$id` is put there, and a
 * reference stands in its place.
 */
export function publicSchema(schema: unknown, components: Components | null = null): Json {
  return simplified(JSON.parse(JSON.stringify(schema)), components) as Json;
}

function simplified(value: unknown, components: Components | null): unknown {
  if (Array.isArray(value)) return value.map((part) => simplified(part, components));
  if (typeof value !== "object" || value === null) return value;
  const { errorMessage: _, $id: name, ...rest } = value as { [key: string]: unknown };
  const plain: Json = Object.fromEntries(
    Object.entries(rest).map(([key, part]) => [key, simplified(part, components)]),
  );
  const shown = Array.isArray(plain["anyOf"]) ? union(plain, plain["anyOf"]) : plain;
  if (typeof name !== "string" || components === null) return shown;
  components.set(name, shown);
  return { $ref: `#/components/schemas/${name}` };
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
