/**
 * The one catalogue of error codes and the one error class whose text callers get to see.
 * An ApiError is thrown where the error is found, and caught at the HTTP shell.
 * Anything else that is thrown is a defect: the response is `internal_error`, the details are logged.
 */
import type { TSchema } from "@sinclair/typebox";
import { onOneLine } from "./one-line.ts";

/** The HTTP status of an error code, its meaning, and what to do, in Markdown with links as in `docs/errors.md`. */
export type ErrorMeaning = readonly [status: number, meaning: string, remedy: string];

const COMMON_CODES = {
  validation_error: [
    400,
    "The body or a parameter is not valid; see `fields`.",
    "Correct each field that `fields` names: its message says which values are accepted.",
  ],
  invalid_request: [
    400,
    "The request is well-formed, but its values are not acceptable.",
    "The message names the value and its limit, such as an amount of 0, or a balance above 2^53−1. Correct it.",
  ],
  unauthorized: [
    401,
    "No key, or one that is malformed, unknown, revoked or expired.",
    "Send `Authorization: Bearer sm_…` or `X-API-Key`. Check that the key belongs to this server and is complete; after a login, that the environment or a file does not have another one ([troubleshooting](troubleshooting.md#401-after-a-login)).",
  ],
  insufficient_balance: [
    402,
    "Not enough credits.",
    "Refill the meter that `meter_id` names, or wait for its plan. Without `meter_id`, the account's own credits are used up: they return on the first of the month, or the operator adds some ([troubleshooting](troubleshooting.md#402-not-enough-credits)).",
  ],
  forbidden: [
    403,
    "The key may not do this; the message says why.",
    "Use a key with the scope or the project that the message names, or add the scope to this key.",
  ],
  login_required: [
    403,
    "The person must log in again: this requires a login within the last 15 minutes. `methods` lists how.",
    "Log in again in the browser by one of the `methods`, then repeat the request. The console does both ([step-up](api/people.md#step-up)).",
  ],
  not_found: [
    404,
    "The resource does not exist, or it is not yours.",
    "Check the path, the ID and the project of the key. Resources of another project look as if they did not exist.",
  ],
  method_not_allowed: [
    405,
    "The path does not accept this method.",
    "`/v1/mcp` accepts only POST. Send messages of the Model Context Protocol by POST.",
  ],
  timeout: [
    408,
    "The wait ended without a response.",
    "Nothing was acquired, or the body did not arrive within 30 seconds. Repeat the request, if needed with a longer wait.",
  ],
  conflict: [
    409,
    "The request conflicts with the current state; the message says how.",
    "Read the current state and decide again. For an `Idempotency-Key`: use a new key for another request, or wait while the first one is running.",
  ],
  request_too_large: [
    413,
    "The body is larger than 64 KiB; for flags, deliveries, buckets and the notary than 1 MiB.",
    "Send less, or several requests. If the response is not JSON, a proxy has its own limit ([troubleshooting](troubleshooting.md#413-behind-nginx)). Request bodies have at most 64 KiB; those of flags, deliveries, messages, buckets, webhooks, status pages, pings and the notary 1 MiB.",
  ],
  rate_limit_exceeded: [
    429,
    "Too many requests; retry after the number of seconds in `Retry-After`.",
    "Wait the number of seconds in `Retry-After`. Spread requests over time, or request a tier with higher limits from the operator ([rate limits](api/basics.md#rate-limits)).",
  ],
  internal_error: [
    500,
    "An internal error of the server. Nothing was charged.",
    "Retry with the same `Idempotency-Key`. If it happens again, give the `request_id` to the operator: the log has the cause.",
  ],
  service_unavailable: [
    503,
    "The server cannot do this now. Nothing was changed.",
    'Wait the number of seconds in `Retry-After`, or a few seconds without it, and retry. With `"carried_out": true` do not retry: the external effect (a check, a replay) happened and was charged, but its result could not be stored.',
  ],
  not_leader: [
    503,
    "This node of a cluster does not lead; `leader` is the URL of the one that does, or null. Nothing was changed.",
    "Send the request to the URL in `leader`. The TypeScript client does so itself if it knows all nodes ([clusters](high-availability.md#stage-2-a-cluster)).",
  ],
  unconfirmed: [
    503,
    "A node of a cluster could not confirm the request, whose outcome is unknown. Repeat it with the same `Idempotency-Key`.",
    "Repeat the request with the same `Idempotency-Key`: it is then carried out exactly once.",
  ],
  read_only: [
    503,
    "The server cannot write, for example because its disk is full. Nothing was changed; reads are served.",
    "The operator frees space or replaces the disk ([runbook](runbooks/disk-full.md)). Changes work again without a restart.",
  ],
} as const satisfies Record<string, ErrorMeaning>;

/**
 * Every code that a response can carry. An area adds its own by declaring them here (`interface ErrorCodes extends …`)
 * and handing them to {@link registerErrors}.
 */
export interface ErrorCodes extends Record<keyof typeof COMMON_CODES, ErrorMeaning> {}

/** A code from the catalogue. */
export type ErrorCode = keyof ErrorCodes;

const catalogue = new Map<string, ErrorMeaning>(Object.entries(COMMON_CODES));

/** Adds the codes of an area to the catalogue, and returns them. */
export function registerErrors<const Codes extends Record<string, ErrorMeaning>>(codes: Codes): Codes {
  for (const [code, meaning] of Object.entries(codes)) catalogue.set(code, meaning);
  return codes;
}

const fieldsOfErrors = new Map<string, TSchema>();

/** Says which fields an area's errors add to their bodies ({@link ErrorDetails.extras}), for the API document. */
export function registerErrorFields(fields: Readonly<Record<string, TSchema>>): void {
  for (const [name, schema] of Object.entries(fields)) fieldsOfErrors.set(name, schema);
}

/** The schema of every field that errors add, in an order that does not depend on which area was loaded first. */
export function errorFields(): Readonly<Record<string, TSchema>> {
  return Object.fromEntries([...fieldsOfErrors].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Every registered code, in an order that does not depend on which area was loaded first. */
export function knownErrors(): readonly ErrorCode[] {
  return [...catalogue.keys()].sort() as ErrorCode[];
}

/** Address of what to do about an error, below the start of the server's URLs. */
export function errorDocs(code: ErrorCode): string {
  return `/docs/errors/${code}`;
}

/** The status of a code, its meaning, and what to do. */
export function errorMeaning(code: ErrorCode): ErrorMeaning {
  return catalogue.get(code) ?? COMMON_CODES.internal_error;
}

/** Names of the rejected fields, each with what is wrong and what would be right. */
export type FieldMessages = Readonly<Record<string, readonly string[]>>;

/** What an error adds to its body and headers beyond code and message. */
export interface ErrorDetails {
  /** Top-level members next to `error` and `code`, such as `balance`. */
  readonly extras?: Readonly<Record<string, string | number | boolean | null | readonly string[]>>;
  /** With `validation_error`, and with an area's own codes that reject fields. */
  readonly fields?: FieldMessages;
  /** Whole seconds; sent as the `Retry-After` header. */
  readonly retryAfterSeconds?: number;
  /** Response headers that this response carries in addition to the usual ones. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The internal cause, for the log: callers never see it. */
  readonly cause?: unknown;
}

/** An error for the caller. Its message says what is wrong, then what to do. */
export class ApiError extends Error {
  readonly status: number;

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details: ErrorDetails = {},
  ) {
    super(message);
    this.name = "ApiError";
    [this.status] = errorMeaning(code);
  }
}

/** The error with which a check rejects; null if it passes. Rethrows anything that is not an {@link ApiError}. */
export function rejectionBy(check: () => void): ApiError | null {
  try {
    check();
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** Longest piece of a caller's own text that an error repeats: a long text need not be repeated whole. */
export const ECHO_LENGTH_MAX = 100;

/** A caller's text as an error repeats it: on one line, cut to {@link ECHO_LENGTH_MAX}. */
export function echoed(text: string): string {
  const short = text.length <= ECHO_LENGTH_MAX ? text : `${text.slice(0, ECHO_LENGTH_MAX)}…`;
  return onOneLine(short, "?");
}

/** A `validation_error` about one field. */
export function invalidField(field: string, message: string): ApiError {
  const name = echoed(field);
  return new ApiError("validation_error", `${name} ${message}`, { fields: { [name]: [message] } });
}

/** Runs a function, and adds a prefix to the fields of its error, with the first of which the message begins. */
export function withFieldPrefix<T>(place: string, part: () => T): T {
  try {
    return part();
  } catch (error) {
    if (!(error instanceof ApiError) || error.details.fields === undefined) throw error;
    const { code, message, details } = error;
    const fields = Object.entries(error.details.fields).map(([name, texts]) => [`${place}${name}`, texts]);
    throw new ApiError(code, `${place}${message}`, { ...details, fields: Object.fromEntries(fields) });
  }
}

/** An error of the operator's making (configuration, files, ports): printed as one line, exit code 1. */
export class StartupError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "StartupError";
  }
}

const UNAVAILABLE: readonly ErrorCode[] = ["service_unavailable", "read_only", "unconfirmed"];

/** Whether nothing was done because the database cannot be written now: on a full disk, say. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof ApiError && UNAVAILABLE.includes(error.code);
}

/** The code of an error of the system or of SQLite, such as `ENOENT`; empty for one without. */
export function errorCode(error: unknown): string {
  if (typeof error !== "object" || error === null || !("code" in error)) return "";
  return typeof error.code === "string" ? error.code : "";
}

/** The text of anything that was thrown, for log lines. */
export function errorText(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
