import { invalidField } from "../../kernel/errors.ts";
import { REQUIRE_MAX, SCOPE_LENGTH_MAX } from "./domain.ts";
import type { HeldTexts } from "./held-texts.ts";

/** Nested `and` and `or` of one requirement. */
export const REQUIREMENT_LEVELS_MAX = 4;
/** Texts of one requirement, over all levels: each is looked up in everything that the key holds. */
export const REQUIREMENT_TEXTS_MAX = 50;

/** What a request requires of its key: all texts of a list, or a combination of texts. */
export type Requirement = readonly string[] | Combination;

/** All or any of some texts and combinations. */
interface Combination {
  readonly operator: "and" | "or";
  readonly parts: readonly (string | Combination)[];
}

/**
 * Parses the `require` of a request.
 * @throws ApiError `validation_error`, naming the part that is wrong.
 */
export function parseRequirement(value: unknown): Requirement | null {
  if (value === null || value === undefined) return null;
  if (!Array.isArray(value)) return combinationOf(value, "require", { level: 1, texts: 0 });
  if (value.length === 0 || value.length > REQUIRE_MAX)
    throw invalidField("require", `must be a list of 1 to ${REQUIRE_MAX} texts`);
  return value.map((text, index) => textOf(text, `require.${index}`));
}

/** Why a key that holds these texts does not fulfil a requirement; null if it does. */
export function unmetReasonOf(
  requirement: Requirement,
  held: readonly HeldTexts[],
): "insufficient_scope" | "insufficient_permission" | null {
  const holds = (text: string): boolean => held.some((texts) => texts.covers(text));
  const isMet = (part: string | Combination): boolean => {
    if (typeof part === "string") return holds(part);
    return part.operator === "and" ? part.parts.every(isMet) : part.parts.some(isMet);
  };
  if ("operator" in requirement) return isMet(requirement) ? null : "insufficient_permission";
  return requirement.every(holds) ? null : "insufficient_scope";
}

function combinationOf(value: unknown, path: string, state: { level: number; texts: number }): Combination {
  const names = typeof value === "object" && value !== null ? Object.keys(value) : [];
  const [operator] = names;
  if (names.length !== 1 || (operator !== "and" && operator !== "or"))
    throw invalidField(path, "must be an object with exactly one of `and` and `or`");
  if (state.level > REQUIREMENT_LEVELS_MAX)
    throw invalidField(
      path,
      `is nested too deeply: \`require\` has at most ${REQUIREMENT_LEVELS_MAX} levels`,
    );
  const list: unknown = (value as Readonly<Record<string, unknown>>)[operator];
  const at = `${path}.${operator}`;
  if (!Array.isArray(list) || list.length === 0)
    throw invalidField(at, "must be a list of at least one text or object");
  const parts = list.map((part, index) => {
    const place = `${at}.${index}`;
    if (typeof part !== "string") {
      state.level += 1;
      const inner = combinationOf(part, place, state);
      state.level -= 1;
      return inner;
    }
    state.texts += 1;
    if (state.texts > REQUIREMENT_TEXTS_MAX)
      throw invalidField("require", `has more than ${REQUIREMENT_TEXTS_MAX} texts`);
    return textOf(part, place);
  });
  return { operator, parts };
}

function textOf(value: unknown, path: string): string {
  if (typeof value === "string" && value.length >= 1 && value.length <= SCOPE_LENGTH_MAX) return value;
  throw invalidField(path, `must be a text of 1 to ${SCOPE_LENGTH_MAX} characters`);
}
