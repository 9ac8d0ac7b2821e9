import { ApiError, echoed } from "../../kernel/errors.ts";

/** Minimum, maximum and default of TTLs and wait timeouts, in milliseconds. */
export const DURATION_MS_MIN = 1_000;
export const DURATION_MS_MAX = 900_000;
export const DURATION_MS_DEFAULT = 10_000;

/** A wait of 0 tries once and never queues. Between it and {@link DURATION_MS_MIN} are no timeouts. */
export const TIMEOUT_MS_TRY = 0;

/** Whether a lock has one holder, or several that all hold it as shared. */
export type LockMode = "exclusive" | "shared";

/** Holders of one shared lock; more wait. Its readers are one team of workers, and a grant compares tokens with each. */
export const HOLDERS_PER_LOCK_MAX = 1_000;

/** Waiting requests per lock. Each is an open connection; behind a thousand others, an error is more useful than a wait. */
export const WAITERS_PER_LOCK_MAX = 1_000;

/** Waiting requests per account over all locks. The limit is necessary because waiting is free of charge. */
export const WAITERS_PER_ACCOUNT_MAX = 1_000;

/** The time for which a holder has a lock. A refresh creates a new lease with the same tokens. */
export interface Lease {
  /** Secret of the holder. */
  readonly token: string;
  /** Higher than the fencing token of every earlier grant. */
  readonly fencing_token: number;
  /** Epoch milliseconds. */
  readonly expires_at: number;
  /** Milliseconds from the commit, or from the start of the server that loads the lease, until it expires. */
  readonly durationMs: number;
}

/** Error of a wait that reached its timeout, or of a request that does not wait. */
export function waitTimeoutError(key: string, timeoutMs: number): ApiError {
  if (timeoutMs === TIMEOUT_MS_TRY) {
    return new ApiError(
      "timeout",
      `The lock ${echoed(key)} is not free. Retry later, or set a \`timeout\` (${DURATION_MS_MIN} to ${DURATION_MS_MAX} ms) to wait for it.`,
    );
  }
  return new ApiError(
    "timeout",
    `The lock ${echoed(key)} did not become free within ${timeoutMs} ms. Retry, or set a longer \`timeout\` (at most ${DURATION_MS_MAX}).`,
  );
}

/** Error of a request whose token holds the lock, or got it, in the other mode. */
export function otherModeError(key: string, mode: LockMode): ApiError {
  return new ApiError(
    "conflict",
    `This token holds the lock ${echoed(key)} in the mode \`${mode}\`. Release it first, or acquire with another token: a lock has no upgrade.`,
  );
}

/** Error of a waiting request while the server stops. */
export function shuttingDownError(): ApiError {
  return new ApiError(
    "service_unavailable",
    "The server is shutting down and ended the wait. Retry in a few seconds.",
    { retryAfterSeconds: 1 },
  );
}

/** Error of a request after the client has disconnected; no client receives it. */
export function connectionClosedError(): ApiError {
  return new ApiError("timeout", "The connection was closed before the lock was granted.");
}
