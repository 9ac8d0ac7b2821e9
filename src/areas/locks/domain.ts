import { ApiError, echoed } from "../../kernel/errors.ts";

/** Shortest and longest time that a lock is held or waited for, and what counts when a request names none. */
export const DURATION_MS_MIN = 1_000;
export const DURATION_MS_MAX = 900_000;
export const DURATION_MS_DEFAULT = 10_000;

/**
 * Requests that wait for one lock. Each is an open connection; whoever stands behind a thousand others is better
 * told so than left waiting.
 */
export const WAITERS_PER_LOCK_MAX = 1_000;

/** One holder's time with a lock. A refresh makes a new lease with the same tokens. */
export interface Lease {
  /** What the holder proves itself with. */
  readonly token: string;
  /** Larger than that of every earlier grant. */
  readonly fencingToken: number;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  /** How long it lasts from the moment at which it was made durable, or read again at a start. */
  readonly lastsMs: number;
}

/** The state of a lock, as its endpoint answers it. */
export interface LockStatusView {
  readonly locked: boolean;
  readonly queue_depth: number;
  /** Milliseconds; null when the lock is free. */
  readonly ttl_remaining: number | null;
}

/** The state of a lock that is free. */
export const FREE: LockStatusView = { locked: false, queue_depth: 0, ttl_remaining: null };

/** The state of a lock that is held for so long yet. */
export function heldStatus(waiters: number, remainingMs: number): LockStatusView {
  return { locked: true, queue_depth: waiters, ttl_remaining: remainingMs };
}

/** The answer to a release of a lock that is free. */
export function notHeld(key: string): ApiError {
  return new ApiError(
    "not_found",
    `The lock ${echoed(key)} is not held: it was released, has expired, or was never acquired.`,
  );
}

/** The answer to a release with a token that is not the holder's. */
export function heldByAnother(key: string): ApiError {
  return new ApiError(
    "forbidden",
    `The lock ${echoed(key)} is held with another token. Only the token of its holder releases it.`,
  );
}

/** The answer to a waiter whose time is over. */
export function waitTimedOut(key: string, timeoutMs: number): ApiError {
  return new ApiError(
    "timeout",
    `The lock ${echoed(key)} did not become free within ${timeoutMs} ms. Try again, or wait longer (timeout, at most ${DURATION_MS_MAX}).`,
  );
}

/** The answer to a request that found the queue of its lock full. */
export function queueFull(key: string): ApiError {
  return new ApiError(
    "rate_limit_exceeded",
    `Queue full: ${WAITERS_PER_LOCK_MAX} requests wait for the lock ${echoed(key)} already. Try again later.`,
    { retryAfterSeconds: 1 },
  );
}

/** The answer to waiters when the server stops. */
export function stopping(): ApiError {
  return new ApiError(
    "service_unavailable",
    "The server is shutting down, and the wait with it. Try again in a moment.",
    { retryAfterSeconds: 1 },
  );
}

/** The answer to waiters whose project was deleted. */
export function projectGone(): ApiError {
  return new ApiError("forbidden", "The project of this key has been deleted.");
}

/** Ends the request of a client that is gone: nobody reads it. */
export function clientGone(): ApiError {
  return new ApiError("timeout", "The connection was closed before the lock was granted.");
}
