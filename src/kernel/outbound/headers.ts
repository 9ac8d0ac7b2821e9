import { SECRET } from "../audit/redaction.ts";
import { echoed, invalidField } from "../errors.ts";
import { isPieces, type PieceBody } from "./piece-body.ts";
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
  ...["content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection"],
  ...["proxy-authorization", "te", "trailer", "upgrade", "expect"],
]);
/** Belongs to a connection of HTTP/1.1 that becomes HTTP/2: invalid in HTTP/2 itself. */
const HTTP2_UPGRADE = "http2-settings";
/** A name or an address, with or without a port. */
const HOST_VALUE = /^(?:[A-Za-z0-9._~-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

const METHODS_WITH_BODY: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);
/** A body of these has no meaning, and many servers reject it (RFC 9110, section 9.3.1). */
const METHODS_WITHOUT_BODY: ReadonlySet<string> = new Set(["GET", "HEAD"]);

/** Headers that a request to another origin keeps, since they hold no secret. */
const HARMLESS_HEADERS: ReadonlySet<string> = new Set([
  "accept",
  "accept-language",
  "content-type",
  "user-agent",
]);

/** Header values by name, as they are to be sent. */
export type RequestHeaders = Readonly<Record<string, string>>;

/** What a request appends to the path and the query of its URL, without parsing it: printable ASCII, as it is sent. */
export interface Below {
  /** Empty, or with a slash at the start. */
  readonly path: string;
  /** Without the question mark; empty for none. */
  readonly query: string;
}

/** Whether a request with this method can have a body. */
export function canHaveBody(method: string): boolean {
  return !METHODS_WITHOUT_BODY.has(method);
}

/** Which part of a header that a caller gives is invalid, or null. */
export function headerError(name: string, value: string): "name" | "value" | null {
  if (!NAME.test(name)) return "name";
  return VALUE.test(value) && value.length <= HEADER_VALUE_LENGTH_MAX ? null : "value";
}

/** Whether a header is about connection and framing: the client sets it itself, and omits a caller's. */
export function isOwnHeader(name: string): boolean {
  return OWN_HEADERS.has(name.toLowerCase());
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

/** What a request's head is made of. */
interface HeadedRequest {
  readonly method: string;
  readonly headers: RequestHeaders;
  readonly body: Uint8Array | PieceBody | null;
  readonly below?: Below | undefined;
}

/** The head of a request, in any version of HTTP. */
interface RequestHead {
  readonly host: string;
  readonly path: string;
  /** Without the host, and without those about the connection. */
  readonly fields: readonly (readonly [name: string, value: string])[];
}

/** The `Host` and `Accept-Encoding` of `headers` take the place of its own. */
function requestHead({ url }: Target, { method, headers, body, below }: HeadedRequest): RequestHead {
  let host = url.host;
  let encoding = "identity";
  const fields: [name: string, value: string][] = [];
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (OWN_HEADERS.has(lower)) continue;
    if (headerError(name, value) !== null)
      throw new Error(`the header ${JSON.stringify(name)} cannot be sent`);
    // Each of them once; Host comes first (RFC 9110, section 7.2).
    if (lower === "host") host = value;
    else if (lower === "accept-encoding") encoding = value;
    else fields.push([name, value]);
  }
  fields.push(["Accept-Encoding", encoding]);
  // Methods that usually have a body say when there is none; others need not.
  const length = body?.length ?? (METHODS_WITH_BODY.has(method) ? 0 : null);
  if (length !== null) fields.push(["Content-Length", String(length)]);
  return { host, path: requestTarget(url, below), fields };
}

/** The head of a request over HTTP/2. */
export function http2Head(target: Target, request: HeadedRequest): Record<string, string> {
  const { host, path, fields } = requestHead(target, request);
  // A value with blanks around it is malformed (RFC 9113, section 8.2.1).
  const named = fields.map(([name, value]) => [name.toLowerCase(), value.trim()] as const);
  return {
    ...Object.fromEntries(named.filter(([name]) => name !== HTTP2_UPGRADE)),
    ":method": request.method,
    ":scheme": target.secure ? "https" : "http",
    ":authority": host,
    ":path": path,
  };
}

/**
 * A request as bytes, without a body that is read piece by piece. `reuse`: whether the connection is to stay open afterwards.
 */
export function requestBytes(target: Target, request: HeadedRequest, reuse: boolean): Uint8Array {
  const { host, path, fields } = requestHead(target, request);
  const { method, body } = request;
  let head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n`;
  for (const [name, value] of fields) head += `${name}: ${value}\r\n`;
  head += reuse ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  const headBytes = Buffer.from(head, "latin1");
  return body === null || body.length === 0 || isPieces(body) ? headBytes : Buffer.concat([headBytes, body]);
}

/** Path and query of a URL, followed by what a request appends. */
function requestTarget({ pathname, search }: URL, { path, query }: Below = { path: "", query: "" }): string {
  // A URL without a path has a slash.
  const base = path !== "" && pathname.endsWith("/") ? pathname.slice(0, -1) : pathname;
  if (query === "") return `${base}${path}${search}`;
  return `${base}${path}${search === "" ? "?" : `${search}&`}${query}`;
}

/**
 * Checks headers that a user gives in a field called `headers`: what is accepted is sent. Of names that differ only in case, the
 * last one counts.
 * @throws ApiError `validation_error` for a name or a value that HTTP does not allow, one that the server sets itself, or too many.
 */
export function givenHeaders(headers: Readonly<Record<string, string>>): RequestHeaders {
  const entries = Object.entries(headers);
  if (entries.length === 0) return headers;
  if (entries.length > HEADERS_MAX) throw invalidField("headers", `must be ${HEADERS_MAX} at most`);
  const byName = new Map<string, [name: string, value: string]>();
  for (const [name, value] of entries) {
    const fault = headerError(name, value);
    if (fault === "name") {
      const what = JSON.stringify(echoed(name));
      throw invalidField("headers", `must have names of letters, digits and dashes: ${what} is none`);
    }
    if (isOwnHeader(name)) throw invalidField(`headers.${name}`, "is set by the server itself: omit it");
    if (name.toLowerCase() === "host" && !HOST_VALUE.test(value))
      throw invalidField(
        `headers.${name}`,
        "must be a host, such as shop.example.com or shop.example.com:8080",
      );
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
