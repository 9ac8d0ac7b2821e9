import { parseDateTime } from "../../../kernel/time/date-time.ts";
import type { Condition, ConditionOp } from "../definitions/schema.ts";
import {
  type Attribute,
  attributeNamed,
  attributeValue,
  type Effort,
  type EvaluationContext,
  textOf,
} from "./context.ts";
import { compareVersions, parseVersion, SEMVER_LENGTH_MAX, type Version } from "./semver.ts";

/** A condition made ready, once, for any number of evaluations. All are of one shape, which is what makes them quick. */
export interface CompiledCondition {
  readonly op: ConditionOp;
  readonly attribute: Attribute;
  readonly isNow: boolean;
  readonly not: boolean;
  readonly ignoresCase: boolean;
  /** What a text is compared with. */
  readonly texts: readonly string[];
  /** The same, where there are many to be equal to; null otherwise. */
  readonly set: ReadonlySet<string> | null;
  /** What a number or a moment is compared with. */
  readonly number: number;
  readonly version: Version | null;
}

/** The attribute that is the server's time. */
const NOW = "$now";
/** Longest text that is read as a moment: RFC 3339 with nanoseconds has 35 characters. */
const MOMENT_LENGTH_MAX = 64;
/** Texts that are compared one by one sooner than looked up. */
const LISTED_MAX = 8;

/** Makes a condition ready. Its values have been checked. */
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

/** Whether a condition holds for a context at a moment. @throws ApiError `validation_error` for too much effort. */
export function holds(
  condition: CompiledCondition,
  context: EvaluationContext,
  now: number,
  effort: Effort,
): boolean {
  const value = condition.isNow ? now : attributeValue(context, condition.attribute);
  return matches(condition, value, effort) !== condition.not;
}

/** A list matches when any of its elements does. */
function matches(condition: CompiledCondition, value: unknown, effort: Effort): boolean {
  if (value === undefined || value === null) return false;
  if (condition.op === "exists") return true;
  if (!Array.isArray(value)) return matchesOne(condition, value, effort);
  effort.spend(value.length);
  return value.some((element) => matchesOne(condition, element, effort));
}

function matchesOne(condition: CompiledCondition, value: unknown, effort: Effort): boolean {
  const { number } = condition;
  switch (condition.op) {
    case "gt":
      return typeof value === "number" && value > number;
    case "gte":
      return typeof value === "number" && value >= number;
    case "lt":
      return typeof value === "number" && value < number;
    case "lte":
      return typeof value === "number" && value <= number;
    case "before":
    case "after":
      return matchesMoment(condition, value, effort);
    case "in":
    case "starts_with":
    case "ends_with":
    case "contains":
      return matchesText(condition, value, effort);
    default:
      return matchesVersion(condition, value, effort);
  }
}

function matchesText(condition: CompiledCondition, value: unknown, effort: Effort): boolean {
  const { op, texts, set, ignoresCase } = condition;
  const given = textOf(value);
  if (given === null) return false;
  effort.spendText(given, ignoresCase ? 2 : 1);
  const text = ignoresCase ? given.toLowerCase() : given;
  if (set !== null) return set.has(text);
  if (op === "contains") effort.spendText(text, texts.length);
  else effort.spend(texts.length);
  for (const wanted of texts) if (isSo(op, text, wanted)) return true;
  return false;
}

function isSo(op: ConditionOp, text: string, wanted: string): boolean {
  if (op === "in") return text === wanted;
  if (op === "starts_with") return text.startsWith(wanted);
  return op === "ends_with" ? text.endsWith(wanted) : text.includes(wanted);
}

function matchesMoment({ op, number }: CompiledCondition, value: unknown, effort: Effort): boolean {
  if (typeof value === "string") effort.spend(MOMENT_LENGTH_MAX);
  const moment = timestampOf(value);
  if (moment === null) return false;
  return op === "before" ? moment < number : moment >= number;
}

function matchesVersion({ op, version }: CompiledCondition, value: unknown, effort: Effort): boolean {
  if (typeof value === "string") effort.spend(Math.min(value.length, SEMVER_LENGTH_MAX));
  const given = versionOf(value);
  if (given === null || version === null) return false;
  const order = compareVersions(given, version);
  if (op === "semver_eq") return order === 0;
  if (op === "semver_gt") return order > 0;
  if (op === "semver_gte") return order >= 0;
  return op === "semver_lt" ? order < 0 : order <= 0;
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

/** A moment, epoch milliseconds: RFC 3339 as text, or a number as it is; null for anything else. */
export function timestampOf(value: unknown): number | null {
  if (typeof value === "number") return value;
  return typeof value === "string" && value.length <= MOMENT_LENGTH_MAX ? parseDateTime(value) : null;
}

/** A version, which is a text; null for anything else. */
export function versionOf(value: unknown): Version | null {
  return typeof value === "string" ? parseVersion(value) : null;
}
