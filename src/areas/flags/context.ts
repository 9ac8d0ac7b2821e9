import { invalidField } from "../../kernel/errors.ts";

/** What a caller says of whom a flag is evaluated for: an object as JSON has it. */
export type EvaluationContext = Readonly<Record<string, unknown>>;

/**
 * Comparisons in one evaluation, of one flag or of all: about a tenth of a second. Contexts and conditions in ordinary use
 * come to some hundreds a flag; the product of the largest of both would keep the server for minutes.
 */
export const EFFORT_MAX = 10_000_000;
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

/** Reads an attribute: the member of this very name, else by dots into objects. Undefined where there is none. */
export function attributeReader(attribute: string): (context: EvaluationContext) => unknown {
  const path = attribute.split(".");
  if (path.length === 1) return (context) => ownMember(context, attribute);
  return (context) => {
    if (Object.hasOwn(context, attribute)) return context[attribute];
    let value: unknown = context;
    for (const name of path) {
      value = ownMember(value, name);
      if (value === undefined) return undefined;
    }
    return value;
  };
}

function ownMember(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? (value as EvaluationContext)[name] : undefined;
}

/** The text of a value: texts as they are, numbers and booleans as JSON has them; null for all others. */
export function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value === "boolean" || Number.isFinite(value)) return String(value);
  return null;
}
