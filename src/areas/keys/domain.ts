import { ApiError, type ErrorMeaning, echoed, invalidField, registerErrors } from "../../kernel/errors.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { DAY_MS, HOUR_MS } from "../../kernel/time/units.ts";

/** Longest prefix of a key. */
export const PREFIX_LENGTH_MAX = 32;
/** Longest name of a key, in characters. */
export const NAME_LENGTH_MAX = 255;
/** Scopes on one key: more than this API has. */
export const SCOPES_MAX = 100;
/** Longest scope of a key that is not a credential of this API, in characters. */
export const SCOPE_LENGTH_MAX = 255;
/** Permissions on one key, beside those of its roles. */
export const PERMISSIONS_MAX = 100;
/** Roles of one key: a verification looks at the permissions of all of them. */
export const KEY_ROLES_MAX = 20;
/** Roles of a project. */
export const PROJECT_ROLES_MAX = 100;
/** Permissions of a role. */
export const ROLE_PERMISSIONS_MAX = 500;
/** Longest name of a role, in characters. */
export const ROLE_NAME_LENGTH_MAX = 128;
/** Longest environment tag, in characters. */
export const ENVIRONMENT_LENGTH_MAX = 255;
/** Shortest grace period of a rotation, in hours. */
export const GRACE_HOURS_MIN = 1;
/** Longest grace period: 30 days. */
export const GRACE_HOURS_MAX = 720;
/** Default grace period, in hours. */
export const GRACE_HOURS_DEFAULT = 24;
/** How long the record of a key is stored after the key is revoked or its project deleted. */
export const RETENTION_MS = 30 * DAY_MS;
/**
 * Rotations may exceed the tier's number of keys by this factor: an account at its limit can rotate every key once, while
 * the old keys are in their grace period.
 */
export const ROTATION_LIMIT_FACTOR = 2;
/** Expired keys that one creation stops counting, at most: a few milliseconds of the writer's time. */
export const EXPIRED_FREED_MAX = 1_000;
/** Longest client address or range, in characters: an IPv6 address with a zone is shorter. */
export const CLIENT_IP_LENGTH_MAX = 64;
/** Rate limits on one key: every verification checks all of them. */
export const RATELIMITS_MAX = 10;
/** Longest name of a rate limit, in characters. */
export const RATELIMIT_NAME_LENGTH_MAX = 64;
/** Largest number of tokens of a rate limit. With the longest duration, levels are below 2^53. */
export const RATELIMIT_MAX = 1_000_000;
/** Shortest duration of a rate limit, in milliseconds: below it, network delays would decide the result. */
export const DURATION_MS_MIN = 1_000;
/** Longest duration of a rate limit: 30 days. */
export const DURATION_MS_MAX = 30 * DAY_MS;
/** Longest duration of a rate limit that is in memory only: a restart grants at most one hour's tokens. */
export const MEMORY_DURATION_MS_MAX = HOUR_MS;
/** Rate-limit buckets in memory. Beyond it, full buckets are dropped first: dropping a full bucket changes nothing. */
export const LIMIT_BUCKETS_MAX = 200_000;
/** Addresses and ranges on one key: enough for an office or a cluster. */
export const ALLOWED_IPS_MAX = 50;
/** Scopes that one verification can require. */
export const REQUIRE_MAX = 20;
/** Uses that one verification can cost. */
export const COST_MAX = 1_000_000;
/** Keys that one revocation by owner revokes, at most. */
export const REVOKED_PER_REQUEST_MAX = 1_000;
/** How long the hourly usage of a key is stored. */
export const USAGE_RETENTION_MS = 90 * DAY_MS;
/** Stored characters of a client's user agent. */
export const USER_AGENT_LENGTH_MAX = 1_024;

/** Keys that one request imports, at most: under 10 ms of the writer's time. */
export const IMPORTED_PER_REQUEST_MAX = 100;
/** Body of an import: {@link IMPORTED_PER_REQUEST_MAX} keys with the usual metadata. */
export const IMPORT_BODY_BYTES_MAX = 256 * 1024;
/** Prefix of the secret that replaces an imported one without prefix. */
export const ROTATED_PREFIX = "key";

/** The prefix of keys that work as Bearer credentials. */
export const BEARER_PREFIX = "sm";

const codes = registerErrors({
  key_limit_exceeded: [
    403,
    "The account has as many managed keys as its tier allows.",
    "Revoke keys that are not used, or request another tier from the operator.",
  ],
  role_limit_exceeded: [
    403,
    "The project has the largest number of roles.",
    "Delete roles that no key has, or put their permissions into others.",
  ],
  role_in_use: [
    409,
    "A key has the role.",
    "Remove the role from the keys that have it, or revoke them. Then delete the role.",
  ],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** The timestamps that decide whether a key works. */
interface KeyLifetime {
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly purge_at: number | null;
}

/** Reasons for which verify reports a key as not valid. */
export const KEY_ERRORS = [
  "invalid_key",
  "revoked",
  "deleted",
  "expired",
  "disabled",
  "ip_not_allowed",
  "insufficient_scope",
  "insufficient_permission",
  "rate_limited",
  "usage_exceeded",
] as const;
export type KeyError = (typeof KEY_ERRORS)[number];

/** Outcomes of a use, as usage counts them. Rows store the index in this list: append new ones at the end. */
export const OUTCOMES = [
  "valid",
  "revoked",
  "expired",
  "disabled",
  "ip_not_allowed",
  "insufficient_scope",
  "rate_limited",
  "usage_exceeded",
  "no_meter",
  "insufficient_balance",
  "insufficient_permission",
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** Why a key no longer works, permanently. */
export type InactiveReason = "invalid_key" | "revoked" | "deleted" | "expired";

/** Why a key no longer works at `now`; null if it does. Does not check whether its project has been deleted. */
export function inactiveReasonOf(
  { expires_at, revoked_at, purge_at }: KeyLifetime,
  now: number,
): InactiveReason | null {
  // The row may not be purged yet.
  if (hasPassed(purge_at, now)) return "invalid_key";
  if (revoked_at !== null) return "revoked";
  return hasPassed(expires_at, now) ? "expired" : null;
}

/** Whether a time has been reached; null never is. */
export function hasPassed(time: number | null, now: number): boolean {
  return time !== null && time <= now;
}

/**
 * Bearer credentials can only have scopes that this server knows; other keys can have any.
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
    `of a key with the prefix ${BEARER_PREFIX} must be *, or read, write or * of an area, such as meter:read; "${echoed(unknown)}" is not`,
  );
}

/** Start of the scopes about people, of whom keys can read only. */
const PEOPLE = "people:";

/** The scopes that a key can have if operations require these: each of them, `*` of its area, and `*`. */
export function grantableScopes(required: Iterable<string>): ReadonlySet<string> {
  const scopes = [...required].flatMap((scope) => [scope, `${scope.split(":")[0]}:*`, "*"]);
  return new Set(scopes.filter((scope) => !scope.startsWith(PEOPLE) || scope === `${PEOPLE}read`));
}

/** A key that another key creates, changes, rotates or revokes. */
interface GrantedKey {
  readonly prefix: string;
  /** As JSON. */
  readonly scopes: string;
  readonly expires_at: number | null;
  /** Null: a key of the account. */
  readonly project_ref: number | null;
  /** Packed; null: any address. */
  readonly allowed_ips: Uint8Array | null;
}

/** The key that creates, changes, rotates or revokes another. */
export interface Granter {
  readonly has: (scope: string) => boolean;
  /** Whether it can have keys of projects other than its own. */
  readonly isOfAllProjects: boolean;
  /** Epoch milliseconds; null when it does not expire. */
  readonly expiresAt: number | null;
  /** The project in which it works. */
  readonly projectRef: number;
  /** The addresses from which it works; null: any. */
  readonly addresses: {
    readonly texts: readonly string[];
    /** Whether packed addresses are within these; null stands for any address. */
    readonly covers: (packed: Uint8Array | null) => boolean;
  } | null;
}

/**
 * A key can grant only what it has: its scopes, lifetime, project and addresses.
 * @throws ApiError `forbidden`, naming what is missing.
 */
export function assertMayGrant(key: GrantedKey, granter: Granter): void {
  assertHasScopes(key, granter, "grant it to another key");
  const { expiresAt } = granter;
  if (expiresAt !== null && (key.expires_at ?? Number.POSITIVE_INFINITY) > expiresAt) {
    throw new ApiError(
      "forbidden",
      `Your key expires at ${isoTime(expiresAt)}, so it cannot grant a later expiry, or none. Set expires_at to that time or earlier, or use a key that lasts as long.`,
    );
  }
  if (key.project_ref !== null && key.project_ref !== granter.projectRef && !granter.isOfAllProjects) {
    throw new ApiError(
      "forbidden",
      "Your key does not have the scope *, which keys of another project require. Use a key that has it.",
    );
  }
  assertWithinAddresses(key, granter);
}

/** Only Bearer credentials are checked: the addresses of other keys belong to the clients of the account's own API. */
function assertWithinAddresses({ prefix, allowed_ips }: GrantedKey, { addresses }: Granter): void {
  if (prefix !== BEARER_PREFIX || addresses === null || addresses.covers(allowed_ips)) return;
  throw new ApiError(
    "forbidden",
    `Your key works only from ${addresses.texts.join(", ")}, so it cannot grant other addresses. Set allowed_ips to addresses within these.`,
  );
}

/**
 * A key can revoke only keys whose scopes it has.
 * @throws ApiError `forbidden`, naming the scope.
 */
export function assertMayRevoke(key: Pick<GrantedKey, "prefix" | "scopes">, granter: Granter): void {
  assertHasScopes(key, granter, "revoke a key that has it");
}

/**
 * A key can update only keys whose scopes it has.
 * @throws ApiError `forbidden`, naming the scope.
 */
export function assertMayChange(key: GrantedKey, granter: Granter): void {
  assertHasScopes(key, granter, "change a key that has it");
}

/** Only Bearer credentials are checked: the scopes of other keys have no meaning in this API. */
function assertHasScopes(
  { prefix, scopes }: Pick<GrantedKey, "prefix" | "scopes">,
  { has }: Granter,
  action: string,
): void {
  if (prefix !== BEARER_PREFIX) return;
  const lacking = (JSON.parse(scopes) as readonly string[]).find((scope) => !has(scope));
  if (lacking === undefined) return;
  throw new ApiError(
    "forbidden",
    `Your key does not have the scope ${echoed(lacking)}, so it cannot ${action}. Use a key that has the scope.`,
  );
}

/** @throws ApiError `conflict` when a key is revoked, expired or already rotated. */
export function assertActive(
  key: KeyLifetime & { readonly rotated_at: number | null },
  now: number,
  action: "rotated" | "changed",
): void {
  const error = inactiveReasonOf(key, now);
  const state = key.rotated_at !== null && error !== "revoked" ? "already rotated" : error;
  if (state === null) return;
  throw new ApiError("conflict", `This key is ${state}. Only an active key can be ${action}.`);
}

/** When a rotated key expires: after its grace period, or at its own `expires_at` if that is earlier. */
export function graceExpiryOf(expiresAt: number | null, graceHours: number, now: number): number {
  return Math.min(now + Math.round(graceHours * HOUR_MS), expiresAt ?? Number.POSITIVE_INFINITY);
}
