import { durationMs } from "../data/duration-text.ts";
import { invalidField } from "../errors.ts";
import { DAY_MS, HOUR_MS } from "../time/units.ts";
import { LOOP_DETECTED } from "./hops.ts";

/** Longest delay that a target can request with `Retry-After`. */
export const RETRY_AFTER_MS_MAX = HOUR_MS;
/** Jitter of a delay, as a fraction: attempts that failed together are not repeated together. */
const JITTER = 0.1;
/** Longest delay in a retry schedule, and their longest sum. */
const RETRY_WAIT_MS_MAX = DAY_MS;
const RETRY_WAITS_MS_MAX = 7 * DAY_MS;
/** The target does not exist any more. */
export const GONE = 410;

/** What a retry depends on. */
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

/** Whether a response is a success, and which failures are repeated. */
export interface RetryRule {
  /** Statuses below it, from 200, are a success. */
  readonly successBelow: 300 | 400;
  /** `all` failures, `unless-final` (410, and addresses that are not allowed), or only `temporary` ones; never a 508. */
  readonly repeats: "all" | "unless-final" | "temporary";
  /** Whether delays vary by a tenth. */
  readonly jitter: boolean;
  /** Whether `Retry-After` of a response can extend a delay. */
  readonly heedsRetryAfter: boolean;
}

/** Webhooks: only a 2xx is a success, and all failures but final ones are repeated. */
export const WEBHOOK_RULE: RetryRule = {
  successBelow: 300,
  repeats: "unless-final",
  jitter: true,
  heedsRetryAfter: true,
};

/** The next step after an attempt. */
export type NextStep =
  | { readonly kind: "delivered" }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "retry"; readonly error: string; readonly at: number };

/**
 * The next step after attempt number `number`, from 1. `waits`: delays before the retries, in milliseconds; `fraction` in
 * [0, 1) varies them.
 */
export function afterAttempt(
  rule: RetryRule,
  waits: readonly number[],
  number: number,
  result: AttemptResult,
  fraction: number,
): NextStep {
  if (isSuccess(rule, result.status)) return { kind: "delivered" };
  const error = errorOf(result);
  const wait = waits[number - 1];
  if (wait === undefined || !isRepeated(rule, result)) return { kind: "failed", error };
  const requested = rule.heedsRetryAfter ? retryAfterMs(result.retryAfter, result.finishedAt) : 0;
  const delay = Math.max(rule.jitter ? varied(wait, fraction) : wait, requested);
  return { kind: "retry", error, at: result.finishedAt + Math.round(delay) };
}

/** Whether a response means success; null for no response. */
export function isSuccess({ successBelow }: Pick<RetryRule, "successBelow">, status: number | null): boolean {
  return status !== null && status >= 200 && status < successBelow;
}

/** The error of an attempt that was no success, as users see it. */
export function errorOf({ status, failure }: Pick<AttemptResult, "status" | "failure">): string {
  if (failure !== null) return `${failure.kind}: ${failure.message}`;
  return status === null ? "no response" : `the target responded with ${status}`;
}

function isRepeated({ repeats }: RetryRule, { status, failure }: AttemptResult): boolean {
  // The webhook is in a loop: each attempt would be received again.
  if (status === LOOP_DETECTED) return false;
  if (repeats === "all") return true;
  if (failure !== null) return failure.kind !== "blocked" && failure.kind !== "invalid";
  if (repeats === "unless-final") return status !== GONE;
  return status === 408 || status === 429 || (status ?? 0) >= 500;
}

/** A delay, varied by a tenth. `fraction` is random, in [0, 1). */
export function varied(delayMs: number, fraction: number): number {
  return delayMs * (1 - JITTER + 2 * JITTER * fraction);
}

/** The delay after a number of failures, from 1: the first delay, doubled up to the longest, in milliseconds. */
export function backoffMs(failures: number, firstMs: number, longestMs: number): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 30));
}

/**
 * Parses a `retry_schedule` to milliseconds.
 * @throws ApiError `validation_error` for an invalid or too long delay, or sum of delays.
 */
export function readWaits(durations: readonly string[]): readonly number[] {
  const waits = durations.map(durationMs);
  const total = waits.reduce((sum, wait) => sum + wait, 0);
  if (waits.every((wait) => wait <= RETRY_WAIT_MS_MAX) && total <= RETRY_WAITS_MS_MAX) return waits;
  throw invalidField(
    "retry_schedule",
    "must be delays such as 5s, 5m or 2h: at most 24h each and 7d in total",
  );
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
