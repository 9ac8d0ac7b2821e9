export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Epoch milliseconds of a value of the API: RFC 3339, or a number of seconds or milliseconds. */
export function instant(at: string | number): number {
  if (typeof at === "string") return Date.parse(at);
  // As seconds this value is in the year 5138, as milliseconds in 1973.
  return at < 100_000_000_000 ? at * SECOND_MS : at;
}

/** A duration in one unit: `3 min`. */
export function span(ms: number): string {
  const length = Math.abs(ms);
  if (length < SECOND_MS) return `${Math.round(length)} ms`;
  if (length < MINUTE_MS) return `${Math.floor(length / SECOND_MS)} s`;
  if (length < HOUR_MS) return `${Math.floor(length / MINUTE_MS)} min`;
  if (length < 2 * DAY_MS) return `${Math.floor(length / HOUR_MS)} h`;
  return `${Math.floor(length / DAY_MS)} d`;
}

/** A duration in up to two units: `59 min 30 s`, `5 h 20 min`. */
export function duration(ms: number): string {
  if (ms < MINUTE_MS) return span(ms);
  const [unit, next] =
    ms < HOUR_MS ? [MINUTE_MS, SECOND_MS] : ms < 2 * DAY_MS ? [HOUR_MS, MINUTE_MS] : [DAY_MS, HOUR_MS];
  const rest = ms % unit;
  return rest < next ? span(ms) : `${span(ms - rest)} ${span(rest)}`;
}

/** A time relative to now: `3 min ago`, `in 2 h`. */
export function ago(at: number, now: number): string {
  const past = now - at;
  if (Math.abs(past) < 2 * SECOND_MS) return "just now";
  return past > 0 ? `${span(past)} ago` : `in ${span(past)}`;
}

const numbers = new Intl.NumberFormat("en");
/** A number with thousands separators. */
export function formatNumber(value: number): string {
  return numbers.format(value);
}

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });
const COMPACT_MIN = 10_000;
/** A number for an axis: `9,500`, `100K`, `1.25M`. */
export function axisNumber(value: number): string {
  return Math.abs(value) < COMPACT_MIN ? formatNumber(value) : compact.format(value);
}

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];
/** A size in its largest unit: `1.9 MiB`. */
export function bytes(size: number): string {
  const at = Math.min(UNITS.length - 1, size < 1 ? 0 : Math.floor(Math.log2(size) / 10));
  const value = size / 1024 ** at;
  return `${formatNumber(at === 0 || value >= 100 ? Math.round(value) : Math.round(value * 10) / 10)} ${UNITS[at]}`;
}

/** A word with a capital letter. */
export function titled(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** A number of things: `1 key`, `3 keys`. */
export function count(value: number, singular: string, plural = `${singular}s`): string {
  return `${formatNumber(value)} ${value === 1 ? singular : plural}`;
}

/** A percentage, with two decimals unless it is 0 or 100; what is not quite 100 is never shown as 100. */
export function percent(value: number | null): string {
  if (value === null) return "–";
  if (value === 100 || value === 0) return `${value} %`;
  return `${value > 99.99 ? "99.99" : value.toFixed(2)} %`;
}
