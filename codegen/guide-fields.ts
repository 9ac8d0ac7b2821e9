import type { Document, Schema } from "./document.ts";

/** The limits and examples of a value, which the other generators do not need. */
interface Value extends Schema {
  readonly title?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly format?: string;
}

/** Maximum of a time in epoch milliseconds, and above it that of every integer: neither is a limit worth showing. */
const TIME_MAX = 253_402_300_799_999;
/** Longest pattern that is readable in a table. */
const PATTERN_LENGTH_MAX = 40;

/**
 * A marked block from `<!-- fields: NAME -->` to `<!-- /fields -->`. Optionally `only` or `without` and names of fields
 * follow NAME.
 */
const BLOCK = /^<!-- fields: ([\w.]+)(?: (only|without) ([\w. ]+?))? -->\n(?:.*?\n)??<!-- \/fields -->$/gms;

/** A page whose marked blocks contain the tables from the API's document. */
export function withFields(page: string, document: Document): string {
  return page.replaceAll(
    BLOCK,
    (_block, name: string, mode: string | undefined, list: string | undefined) => {
      const schema = componentOf(name, document);
      const chosen = list?.split(" ") ?? [];
      const rows = rowsOf(schema, "", document).filter(({ field }) => {
        const isNamed = chosen.some(
          (one) => field === one || field.startsWith(`${one}.`) || field.startsWith(`${one}[`),
        );
        return mode === undefined || isNamed === (mode === "only");
      });
      if (rows.length === 0) throw new Error(`${name} has none of the fields: ${list}`);
      const head = `<!-- fields: ${name}${mode === undefined ? "" : ` ${mode} ${list}`} -->`;
      const lines = rows.map(
        ({ field, value, description }) => `| \`${field}\` | ${value} | ${description} |`,
      );
      return [
        head,
        "",
        "| field | value (default) | description |",
        "|---|---|---|",
        ...lines,
        "",
        "<!-- /fields -->",
      ].join("\n");
    },
  );
}

function componentOf(name: string, document: Document): Value {
  const schema = document.components.schemas[name];
  if (schema === undefined) throw new Error(`the API's document has no schema ${name}`);
  return schema;
}

interface Row {
  readonly field: string;
  readonly value: string;
  readonly description: string;
}

/** The fields of an object, and those of objects within it. */
function rowsOf(schema: Value, prefix: string, document: Document): Row[] {
  const required = new Set(schema.required);
  return Object.entries(schema.properties ?? {}).flatMap(([name, one]) => {
    const field = prefix + name;
    const inner = alternativesOf(one).find(({ type }) => type !== "null") ?? one;
    const own: Row = {
      field,
      value: formatOf(one, required.has(name), document),
      description: (descriptionOf(one, document) ?? "").replaceAll("|", "\\|"),
    };
    const nested =
      inner.items?.properties === undefined
        ? rowsOf(inner, `${field}.`, document)
        : rowsOf(inner.items, `${field}[].`, document);
    return [own, ...nested];
  });
}

function descriptionOf(schema: Value, document: Document): string | undefined {
  const all = [schema, ...alternativesOf(schema).map((one) => targetOf(one, document))];
  return all.find(({ description }) => description !== undefined)?.description;
}

function targetOf(schema: Value, document: Document): Value {
  return schema.$ref === undefined
    ? schema
    : componentOf(schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1), document);
}

function alternativesOf(schema: Value): readonly Value[] {
  return schema.anyOf ?? [schema];
}

function formatOf(schema: Value, isRequired: boolean, document: Document): string {
  const alternatives = alternativesOf(schema).map((one) => targetOf(one, document));
  const texts = alternatives
    .filter((one) => one.type !== "null")
    .flatMap((one) =>
      (one.enum ?? []).some((value) => value !== null) ? valuesOf(one) : [formOf(one, document)],
    );
  if (alternatives.some(isNullType)) texts.push("null");
  const form = listed([...new Set(texts)]);
  const fallback = schema.default ?? alternatives.find((one) => one.default !== undefined)?.default;
  if (isRequired) return `${form}, required`;
  return fallback === undefined ? form : `${form} (${printed(fallback)})`;
}

function valuesOf(schema: Value): string[] {
  return (schema.enum ?? []).filter((one) => one !== null).map(printed);
}

function isNullType({ type, enum: values }: Value): boolean {
  return type === "null" || (Array.isArray(type) && type.includes("null")) || values?.includes(null) === true;
}

/** The type and limits of a value, in words. */
function formOf(schema: Value, document: Document): string {
  if (schema.const !== undefined) return printed(schema.const);
  if (schema.enum !== undefined) return listed(valuesOf(schema));
  if (schema.anyOf !== undefined && schema.type === undefined) {
    return listed([...new Set(schema.anyOf.map((one) => formOf(targetOf(one, document), document)))]);
  }
  const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== "null") : schema.type;
  // Durations have both forms.
  const isDuration = schema.type?.includes("string") && /integer|number/.test(String(schema.type));
  if (isDuration && type === "string") return "string such as `5m`, or milliseconds";
  if (isDuration) return `${type}${range(schema.minimum, schema.maximum, "")}, or string such as \`1m\``;
  switch (type) {
    case "string":
      if (schema.format === "date-time") return "date-time";
      return `string${range(schema.minLength, schema.maxLength, "characters")}${patternOf(schema)}`;
    case "integer":
    case "number":
      return `${type}${range(schema.minimum, (schema.maximum ?? 0) >= TIME_MAX ? undefined : schema.maximum, "")}`;
    case "array": {
      const item =
        schema.items === undefined ? "any JSON" : formOf(targetOf(schema.items, document), document);
      const [kind = "", ...limits] =
        item === "object" || item.startsWith("string") ? item.split(/,? (.*)/s) : [item];
      // A pattern of each item is for the API reference: it makes the cell unreadable.
      const each = limits
        .join("")
        .trim()
        .replace(/^`.*`$/, "");
      const items = item === kind && item !== "object" && item !== "string" ? item : `${kind}s`;
      return `array of ${items}${each === "" ? "" : ` (${each})`}${range(undefined, schema.maxItems, "items")}`;
    }
    case "boolean":
    case "object":
      return type;
    default:
      return "any JSON";
  }
}

/** The limits of a length or of a number; a lower limit of 0 or 1 of a length needs no mention alone. */
function range(minimum: number | undefined, maximum: number | undefined, unit: string): string {
  const [from, to] = [minimum, maximum].map((limit) => limit?.toLocaleString("en"));
  const low =
    unit === "" || (minimum ?? 0) > 1 || (minimum === 1 && maximum !== undefined) ? from : undefined;
  const words = unit === "" ? "" : ` ${unit}`;
  if (to === undefined) return low === undefined ? "" : `, at least ${low}${words}`;
  if (low === undefined) return `, at most ${to}${words}`;
  return `${unit === "" ? "" : ","} ${low} to ${to}${words}`;
}

/** A short pattern that is not only a limit of the length. */
function patternOf({ pattern, maxLength }: Value): string {
  if (pattern === undefined || maxLength !== undefined || pattern.length > PATTERN_LENGTH_MAX) return "";
  return `, \`${pattern.replaceAll("|", "\\|")}\``;
}

function printed(value: unknown): string {
  return `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}

/** Alternatives in words; with a comma before the last one if one of them has a comma. */
function listed(words: readonly string[]): string {
  if (words.length < 2) return words[0] ?? "";
  const separator = words.length === 2 && words.some((word) => word.includes(", ")) ? ", or " : " or ";
  return `${words.slice(0, -1).join(", ")}${separator}${words.at(-1)}`;
}
