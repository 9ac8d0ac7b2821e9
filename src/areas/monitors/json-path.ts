import { isExactNumber } from "../../json-text.ts";

export const JSON_PATH_LENGTH_MAX = 256;

/** `.name`, `[0]` or `["name"]`. */
const STEP = /^(?:\.([\p{L}\p{N}_$-]+)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\])/u;

/** A member name or an item index. */
export type JsonStep = string | number;

/** Parses a path such as `$.a.b[0]["c"]`; null for an invalid path. */
export function readJsonPath(path: string): readonly JsonStep[] | null {
  if (!path.startsWith("$") || path.length > JSON_PATH_LENGTH_MAX) return null;
  const steps: JsonStep[] = [];
  let rest = path.slice(1);
  while (rest !== "") {
    const [whole = "", name, place, quoted] = STEP.exec(rest) ?? [];
    const step = place === undefined ? (name ?? unquoted(quoted)) : Number(place);
    if (step === null) return null;
    steps.push(step);
    rest = rest.slice(whole.length);
  }
  return steps;
}

function unquoted(literal: string | undefined): string | null {
  try {
    return literal === undefined ? null : String(JSON.parse(literal));
  } catch {
    return null;
  }
}

/**
 * The value at a path of a parsed JSON value; undefined if there is none. Inherited members are not read. `length` is the
 * length of an array, or of a string in characters.
 */
export function atJsonPath(value: unknown, steps: readonly JsonStep[]): unknown {
  return steps.reduce(member, value);
}

function member(value: unknown, step: JsonStep): unknown {
  if (typeof step === "number") return Array.isArray(value) ? value[step] : undefined;
  if (Array.isArray(value)) return step === "length" ? value.length : undefined;
  if (typeof value === "string") return step === "length" ? [...value].length : undefined;
  if (typeof value !== "object" || value === null || isExactNumber(value)) return undefined;
  if (!Object.hasOwn(value, step)) return undefined;
  return Reflect.get(value, step);
}
