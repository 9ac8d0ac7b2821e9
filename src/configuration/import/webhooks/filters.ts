import { assertFilter } from "../../../kernel/data/filter.ts";
import { rejectionBy } from "../../../kernel/errors.ts";
import { isObject, type SourceObject, shown } from "../source.ts";

/** Operators that mean the same in filters of other products, by the name of theirs. */
const OPERATORS: ReadonlyMap<string, string> = new Map([
  ...["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$startsWith", "$endsWith"].map(
    (name): [string, string] => [name, name],
  ),
  ["$neq", "$ne"],
  ["$exist", "$exists"],
  ["$exists", "$exists"],
  ["$or", "$or"],
  ["$and", "$and"],
  ["$not", "$not"],
]);
/** Operators whose value is a list. */
const OF_LISTS: ReadonlySet<string> = new Set(["$in", "$nin", "$or", "$and"]);

/** The condition on the body of an object that also has conditions on other parts of a request. */
export interface BodyFilter {
  readonly filter: Readonly<Record<string, unknown>> | null;
  /** Whether it is all of the object's conditions; otherwise the filter is null, and the loss is noted. */
  readonly isWhole: boolean;
}

/**
 * Reads the members `headers`, `body`, `query` and `path` of a filter, of which ours can have the body alone. `isDotted`: whether
 * `a.b` names the member `b` of `a`. A filter of which any part has no counterpart is not translated: the rest alone would accept
 * what it excludes.
 */
export function bodyFilterOf(source: SourceObject, isDotted: boolean): BodyFilter {
  const others = ["headers", "query", "path"].filter((part) => !isEmpty(source.any(part)));
  for (const part of others) source.note(part, "filters read the body only");
  const body = source.any("body");
  if (isEmpty(body)) return { filter: null, isWhole: others.length === 0 };
  try {
    const filter = conditions(body, isDotted);
    const rejection = rejectionBy(() => assertFilter("body", filter));
    if (rejection !== null) throw new Untranslatable(rejection.message);
    return others.length > 0 ? { filter: null, isWhole: false } : { filter, isWhole: true };
  } catch (error) {
    if (!(error instanceof Untranslatable)) throw error;
    source.note("body", error.message);
    return { filter: null, isWhole: false };
  }
}

function isEmpty(value: unknown): boolean {
  return value === null || value === "" || (isObject(value) && Object.keys(value).length === 0);
}

class Untranslatable extends Error {}

function conditions(value: unknown, isDotted: boolean): Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw new Untranslatable("is no object");
  return Object.fromEntries(
    Object.entries(value).map(([name, condition]) => {
      if (!name.startsWith("$")) return [memberName(name, isDotted), member(condition, isDotted)];
      const operator = OPERATORS.get(name);
      if (operator === undefined || OF_LISTS.has(operator) !== Array.isArray(condition))
        throw new Untranslatable(`${shown(name)} has no counterpart`);
      if (operator === "$or" || operator === "$and")
        return [operator, (condition as readonly unknown[]).map((inner) => conditions(inner, isDotted))];
      return [operator, operator === "$not" ? conditions(condition, isDotted) : condition];
    }),
  );
}

function member(condition: unknown, isDotted: boolean): unknown {
  if (Array.isArray(condition)) throw new Untranslatable("a list without an operator has no counterpart");
  return isObject(condition) ? conditions(condition, isDotted) : condition;
}

/** The name of a member, or the pointer to one further inside. */
function memberName(name: string, isDotted: boolean): string {
  // Filters of members of every item of a list.
  if (name.includes("$")) throw new Untranslatable(`${shown(name)} has no counterpart`);
  if (!isDotted || !name.includes(".")) {
    if (name.startsWith("/")) throw new Untranslatable(`${shown(name)} would be read as a pointer`);
    return name;
  }
  return `/${name
    .split(".")
    .map((step) => step.replaceAll("~", "~0").replaceAll("/", "~1"))
    .join("/")}`;
}
