import type { Schema } from "./document.ts";

/** Whether a type is of what is sent (which may leave out what is optional by `undefined`) or of what is answered. */
export type Direction = "sent" | "answered";

/** The name of a component that a schema refers to; null when it stands for itself. */
export function referenceOf({ $ref }: Schema): string | null {
  return $ref === undefined ? null : ($ref.split("/").at(-1) ?? null);
}

/** Writes schemas as TypeScript. */
export class TypeWriter {
  /** The type of a schema: its name where it is a component. */
  typeOf(schema: Schema, direction: Direction): string {
    return referenceOf(schema) ?? this.written(schema, direction);
  }

  /** The type of a schema, written out. */
  written(schema: Schema, direction: Direction): string {
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.enum !== undefined) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
    if (schema.anyOf !== undefined) return schema.anyOf.map((one) => this.typeOf(one, direction)).join(" | ");
    const { type } = schema;
    if (typeof type === "object") {
      return type.map((one) => this.written({ ...schema, type: one }, direction)).join(" | ");
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
        return this.list(schema, direction);
      case "object":
        return this.object(schema, direction);
      case undefined:
        return "unknown";
      default:
        throw new Error(`no type is known for ${JSON.stringify(schema)}`);
    }
  }

  private list({ items = {} }: Schema, direction: Direction): string {
    const item = this.typeOf(items, direction);
    const list = /^[\w"]+$/.test(item) ? `${item}[]` : `(${item})[]`;
    return direction === "sent" ? `readonly ${list}` : list;
  }

  private object(schema: Schema, direction: Direction): string {
    const [values] = Object.values(schema.patternProperties ?? {});
    if (values !== undefined) return `Record<string, ${this.typeOf(values, direction)}>`;
    // Interfaces have no index signature: whoever sends one could not hand it in as a record.
    const open = schema.additionalProperties === true;
    if (open && Object.keys(schema.properties ?? {}).length === 0)
      return direction === "sent" ? "object" : "Record<string, unknown>";
    return `{\n${this.members(schema, direction)}${open ? "[name: string]: unknown;\n" : ""}}`;
  }

  private members({ properties = {}, required = [] }: Schema, direction: Direction): string {
    return Object.entries(properties)
      .filter(([, schema]) => schema.not === undefined)
      .map(([name, schema]) => {
        const isRequired = required.includes(name);
        const undef = isRequired || direction === "answered" ? "" : " | undefined";
        const key = /^\w+$/.test(name) && !/^\d/.test(name) ? name : JSON.stringify(name);
        const comment = commentOf(schema);
        return `${comment}${key}${isRequired ? "" : "?"}: ${this.typeOf(schema, direction)}${undef};\n`;
      })
      .join("");
  }
}

function commentOf(schema: Schema): string {
  const notes = schema.description ?? "";
  return notes === "" ? "" : `/** ${notes} */\n`;
}
