import { parseDateTime } from "../../kernel/date-time.ts";
import { attributeReader, type Effort, type EvaluationContext, textOf } from "./context.ts";
import type { Condition, ConditionOp } from "./definition-schema.ts";
import { compareVersions, parseVersion, SEMVER_LENGTH_MAX } from "./semver.ts";

/** Whether a condition holds at a moment. */
export type CompiledCondition = (context: EvaluationContext, now: number, effort: Effort) => boolean;

/** Whether one value, no list, is as wanted. */
type Match = (value: unknown, effort: Effort) => boolean;

/** The attribute that is the server's time. */
const NOW = "$now";
/** Longest text that is read as a moment: RFC 3339 with nanoseconds has 35 characters. */
const MOMENT_LENGTH_MAX = 64;

/** A condition made ready, once, for any number of evaluations. What it compares with has been checked. */
export function compileCondition(condition: Condition): CompiledCondition {
  const { attribute, op, not = false } = condition;
  const read = attributeReader(attribute);
  const matches = op === "exists" ? isPresent : anyOf(MATCHERS[op](condition));
  if (attribute === NOW) return (_, now, effort) => matches(now, effort) !== not;
  return (context, _, effort) => matches(read(context), effort) !== not;
}

const isPresent: Match = (value) => value !== undefined && value !== null;

/** A list matches when any of its elements does. */
function anyOf(match: Match): Match {
  return (value, effort) => {
    if (!Array.isArray(value)) return match(value, effort);
    effort.spend(value.length);
    return value.some((element) => match(element, effort));
  };
}

const MATCHERS: Readonly<Record<Exclude<ConditionOp, "exists">, (condition: Condition) => Match>> = {
  in: (condition) => {
    const values = new Set(wantedTexts(condition));
    return onText(condition, (text, effort) => {
      effort.spendText(text);
      return values.has(text);
    });
  },
  starts_with: (condition) => anyText(condition, (text, wanted) => text.startsWith(wanted)),
  ends_with: (condition) => anyText(condition, (text, wanted) => text.endsWith(wanted)),
  contains: (condition) => {
    const values = wantedTexts(condition);
    return onText(condition, (text, effort) => {
      effort.spendText(text, values.length);
      return values.some((wanted) => text.includes(wanted));
    });
  },
  gt: onNumber((value, wanted) => value > wanted),
  gte: onNumber((value, wanted) => value >= wanted),
  lt: onNumber((value, wanted) => value < wanted),
  lte: onNumber((value, wanted) => value <= wanted),
  before: onMoment((value, wanted) => value < wanted),
  after: onMoment((value, wanted) => value >= wanted),
  semver_eq: onVersion((order) => order === 0),
  semver_gt: onVersion((order) => order > 0),
  semver_gte: onVersion((order) => order >= 0),
  semver_lt: onVersion((order) => order < 0),
  semver_lte: onVersion((order) => order <= 0),
};

function wantedTexts({ values = [], ignore_case = false }: Condition): string[] {
  return values.map((value) => (ignore_case ? String(value).toLowerCase() : String(value)));
}

function onText(
  { ignore_case = false }: Condition,
  matches: (text: string, effort: Effort) => boolean,
): Match {
  return (value, effort) => {
    const text = textOf(value);
    if (text === null) return false;
    if (!ignore_case) return matches(text, effort);
    effort.spendText(text);
    return matches(text.toLowerCase(), effort);
  };
}

function anyText(condition: Condition, matches: (text: string, wanted: string) => boolean): Match {
  const values = wantedTexts(condition);
  return onText(condition, (text, effort) => {
    effort.spend(values.length);
    return values.some((wanted) => matches(text, wanted));
  });
}

function onNumber(matches: (value: number, wanted: number) => boolean) {
  return ({ values }: Condition): Match => {
    const wanted = values?.[0] as number;
    return (value) => typeof value === "number" && matches(value, wanted);
  };
}

function onMoment(matches: (value: number, wanted: number) => boolean) {
  return ({ values }: Condition): Match => {
    const wanted = momentOf(values?.[0]) as number;
    return (value) => {
      const moment = momentOf(value);
      return moment !== null && matches(moment, wanted);
    };
  };
}

function onVersion(matches: (order: number) => boolean) {
  return ({ values }: Condition): Match => {
    const wanted = versionOf(values?.[0]);
    return (value, effort) => {
      const version = versionOf(value);
      if (version === null || wanted === null) return false;
      effort.spend(SEMVER_LENGTH_MAX >>> 4);
      return matches(compareVersions(version, wanted));
    };
  };
}

/** A moment, epoch milliseconds: RFC 3339 as text, or a number as it is; null for anything else. */
export function momentOf(value: unknown): number | null {
  if (typeof value === "number") return value;
  return typeof value === "string" && value.length <= MOMENT_LENGTH_MAX ? parseDateTime(value) : null;
}

/** A version, which is a text; null for anything else. */
export function versionOf(value: unknown): ReturnType<typeof parseVersion> {
  return typeof value === "string" ? parseVersion(value) : null;
}
