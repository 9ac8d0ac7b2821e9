import type { Clock } from "../clock.ts";
import { ApiError } from "../errors.ts";
import { isBearerKey } from "../secrets/key-format.ts";
import { isUnlimited, type Tiers } from "../tiers.ts";
import { type Authenticator, type Caller, isOperator, requireScope } from "./caller.ts";
import type { Operation } from "./operations.ts";
import { RateLimiter, type RateVerdict } from "./rate-limit.ts";

const BEARER = /^Bearer +(\S+)$/i;

/** The gates between a request and its work, in their order: 401, 403, 429. */
export class Guard {
  private readonly authenticator: Authenticator;
  private readonly limiter: RateLimiter;
  private readonly tiers: Tiers;

  constructor(authenticator: Authenticator, tiers: Tiers, clock: Clock) {
    this.authenticator = authenticator;
    this.tiers = tiers;
    this.limiter = new RateLimiter(clock);
  }

  /** The caller behind the `Authorization` header. @throws ApiError `unauthorized` */
  authenticate(request: Request): Caller {
    const header = request.headers.get("authorization");
    if (header === null) throw unauthorized("No key was sent. Send it as Authorization: Bearer sm_….");
    const key = header.startsWith("Bearer ") ? header.slice(7).trim() : BEARER.exec(header)?.[1];
    if (key === undefined) throw unauthorized("The Authorization header must be: Bearer sm_….");
    if (!isBearerKey(key)) {
      throw unauthorized(
        "This is not a platform key: check that it was copied whole (its checksum does not hold).",
      );
    }
    const caller = this.authenticator.authenticate(key);
    if (caller === null) throw unauthorized("This key is unknown, revoked or expired.");
    return caller;
  }

  /** @throws ApiError `forbidden` for a suspended account, a deleted project, a missing scope. */
  authorize(caller: Caller, operation: Operation): void {
    if (caller.account.suspended) throw new ApiError("forbidden", "This account is suspended.");
    if (caller.projectDeleted) throw new ApiError("forbidden", "The project of this key has been deleted.");
    if (operation.access === "public") return;
    if (operation.access === "operator") {
      if (!isOperator(caller)) throw new ApiError("forbidden", "Only the operator's key may call this.");
      return;
    }
    requireScope(caller, operation.access);
    if (operation.accountOnly && caller.projectBound) {
      throw new ApiError("forbidden", "A key of one project may not do this. Use a key of the account.");
    }
  }

  /** Takes a token from the caller's bucket; null for accounts without limits. */
  takeToken(caller: Caller, operation: Operation): RateVerdict | null {
    if (operation.limit === "none" || isUnlimited(caller.account.tier)) return null;
    const figures = this.tiers[caller.account.tier];
    if (operation.limit === "monitor") {
      const key = `monitor/${caller.credential}`;
      return this.limiter.take(key, figures.monitorBurst, figures.monitorRequestsPerMinute);
    }
    return this.limiter.take(caller.credential, figures.requestsPerMinute, figures.requestsPerMinute);
  }
}

/** The rate-limit headers of an answer. */
export function rateLimitHeaders(verdict: RateVerdict): Record<string, string> {
  return {
    "x-ratelimit-limit": String(verdict.limit),
    "x-ratelimit-remaining": String(verdict.remaining),
    "x-ratelimit-reset": String(verdict.resetAt),
  };
}

/** The answer to a request that found its bucket empty. */
export function rateLimitExceeded(verdict: RateVerdict): ApiError {
  return new ApiError(
    "rate_limit_exceeded",
    `Too many requests. Try again in ${verdict.retryAfterSeconds} s.`,
    {
      retryAfterSeconds: verdict.retryAfterSeconds,
      headers: rateLimitHeaders(verdict),
    },
  );
}

function unauthorized(message: string): ApiError {
  return new ApiError("unauthorized", message, { headers: { "www-authenticate": "Bearer" } });
}
