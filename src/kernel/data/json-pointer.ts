import { Type } from "@sinclair/typebox";
import { isExactNumber } from "../../json-text.ts";

/** Longest JSON pointer: that of a member which is deep, with long names. */
const POINTER_LENGTH_MAX = 512;

/** What stands where a member is missing: no JSON value is equal to it. */
export const MISSING = Symbol("missing");

/** The schema of a JSON pointer (RFC 6901). */
export function jsonPointer(description: string, example: string) {
  return Type.String({
    pattern: "^(?:$|/(?:[^~]|~[01])*$)",
    maxLength: POINTER_LENGTH_MAX,
    errorMessage: `must be a JSON pointer such as ${example}, at most ${POINTER_LENGTH_MAX} characters`,
    description,
    examples: [example],
  });
}

/** The names in a JSON pointer (RFC 6901); null if a `~` is followed by neither 0 nor 1. */
export function pointerSteps(pointer: string): string[] | null {
  if (pointer.replaceAll("~0", "").replaceAll("~1", "").includes("~")) return null;
  return pointerNames(pointer);
}

/** The same of a pointer that has been checked. */
export function pointerNames(pointer: string): string[] {
  const names = pointer.split("/").slice(1);
  return names.map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The member that steps lead to; {@link MISSING} if there is none. */
export function memberAt(value: unknown, steps: readonly string[]): unknown {
  let at = value;
  for (const step of steps) {
    if (typeof at !== "object" || at === null || isExactNumber(at) || !Object.hasOwn(at, step))
      return MISSING;
    // Of an array its elements alone are members, not its length.
    if (Array.isArray(at) && step === "length") return MISSING;
    at = (at as Record<string, unknown>)[step];
  }
  return at;
}
