import { ApiError, errorDocs } from "../../errors.ts";

/** A response with a status of its own, which its route's schemas must name; a plain one is a 200. */
export class Reply<const Status extends number, T> {
  constructor(
    /** Named as Elysia's types have it. */
    readonly code: Status,
    readonly response: T,
    readonly headers: Readonly<Record<string, string>> | null = null,
    /** Whether it may be stored under an `Idempotency-Key`. */
    readonly isStored = true,
  ) {}
}

/** A 200 that is not stored under an `Idempotency-Key`: a repeat is evaluated again. */
export function unstored<T>(body: T): Reply<200, T> {
  return new Reply(200, body, null, false);
}

/** Whether what a handler returned may be stored under an `Idempotency-Key`. */
export function isStored(result: unknown): boolean {
  return !(result instanceof Reply) || result.isStored;
}

/** Headers of every response. Copying a `Headers` takes half the time of copying an object: only the id changes. */
export const USUAL_HEADERS = new Headers({
  "content-type": "application/json",
  "x-request-id": "",
  // Stored data, such as an inbound webhook, must not be interpreted as a page.
  "x-content-type-options": "nosniff",
});

/** The same for requests with a key: no cache may give one caller's data to another. */
export const KEYED_HEADERS = new Headers([...USUAL_HEADERS, ["cache-control", "no-store"]]);

/** The complete headers of responses of public endpoints whose own headers are constant, by these. */
const constant = new WeakMap<object, Headers>();

/**
 * Declares headers that a public endpoint has in many responses: the complete ones are built once, which takes twice as long
 * as everything else about a short response.
 */
export function constantHeaders<Fields extends Readonly<Record<string, string>>>(fields: Fields): Fields {
  const headers = new Headers(USUAL_HEADERS);
  for (const [name, value] of Object.entries(fields)) headers.set(name, value);
  constant.set(fields, headers);
  return fields;
}

/** The complete headers of a response with these own headers, if they are {@link constantHeaders}. */
export function completeHeaders(headers: Readonly<Record<string, string>>): Headers | undefined {
  return constant.get(headers);
}

/** A response with a status other than 200, with headers, or with a text that is not JSON. */
export function reply<const Status extends number, T>(
  status: Status,
  body: T,
  headers?: Readonly<Record<string, string>>,
): Reply<Status, T> {
  return new Reply(status, body, headers);
}

/** A response that its route's schemas do not have: another status, a text, or bytes. `never` fits each of them. */
export type AdditionalReply = Reply<200, never>;

/** A response that the `additionalResponses` of its operation describe, or whose bytes are those that the schemas describe. */
export function additionalReply(
  status: number,
  body: string | object,
  headers?: Readonly<Record<string, string>> | null,
): AdditionalReply {
  return new Reply(status as 200, body as never, headers);
}

/**
 * Responds with an object and one more member, whose JSON text goes out as it is stored: parsing and writing a megabyte
 * of numbers takes too long.
 */
export function withJson<const Status extends number, T extends object, Name extends keyof T & string>(
  status: Status,
  body: Omit<T, Name>,
  name: Name,
  json: string | null,
  headers?: Readonly<Record<string, string>>,
): Reply<Status, T> {
  return new Reply(status, new WithJson(body, name, json) as never, headers);
}

/** An object with one more member, which is JSON text already. What a caller may not see of the object can still be hidden. */
export class WithJson {
  constructor(
    readonly body: object,
    private readonly name: string,
    private readonly json: string | null,
  ) {}

  /** The same member of another object. */
  of(body: object): WithJson {
    return new WithJson(body, this.name, this.json);
  }

  get text(): string {
    return `${JSON.stringify(this.body).slice(0, -1)},${JSON.stringify(this.name)}:${this.json}}`;
  }
}

/** A response as it goes out and as it is stored under an `Idempotency-Key`. */
export interface RenderedResponse {
  readonly status: number;
  /** JSON text, unless `headers` name another content type; not sent with 204 and 304. */
  readonly text: string;
  /** Instead of the text, for files and streams. Never stored under an `Idempotency-Key`. */
  readonly bytes?: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  /** Headers beyond the usual ones. */
  readonly headers: Readonly<Record<string, string>> | null;
}

/** Thrown to leave a unit of work or a handler with the stored response of an earlier request. */
export class ReplayedResponse extends Error {
  constructor(readonly response: RenderedResponse) {
    super("a stored response is replayed");
  }
}

/** Thrown to leave a handler with a rejection that a reverse proxy passes on to its client. */
export class ClientRejection extends Error {
  constructor(readonly response: RenderedResponse) {
    super("refused");
  }
}

/** Renders what a handler returned. */
export function renderResult(result: unknown): RenderedResponse {
  if (result instanceof Reply) {
    const { response, headers } = result;
    if (response instanceof ReadableStream || response instanceof Uint8Array)
      return {
        status: Number(result.code),
        text: "",
        bytes: response as NonNullable<RenderedResponse["bytes"]>,
        headers,
      };
    return { status: Number(result.code), text: textOf(response), headers };
  }
  return { status: 200, text: JSON.stringify(result), headers: null };
}

function textOf(response: unknown): string {
  if (response instanceof WithJson) return response.text;
  return typeof response === "string" ? response : (JSON.stringify(response) ?? "");
}

/** Adds `warnings` to a successful JSON object; every other response is returned unchanged. */
export function withWarnings(response: RenderedResponse, warnings: readonly string[]): RenderedResponse {
  const { status, text, bytes, headers } = response;
  const isObject = bytes === undefined && text.startsWith("{") && headers?.["content-type"] === undefined;
  if (status >= 300 || !isObject) return response;
  const separator = text === "{}" ? "" : ",";
  return { ...response, text: `${text.slice(0, -1)}${separator}"warnings":${JSON.stringify(warnings)}}` };
}

/** Renders an error: one body for both documented shapes, nested and flat. `more`: what its operation adds. */
export function renderError(
  error: ApiError,
  requestId: string,
  more?: Readonly<Record<string, string>>,
): RenderedResponse {
  const { code, message } = error;
  return rendered(error, { error: { code, message, docs: errorDocs(code) }, requestId, more });
}

/** Renders an error for a client of somebody else's API, who cannot read the pages of this server. */
export function renderForwardedError(error: ApiError, requestId: string): RenderedResponse {
  const { code, message } = error;
  return rendered(error, { error: { code, message }, requestId });
}

interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string; readonly docs?: string };
  readonly requestId: string;
  readonly more?: Readonly<Record<string, string>> | undefined;
}

function rendered(thrown: ApiError, { error, requestId, more }: ErrorBody): RenderedResponse {
  const { extras, fields, retryAfterSeconds, headers } = thrown.details;
  const text = JSON.stringify({
    error,
    code: error.code,
    request_id: requestId,
    ...extras,
    ...(fields === undefined ? {} : { fields }),
    ...more,
  });
  const retry = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
  return { status: thrown.status, text, headers: { ...headers, ...retry } };
}

/** What callers read of anything that is not an ApiError. */
export function internalError(): ApiError {
  return new ApiError(
    "internal_error",
    "An internal error occurred, and nothing was charged. Retry the request.",
  );
}

/** CORS headers for the origins that the operator lists; other origins get none. */
export interface Cors {
  /** Whether any origin is listed. */
  readonly isOn: boolean;
  /** Adds the headers of a response to a listed origin. */
  decorate(request: Request, headers: Headers): void;
  /** The response to a preflight request of a listed origin, or null. */
  preflight(request: Request): RenderedResponse | null;
}

/** How long a browser may cache a preflight response, in seconds. */
const PREFLIGHT_MAX_AGE_SECONDS = "600";
const ALLOWED_NAMES: ReadonlySet<string> = new Set([
  "authorization",
  "content-type",
  "idempotency-key",
  "if-none-match",
  "x-api-key",
  "last-event-id",
  "cache-control",
  "x-ninefold-project",
]);
const ALLOWED = [...ALLOWED_NAMES].join(", ");
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/;
/** Further headers that a preflight response allows: more than all common tracers together add. */
const FURTHER_HEADERS_MAX = 32;
const EXPOSED = [
  "etag",
  "x-request-id",
  "retry-after",
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "idempotent-replayed",
  "x-witness-status",
  "x-next-cursor",
].join(", ");

/**
 * The other headers that a preflight request names: tracing adds its own to every request of a page (`traceparent`, `baggage`,
 * `sentry-trace`, …), which would be blocked otherwise. The operator trusts the listed origins, and no header opens more to a page
 * than to any other client.
 */
function furtherHeaders(request: Request): string[] {
  const named = (request.headers.get("access-control-request-headers") ?? "").toLowerCase().split(",");
  const names = named.map((name) => name.trim()).filter((name) => HEADER_NAME.test(name));
  return [...new Set(names)].filter((name) => !ALLOWED_NAMES.has(name)).slice(0, FURTHER_HEADERS_MAX);
}

/** CORS for the listed origins (exact, such as `https://app.example.com`). */
export function createCors(origins: readonly string[]): Cors {
  if (origins.length === 0) return { isOn: false, decorate: () => {}, preflight: () => null };
  const listed = new Set(origins);
  const allowed = (request: Request): string | null => {
    const origin = request.headers.get("origin");
    return origin !== null && listed.has(origin) ? origin : null;
  };
  return {
    isOn: true,
    decorate(request, headers) {
      // Caches must not give one origin's response to another, whether this one is listed or not.
      headers.append("vary", "Origin");
      const origin = allowed(request);
      if (origin === null) return;
      headers.set("access-control-allow-origin", origin);
      headers.set("access-control-expose-headers", EXPOSED);
    },
    preflight(request) {
      const wanted = request.headers.get("access-control-request-method");
      if (request.method !== "OPTIONS" || wanted === null || allowed(request) === null) return null;
      return {
        status: 204,
        text: "",
        headers: {
          "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
          "access-control-allow-headers": [ALLOWED, ...furtherHeaders(request)].join(", "),
          "access-control-max-age": PREFLIGHT_MAX_AGE_SECONDS,
        },
      };
    },
  };
}
