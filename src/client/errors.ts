import type { ErrorCode, KnownExtras } from "./generated/api.ts";

/** Codes of what goes wrong on this side of the network, beside those of the API. */
export type ClientErrorCode =
  /** There was no answer: no connection, or one that broke. */
  | "connection_failed"
  /** There was no answer in time. */
  | "timed_out"
  /** There was an answer, but not one of this API: of a proxy, or of something else at this address. */
  | "unexpected_answer"
  /** A lock was lost while the work under it was still going on. */
  | "lock_lost"
  /** What looks like a delivery is not one of yours, or is too old. */
  | "delivery_invalid";

/** What an error carries besides its message: its code, and whatever of the rest there is. */
type NinefoldErrorDetails = Pick<NinefoldError, "code"> &
  Partial<Pick<NinefoldError, "status" | "requestId" | "fields" | "extras" | "retryAfterMs" | "cause">>;

/** What the API's error body says besides code, message and fields. */
export interface ErrorExtras extends Readonly<KnownExtras> {
  readonly [name: string]: unknown;
}

/** Everything that the client throws, except what is thrown into it: the reason of your own `AbortSignal`. */
export class NinefoldError extends Error {
  override readonly name: string = "NinefoldError";
  /** What went wrong, for programs; `message` is for people. */
  readonly code: ErrorCode | ClientErrorCode;
  /** The HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** The request's id in the server's log, if there was an answer. */
  readonly requestId: string | null;
  /** Where fields are refused, as with `validation_error`: what is wrong with each of them. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
  /** What else the error says, such as `balance`. */
  readonly extras: ErrorExtras;
  /** How long the server asks to wait before another try, in milliseconds. */
  readonly retryAfterMs: number | null;

  constructor(message: string, details: NinefoldErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = details.code;
    this.status = details.status ?? 0;
    this.requestId = details.requestId ?? null;
    this.fields = details.fields ?? {};
    this.extras = details.extras ?? {};
    this.retryAfterMs = details.retryAfterMs ?? null;
  }
}

/** There was no answer (`connection_failed`, `timed_out`): whether the request was carried out is not known. */
export class NinefoldConnectionError extends NinefoldError {
  override readonly name: string = "NinefoldConnectionError";
}

/** Whether the server itself has not said what became of a request. */
export function isWithoutAnswer(error: unknown): boolean {
  if (error instanceof NinefoldConnectionError) return true;
  return error instanceof NinefoldError && error.code === "unexpected_answer";
}

/** The error that an answer means. `body` is its text. */
export function errorOf(status: number, headers: Headers, body: string, target: string): NinefoldError {
  const requestId = headers.get("x-request-id");
  const retryAfterMs = readRetryAfter(headers.get("retry-after"), Date.now());
  const parsed = parseErrorBody(body);
  if (parsed === null) {
    const location = headers.get("location");
    const hint = location === null ? "" : `, to ${location}: give that address as url`;
    const message = `${target} answered ${status} without an error of the API${hint}`;
    return new NinefoldError(message, { code: "unexpected_answer", status, requestId, retryAfterMs });
  }
  const { error, code, request_id, fields, ...extras } = parsed;
  const details = { code, status, requestId: request_id ?? requestId, retryAfterMs, extras };
  return new NinefoldError(error.message, { ...details, fields: fields ?? {} });
}

interface ErrorBody {
  readonly error: { readonly message: string };
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

/** `Retry-After` in milliseconds: whole seconds, or a date. Null when there is none that can be read. */
export function readRetryAfter(value: string | null, nowMs: number): number | null {
  if (value === null || value.trim() === "") return null;
  const ms = /^\s*\d+\s*$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}
