import { type TInteger, type TNumber, type TString, Type } from "@sinclair/typebox";
import { durationText, msOfText, STORED_DURATION } from "./duration-text.ts";

/** Units of the numbers that fields with a duration accept. */
const UNITS = {
  ms: { ms: 1, noun: "milliseconds", suffix: "ms" },
  seconds: { ms: 1_000, noun: "seconds", suffix: "s" },
  minutes: { ms: 60_000, noun: "minutes", suffix: "m" },
  hours: { ms: 3_600_000, noun: "hours", suffix: "h" },
  days: { ms: 86_400_000, noun: "days", suffix: "d" },
} as const;

/** Unit of a field with a duration. */
export type DurationUnit = keyof typeof UNITS;

/** Extension of a schema: the unit of its numbers, or `text` where durations are stored as texts. */
const EXTENSION = "x-duration";

/** Limits and notes of a field with a duration, its limits in its unit. */
export interface DurationOptions {
  readonly unit: DurationUnit;
  readonly min: number;
  /** Omitted where another rule limits it. */
  readonly max?: number;
  readonly description?: string;
  readonly default?: number;
  readonly examples?: readonly number[];
}

/**
 * A duration as a whole number of a unit; requests and configuration files can also have a text such as `90s`, which
 * handlers read as that number.
 */
export function duration(options: DurationOptions): TInteger {
  return Type.Integer(durationOptions("an integer", options));
}

/** The same, with fractions of the unit: `90m` is 1.5 hours. */
export function fractionalDuration(options: DurationOptions): TNumber {
  return Type.Number(durationOptions("a number", options));
}

function durationOptions(noun: string, { unit, min, max, examples, ...more }: DurationOptions) {
  const { ms, noun: units, suffix } = UNITS[unit];
  const limits = max === undefined ? `of at least ${min}` : `from ${min} to ${max}`;
  const example = durationText(Math.max(min, 1) * ms, suffix === "ms" ? "d" : suffix);
  return {
    minimum: min,
    ...(max === undefined ? {} : { maximum: max }),
    errorMessage: `must be ${noun} ${limits} (${units}), or a text such as "${example}"`,
    [EXTENSION]: unit,
    ...(examples === undefined ? {} : { examples: [...examples] }),
    ...more,
  };
}

/** A text such as `90s`, or a number of milliseconds, which handlers read as such a text. */
export function textDuration(options: {
  readonly errorMessage: string;
  readonly description?: string;
  readonly examples?: readonly string[];
}): TString {
  const { examples, ...more } = options;
  return Type.String({
    pattern: STORED_DURATION.source,
    [EXTENSION]: "text",
    ...(examples === undefined ? {} : { examples: [...examples] }),
    ...more,
  });
}

/** The unit of a schema that {@link duration} made, `text` for one that {@link textDuration} made; null for others. */
export function durationUnitOf(schema: { readonly [name: string]: unknown }): DurationUnit | "text" | null {
  const unit = schema[EXTENSION];
  return typeof unit === "string" ? (unit as DurationUnit | "text") : null;
}

/** A value of a request in the form that the schema of its field checks. What is no duration stays as it is. */
export function readDuration(value: unknown, unit: DurationUnit | "text"): unknown {
  if (unit === "text") return isWholeSeconds(value) ? durationText(value) : value;
  if (typeof value !== "string") return value;
  const ms = msOfText(value);
  return Number.isNaN(ms) ? value : ms / UNITS[unit].ms;
}

/** Texts have no unit below a second: `5` of a caller who means five seconds is rejected. */
function isWholeSeconds(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value % 1_000 === 0;
}
