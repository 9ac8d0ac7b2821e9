import { ApiError, echoed } from "../../kernel/errors.ts";

/** Shortest and longest time that a lock is held or waited for, and the one unless asked otherwise. */
export const DURATION_MS_MIN = 1_000;
export const DURATION_MS_MAX = 900_000;
export const DURATION_MS_DEFAULT = 10_000;

/** Requests that wait for one lock. Each is an open connection; behind a thousand others, a refusal is better than a wait. */
export const WAITERS_PER_LOCK_MAX = 1_000;

/** Requests of one account that wait for locks, all locks together: a waiting request costs no credits. */
export const WAITERS_PER_ACCOUNT_MAX = 1_000;

/** One holder's time with a lock. A refresh makes a new lease with the same tokens. */
export interface Lease {
  /** Proves that its sender holds the lock. */
  readonly token: string;
  /** Larger than that of every earlier grant. */
  readonly fencing_token: number;
  /** Epoch milliseconds. */
  readonly expires_at: number;
  /** How long it lasts after its commit, or after the start that reads it. */
  readonly lastsMs: number;
}

/** A waiter's time is over. */
export function waitTimedOut(key: string, timeoutMs: number): ApiError {
  return new ApiError(
    "timeout",
    `The lock ${echoed(key)} did not become free within ${timeoutMs} ms. Try again, or wait longer (timeout, at most ${DURATION_MS_MAX}).`,
  );
}

/** The server stops while requests wait. */
export function stopping(): ApiError {
  return new ApiError(
    "service_unavailable",
    "The server is shutting down, and the wait with it. Try again in a moment.",
    { retryAfterSeconds: 1 },
  );
}

/** The client has gone: nobody reads this. */
export function clientGone(): ApiError {
  return new ApiError("timeout", "The connection was closed before the lock was granted.");
}
