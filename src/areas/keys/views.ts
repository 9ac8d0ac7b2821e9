import { bytesToUuid, isoTime } from "../../kernel/ledger-entry.ts";
import type { KeyError } from "./domain.ts";
import type { KeyRow, KeyUseRow } from "./store.ts";

/** A key right after it was made: the only answer with its secret. */
export interface CreatedKeyView extends KeyTermsView {
  readonly key_id: string;
  readonly secret: string;
}

interface KeyTermsView {
  readonly prefix: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly environment?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly project_id: string | null;
  readonly created_at: string;
  readonly expires_at: string | null;
}

/** A key in a list. */
export interface KeyItemView extends KeyTermsView {
  readonly id: string;
  readonly masked_secret: string;
  readonly last4: string;
  readonly revoked_at: string | null;
  readonly last_used_at: string | null;
}

/** One key. */
export interface KeyView extends KeyItemView {
  readonly last_used_ip?: string;
  readonly last_used_ua?: string;
}

/** A page of keys, newest first. */
export interface KeyPageView {
  readonly keys: readonly KeyItemView[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

/** Answer to a rotation. */
export interface RotatedKeyView {
  readonly new_key_id: string;
  readonly new_secret: string;
  readonly old_key_id: string;
  readonly old_expires_at: string;
  readonly grace_hours: number;
}

/** Answer to a revocation. */
export interface RevokedKeyView {
  readonly key_id: string;
  readonly revoked_at: string;
  readonly status: "revoked";
}

/** What a secret is worth. */
export interface VerdictView {
  readonly valid: boolean;
  readonly key_id: string | null;
  readonly project_id: string | null;
  readonly scopes: readonly string[] | null;
  readonly error: KeyError | null;
}

/** The answer about a new key. */
export function createdView(row: KeyRow, secret: string): CreatedKeyView {
  return { key_id: bytesToUuid(row.id), secret, ...termsView(row) };
}

/** A key as a list shows it. */
export function keyItemView(row: KeyRow, use: KeyUseRow | null): KeyItemView {
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
export function keyView(row: KeyRow, use: KeyUseRow | null): KeyView {
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
): RotatedKeyView {
  return {
    new_key_id: bytesToUuid(made.id),
    new_secret: secret,
    old_key_id: bytesToUuid(old.id),
    old_expires_at: isoTime(oldExpiresAt),
    grace_hours: graceHours,
  };
}

/** The answer to a revocation. */
export function revokedView(row: KeyRow, revokedAt: number): RevokedKeyView {
  return { key_id: bytesToUuid(row.id), revoked_at: isoTime(revokedAt), status: "revoked" };
}

/** The answer about a key that is known. */
export function verdictView(
  key: { id: string; project: { id: string } | null; scopes: { list: readonly string[] } },
  error: KeyError | null,
): VerdictView {
  return {
    valid: error === null,
    key_id: key.id,
    project_id: key.project?.id ?? null,
    scopes: key.scopes.list,
    error,
  };
}

/** The answer about a secret that is no key of the caller's. */
export function invalidVerdict(): VerdictView {
  return { valid: false, key_id: null, project_id: null, scopes: null, error: "invalid_key" };
}

function termsView(row: KeyRow): KeyTermsView {
  return {
    prefix: row.prefix,
    name: row.name,
    scopes: JSON.parse(row.scopes) as readonly string[],
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
