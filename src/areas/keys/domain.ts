import { ApiError, echoed, invalidField } from "../../kernel/errors.ts";

/** Longest prefix of a key. */
export const PREFIX_LENGTH_MAX = 32;
/** Longest name of a key, in characters. */
export const NAME_LENGTH_MAX = 255;
/** Scopes on one key: more than there are to combine. */
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
/** Longest client address that verify takes: an IPv6 address with a zone has fewer characters. */
export const CLIENT_IP_LENGTH_MAX = 64;
/** Characters of a client's user agent that are kept; the rest is cut off. */
export const USER_AGENT_KEPT = 1_024;

/** The prefix of keys that work as Bearer credentials. */
export const BEARER_PREFIX = "sm";

const HOUR_MS = 60 * 60 * 1000;

/** What decides whether a key is valid. */
export interface KeyValidity {
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly purgeAt: number | null;
  /** Whether its project has been deleted. */
  readonly deleted: boolean;
}

/** Why a key is not valid, as verify answers it. */
export type KeyError = "invalid_key" | "expired" | "revoked" | "deleted";

/** What is wrong with a key at a moment; null when it is valid. */
export function errorOf(key: KeyValidity, now: number): KeyError | null {
  if (isPurged(key.purgeAt, now)) return "invalid_key";
  if (key.revokedAt !== null) return "revoked";
  if (isExpired(key.expiresAt, now)) return "expired";
  return key.deleted ? "deleted" : null;
}

/** Whether a key's record is past its retention, also where its row is still there. */
export function isPurged(purgeAt: number | null, now: number): boolean {
  return purgeAt !== null && purgeAt <= now;
}

function isExpired(expiresAt: number | null, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

/**
 * Keys that are Bearer credentials carry scopes that this server knows; others may carry anything.
 * @throws ApiError `validation_error`
 */
export function assertScopesKnown(prefix: string, scopes: readonly string[], areas: readonly string[]): void {
  if (prefix !== BEARER_PREFIX) return;
  const unknown = scopes.find((scope) => !isKnownScope(scope, areas));
  if (unknown === undefined) return;
  throw invalidField(
    "scopes",
    `of a key with the prefix ${BEARER_PREFIX} must be *, or read, write or * of an area, such as meter:read; "${echoed(unknown)}" is none`,
  );
}

function isKnownScope(scope: string, areas: readonly string[]): boolean {
  if (scope === "*") return true;
  const [area = "", right = "", ...rest] = scope.split(":");
  return rest.length === 0 && areas.includes(area) && ["read", "write", "*"].includes(right);
}

/**
 * No key can grant what it lacks.
 * @throws ApiError `forbidden`, naming the scope.
 */
export function assertMayGrant(
  prefix: string,
  scopes: readonly string[],
  callerHas: (scope: string) => boolean,
): void {
  if (prefix !== BEARER_PREFIX) return;
  const lacking = scopes.find((scope) => !callerHas(scope));
  if (lacking === undefined) return;
  throw new ApiError(
    "forbidden",
    `This key lacks the scope ${echoed(lacking)}, so it cannot give it to another. Use a key that has it.`,
  );
}

/** @throws ApiError `conflict` when a key is revoked, expired or already rotated. */
export function assertMayRotate(
  key: { revoked_at: number | null; expires_at: number | null; rotated_at: number | null },
  now: number,
): void {
  const state =
    key.revoked_at !== null
      ? "revoked"
      : key.rotated_at !== null
        ? "already rotated"
        : isExpired(key.expires_at, now)
          ? "expired"
          : null;
  if (state === null) return;
  throw new ApiError("conflict", `This key is ${state}: only a key that is in use can be rotated.`);
}

/** When a rotated key stops working: after its grace, or at its own end if that comes first. */
export function endOfGrace(expiresAt: number | null, graceHours: number, now: number): number {
  const end = now + Math.round(graceHours * HOUR_MS);
  return expiresAt === null ? end : Math.min(end, expiresAt);
}

/** The time of creation of a key: later than that of the account's newest, so that it can serve as a cursor. */
export function nextCreatedAt(newest: number | null, now: number): number {
  return newest === null ? now : Math.max(now, newest + 1);
}

/** The answer about a key that does not exist or is not the caller's to see. */
export function noSuchKey(): ApiError {
  return new ApiError("not_found", "There is no key with this id.");
}

/** The answer about a project that does not exist or is not the caller's to see. */
export function noSuchProject(): ApiError {
  return new ApiError("not_found", "There is no project with this id.");
}
