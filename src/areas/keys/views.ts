import { isoTime, isoTimeOrNull } from "../../kernel/date-time.ts";
import { bytesToUuid } from "../../kernel/uuid.ts";
import type { Key, KeyCreated, KeyItem, KeyRevoked, KeyRotated } from "./schema.ts";
import type { KeyRow, KeyUseRow } from "./store.ts";

/** A new key, with its secret. */
export function createdView(row: KeyRow, secret: string): KeyCreated {
  return { key_id: bytesToUuid(row.id), secret, ...termsView(row) };
}

/** A key in a list. */
export function keyItemView(row: KeyRow, use: KeyUseRow | null): KeyItem {
  return {
    id: bytesToUuid(row.id),
    masked_secret: `${row.prefix}_...`,
    last4: row.last4,
    ...termsView(row),
    revoked_at: isoTimeOrNull(row.revoked_at),
    last_used_at: isoTimeOrNull(use?.at ?? null),
  };
}

/** A key alone. */
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
  made: KeyCreated,
  old: KeyRow,
  oldExpiresAt: number,
  graceHours: number,
): KeyRotated {
  return {
    new_key_id: made.key_id,
    new_secret: made.secret,
    old_key_id: bytesToUuid(old.id),
    old_expires_at: isoTime(oldExpiresAt),
    grace_hours: graceHours,
  };
}

/** The answer to a revocation. */
export function revokedView(row: KeyRow, revokedAt: number): KeyRevoked {
  return { key_id: bytesToUuid(row.id), revoked_at: isoTime(revokedAt), status: "revoked" };
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
    expires_at: isoTimeOrNull(row.expires_at),
  };
}
