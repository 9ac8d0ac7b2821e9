import { SECRET } from "../audit/redaction.ts";
import { echoed, invalidField } from "../errors.ts";
import type { Target } from "./target.ts";

/** Most headers that a caller may give to a request. */
export const HEADERS_MAX = 50;
/** Longest value of a header that a caller gives. */
export const HEADER_VALUE_LENGTH_MAX = 4_096;

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
/** Printable ASCII and tabs: what every server reads alike (RFC 9110, section 5.5). */
const VALUE = /^[\t\x20-\x7e]*$/;

/** Headers about connection and framing, which the client sets itself: a caller's are omitted. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  ...["host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection"],
  ...["proxy-authorization", "te", "trailer", "upgrade", "expect", "accept-encoding"],
]);

const METHODS_WITH_BODY: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);

/** Headers that a request to another origin keeps, since they hold no secret. */
const HARMLESS_HEADERS: ReadonlySet<string> = new Set([
  "accept",
  "accept-language",
  "content-type",
  "user-agent",
]);

/** Header values by name, as they are to be sent. */
export type RequestHeaders = Readonly<Record<string, string>>;

/** Which part of a header that a caller gives is invalid, or null. */
export function headerError(name: string, value: string): "name" | "value" | null {
  if (!NAME.test(name)) return "name";
  return VALUE.test(value) && value.length <= HEADER_VALUE_LENGTH_MAX ? null : "value";
}

/** The headers that may go along to another origin. */
export function withoutSecrets(headers: RequestHeaders): RequestHeaders {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => HARMLESS_HEADERS.has(name.toLowerCase())),
  );
}

/** Whether a header may hold a secret. */
export function hasSecrets(headers: RequestHeaders): boolean {
  return Object.keys(headers).some((name) => !HARMLESS_HEADERS.has(name.toLowerCase()));
}

/** Headers that a user gave as they may be kept and shown: values that may be a secret are covered. */
export function withSecretsCovered(headers: RequestHeaders): RequestHeaders {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      HARMLESS_HEADERS.has(name.toLowerCase()) ? value : SECRET,
    ]),
  );
}

/** A request as bytes. `reuse`: whether the connection is to stay open afterwards. */
export function requestBytes(
  target: Target,
  request: { method: string; headers: RequestHeaders; body: Uint8Array | null },
  reuse: boolean,
): Uint8Array {
  const { method, headers, body } = request;
  const { url } = target;
  let head = `${method} ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\n`;
  for (const [name, value] of Object.entries(headers)) {
    if (OWN_HEADERS.has(name.toLowerCase())) continue;
    if (headerError(name, value) !== null)
      throw new Error(`the header ${JSON.stringify(name)} cannot be sent`);
    head += `${name}: ${value}\r\n`;
  }
  head += "Accept-Encoding: identity\r\n";
  // Methods that usually have a body say when there is none; others need not.
  const length = body?.length ?? (METHODS_WITH_BODY.has(method) ? 0 : null);
  if (length !== null) head += `Content-Length: ${length}\r\n`;
  head += reuse ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  const headBytes = Buffer.from(head, "latin1");
  return body === null || body.length === 0 ? headBytes : Buffer.concat([headBytes, body]);
}

/**
 * Checks headers that a user gives in a field called `headers`. Of names that differ only in case, the last one counts.
 * @throws ApiError `validation_error` for a name or a value that HTTP does not allow, or too many.
 */
export function givenHeaders(given: Readonly<Record<string, string>>): RequestHeaders {
  const entries = Object.entries(given);
  if (entries.length === 0) return given;
  if (entries.length > HEADERS_MAX) throw invalidField("headers", `must be ${HEADERS_MAX} at most`);
  const byName = new Map<string, [name: string, value: string]>();
  for (const [name, value] of entries) {
    const fault = headerError(name, value);
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
