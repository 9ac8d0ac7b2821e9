import { Kind, type TSchema } from "@sinclair/typebox";
import { nearestName } from "../../data/nearest-name.ts";
import { echoed } from "../../errors.ts";
import { compiledCheck } from "./compiled-check.ts";

/** Warnings of one response: a client that sends a whole document by mistake needs no line for each of its fields. */
export const WARNINGS_MAX = 10;
/** Longest name for which a similar one is searched: longer than every declared name. */
export const SUGGESTED_NAME_LENGTH_MAX = 64;

/** Lists the fields of a checked value that its schema does not declare, at every level, as warnings. */
export function unknownFieldWarnings(schema: TSchema, value: unknown): string[] {
  const warnings: string[] = [];
  for (const { path, name, names } of unknownFields(schema, "", value)) {
    warnings.push(warningOf("field", path + name, name, names));
    if (warnings.length === WARNINGS_MAX) break;
  }
  return warnings;
}

/** Lists the parameters of a query that an endpoint does not declare, as warnings. */
export function unknownParameterWarnings(query: string, names: readonly string[]): string[] {
  const unknown = new Set<string>();
  for (const name of new URLSearchParams(query).keys()) {
    if (!names.includes(name)) unknown.add(name);
    if (unknown.size === WARNINGS_MAX) break;
  }
  return [...unknown].map((name) => warningOf("query parameter", name, name, names));
}

/** ``Unknown field `period`. Did you mean `period_ms`?`` */
function warningOf(kind: string, path: string, name: string, names: readonly string[]): string {
  const meant = name.length <= SUGGESTED_NAME_LENGTH_MAX ? similarName(name, names) : null;
  const suggestion = meant === null ? "" : ` Did you mean \`${meant}\`?`;
  return `Unknown ${kind} \`${echoed(path)}\`.${suggestion}`;
}

/** A name with a unit or a prefix added is similar too: `period` and `period_ms`, `url` and `target_url`. */
function similarName(name: string, names: readonly string[]): string | null {
  const isPart = (known: string) => known.startsWith(`${name}_`) || known.endsWith(`_${name}`);
  return nearestName(name, names) ?? names.find(isPart) ?? null;
}

interface UnknownField {
  /** Path of the object, with a dot at its end; empty for the body itself. */
  readonly path: string;
  readonly name: string;
  /** The declared fields of the object. */
  readonly names: readonly string[];
}

function* unknownFields(schema: TSchema, path: string, value: unknown): Generator<UnknownField> {
  if (typeof value !== "object" || value === null) return;
  switch (schema[Kind]) {
    case "Object": {
      const { properties, additionalProperties } = schema;
      if (additionalProperties !== undefined && additionalProperties !== false) return;
      for (const [name, member] of Object.entries(value)) {
        if (Object.hasOwn(properties, name))
          yield* unknownFields(properties[name], `${path}${name}.`, member);
        else yield { path, name, names: Object.keys(properties) };
      }
      return;
    }
    case "Array":
      for (const [index, item] of (value as readonly unknown[]).entries())
        yield* unknownFields(schema.items, `${path}${index}.`, item);
      return;
    case "Union": {
      const fitting = (schema.anyOf as readonly TSchema[]).find((member) =>
        compiledCheck(member).Check(value),
      );
      if (fitting !== undefined) yield* unknownFields(fitting, path, value);
    }
  }
}
