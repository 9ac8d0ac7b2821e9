import type { Clock } from "../clock.ts";
import { ApiError } from "../errors.ts";
import { isBearerKey, keyDigestHex } from "../secrets/key-format.ts";
import { isUnlimited, type Tiers } from "../tiers.ts";
import {
  type Authenticator,
  accountSuspended,
  type Caller,
  isOperator,
  projectGone,
  requireScope,
} from "./caller.ts";
import type { Operation } from "./operation.ts";
import { RateLimiter, type RateVerdict } from "./rate-limit.ts";

const BEARER = /^Bearer +(\S+) *$/i;

/** Headers whose digest is remembered: the keys in use. */
const DIGESTS_REMEMBERED_MAX = 10_000;
/** Longest header that is remembered: a padded one must not make the memo large. */
const HEADER_REMEMBERED_LENGTH_MAX = 64;

/** The gates between a request and its work, in their order: 401, 403, 429. */
export class Guard {
  private readonly keys: RateLimiter;
  /** One bucket per account, over all its keys: in a map of its own, where many keys of one push out nobody's. */
  private readonly accounts: RateLimiter<number>;
  /** Digests by header: whether a key is well-formed, and its digest, never change. Whether it is valid is asked each time. */
  private readonly digests = new Map<string, string>();

  constructor(
    private readonly authenticator: Authenticator,
    private readonly tiers: Tiers,
    clock: Clock,
  ) {
    this.keys = new RateLimiter(clock);
    this.accounts = new RateLimiter<number>(clock);
  }

  /** The caller behind the `Authorization` header. @throws ApiError `unauthorized` */
  authenticate(request: Request): Caller {
    const header = request.headers.get("authorization");
    if (header === null) throw unauthorized("No key was sent. Send it as Authorization: Bearer sm_….");
    const known = this.digests.get(header);
    const digest = known ?? digestOf(header);
    const caller = this.authenticator.authenticate(digest);
    if (caller === null) throw unauthorized("This key is unknown, revoked or expired.");
    if (known === undefined) this.remember(header, digest);
    return caller;
  }

  /** Only headers of real keys are remembered: strangers cannot fill the memo. */
  private remember(header: string, digest: string): void {
    if (header.length > HEADER_REMEMBERED_LENGTH_MAX) return;
    if (this.digests.size >= DIGESTS_REMEMBERED_MAX) this.digests.clear();
    this.digests.set(header, digest);
  }

  /** @throws ApiError `forbidden` for a suspended account, a deleted project, a missing scope. */
  authorize(caller: Caller, operation: Operation): void {
    if (caller.account.suspended) throw accountSuspended();
    if (caller.projectDeleted) throw projectGone();
    if (operation.access === "public") return;
    if (operation.access === "operator") {
      if (!isOperator(caller)) throw new ApiError("forbidden", "Only the operator's key may call this.");
    } else requireScope(caller, operation.access);
    if (operation.accountOnly && caller.projectBound) {
      throw new ApiError("forbidden", "A key of one project may not do this. Use a key of the account.");
    }
    if (operation.grantsEverything && !caller.scopes.has("*")) {
      throw new ApiError(
        "forbidden",
        "This key lacks the scope *, which the new key will have. Use a key that has it.",
      );
    }
  }

  /**
   * Takes a token from the caller's bucket and one from that of its account; null for accounts without limits. What one
   * of them refuses takes nothing from either.
   */
  takeToken(caller: Caller, operation: Operation): TokenVerdict | null {
    if (operation.limit === "none" || isUnlimited(caller.account.tier)) return null;
    const { ref, tier, tierSince } = caller.account;
    const figures = this.tiers[tier];
    const isMonitor = operation.limit === "monitor";
    const key = isMonitor ? `monitor/${caller.credential}` : caller.credential;
    const capacity = isMonitor ? figures.monitorBurst : figures.requestsPerMinute;
    const perMinute = isMonitor ? figures.monitorRequestsPerMinute : capacity;
    const own = this.keys.take(key, capacity, perMinute, tierSince);
    if (!own.allowed) return own;
    const ceiling = figures.accountRequestsPerMinute;
    const shared = this.accounts.take(ref, ceiling, ceiling, tierSince);
    if (shared.allowed) return own;
    this.keys.giveBack(key);
    return { ...shared, overAllKeys: true };
  }
}

/** What a request found, and whether it was the bucket of all keys of its account that was empty. */
export interface TokenVerdict extends RateVerdict {
  readonly overAllKeys?: true;
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
export function rateLimitExceeded(verdict: TokenVerdict): ApiError {
  const which = verdict.overAllKeys === true ? " over all keys of this account" : "";
  return new ApiError(
    "rate_limit_exceeded",
    `Too many requests${which}. Try again in ${verdict.retryAfterSeconds} s.`,
    {
      retryAfterSeconds: verdict.retryAfterSeconds,
      headers: rateLimitHeaders(verdict),
    },
  );
}

/** The digest of the key in a header. @throws ApiError `unauthorized` when there is no well-formed one. */
function digestOf(header: string): string {
  const key = BEARER.exec(header)?.[1];
  if (key === undefined) throw unauthorized("The Authorization header must be: Bearer sm_….");
  if (!isBearerKey(key)) {
    throw unauthorized(
      "This is not a platform key: check that it was copied whole (its checksum does not hold).",
    );
  }
  return keyDigestHex(key);
}

function unauthorized(message: string): ApiError {
  return new ApiError("unauthorized", message, { headers: { "www-authenticate": "Bearer" } });
}
