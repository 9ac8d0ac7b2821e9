import { type Document, operationsOf, type Schema } from "./document.ts";
import { GENERATE_COMMAND } from "./generate.ts";

const HEADER = `// Written by \`${GENERATE_COMMAND}\` from test/golden/openapi.json. Change the schemas of the areas instead.

/** A field of a request body. */
export interface BodyField {
  readonly type: "string" | "integer" | "number" | "boolean" | "array" | "object" | "any";
  readonly nullable?: true;
  readonly required?: true;
  readonly description?: string;
  readonly example?: string;
  /** Example of an array of possible values. */
  readonly choice?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: RegExp;
  readonly format?: string;
  readonly enum?: readonly (string | number)[];
  /** Pattern of the items of an array. */
  readonly items?: RegExp;
}

/** Fields of the JSON body of each operation. A field of an object has its path as its name: \`uses.remaining\`. */
export const BODIES = {
`;

/** Limits that a form can check. */
const COPIED = ["minimum", "maximum", "minLength", "maxLength", "format"] as const;
/** Objects within objects of a body. */
const DEPTH_MAX = 3;

interface FullSchema extends Schema {
  readonly examples?: readonly unknown[];
}

/** The pattern of e-mail addresses contains it; browsers check these by themselves. */
const OF_ADDRESSES = "]+@[";
/** The pattern of single-line texts contains it; single-line inputs have no control characters. */
const OF_LINES = String.raw`\u001f`;

/** Fields of request bodies as data, from which the console derives its forms. */
export function bodies(document: Document): string {
  const rows = operationsOf(document).flatMap(({ id, body }) => {
    const { properties } = body === null ? {} : resolved(document, body);
    if (body === null || properties === undefined) return [];
    const fields = fieldsOf(document, body, "", 0);
    return [`${JSON.stringify(id)}: ${withPatterns(JSON.stringify(Object.fromEntries(fields)))},\n`];
  });
  return `${HEADER}${rows.join("")}} as const satisfies Readonly<Record<string, Readonly<Record<string, BodyField>>>>;\n`;
}

/** Patterns as literals, which the rules of the sources check. */
function withPatterns(json: string): string {
  return json.replace(/"(pattern|items)":("(?:[^"\\]|\\.)*")/g, (_, name: string, text: string) => {
    // Within a class a slash needs no escape.
    const source = String(JSON.parse(text)).replace(/\[[^\]]*\]|\//g, (part) =>
      part === "/" ? "\\/" : part,
    );
    return `"${name}":/${source}/`;
  });
}

function resolved(document: Document, schema: FullSchema): FullSchema {
  const { $ref, ...own } = schema;
  if ($ref === undefined) return schema;
  return { ...document.components.schemas[$ref.slice($ref.lastIndexOf("/") + 1)], ...own };
}

function fieldsOf(document: Document, body: Schema, prefix: string, depth: number): [string, object][] {
  const { properties = {}, required = [] } = resolved(document, body);
  return Object.entries(properties).flatMap(([name, property]): [string, object][] => {
    // A field that is always rejected.
    if (property.not !== undefined) return [];
    const { schema, nullable } = withoutNull(document, property);
    const field = fieldOf(document, schema, { nullable, required: required.includes(name) });
    const inner =
      schema.properties === undefined || depth === DEPTH_MAX
        ? []
        : fieldsOf(document, schema, `${prefix}${name}.`, depth + 1);
    return [[prefix + name, field], ...inner];
  });
}

/** A schema without its alternative null; a choice of several others has the type `any`. */
function withoutNull(document: Document, property: FullSchema): { schema: FullSchema; nullable: boolean } {
  const schema = resolved(document, property);
  if (schema.anyOf !== undefined) {
    const { anyOf, ...shared } = schema;
    const others = anyOf.filter(({ type }) => type !== "null");
    const nullable = others.length < anyOf.length;
    const [only] = others;
    if (only === undefined || others.length > 1) return { schema: { ...shared, type: "any" }, nullable };
    const inner = withoutNull(document, only);
    return { schema: { ...inner.schema, ...shared }, nullable: nullable || inner.nullable };
  }
  if (!Array.isArray(schema.type)) return { schema, nullable: false };
  const [type = "any"] = schema.type.filter((one) => one !== "null");
  return { schema: { ...schema, type }, nullable: schema.type.includes("null") };
}

function fieldOf(
  document: Document,
  schema: FullSchema,
  { nullable, required }: { nullable: boolean; required: boolean },
): object {
  const items = schema.items === undefined ? undefined : resolved(document, schema.items);
  const choices = (schema.enum ?? items?.enum)?.filter((one) => one !== null);
  const [example] = schema.examples ?? [];
  return {
    type: schema.type ?? "any",
    ...(nullable ? { nullable } : {}),
    ...(required ? { required } : {}),
    ...(schema.description === undefined ? {} : { description: schema.description }),
    ...(typeof example === "string" ? { example } : {}),
    ...(items?.enum !== undefined && Array.isArray(example) ? { choice: example } : {}),
    ...(schema.pattern?.includes(OF_ADDRESSES) === true ? { format: "email" } : {}),
    ...(isChecked(schema.pattern) && isText(schema.type) ? { pattern: schema.pattern } : {}),
    ...Object.fromEntries(
      COPIED.flatMap((name) => (name in schema ? [[name, Reflect.get(schema, name)]] : [])),
    ),
    ...(choices === undefined ? {} : { enum: choices }),
    ...(!isChecked(items?.pattern) ? {} : { items: items?.pattern }),
  };
}

/** A duration as a number has the pattern of its form as a text. */
function isText(type: Schema["type"]): boolean {
  return type === undefined || type === "string";
}

function isChecked(pattern: string | undefined): boolean {
  return pattern !== undefined && !pattern.includes(OF_ADDRESSES) && !pattern.includes(OF_LINES);
}
