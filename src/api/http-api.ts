import { DEFAULT_URL } from "../config/sources.ts";
import { parseNearly } from "../json-text.ts";
import { StartupError } from "../kernel/errors.ts";
import { withoutTrailing } from "../kernel/log.ts";
import { OutboundClient } from "../kernel/outbound/client.ts";
import type { OutboundFailure } from "../kernel/outbound/outcome.ts";
import { isBearerKey } from "../kernel/secrets/key-format.ts";
import { realDelay } from "../kernel/time/clock.ts";
import { HOUR_MS } from "../kernel/time/units.ts";

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The API of a running server, or of the folder of a stopped one. */
export interface Api {
  /** Resolves to the body of a successful response. @throws StartupError with the server's error message. */
  send(
    method: string,
    path: string,
    body?: JsonObject,
    headers?: Readonly<Record<string, string>>,
  ): Promise<JsonObject>;
  /** Resolves to a successful response of JSON lines. @throws StartupError with the server's error message. */
  read(path: string): Promise<ResponseText>;
  /**
   * Passes on a successful response of JSON lines of any length, piece by piece.
   * @throws StartupError with the server's error message, or if the response ends early.
   */
  stream(path: string, onBytes: (bytes: Uint8Array) => void): Promise<void>;
  close(): Promise<void>;
}

/** A response of JSON lines. */
export interface ResponseText {
  readonly text: string;
  /** Cursor of the next page from `X-Next-Cursor`; null on the last one. */
  readonly cursor: string | null;
}

/** A server and how to call it. */
export interface HttpTarget {
  /** {@link DEFAULT_URL} when null. */
  readonly url: string | null;
  readonly key: string | null;
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** {@link RESPONSE_TIMEOUT_MS} by default. */
  readonly timeoutMs?: number;
}

/** A response of a server. */
export interface HttpResponse extends ResponseText {
  /** Its media type. */
  readonly type: string;
  readonly status: number;
  /** Null unless the body is a JSON object. */
  readonly body: JsonObject | null;
  /** From `Retry-After`. */
  readonly retryAfterSeconds: number | null;
}

/** Timeout: a very busy server still responds within seconds. */
const RESPONSE_TIMEOUT_MS = 30_000;
/** The same for a response of any length: an export of a million records takes seconds, the disk of its reader longer. */
const STREAM_TIMEOUT_MS = 6 * HOUR_MS;
/** Largest response: a full page of keys with all possible metadata is far smaller. */
const RESPONSE_BODY_BYTES_MAX = 16 * 1024 * 1024;

/** Times that a request over the rate limit is sent again, and the longest wait before each. */
const RATE_WAITS_MAX = 10;
const RATE_WAIT_SECONDS_MAX = 60;

/** Prefix of the media type of JSON lines. */
const LINES = "application/x-ndjson";

/** The API of a running server. @throws StartupError for an invalid URL. */
export function openHttpApi(target: HttpTarget): Api {
  const base = baseOf(target.url);
  const jsonOf = ({ status, body }: HttpResponse): JsonObject => {
    if (status === 204) return {};
    if (body === null)
      throw new StartupError(`${base} is not a Ninefold server: it returned ${status} without JSON.`);
    if (status >= 300) throw rejection(status, body);
    return body;
  };
  return {
    async send(method, path, body, headers) {
      for (let waits = 0; ; waits += 1) {
        const response = await ask({ ...target, ...(headers && { headers }) }, method, path, body);
        const { status, retryAfterSeconds } = response;
        // Nothing was done.
        if (status !== 429 || retryAfterSeconds === null || waits >= RATE_WAITS_MAX) return jsonOf(response);
        await realDelay(Math.min(retryAfterSeconds, RATE_WAIT_SECONDS_MAX) * 1_000);
      }
    },
    async read(path) {
      const response = await ask(target, "GET", path);
      if (response.status >= 300 || !response.type.startsWith(LINES)) jsonOf(response);
      return response;
    },
    async stream(path, onBody) {
      const response = await ask({ ...target, timeoutMs: STREAM_TIMEOUT_MS }, "GET", path, undefined, onBody);
      if (response.status >= 300 || !response.type.startsWith(LINES)) jsonOf(response);
    },
    close: () => Promise.resolve(),
  };
}

/**
 * Sends one request. `onBody` receives the body of a successful response, of any length.
 * @throws StartupError for an invalid URL or key (nothing is sent then), or without a response.
 */
export async function ask(
  target: HttpTarget,
  method: string,
  path: string,
  body?: JsonObject,
  onBody?: (bytes: Uint8Array) => void,
): Promise<HttpResponse> {
  const base = baseOf(target.url);
  if (target.key !== null && !isBearerKey(target.key)) {
    throw new StartupError("NINEFOLD_API_KEY is not a well-formed API key (sm_…, 43 characters, checksum).");
  }
  const timeoutMs = target.timeoutMs ?? RESPONSE_TIMEOUT_MS;
  const reading = { failure: null as { readonly error: unknown } | null };
  const read = (bytes: Uint8Array): void => {
    try {
      onBody?.(bytes);
    } catch (error) {
      // Of the reader, such as a full disk: the response is not to blame.
      reading.failure = { error };
      throw error;
    }
  };
  // The server may be anywhere. Proxies of the environment are not used, since the request contains the key.
  const outbound = new OutboundClient(["all"], { trustLoopback: true });
  try {
    const outcome = await outbound.send({
      account: null,
      method,
      url: `${base}${path}`,
      headers: {
        accept: "application/json",
        ...target.headers,
        ...(target.key === null ? {} : { authorization: `Bearer ${target.key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body === undefined ? null : Buffer.from(JSON.stringify(body)),
      timeoutMs,
      bodyBytesMax: onBody === undefined ? RESPONSE_BODY_BYTES_MAX : Number.MAX_SAFE_INTEGER,
      keepsBody: true,
      ...(onBody === undefined ? {} : { onBody: read }),
      longerBody: "fail",
      redirectsMax: 0,
      reuseConnection: false,
    });
    if (reading.failure !== null) throw reading.failure.error;
    if (!outcome.answered) throw noResponseError(base, timeoutMs, outcome.failure);
    const text = Buffer.from(outcome.body).toString("utf8");
    const { status, headers } = outcome;
    const { "content-type": type = "", "x-next-cursor": cursor = null } = headers;
    const retryAfter = Number(headers["retry-after"] ?? Number.NaN);
    const retryAfterSeconds = Number.isInteger(retryAfter) ? retryAfter : null;
    return { status, type, body: objectIn(text), text, cursor, retryAfterSeconds };
  } finally {
    outbound.close();
  }
}

function baseOf(text: string | null): string {
  const url = URL.parse(text ?? DEFAULT_URL);
  const usable = url !== null && /^https?:$/.test(url.protocol) && `${url.username}${url.password}` === "";
  if (!usable || `${url.search}${url.hash}` !== "") {
    throw new StartupError(`The server's URL must look like ${DEFAULT_URL}, without a password or query.`);
  }
  return withoutTrailing(url.href, "/");
}

/** No response: a retry may succeed. */
export class NoResponseError extends StartupError {}

function noResponseError(base: string, timeoutMs: number, failure: OutboundFailure): NoResponseError {
  if (failure.kind === "timeout") {
    return new NoResponseError(`${base} did not respond within ${timeoutMs / 1000} s.`);
  }
  if (failure.kind === "connect" || failure.kind === "dns") {
    return new NoResponseError(
      `No server is running at ${base}: ${failure.message}. Start it with ninefold serve, or set another URL with --url.`,
    );
  }
  return new NoResponseError(`${base} returned an invalid response: ${failure.message}.`);
}

/** A response that is not a success. */
export class RejectedRequest extends StartupError {
  constructor(
    readonly status: number,
    message: string,
    /** The code of the error; null in a response of another server. */
    readonly code: string | null = null,
  ) {
    super(message);
  }
}

/** The error for a response that is not a success, with the server's message. */
export function rejection(status: number, body: JsonObject): RejectedRequest {
  const error = body["error"] as { readonly message?: unknown } | undefined;
  const message = typeof error?.message === "string" ? error.message : "No reason given.";
  const hint = status === 401 ? " Check NINEFOLD_API_KEY." : "";
  const code = typeof body["code"] === "string" ? body["code"] : null;
  return new RejectedRequest(status, `The server rejected the request (${status}): ${message}${hint}`, code);
}

function objectIn(text: string): JsonObject | null {
  try {
    const value: unknown = parseNearly(text);
    return typeof value === "object" && value !== null ? (value as JsonObject) : null;
  } catch {
    return null;
  }
}
