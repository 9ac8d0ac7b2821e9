import { type ErrorMeaning, invalidField, registerErrors } from "../../kernel/errors.ts";
import type { RelayBody, RelayFailure, RelayKind } from "./deliveries/schema.ts";

const codes = registerErrors({
  endpoint_name_taken: [409, "Another endpoint of the project has this name; `endpoint_id` says which."],
  endpoint_limit_exceeded: [403, "The project has as many endpoints as its tier allows."],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/**
 * The job that makes one attempt; its payload is the delivery's reference, or more of one to an endpoint. It is never
 * cancelled: when it is due and its delivery was cancelled or removed, it does nothing.
 */
export const DELIVER = "relay.deliver";

/** Waits before the retries of a scheduled delivery; each is varied by {@link RETRY_JITTER}. */
const SCHEDULED_RETRIES_MS: readonly number[] = [1_000, 5_000, 25_000];
/** Waits before the retries of a monitor's notification. */
const PULSE_RETRIES_MS: readonly number[] = [1_000, 5_000, 15_000];
/** How much shorter or longer a wait may be, so that deliveries that failed together are not retried together. */
const RETRY_JITTER = 0.1;
/** Longest wait that a target can ask for with `Retry-After`. */
export const RETRY_AFTER_MS_MAX = 60 * 60 * 1000;

const DELAY = /^([0-9]{1,9})([smhd])$/;
const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Longest delay: 30 days. */
export const DELAY_MS_MAX = 30 * 86_400_000;

/** Longest wait of a retry schedule, and all of them together. */
const RETRY_WAIT_MS_MAX = 86_400_000;
const RETRY_WAITS_MS_MAX = 7 * 86_400_000;

/** How long a second request under a `deduplication_id` makes no second delivery. */
export const DEDUPLICATED_MS = 86_400_000;

/** How long a delivery is kept after its end. */
export const RELAYS_KEPT_MS = 7 * 86_400_000;

/** The header with the time of a schedule's run, epoch milliseconds. */
export const DUE_HEADER = "X-Ninefold-Scheduled-At";

/** The status by which an endpoint says that it is gone for good. */
export const GONE = 410;

/** What became of one attempt. */
export interface AttemptResult {
  /** The target's status; null when it gave no answer. */
  readonly status: number | null;
  /** What went wrong when there was no answer. */
  readonly failure: { readonly kind: string; readonly message: string } | null;
  /** The answer's `Retry-After`. */
  readonly retryAfter: string | undefined;
  /** When the attempt ended, epoch milliseconds. */
  readonly endedAt: number;
}

/** What follows from an attempt. */
export type NextStep =
  | { readonly kind: "delivered" }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "retry"; readonly error: string; readonly at: number };

/**
 * The milliseconds of a delay such as `90s`, `15m`, `12h` or `30d`.
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

/** The milliseconds of a duration such as `90s`; NaN where it is none. */
function durationMs(text: string): number {
  const match = DELAY.exec(text);
  return match === null ? Number.NaN : Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? Number.NaN);
}

/**
 * When a delivery is due that is asked for now: after its `delay`, or `at` a moment, one of which has to be given.
 * @throws ApiError `validation_error` beyond 30 days.
 */
export function dueAt({ delay, at }: Pick<RelayBody, "delay" | "at">): (now: number) => number {
  if (at === undefined) {
    const ms = readDelay(delay ?? "");
    return (now) => now + ms;
  }
  if (delay !== undefined) throw invalidField("at", "is given instead of delay: leave one of them out");
  return (now) => {
    if (at > now + DELAY_MS_MAX) throw invalidField("at", "must be at most 30 days ahead");
    return Math.max(now, at);
  };
}

/**
 * The waits before retries as a user gives them, in milliseconds.
 * @throws ApiError `validation_error` for one that is none, or too long, or for all of them together.
 */
export function readWaits(given: readonly string[]): readonly number[] {
  const waits = given.map(durationMs);
  const total = waits.reduce((sum, wait) => sum + wait, 0);
  if (waits.every((wait) => wait <= RETRY_WAIT_MS_MAX) && total <= RETRY_WAITS_MS_MAX) return waits;
  throw invalidField(
    "retry_schedule",
    "must be waits such as 5s, 5m or 2h: at most 24h each, 7d all together",
  );
}

/**
 * What follows from attempt number `attempt` (from 1, counted since the delivery was last sent again). `fraction` in
 * [0, 1) varies the wait before a retry, but of a monitor's notification. `own`: waits of the delivery's own.
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
  const error = failure === null ? `the target answered ${status}` : `${failure.kind}: ${failure.message}`;
  const waits = own ?? (kind === "pulse" ? PULSE_RETRIES_MS : SCHEDULED_RETRIES_MS);
  const wait = waits[attempt - 1];
  if (wait === undefined || !isWorthRetrying(result)) return { kind: "failed", error };
  return retried(error, kind === "pulse" ? wait : varied(wait, fraction), result);
}

/** The same of a delivery to an endpoint: only a 2xx is a success, and whatever else may become one is tried again. */
export function afterEndpointAttempt(
  waits: readonly number[],
  attempt: number,
  result: AttemptResult,
  fraction: number,
): NextStep {
  const { status, failure } = result;
  if (status !== null && status >= 200 && status < 300) return { kind: "delivered" };
  const error = failure === null ? `the target answered ${status}` : `${failure.kind}: ${failure.message}`;
  const wait = waits[attempt - 1];
  const isFinal = status === GONE || (failure !== null && !isWorthRetrying(result));
  return wait === undefined || isFinal
    ? { kind: "failed", error }
    : retried(error, varied(wait, fraction), result);
}

function varied(wait: number, fraction: number): number {
  return wait * (1 - RETRY_JITTER + 2 * RETRY_JITTER * fraction);
}

function retried(error: string, wait: number, { retryAfter, endedAt }: AttemptResult): NextStep {
  const asked = retryAfterMs(retryAfter, endedAt);
  return { kind: "retry", error, at: endedAt + Math.round(Math.max(wait, asked)) };
}

/** Which kind of failure an attempt is that was no success. */
export function failureOf({ status, failure }: AttemptResult): RelayFailure {
  if (status !== null) return "http";
  if (failure?.kind === "timeout") return "timeout";
  return failure?.kind === "blocked" || failure?.kind === "invalid" ? "blocked" : "network";
}

/** A server that failed, was busy or took too long may do better later, and so may a network; a refusal is final. */
function isWorthRetrying({ status, failure }: AttemptResult): boolean {
  if (failure !== null) return failure.kind !== "blocked" && failure.kind !== "invalid";
  return status === 408 || status === 429 || (status ?? 0) >= 500;
}

/** The wait that `Retry-After` asks for (RFC 9110, section 10.2.3: seconds or a date), at most an hour. */
function retryAfterMs(value: string | undefined, now: number): number {
  if (value === undefined) return 0;
  // Repeated headers come joined by commas: the longest wait counts.
  const seconds = value.split(",").map((part) => part.trim());
  const ms = seconds.every((part) => /^\d{1,10}$/.test(part))
    ? Math.max(...seconds.map(Number)) * 1_000
    : Date.parse(value) - now;
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(0, ms), RETRY_AFTER_MS_MAX);
}
