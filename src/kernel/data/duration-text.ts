import { DAY_MS, HOUR_MS } from "../time/units.ts";

/** Milliseconds of the units, from the smallest. */
const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: HOUR_MS,
  d: DAY_MS,
  w: 604_800_000,
};

/** At most nine digits, whose product with each unit is exact. */
const TEXT = /^([0-9]{1,9})(ms|s|m|h|d|w)$/;
/** Pattern of a duration as text, wherever it is read. */
export const DURATION_PATTERN = "^[0-9]{1,9}(ms|s|m|h|d|w)$";
/** Texts of fields that store and show durations as they were sent. */
export const STORED_DURATION = /^[0-9]{1,9}[smhd]$/;

/** Milliseconds of a text such as `90s` or `1w`; NaN for anything else. */
export function msOfText(text: string): number {
  const [, amount, unit = ""] = TEXT.exec(text) ?? [];
  return amount === undefined ? Number.NaN : Number(amount) * (UNITS_MS[unit] ?? Number.NaN);
}

/** Milliseconds of a text such as `90s` or `30d`, as fields with texts store them; NaN for anything else. */
export function durationMs(text: string): number {
  return STORED_DURATION.test(text) ? msOfText(text) : Number.NaN;
}

/** A duration as a text with the largest unit up to `largest` that expresses it exactly. */
export function durationText(ms: number, largest: string = "d"): string {
  const names = Object.keys(UNITS_MS);
  const fitting = names
    .slice(0, names.indexOf(largest) + 1)
    .findLast((name) => ms % (UNITS_MS[name] ?? 1) === 0);
  const unit = fitting ?? "ms";
  return `${ms / (UNITS_MS[unit] ?? 1)}${unit}`;
}
