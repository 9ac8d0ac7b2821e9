import { compareNumbers, type ExactNumber, isExactNumber } from "../../../json-text.ts";
import { TIMESTAMP_LENGTH_MAX, timestampOf, versionOf } from "../definitions/condition-values.ts";
import type { Condition, ConditionOp } from "../definitions/schema.ts";
import { compareVersions, SEMVER_LENGTH_MAX, type Version } from "../definitions/semver.ts";
import {
  type Attribute,
  attributeNamed,
  attributeValue,
  type Effort,
  type EvaluationContext,
  textOf,
} from "./context.ts";

/** A condition compiled for repeated evaluation. All have the same shape, which keeps evaluation fast. */
export interface CompiledCondition {
  readonly op: ConditionOp;
  readonly attribute: Attribute;
  readonly isNow: boolean;
  readonly not: boolean;
  readonly ignoresCase: boolean;
  /** Values for text comparisons. */
  readonly texts: readonly string[];
  /** The same values as a set, if there are many and the op is `in`; null otherwise. */
  readonly set: ReadonlySet<string> | null;
  /** Value for comparisons of numbers and timestamps. */
  readonly number: number;
  readonly version: Version | null;
}

/** Name of the attribute with the server's time. */
const NOW = "$now";
/** Work of reading an exact number, in times of processing its text. */
const EXACT_NUMBER_PASSES = 4;
/** Number of values up to which comparing them one by one is faster than a set. */
const LISTED_MAX = 8;

/** Compiles a validated condition. */
export function compileCondition(condition: Condition): CompiledCondition {
  const { op, attribute, values = [], not = false, ignore_case: ignoresCase = false } = condition;
  const texts = values.map((value) => (ignoresCase ? String(value).toLowerCase() : String(value)));
  const [first] = values;
  return {
    op,
    not,
    ignoresCase,
    texts,
    attribute: attributeNamed(attribute),
    isNow: attribute === NOW,
    set: op === "in" && texts.length > LISTED_MAX ? new Set(texts) : null,
    number: (op === "before" || op === "after" ? timestampOf(first) : numberOf(first)) ?? Number.NaN,
    version: op.startsWith("semver_") ? versionOf(first) : null,
  };
}

/** Whether a condition matches a context at a time. @throws ApiError `validation_error` above the effort limit. */
export function conditionMatches(
  condition: CompiledCondition,
  context: EvaluationContext,
  now: number,
  effort: Effort,
): boolean {
  const value = condition.isNow ? now : attributeValue(context, condition.attribute);
  return matches(condition, value, effort) !== condition.not;
}

/** A list matches if any of its elements matches. */
function matches(condition: CompiledCondition, value: unknown, effort: Effort): boolean {
  if (value === undefined || value === null) return false;
  if (condition.op === "exists") return true;
  if (!Array.isArray(value)) return matchesOne(condition, value, effort);
  effort.spend(value.length);
  return value.some((element) => matchesOne(condition, element, effort));
}

function matchesOne(condition: CompiledCondition, value: unknown, effort: Effort): boolean {
  switch (condition.op) {
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return matchesNumber(condition, value, effort);
    case "before":
    case "after":
      return matchesTime(condition, value, effort);
    case "in":
    case "starts_with":
    case "ends_with":
    case "contains":
      return matchesText(condition, value, effort);
    default:
      return matchesVersion(condition, value, effort);
  }
}

function matchesNumber({ op, number }: CompiledCondition, value: unknown, effort: Effort): boolean {
  const order = orderOf(value, number, effort);
  if (order === null) return false;
  if (op === "gt") return order > 0;
  if (op === "gte") return order >= 0;
  return op === "lt" ? order < 0 : order <= 0;
}

/** Negative, 0 or positive; null for a value that is no number. */
function orderOf(value: unknown, number: number, effort: Effort): number | null {
  if (typeof value === "number") return value - number;
  if (!isExactNumber(value)) return null;
  spendNumber(value, effort);
  return compareNumbers(value.rawJSON, String(number));
}

function spendNumber({ rawJSON }: ExactNumber, effort: Effort): void {
  effort.spendText(rawJSON, EXACT_NUMBER_PASSES);
}

function matchesText(condition: CompiledCondition, value: unknown, effort: Effort): boolean {
  const { op, texts, set, ignoresCase } = condition;
  const original = textOf(value);
  if (original === null) return false;
  effort.spendText(original, ignoresCase ? 2 : 1);
  const text = ignoresCase ? original.toLowerCase() : original;
  if (set !== null) return set.has(text);
  if (op === "contains") effort.spendText(text, texts.length);
  else effort.spend(texts.length);
  for (const expected of texts) if (textMatches(op, text, expected)) return true;
  return false;
}

function textMatches(op: ConditionOp, text: string, expected: string): boolean {
  if (op === "in") return text === expected;
  if (op === "starts_with") return text.startsWith(expected);
  return op === "ends_with" ? text.endsWith(expected) : text.includes(expected);
}

function matchesTime({ op, number }: CompiledCondition, value: unknown, effort: Effort): boolean {
  if (typeof value === "string") effort.spend(TIMESTAMP_LENGTH_MAX);
  if (isExactNumber(value)) spendNumber(value, effort);
  const timestamp = timestampOf(value);
  if (timestamp === null) return false;
  return op === "before" ? timestamp < number : timestamp >= number;
}

function matchesVersion({ op, version }: CompiledCondition, value: unknown, effort: Effort): boolean {
  if (typeof value === "string") effort.spend(Math.min(value.length, SEMVER_LENGTH_MAX));
  const actual = versionOf(value);
  if (actual === null || version === null) return false;
  const order = compareVersions(actual, version);
  if (op === "semver_eq") return order === 0;
  if (op === "semver_gt") return order > 0;
  if (op === "semver_gte") return order >= 0;
  return op === "semver_lt" ? order < 0 : order <= 0;
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
