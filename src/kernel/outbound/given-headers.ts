import { echoed, invalidField } from "../errors.ts";
import { HEADER_VALUE_LENGTH_MAX, HEADERS_MAX, headerFault, type RequestHeaders } from "./request-head.ts";

/**
 * Checks headers that a user hands in, in a field called `headers`. Names that differ only in case are one: the last
 * holds.
 * @throws ApiError `validation_error` for a name or a value that HTTP does not allow, or too many.
 */
export function givenHeaders(given: Readonly<Record<string, string>>): RequestHeaders {
  const entries = Object.entries(given);
  if (entries.length > HEADERS_MAX) throw invalidField("headers", `must be ${HEADERS_MAX} at most`);
  const byName = new Map<string, [name: string, value: string]>();
  for (const [name, value] of entries) {
    const fault = headerFault(name, value);
    if (fault === "name") {
      const what = JSON.stringify(echoed(name));
      throw invalidField("headers", `must have names of letters, digits and dashes: ${what} is none`);
    }
    if (fault === "value") {
      const right = `must be printable ASCII, at most ${HEADER_VALUE_LENGTH_MAX} characters`;
      throw invalidField(`headers.${name}`, right);
    }
    byName.set(name.toLowerCase(), [name, value]);
  }
  return Object.fromEntries(byName.values());
}

/** Headers over defaults; names compare without case. */
export function withDefaults(headers: RequestHeaders, defaults: RequestHeaders): RequestHeaders {
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const missing = Object.entries(defaults).filter(([name]) => !names.has(name.toLowerCase()));
  return { ...Object.fromEntries(missing), ...headers };
}
