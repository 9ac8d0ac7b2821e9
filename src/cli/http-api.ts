import { DEFAULT_URL } from "../config/sources.ts";
import { StartupError } from "../kernel/errors.ts";
import { withoutTrailing } from "../kernel/log.ts";
import { OutboundClient } from "../kernel/outbound/client.ts";
import type { OutboundFailure } from "../kernel/outbound/outcome.ts";
import { isBearerKey } from "../kernel/secrets/key-format.ts";

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The API of a running server, or of the folder of a stopped one. */
export interface Api {
  /** Resolves to the body of a success. @throws StartupError with the server's own message for a refusal. */
  send(method: string, path: string, body?: JsonObject): Promise<JsonObject>;
  /** Resolves to a success of JSON lines, as it came. @throws StartupError likewise. */
  read(path: string): Promise<AnswerText>;
  close(): Promise<void>;
}

/** An answer as it came. */
export interface AnswerText {
  readonly text: string;
  /** What leads to the next page, of `X-Next-Cursor`; null when there is none. */
  readonly cursor: string | null;
}

/** A server, and how to call it. */
export interface HttpTarget {
  /** {@link DEFAULT_URL} when null. */
  readonly url: string | null;
  readonly key: string | null;
  /** {@link ANSWER_TIMEOUT_MS} unless said otherwise. */
  readonly timeoutMs?: number;
}

/** An answer of a server. */
export interface HttpAnswer extends AnswerText {
  /** Its media type. */
  readonly type: string;
  readonly status: number;
  /** Null when the body is no JSON object. */
  readonly body: JsonObject | null;
}

/** How long an answer may take: a server that is very busy still answers in some seconds. */
const ANSWER_TIMEOUT_MS = 30_000;
/** Largest body that is read: a full page of keys with all the metadata that they can have is far smaller. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** What begins the type of an answer of JSON lines. */
const LINES = "application/x-ndjson";

/** The API of a running server. @throws StartupError when the URL is none. */
export function openHttpApi(target: HttpTarget): Api {
  const base = baseOf(target.url);
  const jsonOf = ({ status, body }: HttpAnswer): JsonObject => {
    if (body === null)
      throw new StartupError(`${base} is no Ninefold server: it answers ${status} without JSON.`);
    if (status >= 300) throw refusal(status, body);
    return body;
  };
  return {
    send: async (method, path, body) => jsonOf(await ask(target, method, path, body)),
    async read(path) {
      const answer = await ask(target, "GET", path);
      if (answer.status >= 300 || !answer.type.startsWith(LINES)) jsonOf(answer);
      return answer;
    },
    close: () => Promise.resolve(),
  };
}

/**
 * Sends one request.
 * @throws StartupError when the URL is none or the key does not look like one (nothing is sent then), or there is no
 *   answer.
 */
export async function ask(
  target: HttpTarget,
  method: string,
  path: string,
  body?: JsonObject,
): Promise<HttpAnswer> {
  const base = baseOf(target.url);
  if (target.key !== null && !isBearerKey(target.key)) {
    throw new StartupError("NINEFOLD_API_KEY is not a well-formed API key (sm_…, 43 characters, checksum).");
  }
  const timeoutMs = target.timeoutMs ?? ANSWER_TIMEOUT_MS;
  // The operator's own server may be anywhere; proxies of the environment are left alone, as the key is in the request.
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
      bodyBytesMax: ANSWER_BYTES_MAX,
      keepsBody: true,
      longerBody: "fail",
      redirectsMax: 0,
      reuseConnection: false,
    });
    if (!outcome.answered) throw unanswered(base, timeoutMs, outcome.failure);
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
    throw new StartupError(
      `The server's URL must be one such as ${DEFAULT_URL}, without a password or a query.`,
    );
  }
  return withoutTrailing(url.href, "/");
}

/** There was no answer: another attempt may get one. */
export class Unanswered extends StartupError {}

function unanswered(base: string, timeoutMs: number, failure: OutboundFailure): Unanswered {
  if (failure.kind === "timeout") {
    return new Unanswered(`${base} did not answer within ${timeoutMs / 1000} s.`);
  }
  if (failure.kind === "connect" || failure.kind === "dns") {
    return new Unanswered(
      `There is no server at ${base}: ${failure.message}. Start it with ninefold serve, or name another with --url.`,
    );
  }
  return new Unanswered(`${base} gives no usable answer: ${failure.message}.`);
}

/** The error to throw for an answer that is no success: what the server says about it. */
export function refusal(status: number, body: JsonObject): StartupError {
  const error = body["error"] as { readonly message?: unknown } | undefined;
  const message = typeof error?.message === "string" ? error.message : "It gives no reason.";
  const hint = status === 401 ? " Look at NINEFOLD_API_KEY." : "";
  return new StartupError(`The server refuses (${status}): ${message}${hint}`);
}

function objectIn(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as JsonObject) : null;
  } catch {
    return null;
  }
}
