/** Longest path. */
export const JSON_PATH_LENGTH_MAX = 256;

/** `.name`, `[0]` or `["name"]`. */
const STEP = /^(?:\.([\p{L}\p{N}_$-]+)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\])/u;

/** A member's name, or an item's place. */
export type JsonStep = string | number;

/** The steps of a path such as `$.a.b[0]["c"]`; null for what is none. */
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
 * What a parsed JSON value has at a path; undefined where there is nothing. Own members alone are seen, so that no name
 * leads out of the value. `length` is that of a list or a text, in characters.
 */
export function atJsonPath(value: unknown, steps: readonly JsonStep[]): unknown {
  return steps.reduce(member, value);
}

function member(value: unknown, step: JsonStep): unknown {
  if (typeof step === "number") return Array.isArray(value) ? value[step] : undefined;
  if (Array.isArray(value)) return step === "length" ? value.length : undefined;
  if (typeof value === "string") return step === "length" ? [...value].length : undefined;
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
  return Reflect.get(value, step);
}
