import type { ErrorCode, KnownExtras } from "./generated/api.ts";

/** Codes of errors on the client's side, in addition to those of the API. */
export type ClientErrorCode =
  /** No response: no connection, or a broken one. */
  | "connection_failed"
  /** No response in time. */
  | "timed_out"
  /** A response that is not from this API, such as that of a proxy. */
  | "unexpected_answer"
  /** A lock was lost while its function was running. */
  | "lock_lost"
  /** A delivery that is not one of yours, or too old. */
  | "delivery_invalid";

/** Fields of an error in addition to its message. */
type NinefoldErrorDetails = Pick<NinefoldError, "code"> &
  Partial<
    Pick<
      NinefoldError,
      "status" | "requestId" | "docs" | "fields" | "extras" | "retryAfterMs" | "leader" | "cause"
    >
  >;

/** Fields of the API's error body other than code, message and fields. */
export interface ErrorExtras extends Readonly<KnownExtras> {
  readonly [name: string]: unknown;
}

/** Every error that the client throws, except the reason of your own `AbortSignal`. */
export class NinefoldError extends Error {
  override readonly name: string = "NinefoldError";
  /** Machine-readable reason; `message` is for people. */
  readonly code: ErrorCode | ClientErrorCode;
  /** The HTTP status; 0 without a response. */
  readonly status: number;
  /** The request's id in the server's log, if there was a response. */
  readonly requestId: string | null;
  /** Path of a page about the error on the server, such as `/docs/errors/unauthorized`; null without one. */
  readonly docs: string | null;
  /** Errors by field, as with `validation_error`. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
  /** Other fields of the error, such as `balance`. */
  readonly extras: ErrorExtras;
  /** Wait before a retry that the server asks for, in milliseconds. */
  readonly retryAfterMs: number | null;
  /** Address of the node that leads, if a node that does not lead responded, without doing anything. */
  readonly leader: string | null;

  constructor(message: string, details: NinefoldErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = details.code;
    this.status = details.status ?? 0;
    this.requestId = details.requestId ?? null;
    this.docs = details.docs ?? null;
    this.fields = details.fields ?? {};
    this.extras = details.extras ?? {};
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.leader = details.leader ?? null;
  }
}

/** No response (`connection_failed`, `timed_out`): the request may or may not have been carried out. */
export class NinefoldConnectionError extends NinefoldError {
  override readonly name: string = "NinefoldConnectionError";
}

/** Whether the server has not reported the outcome of the request. */
export function isWithoutAnswer(error: unknown): boolean {
  if (error instanceof NinefoldConnectionError) return true;
  return error instanceof NinefoldError && error.code === "unexpected_answer";
}

/** The error for a response. `body` is its text. */
export function errorOf(status: number, headers: Headers, body: string, target: string): NinefoldError {
  const requestId = headers.get("x-request-id");
  const retryAfterMs = readRetryAfter(headers.get("retry-after"), Date.now());
  const parsed = parseErrorBody(body);
  if (parsed === null) {
    const location = headers.get("location");
    const hint = location === null ? "" : `, to ${location}: use that address as url`;
    const message = `${target} returned ${status} without an error of the API${hint}`;
    return new NinefoldError(message, { code: "unexpected_answer", status, requestId, retryAfterMs });
  }
  const { error, code, request_id, fields, ...extras } = parsed;
  const leader = status === 503 ? headers.get("ninefold-leader") : null;
  const details = { code, status, requestId: request_id ?? requestId, retryAfterMs, leader, extras };
  return new NinefoldError(error.message, { ...details, docs: error.docs ?? null, fields: fields ?? {} });
}

interface ErrorBody {
  readonly error: { readonly message: string; readonly docs?: string };
  readonly code: ErrorCode;
  readonly request_id?: string;
  readonly fields?: Readonly<Record<string, readonly string[]>>;
}

function parseErrorBody(text: string): ErrorBody | null {
  try {
    const body = JSON.parse(text);
    return typeof body?.error?.message === "string" && typeof body.code === "string" ? body : null;
  } catch {
    return null;
  }
}

/** `Retry-After` in milliseconds: whole seconds, or a date. Null if it is missing or malformed. */
export function readRetryAfter(value: string | null, nowMs: number): number | null {
  if (value === null || value.trim() === "") return null;
  const ms = /^\s*\d+\s*$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}
