/** A duration: milliseconds, or a string such as "3 days", "90 s", "2h30m" or "1 hour 30 minutes". */
export type Duration = number | string;

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** All names of units. Months and years are not supported because their length varies. */
const UNITS: Readonly<Record<string, number>> = {
  ...spelt(1, "ms", "millisecond", "milliseconds"),
  ...spelt(SECOND_MS, "s", "sec", "second", "seconds"),
  ...spelt(MINUTE_MS, "m", "min", "minute", "minutes"),
  ...spelt(HOUR_MS, "h", "hour", "hours"),
  ...spelt(DAY_MS, "d", "day", "days"),
  ...spelt(7 * DAY_MS, "w", "week", "weeks"),
};

const WHOLE = /^\s*(?:\d+(?:\.\d+)?\s*[a-z]+\s*)+$/i;
const AMOUNT_OR_UNIT = /\d+(?:\.\d+)?|[a-z]+/gi;

/**
 * The milliseconds of a duration, rounded to an integer.
 *
 * @throws RangeError for an invalid or negative duration, or one above 2^53−1 ms.
 */
export function durationMs(duration: Duration): number {
  const ms = Math.round(typeof duration === "number" ? duration : sum(duration));
  if (!Number.isSafeInteger(ms) || ms < 0) throw notADuration(duration);
  return ms;
}

function sum(text: string): number {
  if (!WHOLE.test(text)) throw notADuration(text);
  let ms = 0;
  // The entire string must be a sequence of amounts and units.
  const parts = text.match(AMOUNT_OR_UNIT) ?? [];
  for (let at = 0; at < parts.length; at += 2) {
    const [amount, unit] = parts.slice(at, at + 2);
    const name = String(unit).toLowerCase();
    const unitMs = Object.hasOwn(UNITS, name) ? UNITS[name] : undefined;
    if (unitMs === undefined) throw notADuration(text);
    ms += Number(amount) * unitMs;
  }
  return ms;
}

function spelt(ms: number, ...names: readonly string[]): Record<string, number> {
  return Object.fromEntries(names.map((name) => [name, ms]));
}

function notADuration(value: Duration): RangeError {
  const shown = typeof value === "string" ? JSON.stringify(value) : String(value);
  return new RangeError(
    `${shown} is not a duration: use milliseconds (0 or more), or amounts with units from ms, s, m, h, d and w, such as "3 days", "90 s" or "2h30m".`,
  );
}
