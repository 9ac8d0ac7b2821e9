import {
  assertAllowedFrom,
  assertStillValid,
  type Caller,
  type CallerPerson,
  type CallerPortal,
  hasManagedKey,
  hasScope,
  isOperator,
  PORTAL_LINK_FORBIDS,
  PORTAL_LINK_OVER,
} from "../../callers/caller.ts";
import { isAtLeast } from "../../callers/role.ts";
import { ApiError } from "../../errors.ts";
import { LruMap } from "../../limits/lru-map.ts";
import { isUnlimited, type Tiers } from "../../limits/tiers.ts";
import { isBearerKey, keyDigestHex, keyPrefix, PLATFORM_PREFIX } from "../../secrets/key-format.ts";
import type { Tx } from "../../storage/tx.ts";
import { type Clock, monotonicMs } from "../../time/clock.ts";
import { type Operation, STEP_UP_MS } from "../operation.ts";
import type { Arrival, PageRequest } from "./peers.ts";
import { CallerInProject, chosenProject, type ProjectFinder } from "./project-choice.ts";
import { TokenBuckets, takeTokens, tokensIn, waitForTokens } from "./token-buckets.ts";

/** Finds the caller of a key. Implemented by the areas that store keys. */
export interface Authenticator {
  /**
   * The caller of the key with this SHA-256 (hex), or null when it is unknown, revoked, expired or past its grace.
   * The format and checksum of the key are already verified.
   */
  authenticate(digest: string): Caller | null;
}

/** Finds the caller behind a browser session's cookie. Implemented by the area that stores sessions. */
export interface SessionAuthenticator {
  /**
   * Null if the request has no cookie of this server, or its session has expired.
   * @throws ApiError `forbidden` when the cookie came from another page than this server's own, `not_found` for a project
   *   that the request names and the caller does not see.
   */
  authenticateSession(from: PageRequest): Caller | null;
}

/** Finds the caller behind the token of a portal link. Implemented by the area that stores the links. */
export interface PortalAuthenticator {
  /** Null if the token is unknown, expired or revoked, or if its key or project has gone. */
  authenticatePortal(token: string): Caller | null;
}

/** Buckets in memory. A full bucket equals none, so only recently used keys need one. */
export const RATE_BUCKETS_MAX = 100_000;

/** The state of a rate limit after a request. */
export interface RateVerdict {
  readonly allowed: boolean;
  /** The bucket's capacity. */
  readonly limit: number;
  /** Whole tokens left. */
  readonly remaining: number;
  /** Unix seconds when the bucket is full again. */
  readonly resetAt: number;
  /** Whole seconds until the next token; 0 if allowed. */
  readonly retryAfterSeconds: number;
  /** Whether the bucket of the account, over all its keys, was empty. */
  readonly overAllKeys?: true;
}

/** Parts of a token, so that each millisecond adds a whole number of them: the limit per minute. */
const PARTS = 60_000;

/** Rate limits of callers: {@link TokenBuckets} by key, with the values of the rate-limit headers. */
export class RateLimiter<Key extends string | number = string> {
  private readonly buckets: TokenBuckets<Key>;

  constructor(
    private readonly clock: Clock,
    bucketsMax: number = RATE_BUCKETS_MAX,
    /** Whole milliseconds that fill buckets in addition to those of the clock. */
    private readonly extraMs: () => number = () => 0,
  ) {
    this.buckets = new TokenBuckets(bucketsMax);
  }

  /**
   * Takes one token from the bucket of `key`, if there is one. The limits apply since `since` (epoch milliseconds);
   * before that, the bucket refilled at its earlier limits. `owner`: the account whose share of the memory holds the
   * bucket.
   */
  take(key: Key, capacity: number, perMinute: number, since = 0, owner?: number): RateVerdict {
    const beside = this.extraMs();
    const now = this.clock.now() + beside;
    const rate = { capacity, parts: PARTS, gainPerMs: perMinute };
    const bucket = this.buckets.at(key, rate, now, since, owner);
    const untilOneMs = waitForTokens(bucket, 1);
    const allowed = untilOneMs === 0;
    if (allowed) takeTokens(bucket, 1);
    return {
      allowed,
      limit: capacity,
      remaining: tokensIn(bucket),
      resetAt: Math.ceil((bucket.fullAt - beside) / 1000),
      retryAfterSeconds: allowed ? 0 : Math.max(1, Math.ceil(untilOneMs / 1000)),
    };
  }

  /** Returns the token that was just taken, after another limit rejected the request. */
  release(key: Key, owner?: number): void {
    const bucket = this.buckets.peek(key, owner);
    if (bucket !== undefined) takeTokens(bucket, -1);
  }

  /** Buckets in memory. */
  get size(): number {
    return this.buckets.size;
  }
}

/** Addresses in memory. The least recent ones are dropped first, which limits memory under a flood of addresses. */
export const ATTEMPT_KEYS_MAX = 50_000;

/** The monotonic time of attempt limits. A test clock stands still until it is advanced, so real time counts as well. */
export function limitClock(clock: Clock, fillsInRealTime: boolean): Pick<Clock, "monotonic"> {
  if (!fillsInRealTime) return clock;
  const begun = monotonicMs();
  return { monotonic: () => clock.monotonic() + monotonicMs() - begun };
}

/** A limit of attempts per key within a sliding window, without bursts at its edges. */
export class AttemptLimiter {
  private readonly attempts = new Map<string, number[]>();

  constructor(
    private readonly clock: Pick<Clock, "monotonic">,
    private readonly limit: number,
    private readonly windowMs: number,
    private readonly keysMax: number = ATTEMPT_KEYS_MAX,
  ) {}

  /** Whole seconds until an attempt is allowed; 0 if it is now. Counts no attempt. */
  wait(key: string): number {
    const now = this.clock.monotonic();
    const recent = this.recent(key, now);
    const oldest = recent[0];
    if (oldest === undefined || recent.length < this.limit) return 0;
    return Math.max(1, Math.ceil((oldest + this.windowMs - now) / 1000));
  }

  /** Counts an attempt. Returns 0 if it is within the limit, otherwise the whole seconds until the next one is allowed. */
  take(key: string): number {
    const waitSeconds = this.wait(key);
    if (waitSeconds > 0) return waitSeconds;
    // Monotonic: a wall clock that is set back would reject everyone for that long.
    const now = this.clock.monotonic();
    const recent = this.recent(key, now);
    recent.push(now);
    // Deleted and inserted, so that the map is ordered by the latest attempt.
    this.attempts.delete(key);
    const [longestQuiet] = this.attempts.keys();
    if (longestQuiet !== undefined && this.attempts.size >= this.keysMax) this.attempts.delete(longestQuiet);
    this.attempts.set(key, recent);
    return 0;
  }

  /** The same in a unit of work: an attempt that is rolled back does not count. */
  takeIn(tx: Tx, key: string): number {
    const waitSeconds = this.take(key);
    if (waitSeconds === 0) tx.onRollback(() => this.release(key));
    return waitSeconds;
  }

  /** Removes the newest attempt of a key, which had no effect. */
  release(key: string): void {
    this.attempts.get(key)?.pop();
  }

  private recent(key: string, now: number): number[] {
    return (this.attempts.get(key) ?? []).filter((at) => at > now - this.windowMs);
  }
}

const BEARER = /^Bearer +(\S+) *$/i;

/** Cached digests of `Authorization` headers: the keys in use. */
const DIGESTS_REMEMBERED_MAX = 10_000;
/** Longest header with the token of a portal link that is read: ours are shorter. */
const PORTAL_HEADER_LENGTH_MAX = 255;
/** Longest cached header: a padded one must not fill the cache. */
const HEADER_REMEMBERED_LENGTH_MAX = 64;

/**
 * Requests per minute of all browser sessions of an account together, in place of the tier's limit of a key: a page sends
 * many requests together. The monitor limit and the account's ceiling count sessions as they count keys.
 */
export const SESSION_REQUESTS_PER_MINUTE = 600;
/** Requests per minute of a person in all of their browsers. */
const PERSON_REQUESTS_PER_MINUTE = 600;
/** Requests per minute of all people of an account together. */
const PEOPLE_REQUESTS_PER_MINUTE = 10 * PERSON_REQUESTS_PER_MINUTE;
/** The bucket that all people of an account share. */
const PEOPLE_BUCKET = "people";
/** The bucket that all browser sessions of an account share. */
const SESSIONS_BUCKET = "sessions";

/**
 * Requests per minute of all portal links of a customer together, in place of the limit of a key: enough for a person with
 * the page open. They apply to every tier, since customers are strangers to the account.
 */
export const PORTAL_REQUESTS_PER_MINUTE = 120;
/** The same for requests that cost credits: a customer must not spend the account's balance. */
export const PORTAL_CHARGED_PER_MINUTE = 20;

/** The bucket that all portal links of an account share. */
const PORTALS_BUCKET = "portals";

/** The header of a reverse proxy's own key, unencoded: `Authorization` is its client's. */
export const PROXY_KEY_HEADER = "X-Ninefold-Key";

/** The gates before the work of a request, in this order: 401, 403, 429. */
export class Guard {
  /** A bucket per key and one for all browser sessions of an account, each account with its share of the memory. */
  private readonly keys: RateLimiter;
  /** One bucket per account, over all its keys: in a separate map, so that many keys of one account evict no other's. */
  private readonly accounts: RateLimiter<number>;
  /** Digests by header: form and digest of a key never change. Its validity is checked each time. */
  private readonly digests = new LruMap<string, string>(DIGESTS_REMEMBERED_MAX);

  constructor(
    private readonly authenticator: Authenticator,
    private readonly tiers: Tiers,
    private readonly clock: Clock,
    /** For a clock that stands still until it is advanced: buckets also fill in real time. */
    fillsInRealTime: boolean,
    private readonly sessions: SessionAuthenticator | null = null,
    private readonly portals: PortalAuthenticator | null = null,
    private readonly projects: ProjectFinder | null = null,
  ) {
    const begun = monotonicMs();
    const extraMs = fillsInRealTime ? () => Math.floor(monotonicMs() - begun) : undefined;
    this.keys = new RateLimiter(clock, undefined, extraMs);
    this.accounts = new RateLimiter<number>(clock, undefined, extraMs);
  }

  /**
   * The caller of the `Authorization` header; without it, of a session's cookie; or of a proxy's own header, or a portal link.
   * `takesApiKeyHeader`: without `Authorization`, `X-API-Key` comes before the cookie.
   *
   * @throws ApiError `unauthorized`; `forbidden` from an address that the key does not work from.
   */
  authenticate(from: Arrival, takesApiKeyHeader = false): Caller {
    if (from.byPortal) return this.portalOf(from.request);
    const caller = from.byProxy ? this.proxyOf(from.request) : this.callerOf(from, takesApiKeyHeader);
    if (caller.allowedIps) assertAllowedFrom(caller, from.clientAddress);
    return caller;
  }

  private callerOf(from: Arrival, takesApiKeyHeader: boolean): Caller {
    const { headers } = from.request;
    const header = headers.get("authorization") ?? (takesApiKeyHeader ? apiKeyHeader(headers) : null);
    if (header === null) {
      const caller = this.sessions?.authenticateSession(from) ?? null;
      if (caller !== null) return caller;
      throw unauthorized("No key was sent. Send one as `Authorization: Bearer sm_…`.");
    }
    const caller = this.callerBehind(header);
    if (this.projects === null) return caller;
    const project = chosenProject(from.request, caller, this.projects);
    return project === null ? caller : new CallerInProject(caller, project, this.projects);
  }

  private proxyOf(request: Request): Caller {
    const key = request.headers.get(PROXY_KEY_HEADER) ?? "";
    if (key === "" || key.includes(" ")) {
      throw unauthorized(
        `The proxy's own key is missing or malformed. Send the key alone, without Bearer: ${PROXY_KEY_HEADER}: sm_….`,
      );
    }
    return this.callerBehind(`Bearer ${key}`);
  }

  /** The addresses that the key works from do not count: customers have others. */
  private portalOf({ headers }: Request): Caller {
    const header = headers.get("authorization") ?? "";
    const token = header.length <= PORTAL_HEADER_LENGTH_MAX ? BEARER.exec(header)?.[1] : undefined;
    const caller = token === undefined ? null : (this.portals?.authenticatePortal(token) ?? null);
    if (caller !== null) return caller;
    throw unauthorized(PORTAL_LINK_OVER);
  }

  private callerBehind(header: string): Caller {
    const known = this.digests.get(header);
    const digest = known ?? digestOf(header);
    const caller = this.authenticator.authenticate(digest);
    if (caller === null) throw unauthorized("This key is unknown, revoked or expired.");
    // Only headers of valid keys are cached, so that strangers cannot fill the cache.
    if (known === undefined && header.length <= HEADER_REMEMBERED_LENGTH_MAX)
      this.digests.set(header, digest);
    return caller;
  }

  /**
   * @throws ApiError `forbidden` for a suspended account, a deleted project, a missing scope, a role below the operation's
   *   least one; `login_required` for a person who logged in too long ago for it.
   */
  authorize(caller: Caller, operation: Operation): void {
    assertStillValid(caller);
    if (caller.person !== undefined) {
      this.authorizePerson(caller, caller.person, operation);
      return;
    }
    const { access } = operation;
    if (access === "people:write" && hasManagedKey(caller)) {
      throw new ApiError("forbidden", "Managed keys cannot change people. Use the platform key, or log in.");
    }
    if (access === "operator") {
      if (!isOperator(caller)) throw new ApiError("forbidden", "Only the operator's key may call this.");
    } else if (access !== "any" && !hasScope(caller, access)) {
      if (caller.portal !== undefined) throw new ApiError("forbidden", PORTAL_LINK_FORBIDS);
      throw new ApiError(
        "forbidden",
        `The key does not have the scope ${access}. Use a key that has it, or add the scope.`,
      );
    }
    if (operation.accountOnly && caller.projectBound) {
      throw new ApiError("forbidden", "Keys of one project cannot do this. Use a key of the account.");
    }
    if (operation.grantsEverything && !caller.scopes.has("*")) {
      throw new ApiError(
        "forbidden",
        "The key does not have the scope *, which the new key would have. Use a key that has it.",
      );
    }
  }

  /** A role is a set of operations: it stands for the scopes of a key. */
  private authorizePerson(caller: Caller, person: CallerPerson, operation: Operation): void {
    const { access, role, ofAccount, anyProject, stepUp } = operation;
    if (role === null) throw new ApiError("forbidden", "People cannot call this. Use a key.");
    if (person.lacksProject && !anyProject && !ofAccount) {
      throw new ApiError(
        "forbidden",
        "You have roles in single projects. Select one with the header X-Ninefold-Project.",
      );
    }
    if (ofAccount && !person.isOfAccount) {
      throw new ApiError("forbidden", "This is of the account, and you have roles in single projects only.");
    }
    if (!isAtLeast(person.role, role)) {
      throw new ApiError(
        "forbidden",
        `Your role is ${person.role}; this requires ${role}. An admin or owner of the account can change it.`,
      );
    }
    if (access === "operator" && !isOperator(caller))
      throw new ApiError("forbidden", "Only owners of the operator's account may call this.");
    // A trusted proxy vouches for each request of its sessions.
    if (
      !stepUp ||
      person.method === "header" ||
      Math.abs(this.clock.now() - person.authenticatedAt) < STEP_UP_MS
    )
      return;
    throw new ApiError(
      "login_required",
      "This requires a login within the last 15 minutes. Log in again, then repeat the request.",
      { extras: { methods: person.stepUpMethods() } },
    );
  }

  /**
   * Takes a token from the buckets of the key and of the account; null for accounts without limits. A rejection by one
   * of them takes no token from either.
   */
  takeToken(caller: Caller, operation: Operation): RateVerdict | null {
    if (caller.portal !== undefined) return this.takePortalTokens(caller, caller.portal, operation);
    if (operation.limit === "none" || isUnlimited(caller.account.tier)) return null;
    if (caller.person !== undefined) return this.takePersonTokens(caller, caller.person, operation);
    const { ref, tier, tierSince } = caller.account;
    const figures = this.tiers[tier];
    const isSession = caller.session !== undefined;
    const isMonitor = operation.limit === "monitor";
    const credential = isSession ? SESSIONS_BUCKET : caller.credential;
    const key = isMonitor ? `monitor/${credential}` : credential;
    const general = isSession ? SESSION_REQUESTS_PER_MINUTE : figures.requestsPerMinute;
    const capacity = isMonitor ? figures.monitorBurst : general;
    const perMinute = isMonitor ? figures.monitorRequestsPerMinute : general;
    const ofKey = this.keys.take(key, capacity, perMinute, tierSince, ref);
    if (!ofKey.allowed) return ofKey;
    const ceiling = figures.accountRequestsPerMinute;
    const shared = this.accounts.take(ref, ceiling, ceiling, tierSince);
    if (shared.allowed) return ofKey;
    this.keys.release(key, ref);
    return { ...shared, overAllKeys: true };
  }

  /** People have limits of their own: they cannot block the account's keys, nor one of them all others. */
  private takePersonTokens(
    { account: { ref, tier, tierSince } }: Caller,
    person: CallerPerson,
    operation: Operation,
  ): RateVerdict {
    const { monitorBurst, monitorRequestsPerMinute } = this.tiers[tier];
    const isMonitor = operation.limit === "monitor";
    const bucket = `${isMonitor ? "monitor/" : ""}person/${person.ref}`;
    const verdict = isMonitor
      ? this.keys.take(bucket, monitorBurst, monitorRequestsPerMinute, tierSince, ref)
      : this.keys.take(bucket, PERSON_REQUESTS_PER_MINUTE, PERSON_REQUESTS_PER_MINUTE, 0, ref);
    if (!verdict.allowed) return verdict;
    const all = this.keys.take(PEOPLE_BUCKET, PEOPLE_REQUESTS_PER_MINUTE, PEOPLE_REQUESTS_PER_MINUTE, 0, ref);
    if (all.allowed) return verdict;
    this.keys.release(bucket, ref);
    return { ...all, overAllKeys: true };
  }

  /** Returns the token that a request of a key has just taken: what it contains takes one as a request of its own. */
  returnToken({ credential, account }: Caller, { limit }: Operation): void {
    if (limit !== "general" || isUnlimited(account.tier)) return;
    this.keys.release(credential, account.ref);
    this.accounts.release(account.ref);
  }

  /**
   * Portal links take no tokens of the account's keys: customers cannot block the account's own requests. All customers of an
   * account together have a limit like that of all its keys.
   */
  private takePortalTokens(
    { account: { ref, tier, tierSince }, project }: Caller,
    { ownerId }: CallerPortal,
    { cost, chargesLater }: Operation,
  ): RateVerdict | null {
    const owner = `portal/${project.ref}/${ownerId}`;
    const ceiling = this.tiers[tier].accountRequestsPerMinute;
    const limits: readonly (readonly [bucket: string, perMinute: number, since: number])[] = [
      [owner, PORTAL_REQUESTS_PER_MINUTE, 0],
      ...(cost > 0 || chargesLater ? [[`charged/${owner}`, PORTAL_CHARGED_PER_MINUTE, 0] as const] : []),
      ...(isUnlimited(tier) ? [] : [[PORTALS_BUCKET, ceiling, tierSince] as const]),
    ];
    for (const [at, [bucket, perMinute, since]] of limits.entries()) {
      const verdict = this.keys.take(bucket, perMinute, perMinute, since, ref);
      if (verdict.allowed) continue;
      for (const [taken] of limits.slice(0, at)) this.keys.release(taken, ref);
      return verdict;
    }
    return null;
  }
}

/** The key of `X-API-Key`, in the form of `Authorization`. */
function apiKeyHeader(headers: Headers): string | null {
  const key = headers.get("x-api-key");
  return key === null ? null : `Bearer ${key}`;
}

/** The rate-limit headers of a response. */
export function rateLimitHeaders(
  verdict: Pick<RateVerdict, "limit" | "remaining" | "resetAt">,
): Record<string, string> {
  return {
    "x-ratelimit-limit": String(verdict.limit),
    "x-ratelimit-remaining": String(verdict.remaining),
    "x-ratelimit-reset": String(verdict.resetAt),
  };
}

/** The error of a request over its rate limit. */
export function rateLimitExceeded(verdict: RateVerdict): ApiError {
  const { retryAfterSeconds, overAllKeys } = verdict;
  const which = overAllKeys === true ? " over all keys of this account" : "";
  const message = `Too many requests${which}. Retry after ${retryAfterSeconds} s.`;
  return new ApiError("rate_limit_exceeded", message, {
    retryAfterSeconds,
    headers: rateLimitHeaders(verdict),
  });
}

/** The digest of a request's key. @throws ApiError `unauthorized` without one. */
export function keyDigestOf(request: Request): string {
  return digestOf(request.headers.get("authorization") ?? "");
}

/** The digest of the key in a header. @throws ApiError `unauthorized` without a well-formed key. */
function digestOf(header: string): string {
  const key = BEARER.exec(header)?.[1];
  if (key === undefined) throw unauthorized("The Authorization header must be: Bearer sm_….");
  if (isBearerKey(key)) return keyDigestHex(key);
  const prefix = keyPrefix(key);
  throw unauthorized(
    prefix === null
      ? "This is not a valid key: its checksum does not match. Check that it was copied completely."
      : `This key begins with ${prefix}_, but this API accepts keys that begin with ${PLATFORM_PREFIX}_. Use the platform key, or a managed key with the prefix ${PLATFORM_PREFIX}.`,
  );
}

function unauthorized(message: string): ApiError {
  return new ApiError("unauthorized", message, { headers: { "www-authenticate": "Bearer" } });
}
