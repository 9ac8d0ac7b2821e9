import { isExactNumber } from "../../../json-text.ts";
import { invalidField } from "../../../kernel/errors.ts";

/** Evaluation context of a flag: a JSON object sent by the caller. */
export type EvaluationContext = Readonly<Record<string, unknown>>;

/**
 * Comparisons per evaluation of one flag or of all, about 5 ms. Typical contexts and conditions need a few dozen per flag;
 * the largest of both would take minutes.
 */
export const EFFORT_MAX = 500_000;
/** UTF-16 units of a text that are processed in the time of one comparison, as a power of two. */
const TEXT_UNITS_SHIFT = 4;

/** Work done by an evaluation, in comparisons. */
export class Effort {
  private spent = 0;

  /** `field`: the field of the request with what is evaluated. */
  constructor(private readonly field = "context") {}

  /** Adds comparisons. @throws ApiError `validation_error` above the limit. */
  spend(comparisons: number): void {
    this.spent += comparisons;
    if (this.spent <= EFFORT_MAX) return;
    throw invalidField(
      this.field,
      "is too large for the conditions of these flags: omit attributes that no condition uses",
    );
  }

  /** Adds the work of processing a text the given number of times. */
  spendText(text: string, times = 1): void {
    this.spend(times * (1 + (text.length >>> TEXT_UNITS_SHIFT)));
  }
}

/** Location of a value in a context. */
export interface Attribute {
  readonly name: string;
  /** Member names to follow if there is no member with the complete name; null for a name without dots. */
  readonly path: readonly string[] | null;
  /** Whether objects inherit a member with one of these names, such as `constructor`. Only these need the slower `hasOwn`. */
  readonly isInherited: boolean;
}

/** Creates an attribute from its name; dots select members of objects. */
export function attributeNamed(name: string): Attribute {
  const parts = name.split(".");
  const isInherited = [name, ...parts].some((part) => part in Object.prototype);
  return { name, path: parts.length === 1 ? null : parts, isInherited };
}

/** Returns the value of an attribute: the member with the complete name, or else the nested member. */
export function attributeValue(context: EvaluationContext, { name, path, isInherited }: Attribute): unknown {
  const member = memberOf(context, name, isInherited);
  if (member !== undefined || path === null) return member;
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

/** Returns the text of a string, number (as in JSON) or boolean; null for any other value. */
export function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value === "boolean" || Number.isFinite(value)) return String(value);
  return isExactNumber(value) ? value.rawJSON : null;
}
