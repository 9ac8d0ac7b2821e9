import { invalidField } from "../../../kernel/errors.ts";

/** What a caller says of whom a flag is evaluated for: an object as JSON has it. */
export type EvaluationContext = Readonly<Record<string, unknown>>;

/**
 * Comparisons in one evaluation, of one flag or of all: about 5 ms. Contexts and conditions in ordinary use come to some
 * tens a flag; the product of the largest of both would take minutes.
 */
export const EFFORT_MAX = 500_000;
/** Units of a text that are searched, folded or hashed in the time of one comparison, as a power of two. */
const UNITS_SHIFT = 4;

/** What an evaluation has cost. */
export class Effort {
  private spent = 0;

  /** @throws ApiError `validation_error` for too much. */
  spend(comparisons: number): void {
    this.spent += comparisons;
    if (this.spent <= EFFORT_MAX) return;
    throw invalidField(
      "context",
      "is too large for the conditions of these flags: leave out what they do not ask for",
    );
  }

  /** The same for going through a text so many times. */
  spendText(text: string, times = 1): void {
    this.spend(times * (1 + (text.length >>> UNITS_SHIFT)));
  }
}

/** Where a value lies in a context. */
export interface Attribute {
  readonly name: string;
  /** The names to follow where there is no member of that very name; null for a name without dots. */
  readonly path: readonly string[] | null;
  /** Whether objects inherit something by one of these names, such as `constructor`. Asking what is own takes its time. */
  readonly isInherited: boolean;
}

/** An attribute by its name, with dots for what lies within objects. */
export function attributeNamed(name: string): Attribute {
  const parts = name.split(".");
  const isInherited = [name, ...parts].some((one) => one in Object.prototype);
  return { name, path: parts.length === 1 ? null : parts, isInherited };
}

/** The value of an attribute: the member of that very name, else by dots into objects. Undefined where there is none. */
export function attributeValue(context: EvaluationContext, { name, path, isInherited }: Attribute): unknown {
  const own = memberOf(context, name, isInherited);
  if (own !== undefined || path === null) return own;
  let value: unknown = context;
  for (const part of path) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    value = memberOf(value as EvaluationContext, part, isInherited);
  }
  return value;
}

function memberOf(object: EvaluationContext, name: string, isInherited: boolean): unknown {
  return isInherited && !Object.hasOwn(object, name) ? undefined : object[name];
}

/** The text of a value: texts as they are, numbers and booleans as JSON has them; null for all others. */
export function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value === "boolean" || Number.isFinite(value)) return String(value);
  return null;
}
