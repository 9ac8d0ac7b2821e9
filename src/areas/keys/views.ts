import { isoTime } from "../../kernel/date-time.ts";
import { bytesToUuid } from "../../kernel/uuid.ts";
import type { KeyError } from "./domain.ts";
import type { Key, KeyCreated, KeyItem, KeyRevoked, KeyRotated, KeyVerdict } from "./schema.ts";
import type { KeyRow, KeyUseRow } from "./store.ts";

/** The answer about a new key. */
export function createdView(row: KeyRow, secret: string): KeyCreated {
  return { key_id: bytesToUuid(row.id), secret, ...termsView(row) };
}

/** A key as a list shows it. */
export function keyItemView(row: KeyRow, use: KeyUseRow | null): KeyItem {
  return {
    id: bytesToUuid(row.id),
    masked_secret: `${row.prefix}_...`,
    last4: row.last4,
    ...termsView(row),
    revoked_at: timeOrNull(row.revoked_at),
    last_used_at: timeOrNull(use?.at ?? null),
  };
}

/** A key as it is shown alone. */
export function keyView(row: KeyRow, use: KeyUseRow | null): Key {
  const { ip = null, ua = null } = use ?? {};
  return {
    ...keyItemView(row, use),
    ...(ip === null ? {} : { last_used_ip: ip }),
    ...(ua === null ? {} : { last_used_ua: ua }),
  };
}

/** The answer to a rotation. */
export function rotatedView(
  made: KeyRow,
  secret: string,
  old: KeyRow,
  oldExpiresAt: number,
  graceHours: number,
): KeyRotated {
  return {
    new_key_id: bytesToUuid(made.id),
    new_secret: secret,
    old_key_id: bytesToUuid(old.id),
    old_expires_at: isoTime(oldExpiresAt),
    grace_hours: graceHours,
  };
}

/** The answer to a revocation. */
export function revokedView(row: KeyRow, revokedAt: number): KeyRevoked {
  return { key_id: bytesToUuid(row.id), revoked_at: isoTime(revokedAt), status: "revoked" };
}

/** The answer about a key that is known. */
export function verdictView(
  key: { id: string; project: { id: string } | null; scopes: { list: readonly string[] } },
  error: KeyError | null,
): KeyVerdict {
  return {
    valid: error === null,
    key_id: key.id,
    project_id: key.project?.id ?? null,
    scopes: [...key.scopes.list],
    error,
  };
}

/** The answer about a secret that is no key of the caller's. */
export function invalidVerdict(): KeyVerdict {
  return { valid: false, key_id: null, project_id: null, scopes: null, error: "invalid_key" };
}

function termsView(row: KeyRow) {
  return {
    prefix: row.prefix,
    name: row.name,
    scopes: JSON.parse(row.scopes) as string[],
    ...(row.environment === null ? {} : { environment: row.environment }),
    ...(row.metadata === null ? {} : { metadata: JSON.parse(row.metadata) as Record<string, string> }),
    project_id: row.project_id,
    created_at: isoTime(row.created_at),
    expires_at: timeOrNull(row.expires_at),
  };
}

function timeOrNull(epochMs: number | null): string | null {
  return epochMs === null ? null : isoTime(epochMs);
}
