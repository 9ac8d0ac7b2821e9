import { type ApiOperation, type Document, operationsOf, type Schema } from "../document.ts";
import { referenceOf } from "../types.ts";
import { isKeyword, pascal, textLines } from "./names.ts";

/** The schemas of the API as types for checkers and editors; at run time responses are plain dicts. */
export function models(document: Document): string {
  const writer = new Writer(document);
  for (const [name, schema] of Object.entries(document.components.schemas)) writer.declare(name, schema);
  for (const operation of operationsOf(document)) {
    const query = queryName(operation);
    if (query !== null && operation.query !== null) writer.declare(query, withArguments(operation.query));
  }
  return writer.texts.join("\n\n");
}

/** The name of the type of a query; null for an operation without one. */
export function queryName({ id, query }: ApiOperation): string | null {
  return query === null ? null : `${pascal(id)}Query`;
}

/** The names of a query as arguments: `from` is a keyword of Python. */
function withArguments(query: Schema): Schema {
  const rename = (name: string): string => (isKeyword(name) ? `${name}_` : name);
  return {
    ...query,
    properties: Object.fromEntries(
      Object.entries(query.properties ?? {}).map(([name, schema]) => [rename(name), schema]),
    ),
    required: (query.required ?? []).map(rename),
  };
}

/** The type of the body of a successful response, in a module that imports the models. */
export function responseType({ successes }: ApiOperation, document: Document): string {
  const writer = new Writer(document);
  const types = Object.values(successes).map((one) =>
    one === null ? "None" : writer.typeOf(one, "Response", "models."),
  );
  return union(types);
}

/** The type of a value in a module that imports the models. */
export function valueType(schema: Schema, document: Document): string {
  return new Writer(document).typeOf(schema, "Value", "models.");
}

function union(types: readonly string[]): string {
  const all = [...new Set(types)];
  if (all.includes("Any")) return "Any";
  const others = all.filter((one) => one !== "None");
  const inner = others.length > 1 ? `Union[${others.join(", ")}]` : (others[0] ?? "None");
  return others.length > 0 && all.includes("None") ? `Optional[${inner}]` : inner;
}

class Writer {
  readonly texts: string[] = [];

  constructor(private readonly document: Document) {}

  declare(name: string, schema: Schema): void {
    if (isRecord(schema)) {
      this.class(name, schema);
      return;
    }
    this.texts.push(`${name} = ${this.typeOf(schema, name, "", true)}\n`);
  }

  /** A type; objects within it become classes with the names of their places. */
  typeOf(schema: Schema, place: string, prefix: string, isAlias = false): string {
    const name = referenceOf(schema);
    // An alias is evaluated when the module is loaded.
    if (name !== null) return isAlias ? `"${name}"` : `${prefix}${name}`;
    if (schema.const !== undefined) return literal([schema.const]);
    if (schema.enum !== undefined) return literal(schema.enum);
    if (schema.anyOf !== undefined) {
      const said = schema.anyOf.filter((one) => Object.keys(one).length > 0);
      const inner = said.map((one, at) => {
        const isOnly = said.filter(isRecord).length < 2;
        return this.typeOf(one, isOnly ? place : `${place}${at + 1}`, prefix, isAlias);
      });
      return union(inner);
    }
    const { type } = schema;
    if (typeof type === "object")
      return union(type.map((one) => this.typeOf({ ...schema, type: one }, place, prefix, isAlias)));
    switch (type) {
      case "integer":
        return "int";
      case "number":
        return "float";
      case "string":
        return "str";
      case "boolean":
        return "bool";
      case "null":
        return "None";
      case "array":
        return `List[${this.typeOf(schema.items ?? {}, `${place}Item`, prefix, isAlias)}]`;
      case "object":
        return this.objectType(schema, place, prefix, isAlias);
      default:
        return "Any";
    }
  }

  private objectType(schema: Schema, place: string, prefix: string, isAlias: boolean): string {
    const { additionalProperties: others } = schema;
    const values = typeof others === "object" ? others : Object.values(schema.patternProperties ?? {})[0];
    if (values !== undefined) return `Dict[str, ${this.typeOf(values, `${place}Value`, prefix, isAlias)}]`;
    if (!isRecord(schema)) return "Dict[str, Any]";
    // A response without a name of its own is rare, and its type has no module to be in.
    if (prefix !== "") return "Dict[str, Any]";
    // Components have the names that they have in the API.
    const name = place in this.document.components.schemas ? `${place}Object` : place;
    this.class(name, schema);
    return isAlias ? `"${name}"` : name;
  }

  private class(name: string, { properties = {}, required = [], description }: Schema): void {
    const members = Object.entries(properties)
      .filter(([, schema]) => schema.not === undefined)
      .map(([member, schema]) => ({
        member,
        isRequired: required.includes(member),
        type: this.typeOf(schema, `${name}${pascal(member)}`, ""),
        note: schema.description,
      }));
    // Python 3.9 has no mark for single members, and no syntax for members that are keywords: they are in classes of their own.
    const isPlain = ({ member }: { member: string }): boolean =>
      /^[A-Za-z_]\w*$/.test(member) && !isKeyword(member);
    const bases: string[] = [];
    for (const [suffix, isRequired] of [
      ["Named", true],
      ["NamedOptional", false],
    ] as const) {
      const chosen = members.filter((one) => one.isRequired === isRequired && !isPlain(one));
      if (chosen.length === 0) continue;
      const rows = chosen.map(
        ({ member, type }) => `    ${JSON.stringify(member)}: ${JSON.stringify(type)},\n`,
      );
      const base = `_${name}${suffix}`;
      this.texts.push(
        `${base} = TypedDict(\n    "${base}",\n    {\n    ${rows.join("    ")}    },\n${isRequired ? "" : "    total=False,\n"})\n`,
      );
      bases.push(base);
    }
    const lines = (isRequired: boolean): string[] =>
      members
        .filter((one) => one.isRequired === isRequired && isPlain(one))
        .map(
          ({ member, type, note }) => `    ${member}: ${type}\n${note === undefined ? "" : docstring(note)}`,
        );
    const [always, sometimes] = [lines(true), lines(false)];
    const head = description === undefined ? "" : `${docstring(description)}\n`;
    if (always.length > 0 && sometimes.length > 0) {
      this.texts.push(`class _${name}Required(${[...bases, "TypedDict"].join(", ")}):\n${always.join("")}`);
      this.texts.push(`class ${name}(_${name}Required, total=False):\n${head}${sometimes.join("")}`);
      return;
    }
    const total = always.length > 0 || members.length === 0 ? "" : ", total=False";
    const body = [...always, ...sometimes].join("") || "    pass\n";
    this.texts.push(`class ${name}(${[...bases, "TypedDict"].join(", ")}${total}):\n${head}${body}`);
  }
}

/** An object whose members are known. */
function isRecord({ type, properties = {}, additionalProperties, patternProperties }: Schema): boolean {
  if (type !== "object" || typeof additionalProperties === "object" || patternProperties !== undefined)
    return false;
  return Object.keys(properties).length > 0 && additionalProperties !== true;
}

function literal(values: readonly unknown[]): string {
  // Fractions are no literals.
  if (values.some((value) => typeof value === "number" && !Number.isInteger(value))) return "float";
  const texts = values.filter((value) => value !== null).map(constant);
  const isNullable = texts.length < values.length;
  if (texts.length === 0) return "None";
  const type = `Literal[${texts.join(", ")}]`;
  return isNullable ? `Optional[${type}]` : type;
}

function constant(value: unknown): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  return JSON.stringify(value);
}

function docstring(text: string): string {
  const lines = textLines(text.replaceAll("\\", "\\\\").replaceAll('"""', "'''"), 110);
  const [only = ""] = lines;
  // A quotation mark at the end would end the text.
  const end = (lines.at(-1) ?? "").endsWith('"') ? " " : "";
  if (lines.length === 1) return `    """${only}${end}"""\n`;
  return `    """${lines.join("\n    ")}${end}\n    """\n`;
}
