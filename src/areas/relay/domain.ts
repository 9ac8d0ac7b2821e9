import { type ErrorMeaning, invalidField, registerErrors } from "../../kernel/errors.ts";
import type { RelayBody, RelayFailure, RelayKind } from "./deliveries/schema.ts";

const codes = registerErrors({
  endpoint_name_taken: [409, "Another endpoint of the project has this name; `endpoint_id` identifies it."],
  endpoint_limit_exceeded: [403, "The project has reached its tier's limit of endpoints."],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/**
 * The job of one attempt. Its payload is the delivery's reference; to an endpoint, an `EndpointJob` if needed. It is never
 * cancelled: when it is due and its delivery is cancelled or deleted, it does nothing.
 */
export const DELIVER = "relay.deliver";

/** Delays before the retries of a scheduled delivery; each is varied by {@link RETRY_JITTER}. */
const SCHEDULED_RETRIES_MS: readonly number[] = [1_000, 5_000, 25_000];
/** Delays before the retries of a monitor's notification. */
const PULSE_RETRIES_MS: readonly number[] = [1_000, 5_000, 15_000];
/** Jitter of a delay, as a fraction: deliveries that failed together are not retried together. */
const RETRY_JITTER = 0.1;
/** Longest delay that a target can request with `Retry-After`. */
export const RETRY_AFTER_MS_MAX = 60 * 60 * 1000;

const DELAY = /^([0-9]{1,9})([smhd])$/;
const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Longest delay of a first attempt: 30 days. */
export const DELAY_MS_MAX = 30 * 86_400_000;

/** Longest delay in a retry schedule, and their longest sum. */
const RETRY_WAIT_MS_MAX = 86_400_000;
const RETRY_WAITS_MS_MAX = 7 * 86_400_000;

/** Time for which a `deduplication_id` creates no second delivery. */
export const DEDUPLICATION_MS = 86_400_000;

/** Retention of finished deliveries. */
export const RELAY_RETENTION_MS = 7 * 86_400_000;

/** The header with the time of a schedule's run, in epoch milliseconds. */
export const DUE_HEADER = "X-Ninefold-Scheduled-At";

/** 410 Gone: the endpoint does not exist any more. */
export const GONE = 410;

export interface AttemptResult {
  /** Status of the response; null without a response. */
  readonly status: number | null;
  /** Why there was no response. */
  readonly failure: { readonly kind: string; readonly message: string } | null;
  /** `Retry-After` of the response. */
  readonly retryAfter: string | undefined;
  /** End of the attempt, in epoch milliseconds. */
  readonly finishedAt: number;
}

/** The next step after an attempt. */
export type NextStep =
  | { readonly kind: "delivered" }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "retry"; readonly error: string; readonly at: number };

/**
 * Parses a delay such as `90s`, `15m`, `12h` or `30d` to milliseconds.
 * @throws ApiError `validation_error` beyond 30 days.
 */
export function readDelay(text: string): number {
  const ms = durationMs(text);
  if (ms <= DELAY_MS_MAX) return ms;
  throw invalidField(
    "delay",
    "must be a number of seconds, minutes, hours or days such as 0s, 90s, 15m, 12h or 3d: at most 30d",
  );
}

/** Parses a duration such as `90s` to milliseconds; NaN when it is invalid. */
function durationMs(text: string): number {
  const match = DELAY.exec(text);
  return match === null ? Number.NaN : Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? Number.NaN);
}

/**
 * When a delivery is due that is created now: after `delay`, or `at` a time. One of them is required.
 * @throws ApiError `validation_error` beyond 30 days.
 */
export function dueAt({ delay, at }: Pick<RelayBody, "delay" | "at">): (now: number) => number {
  if (at === undefined) {
    const ms = readDelay(delay ?? "");
    return (now) => now + ms;
  }
  if (delay !== undefined) throw invalidField("at", "cannot be combined with delay: omit one of them");
  return (now) => {
    if (at > now + DELAY_MS_MAX) throw invalidField("at", "must be at most 30 days ahead");
    return Math.max(now, at);
  };
}

/**
 * Parses a user's delays before retries to milliseconds.
 * @throws ApiError `validation_error` for an invalid or too long delay, or sum of delays.
 */
export function readWaits(given: readonly string[]): readonly number[] {
  const waits = given.map(durationMs);
  const total = waits.reduce((sum, wait) => sum + wait, 0);
  if (waits.every((wait) => wait <= RETRY_WAIT_MS_MAX) && total <= RETRY_WAITS_MS_MAX) return waits;
  throw invalidField(
    "retry_schedule",
    "must be delays such as 5s, 5m or 2h: at most 24h each and 7d in total",
  );
}

/**
 * The next step after attempt number `attempt` (from 1, counted since the last resend). `fraction` in [0, 1) varies the
 * delay before a retry, except for a monitor's notification. `own`: the delivery's retry schedule.
 */
export function afterAttempt(
  kind: RelayKind,
  attempt: number,
  result: AttemptResult,
  fraction: number,
  own: readonly number[] | null = null,
): NextStep {
  const { status, failure } = result;
  if (status !== null && status < 400) return { kind: "delivered" };
  const error =
    failure === null ? `the target responded with ${status}` : `${failure.kind}: ${failure.message}`;
  const waits = own ?? (kind === "pulse" ? PULSE_RETRIES_MS : SCHEDULED_RETRIES_MS);
  const wait = waits[attempt - 1];
  if (wait === undefined || !isWorthRetrying(result)) return { kind: "failed", error };
  return retried(error, kind === "pulse" ? wait : varied(wait, fraction), result);
}

/** The same for a delivery to an endpoint: only a 2xx is a success, and all failures but final ones are retried. */
export function afterEndpointAttempt(
  waits: readonly number[],
  attempt: number,
  result: AttemptResult,
  fraction: number,
): NextStep {
  const { status, failure } = result;
  if (status !== null && status >= 200 && status < 300) return { kind: "delivered" };
  const error =
    failure === null ? `the target responded with ${status}` : `${failure.kind}: ${failure.message}`;
  const wait = waits[attempt - 1];
  const isFinal = status === GONE || (failure !== null && !isWorthRetrying(result));
  return wait === undefined || isFinal
    ? { kind: "failed", error }
    : retried(error, varied(wait, fraction), result);
}

function varied(wait: number, fraction: number): number {
  return wait * (1 - RETRY_JITTER + 2 * RETRY_JITTER * fraction);
}

function retried(error: string, wait: number, { retryAfter, finishedAt }: AttemptResult): NextStep {
  const requested = retryAfterMs(retryAfter, finishedAt);
  return { kind: "retry", error, at: finishedAt + Math.round(Math.max(wait, requested)) };
}

/** The kind of failure of an unsuccessful attempt. */
export function failureOf({ status, failure }: AttemptResult): RelayFailure {
  if (status !== null) return "http";
  if (failure?.kind === "timeout") return "timeout";
  return failure?.kind === "blocked" || failure?.kind === "invalid" ? "blocked" : "network";
}

/** Server errors, rate limits, timeouts and network errors may be temporary; rejections are final. */
function isWorthRetrying({ status, failure }: AttemptResult): boolean {
  if (failure !== null) return failure.kind !== "blocked" && failure.kind !== "invalid";
  return status === 408 || status === 429 || (status ?? 0) >= 500;
}

/** The delay that `Retry-After` requests (RFC 9110, section 10.2.3: seconds or a date), at most an hour. */
function retryAfterMs(value: string | undefined, now: number): number {
  if (value === undefined) return 0;
  // Repeated headers are joined by commas: the longest delay counts.
  const seconds = value.split(",").map((part) => part.trim());
  const ms = seconds.every((part) => /^\d{1,10}$/.test(part))
    ? Math.max(...seconds.map(Number)) * 1_000
    : Date.parse(value) - now;
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(0, ms), RETRY_AFTER_MS_MAX);
}
