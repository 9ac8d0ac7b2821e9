import { isExactNumber } from "../../../json-text.ts";
import { parseDateTime } from "../../../kernel/time/date-time.ts";
import { parseVersion, type Version } from "./semver.ts";

/** Maximum characters of a timestamp. RFC 3339 with nanoseconds has 35. */
export const TIMESTAMP_LENGTH_MAX = 64;

/** Converts RFC 3339 text or a number to epoch milliseconds. Returns null for any other value. */
export function timestampOf(value: unknown): number | null {
  if (typeof value === "number") return value;
  if (isExactNumber(value)) return Number(value.rawJSON);
  return typeof value === "string" && value.length <= TIMESTAMP_LENGTH_MAX ? parseDateTime(value) : null;
}

/** Parses a version; a number such as 1.2 is one. Returns null for any other value. */
export function versionOf(value: unknown): Version | null {
  return typeof value === "string" || typeof value === "number" ? parseVersion(String(value)) : null;
}
