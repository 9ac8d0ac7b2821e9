import { networkOf } from "../../kernel/data/addresses.ts";
import { ApiError } from "../../kernel/errors.ts";
import { RateLimiter } from "../../kernel/http/access/guard.ts";
import type { Clock } from "../../kernel/time/clock.ts";

/**
 * Requests without a key per minute and network: a reader gets a log of a million entries in a quarter of an hour, and a server
 * has 600 chains witnessed each minute.
 */
export const OPEN_REQUESTS_PER_MINUTE = 600;

/** Accepts or rejects a request by the address of its client. */
export type AdmitAddress = (clientAddress: string) => void;

/**
 * Limits the requests without a key to published logs and to the witness, by network. Returns the check of a request.
 * @throws ApiError `rate_limit_exceeded`
 */
export function limitOpenRequests(clock: Clock): AdmitAddress {
  const limiter = new RateLimiter(clock);
  return (clientAddress) => {
    const { allowed, retryAfterSeconds } = limiter.take(
      networkOf(clientAddress),
      OPEN_REQUESTS_PER_MINUTE,
      OPEN_REQUESTS_PER_MINUTE,
    );
    if (allowed) return;
    const message = `Too many requests without a key from this address. Retry in ${retryAfterSeconds} s.`;
    throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds });
  };
}
