/**
 * The one catalogue of error codes and the one error class whose text callers get to see.
 * An ApiError is thrown once, where the fact is known, and caught once, at the HTTP shell.
 * Anything else that is thrown is a defect: callers read `internal_error`, the log gets the rest.
 */

/** Every code that an answer can carry, with its HTTP status. */
export const STATUS_BY_CODE = {
  validation_error: 400,
  invalid_request: 400,
  unauthorized: 401,
  insufficient_balance: 402,
  forbidden: 403,
  not_found: 404,
  timeout: 408,
  conflict: 409,
  request_too_large: 413,
  rate_limit_exceeded: 429,
  internal_error: 500,
  service_unavailable: 503,
  "gate.rule_invalid": 400,
  "gate.feature_not_found": 404,
  flag_not_found: 404,
  "gate.evaluation_failed": 500,
  "catch.bucket_not_found": 404,
  "catch.event_not_found": 404,
  "catch.provider_unsupported": 400,
  "catch.signature_invalid": 400,
  "catch.replay_failed": 500,
  bucket_limit_exceeded: 403,
  project_limit_exceeded: 403,
  key_limit_exceeded: 403,
  monitor_limit_exceeded: 403,
  bucket_paused: 400,
} as const;

/** A code from the catalogue. */
export type ErrorCode = keyof typeof STATUS_BY_CODE;

/** Names of the rejected fields, each with what is wrong and what would be right. */
export type FieldMessages = Readonly<Record<string, readonly string[]>>;

/** What an error adds to its body and headers beyond code and message. */
export interface ErrorDetails {
  /** Top-level members beside `error` and `code`, such as `balance`. */
  readonly extras?: Readonly<Record<string, string | number | boolean | null>>;
  /** Only with `validation_error`. */
  readonly fields?: FieldMessages;
  /** Whole seconds; sent as the `Retry-After` header. */
  readonly retryAfterSeconds?: number;
  /** Response headers that this answer carries besides the usual ones. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What went wrong inside. For the log: callers never see it. */
  readonly cause?: unknown;
}

/** An error that the caller is meant to read. Its message says what was wrong and what would be right. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.status = STATUS_BY_CODE[code];
    this.details = details;
  }
}

/** Longest piece of a caller's own text that an error repeats: who sends a megabyte knows what it was. */
export const ECHO_LENGTH_MAX = 100;

/** A caller's own text as an error repeats it. */
export function echoed(text: string): string {
  return text.length <= ECHO_LENGTH_MAX ? text : `${text.slice(0, ECHO_LENGTH_MAX)}…`;
}

/** A `validation_error` about one field. */
export function invalidField(field: string, message: string): ApiError {
  const name = echoed(field);
  return new ApiError("validation_error", `${name} ${message}`, { fields: { [name]: [message] } });
}

/** An error of the operator's making (configuration, files, ports): printed as one line, exit code 1. */
export class StartupError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "StartupError";
  }
}

/** Whether nothing was done because the database cannot be written now: on a full disk, say. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof ApiError && error.code === "service_unavailable";
}

/** The text of anything that was thrown, for log lines. */
export function errorText(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
