import { DEFAULT_URL } from "../../config/sources.ts";
import { StartupError } from "../../kernel/errors.ts";
import { withoutTrailing } from "../../kernel/log.ts";
import { OutboundClient } from "../../kernel/outbound/client.ts";
import type { OutboundFailure } from "../../kernel/outbound/outcome.ts";
import { isBearerKey } from "../../kernel/secrets/key-format.ts";

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The API of a running server, or of the folder of a stopped one. */
export interface Api {
  /** Resolves to the body of a successful response. @throws StartupError with the server's error message. */
  send(method: string, path: string, body?: JsonObject): Promise<JsonObject>;
  /** Resolves to a successful response of JSON lines. @throws StartupError with the server's error message. */
  read(path: string): Promise<ResponseText>;
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
}

/** Timeout: a very busy server still responds within seconds. */
const RESPONSE_TIMEOUT_MS = 30_000;
/** Largest response: a full page of keys with all possible metadata is far smaller. */
const RESPONSE_BODY_BYTES_MAX = 16 * 1024 * 1024;

/** Prefix of the media type of JSON lines. */
const LINES = "application/x-ndjson";

/** The API of a running server. @throws StartupError for an invalid URL. */
export function openHttpApi(target: HttpTarget): Api {
  const base = baseOf(target.url);
  const jsonOf = ({ status, body }: HttpResponse): JsonObject => {
    if (body === null)
      throw new StartupError(`${base} is not a Ninefold server: it returned ${status} without JSON.`);
    if (status >= 300) throw rejection(status, body);
    return body;
  };
  return {
    send: async (method, path, body) => jsonOf(await ask(target, method, path, body)),
    async read(path) {
      const response = await ask(target, "GET", path);
      if (response.status >= 300 || !response.type.startsWith(LINES)) jsonOf(response);
      return response;
    },
    close: () => Promise.resolve(),
  };
}

/**
 * Sends one request.
 * @throws StartupError for an invalid URL or key (nothing is sent then), or without a response.
 */
export async function ask(
  target: HttpTarget,
  method: string,
  path: string,
  body?: JsonObject,
): Promise<HttpResponse> {
  const base = baseOf(target.url);
  if (target.key !== null && !isBearerKey(target.key)) {
    throw new StartupError("NINEFOLD_API_KEY is not a well-formed API key (sm_…, 43 characters, checksum).");
  }
  const timeoutMs = target.timeoutMs ?? RESPONSE_TIMEOUT_MS;
  // The server may be anywhere. Proxies of the environment are not used, since the request contains the key.
  const outbound = new OutboundClient(["all"], { trustLoopback: true });
  try {
    const outcome = await outbound.send({
      account: null,
      method,
      url: `${base}${path}`,
      headers: {
        accept: "application/json",
        ...(target.key === null ? {} : { authorization: `Bearer ${target.key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body === undefined ? null : Buffer.from(JSON.stringify(body)),
      timeoutMs,
      bodyBytesMax: RESPONSE_BODY_BYTES_MAX,
      keepsBody: true,
      longerBody: "fail",
      redirectsMax: 0,
      reuseConnection: false,
    });
    if (!outcome.answered) throw noResponseError(base, timeoutMs, outcome.failure);
    const text = Buffer.from(outcome.body).toString("utf8");
    const { status, headers } = outcome;
    const { "content-type": type = "", "x-next-cursor": cursor = null } = headers;
    return { status, type, body: objectIn(text), text, cursor };
  } finally {
    outbound.close();
  }
}

function baseOf(given: string | null): string {
  const url = URL.parse(given ?? DEFAULT_URL);
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

/** The error for a response that is not a success, with the server's message. */
export function rejection(status: number, body: JsonObject): StartupError {
  const error = body["error"] as { readonly message?: unknown } | undefined;
  const message = typeof error?.message === "string" ? error.message : "No reason given.";
  const hint = status === 401 ? " Check NINEFOLD_API_KEY." : "";
  return new StartupError(`The server rejected the request (${status}): ${message}${hint}`);
}

function objectIn(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as JsonObject) : null;
  } catch {
    return null;
  }
}
