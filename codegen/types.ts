import type { Schema } from "./document.ts";

/** Whether a type occurs in requests (where optional members may be `undefined`) or in responses. */
export type Direction = "sent" | "received";

/** The name of a component that a schema refers to; null for a schema without one. */
export function referenceOf({ $ref }: Schema): string | null {
  return $ref === undefined ? null : ($ref.split("/").at(-1) ?? null);
}

/** The TypeScript type of a schema: its name where it is a component. */
export function typeOf(schema: Schema, direction: Direction): string {
  return referenceOf(schema) ?? written(schema, direction);
}

/** The type of a schema, written out. */
export function written(schema: Schema, direction: Direction): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.anyOf !== undefined) {
    // An empty alternative would make the whole type unknown.
    const said = schema.anyOf.filter((one) => Object.keys(one).length > 0);
    return said.map((one) => typeOf(one, direction)).join(" | ");
  }
  const { type } = schema;
  if (typeof type === "object") {
    return type.map((one) => written({ ...schema, type: one }, direction)).join(" | ");
  }
  switch (type) {
    case "integer":
    case "number":
      return "number";
    case "string":
    case "boolean":
    case "null":
      return type;
    case "array":
      return list(schema, direction);
    case "object":
      return object(schema, direction);
    case undefined:
      return "unknown";
    default:
      throw new Error(`no type is known for ${JSON.stringify(schema)}`);
  }
}

function list({ items = {} }: Schema, direction: Direction): string {
  const item = typeOf(items, direction);
  const list = /^[\w"]+$/.test(item) ? `${item}[]` : `(${item})[]`;
  return direction === "sent" ? `readonly ${list}` : list;
}

function object(schema: Schema, direction: Direction): string {
  const { additionalProperties: others } = schema;
  const values = typeof others === "object" ? others : Object.values(schema.patternProperties ?? {})[0];
  if (values !== undefined) return `Record<string, ${typeOf(values, direction)}>`;
  // Interfaces have no index signature, so a request body typed as one would not be assignable to a record.
  const open = schema.additionalProperties === true;
  if (open && Object.keys(schema.properties ?? {}).length === 0)
    return direction === "sent" ? "object" : "Record<string, unknown>";
  return braced([...membersOf(schema, direction), ...(open ? ["[name: string]: unknown"] : [])]);
}

/** Members in braces. The formatter puts them on one line if they fit, unless the first is on a new line. */
function braced(members: readonly string[]): string {
  const hasComment = members.some((member) => member.startsWith("/**"));
  return hasComment ? `{\n${members.join(";\n")};\n}` : `{ ${members.join("; ")} }`;
}

/** The members of an object, each with its description. */
export function membersOf({ properties = {}, required = [] }: Schema, direction: Direction): string[] {
  return Object.entries(properties)
    .filter(([, schema]) => schema.not === undefined)
    .map(([name, schema]) => {
      const isRequired = required.includes(name);
      const undef = isRequired || direction === "received" ? "" : " | undefined";
      const key = /^\w+$/.test(name) && !/^\d/.test(name) ? name : JSON.stringify(name);
      const { description } = schema;
      const comment = description === undefined ? "" : `/** ${description} */\n`;
      return `${comment}${key}${isRequired ? "" : "?"}: ${typeOf(schema, direction)}${undef}`;
    });
}
