import { ApiError, type ErrorMeaning, echoed, invalidField, registerErrors } from "../../kernel/errors.ts";
import { isoTime } from "../../kernel/time/date-time.ts";

/** Longest prefix of a key. */
export const PREFIX_LENGTH_MAX = 32;
/** Longest name of a key, in characters. */
export const NAME_LENGTH_MAX = 255;
/** Scopes on one key: more than this API has. */
export const SCOPES_MAX = 100;
/** Longest scope of a key that is not a credential here, in characters. */
export const SCOPE_LENGTH_MAX = 255;
/** Longest environment tag, in characters. */
export const ENVIRONMENT_LENGTH_MAX = 255;
/** Longest metadata, as JSON: tags and ids, no documents. It is read with every page of a list. */
export const METADATA_LENGTH_MAX = 16_384;
/** Grace of a rotation, in hours. */
export const GRACE_HOURS_MIN = 1;
/** Longest grace: 30 days. */
export const GRACE_HOURS_MAX = 720;
/** Grace unless asked otherwise. */
export const GRACE_HOURS_DEFAULT = 24;
/** How long the record of a revoked key, or of one of a deleted project, is kept. */
export const RETENTION_MS = 30 * 24 * 60 * 60 * 1000;
/**
 * Rotations go on up to this many times the keys that a tier allows: an account that has all of them can replace each
 * once, while the old ones are in their grace.
 */
export const ROTATION_ROOM = 2;
/** Ended keys that make room for one new key, at most: a few milliseconds of the writer's time. */
export const LET_GO_MAX = 1_000;
/** Longest client address that verify takes: an IPv6 address with a zone is shorter. A range is, too. */
export const CLIENT_IP_LENGTH_MAX = 64;
/** Longest id of an owner, in characters: a customer's id or address as most systems have them. */
export const OWNER_ID_LENGTH_MAX = 255;
/** Rate limits on one key: each is looked at by every verification. */
export const RATELIMITS_MAX = 10;
/** Longest name of a rate limit, in characters. */
export const RATELIMIT_NAME_LENGTH_MAX = 64;
/** Tokens of a rate limit. With the longest duration, a level is counted in whole numbers far below 2^53. */
export const RATELIMIT_MAX = 1_000_000;
/** Shortest duration of a rate limit, in milliseconds: below it, what a network delays would decide. */
export const DURATION_MS_MIN = 1_000;
/** Longest duration: buckets lie in memory, so a restart gives away an hour at most. Longer quotas are `uses`. */
export const DURATION_MS_MAX = 3_600_000;
/** Buckets of rate limits in memory. Beyond them full ones go first, which are as good as none. */
export const LIMIT_BUCKETS_MAX = 200_000;
/** Addresses and ranges on one key: an office's or a cluster's, no list of the world. */
export const ALLOWED_IPS_MAX = 50;
/** Scopes that one verification can require. */
export const REQUIRE_MAX = 20;
/** Uses that one verification can cost. */
export const COST_MAX = 1_000_000;
/** Keys that one revocation by owner ends, in units of work of their own. */
export const REVOKED_AT_ONCE_MAX = 1_000;
/** How long the hours of a key's usage are kept. */
export const USAGE_KEPT_MS = 90 * 24 * 60 * 60 * 1000;
/** Hours or days between the ends of a reading of usage. */
export const USAGE_BUCKETS_MAX = 1_000;
/** Characters of a client's user agent that are kept; the rest is cut off. */
export const USER_AGENT_KEPT = 1_024;

/** The prefix of keys that work as Bearer credentials. */
export const BEARER_PREFIX = "sm";

const HOUR_MS = 60 * 60 * 1000;

const codes = registerErrors({
  key_limit_exceeded: [403, "The account has as many managed keys as its tier allows."],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** What ends a key, each by a moment. */
interface KeyEnds {
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly purge_at: number | null;
}

/** Why a key is not valid, as verify answers it. */
export const KEY_ERRORS = [
  ...(["invalid_key", "revoked", "deleted", "expired", "disabled", "ip_not_allowed"] as const),
  ...(["insufficient_scope", "rate_limited", "usage_exceeded"] as const),
] as const;
/** One of {@link KEY_ERRORS}. */
export type KeyError = (typeof KEY_ERRORS)[number];

/** What became of a use. Stored by its place in this list: new ones are added at its end. */
export const OUTCOMES = [
  ...(["valid", "revoked", "expired", "disabled", "ip_not_allowed"] as const),
  ...(["insufficient_scope", "rate_limited", "usage_exceeded"] as const),
  ...(["no_meter", "insufficient_balance"] as const),
] as const;
/** One of {@link OUTCOMES}. */
export type Outcome = (typeof OUTCOMES)[number];

/** What ends a key for good. */
export type KeyEnd = "invalid_key" | "revoked" | "deleted" | "expired";

/** What has ended a key by a moment, if anything has. Whether its project has been deleted is not looked at. */
export function errorOf({ expires_at, revoked_at, purge_at }: KeyEnds, now: number): KeyEnd | null {
  // Its row may still be there.
  if (hasCome(purge_at, now)) return "invalid_key";
  if (revoked_at !== null) return "revoked";
  return hasCome(expires_at, now) ? "expired" : null;
}

/** How scopes end that cover whatever goes on as they begin. */
const OPEN_ENDS = [":*", ".*", "/*"] as const;

/**
 * Whether a key's scope covers a required one: it is the same, `*`, or ends in `:*`, `.*` or `/*` and what stands before
 * the star begins the required one. For verify; what credentials of this API may do is asked otherwise.
 */
export function coversScope(scope: string, required: string): boolean {
  if (scope === required || scope === "*") return true;
  return OPEN_ENDS.some((end) => scope.endsWith(end)) && required.startsWith(scope.slice(0, -1));
}

/** Whether a moment has come; null never does. */
export function hasCome(moment: number | null, now: number): boolean {
  return moment !== null && moment <= now;
}

/**
 * Keys that are Bearer credentials carry scopes that this server knows; others may carry anything.
 * @throws ApiError `validation_error`
 */
export function assertScopesKnown(
  prefix: string,
  scopes: readonly string[],
  known: ReadonlySet<string>,
): void {
  if (prefix !== BEARER_PREFIX) return;
  const unknown = scopes.find((scope) => !known.has(scope));
  if (unknown === undefined) return;
  throw invalidField(
    "scopes",
    `of a key with the prefix ${BEARER_PREFIX} must be *, or read, write or * of an area, such as meter:read; "${echoed(unknown)}" is none`,
  );
}

/** What a key can carry where operations ask for these scopes: each of them, `*` of its area, and `*`. */
export function grantableScopes(asked: Iterable<string>): ReadonlySet<string> {
  return new Set([...asked].flatMap((scope) => [scope, `${scope.split(":")[0]}:*`, "*"]));
}

/** The key that another one is to make, rotate or revoke. */
interface Granted {
  readonly prefix: string;
  /** As JSON. */
  readonly scopes: string;
  readonly expires_at: number | null;
  /** Null: a key of the account. */
  readonly project_ref: number | null;
  /** Packed; null: any address. */
  readonly allowed_ips: Uint8Array | null;
}

/** The key that does it. */
export interface Granter {
  readonly has: (scope: string) => boolean;
  /** Epoch milliseconds; null when it does not end. */
  readonly endsAt: number | null;
  /** The project that it works in. */
  readonly projectRef: number;
  /** The addresses that it works from; null: any. */
  readonly addresses: {
    readonly texts: readonly string[];
    /** Whether these, packed, lie within; null: any address. */
    readonly covers: (packed: Uint8Array | null) => boolean;
  } | null;
}

/**
 * A key gives only what it has: scopes, time, the project that it works in, and the addresses that it works from.
 * @throws ApiError `forbidden`, naming what it lacks.
 */
export function assertMayGrant(key: Granted, granter: Granter): void {
  assertHasScopes(key, granter, "it cannot give it to another");
  const { endsAt } = granter;
  if (endsAt !== null && (key.expires_at ?? Number.POSITIVE_INFINITY) > endsAt) {
    throw new ApiError(
      "forbidden",
      `This key ends at ${isoTime(endsAt)}, so it gives none that ends later or not at all. Use one that lasts as long, or an expires_at until then.`,
    );
  }
  if (key.project_ref !== null && key.project_ref !== granter.projectRef && !granter.has("*")) {
    throw new ApiError(
      "forbidden",
      "This key lacks the scope *, so it gives no keys of a project other than its own. Use a key that has it.",
    );
  }
  assertWithinAddresses(key, granter);
}

/** Addresses of keys for verify alone are those of somebody else's clients: any key may give them. */
function assertWithinAddresses({ prefix, allowed_ips }: Granted, { addresses }: Granter): void {
  if (prefix !== BEARER_PREFIX || addresses === null || addresses.covers(allowed_ips)) return;
  throw new ApiError(
    "forbidden",
    `This key works from ${addresses.texts.join(", ")} alone, so it gives none that works from elsewhere. Name addresses of these in allowed_ips.`,
  );
}

/**
 * A key revokes none that can do more.
 * @throws ApiError `forbidden`, naming the scope.
 */
export function assertMayRevoke(key: Pick<Granted, "prefix" | "scopes">, granter: Granter): void {
  assertHasScopes(key, granter, "it cannot revoke a key that has it");
}

/**
 * A key changes none that can do more, before the change or after it.
 * @throws ApiError `forbidden`, naming the scope.
 */
export function assertMayChange(key: Granted, granter: Granter): void {
  assertHasScopes(key, granter, "it cannot change a key that has it");
}

/** Scopes of keys for verify alone mean nothing to this API: any key may give them. */
function assertHasScopes(
  { prefix, scopes }: Pick<Granted, "prefix" | "scopes">,
  { has }: Granter,
  consequence: string,
): void {
  if (prefix !== BEARER_PREFIX) return;
  const lacking = (JSON.parse(scopes) as readonly string[]).find((scope) => !has(scope));
  if (lacking === undefined) return;
  throw new ApiError(
    "forbidden",
    `This key lacks the scope ${echoed(lacking)}, so ${consequence}. Use a key that has it.`,
  );
}

/**
 * `deed`: what is to be done with it.
 * @throws ApiError `conflict` when a key is revoked, expired or already rotated.
 */
export function assertInUse(
  key: KeyEnds & { readonly rotated_at: number | null },
  now: number,
  deed: "rotated" | "changed",
): void {
  const error = errorOf(key, now);
  const state = key.rotated_at !== null && error !== "revoked" ? "already rotated" : error;
  if (state === null) return;
  throw new ApiError("conflict", `This key is ${state}: only a key that is in use can be ${deed}.`);
}

/** When a rotated key stops working: after its grace, or at its own end if that comes first. */
export function endOfGrace(expiresAt: number | null, graceHours: number, now: number): number {
  return Math.min(now + Math.round(graceHours * HOUR_MS), expiresAt ?? Number.POSITIVE_INFINITY);
}
