import { invalidField } from "../errors.ts";

/** Error text of a field that expects a timestamp. */
export const TIMESTAMP_EXPECTED = "must be an RFC 3339 date-time, such as 2030-01-31T12:00:00Z";

/** Latest timestamp of RFC 3339: 9999-12-31T23:59:59.999Z. */
const LATEST_MS = 253_402_300_799_999;

const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/**
 * Parses an RFC 3339 date-time. Returns epoch milliseconds, or null if the text is malformed. Any offset is accepted;
 * digits below a millisecond are truncated.
 */
export function parseDateTime(text: string): number | null {
  const parts = DATE_TIME.exec(text);
  if (parts === null) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.slice(1, 7).map(Number);
  if (hour > 23 || minute > 59 || second > 59) return null;
  const date = new Date(0);
  // Not Date.UTC, which takes the years 0 to 99 for those of the last century.
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, Number((parts[7] ?? "").padEnd(3, "0").slice(0, 3)));
  // A day that the month does not have has moved the date on.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null;
  const offsetHours = Number(parts[9] ?? 0);
  const offsetMinutes = Number(parts[10] ?? 0);
  if (offsetHours > 23 || offsetMinutes > 59) return null;
  const offset = (offsetHours * 60 + offsetMinutes) * 60_000 * (parts[8] === "-" ? -1 : 1);
  const moment = date.getTime() - offset;
  return moment > LATEST_MS ? null : moment;
}

/** Parses the timestamp of an input field. @throws ApiError `validation_error` with the expected format. */
export function timestampOf(field: string, text: string, wanted = TIMESTAMP_EXPECTED): number {
  const moment = parseDateTime(text);
  if (moment === null) throw invalidField(field, wanted);
  return moment;
}

/** The same for a field of the query, where a `+` that was not encoded arrives as a space. */
export function timestampOfQuery(field: string, text: string, wanted = TIMESTAMP_EXPECTED): number {
  return timestampOf(field, text.replace(/ (\d\d:\d\d)$/, "+$1"), wanted);
}

/** Seconds whose text is cached, as a power of two: responses mostly have times of the last minute. */
const SECONDS_CACHED = 64;
/** The cached seconds since the epoch, each at its remainder, and the texts that all their milliseconds begin with. */
const seconds: number[] = new Array(SECONDS_CACHED).fill(Number.NaN);
const secondTexts: string[] = new Array(SECONDS_CACHED).fill("");
/** How the text of each millisecond ends, such as `042Z`: made on use, since a start would make a thousand. */
const millisecondTexts: string[] = [];

/** RFC 3339, UTC, with milliseconds. A check formats several times, and `Date` takes five times as long as the cache. */
export function isoTime(epochMs: number): string {
  const ms = Math.trunc(epochMs);
  const second = Math.floor(ms / 1_000);
  const slot = second & (SECONDS_CACHED - 1);
  if (seconds[slot] !== second) {
    secondTexts[slot] = new Date(second * 1_000).toISOString().slice(0, -"000Z".length);
    seconds[slot] = second;
  }
  return `${secondTexts[slot]}${millisecondText(ms - second * 1_000)}`;
}

function millisecondText(ms: number): string {
  const known = millisecondTexts[ms];
  if (known !== undefined) return known;
  const text = `${String(ms).padStart(3, "0")}Z`;
  millisecondTexts[ms] = text;
  return text;
}

/** The same, or null for null. */
export function isoTimeOrNull(epochMs: number | null): string | null {
  return epochMs === null ? null : isoTime(epochMs);
}
