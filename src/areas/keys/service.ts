import { changed } from "../../kernel/audit/change.ts";
import { isoTime, isoTimeOrNull, momentOf } from "../../kernel/date-time.ts";
import { ApiError, invalidField } from "../../kernel/errors.ts";
import { type Caller, type CallerAccount, hasScope } from "../../kernel/http/caller.ts";
import { hasValidChecksum, keyDigest, keyDigestHex, mintKey } from "../../kernel/secrets/key-format.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { TierBound } from "../../kernel/tier-bounds.ts";
import { bytesToUuid, isUuid, uuidToBytes } from "../../kernel/uuid.ts";
import {
  assertMayGrant,
  assertMayRevoke,
  assertMayRotate,
  assertScopesKnown,
  endOfGrace,
  type Granter,
  hasCome,
  LET_GO_MAX,
  METADATA_LENGTH_MAX,
  RETENTION_MS,
  ROTATION_ROOM,
} from "./domain.ts";
import type { ClientMeta, KeyParts, KeyRegistry } from "./registry.ts";
import type {
  Key,
  KeyCreateBody,
  KeyCreated,
  KeyItem,
  KeyPage,
  KeyRevoked,
  KeyRotated,
  KeyVerdict,
} from "./schema.ts";
import type { KeyRow, KeyUseRow, NewKeyRow } from "./store.ts";

const LAST_CHARACTERS = 4;
/** The verdict on a secret that is no key of the caller's. */
const UNKNOWN: KeyVerdict = {
  valid: false,
  key_id: null,
  project_id: null,
  scopes: null,
  error: "invalid_key",
};
/**
 * Keys of deleted projects that a list passes over before it ends a page early: a project may have had a million, and
 * other requests wait while they are read.
 */
export const KEYS_PASSED_OVER_MAX = 1_000;

/** What a key is to be, as its columns. */
type KeyTerms = Pick<NewKeyRow, "prefix" | "name" | "scopes" | "environment" | "metadata" | "expires_at">;
/** The same, with whose it is to be. */
type NewKey = KeyTerms & Pick<NewKeyRow, "account_ref" | "project_ref" | "project_id">;

/** The use cases of managed keys. */
export class KeyService {
  /** The scopes that a credential can carry: known once all areas have declared their endpoints. */
  knownScopes: ReadonlySet<string> = new Set();
  private nextRef: number;

  constructor(
    private readonly deps: KeyParts & { readonly registry: KeyRegistry; readonly bound: TierBound },
  ) {
    this.nextRef = deps.store.highestRef() + 1;
  }

  /** Checks a creation's body beyond its schema, before the unit of work. @throws ApiError `validation_error` */
  termsOf(body: KeyCreateBody, now: number): KeyTerms {
    const { prefix, name, scopes, environment = null } = body;
    const metadata = body.metadata ? JSON.stringify(body.metadata) : null;
    if (metadata !== null && metadata.length > METADATA_LENGTH_MAX) {
      throw invalidField("metadata", `must have at most ${METADATA_LENGTH_MAX} characters as JSON`);
    }
    const expires_at = body.expires_at == null ? null : momentOf("expires_at", body.expires_at);
    if (hasCome(expires_at, now)) throw invalidField("expires_at", "must be in the future");
    assertScopesKnown(prefix, scopes, this.knownScopes);
    return { prefix, name, scopes: JSON.stringify(scopes), environment, metadata, expires_at };
  }

  /**
   * Makes a key of a project, or where none is named of the account: of the caller's project when it has only that.
   * @throws ApiError `not_found`, `forbidden`, `key_limit_exceeded`
   */
  create(tx: Tx, caller: Caller, terms: KeyTerms, projectId: string | null): KeyCreated {
    const { account, projectBound } = caller;
    const own = projectBound ? caller.project : null;
    const project = projectId === null ? own : this.deps.projects.find(account.ref, projectId);
    if (projectId !== null && (project === null || (own !== null && own.ref !== project.ref)))
      throw new ApiError("not_found", "There is no project with this id.");
    const owner = { project_ref: project?.ref ?? null, project_id: project?.id ?? null };
    const key = { ...terms, ...owner, account_ref: account.ref };
    assertMayGrant(key, granterOf(caller));
    this.assertRoom(tx, account);
    const created = this.insert(tx, caller, key);
    const { key_id: id, secret: _, created_at: __, ...after } = created;
    tx.audit({ ...aboutKey(id, key, "created"), before: null, after });
    return created;
  }

  /**
   * A page of the keys that the caller sees, made before a moment, newest first. It passes over rows that are to be
   * purged or belong to a deleted project, up to a bound where the page ends early.
   */
  list(caller: Caller, now: number, limit: number, before: number): KeyPage {
    const keys: KeyItem[] = [];
    let position = before;
    let passedOver = 0;
    // The first read is nearly always enough; if not, there may be very many to pass over.
    for (let size = limit + 1; ; size = KEYS_PASSED_OVER_MAX) {
      const rows = this.rowsBefore(caller, position, size);
      for (const row of rows) {
        if (!this.isVisible(caller, row, now)) passedOver += 1;
        else if (keys.length < limit) keys.push(itemView(row, this.deps.uses.lastOf(row.ref)));
        else return { keys, has_more: true, next_cursor: keys.at(-1)?.created_at ?? isoTime(position) };
        position = row.created_at;
      }
      if (rows.length < size) return { keys, has_more: false, next_cursor: null };
      if (passedOver >= KEYS_PASSED_OVER_MAX) return { keys, has_more: true, next_cursor: isoTime(position) };
    }
  }

  /** @throws ApiError `not_found` */
  get(caller: Caller, id: string, now: number): Key {
    const row = this.visible(caller, id, now);
    const use = this.deps.uses.lastOf(row.ref);
    const { ip = null, ua = null } = use ?? {};
    return {
      ...itemView(row, use),
      ...(ip === null ? {} : { last_used_ip: ip }),
      ...(ua === null ? {} : { last_used_ua: ua }),
    };
  }

  /**
   * Makes a key like another; that one works until its grace has passed.
   * @throws ApiError `not_found`, `forbidden`, `conflict`, `key_limit_exceeded`
   */
  rotate(tx: Tx, caller: Caller, id: string, graceHours: number): KeyRotated {
    const row = this.visible(caller, id, tx.now);
    assertMayRotate(row, tx.now);
    assertMayGrant(row, granterOf(caller));
    this.assertRoom(tx, caller.account, ROTATION_ROOM);
    const expires_at = endOfGrace(row.expires_at, graceHours, tx.now);
    this.deps.store.setRotated(tx, tx.now, expires_at, row.ref);
    this.deps.registry.change(tx, row.digest, { expires_at });
    const made = this.insert(tx, caller, row);
    const after = { new_key_id: made.key_id, expires_at: isoTime(expires_at) };
    tx.audit({ ...aboutKey(bytesToUuid(row.id), row, "rotated"), before: lastsUntil(row), after });
    return {
      new_key_id: made.key_id,
      new_secret: made.secret,
      old_key_id: bytesToUuid(row.id),
      old_expires_at: isoTime(expires_at),
      grace_hours: graceHours,
    };
  }

  /** Revokes a key; doing it again changes nothing. @throws ApiError `not_found`, `forbidden` */
  revoke(tx: Tx, caller: Caller, id: string): KeyRevoked {
    const row = this.visible(caller, id, tx.now);
    assertMayRevoke(row, granterOf(caller));
    const revoked_at = row.revoked_at ?? tx.now;
    const about = aboutKey(bytesToUuid(row.id), row, "revoked");
    const before = { revoked_at: isoTimeOrNull(row.revoked_at) };
    tx.audit(changed({ ...about, before, after: { revoked_at: isoTime(revoked_at) } }));
    if (row.revoked_at === null) {
      const purge_at = tx.now + RETENTION_MS;
      this.deps.store.setRevoked(tx, revoked_at, purge_at, row.ref);
      this.deps.registry.change(tx, row.digest, { revoked_at, purge_at });
      this.touch(tx, caller, row.project_ref);
    }
    return { key_id: bytesToUuid(row.id), revoked_at: isoTime(revoked_at), status: "revoked" };
  }

  /** Verifies a secret. Keys that the caller does not see are unknown. */
  verify(tx: Tx, caller: Caller, secret: string, client: ClientMeta): KeyVerdict {
    if (!hasValidChecksum(secret)) return UNKNOWN;
    const { registry, uses } = this.deps;
    const key = registry.find(keyDigestHex(secret));
    if (key === undefined || key.accountRef !== caller.account.ref) return UNKNOWN;
    const { id, project, scopes } = key;
    if (caller.projectBound && project?.ref !== caller.project.ref) return UNKNOWN;
    const error = registry.errorOf(key, tx.now);
    if (error === "invalid_key") return UNKNOWN;
    const valid = error === null;
    if (valid) tx.afterCommit(() => uses.note(key, tx.now, client));
    return { valid, key_id: id, project_id: project?.id ?? null, scopes: [...scopes.list], error };
  }

  /** Keys that have ended make room: from now on their records are kept as long as those of revoked ones. */
  private assertRoom(tx: Tx, account: CallerAccount, times = 1): void {
    const { bound, store, registry } = this.deps;
    if (!bound.hasRoom(account, times)) {
      const purge_at = tx.now + RETENTION_MS;
      for (const { ref, digest } of store.ended(account.ref, tx.now, LET_GO_MAX)) {
        store.setPurgeAt(tx, purge_at, ref);
        registry.change(tx, digest, { purge_at });
      }
    }
    bound.assertRoom(account, times);
  }

  private insert(tx: Tx, caller: Caller, key: NewKey): KeyCreated {
    const { store, ids } = this.deps;
    const secret = mintKey(key.prefix, ids);
    const row: NewKeyRow = {
      ...key,
      ref: this.nextRef++,
      id: uuidToBytes(ids.uuidV7()),
      digest: keyDigest(secret),
      last4: secret.slice(-LAST_CHARACTERS),
      // Later than the account's newest, so that it can serve as a cursor.
      created_at: Math.max(tx.now, store.newestOf(key.account_ref) + 1),
    };
    store.insert(tx, row);
    this.touch(tx, caller, row.project_ref);
    return { key_id: bytesToUuid(row.id), secret, ...termsView(row) };
  }

  /** A change of a key is a change in its project; of a key of the account, in the caller's. */
  private touch(tx: Tx, caller: Caller, projectRef: number | null): void {
    this.deps.projects.activity.changed(tx, projectRef ?? caller.project.ref);
  }

  private visible(caller: Caller, id: string, now: number): KeyRow {
    const text = id.toLowerCase();
    const row = isUuid(text) ? this.deps.store.withId(uuidToBytes(text)) : null;
    if (row !== null && this.isVisible(caller, row, now)) return row;
    throw new ApiError("not_found", "There is no key with this id.");
  }

  private isVisible(caller: Caller, row: KeyRow, now: number): boolean {
    if (row.account_ref !== caller.account.ref || hasCome(row.purge_at, now)) return false;
    if (caller.projectBound && row.project_ref !== caller.project.ref) return false;
    return row.project_ref === null || !this.deps.projects.isDeleted(row.project_ref);
  }

  private rowsBefore(caller: Caller, before: number, limit: number): KeyRow[] {
    const { store } = this.deps;
    const { account, project, projectBound } = caller;
    return projectBound
      ? store.ofProject(project.ref, account.ref, before, limit)
      : store.ofAccount(account.ref, before, limit);
  }
}

/** What the audit log says of a key. */
function aboutKey(id: string, { name, project_id }: Pick<KeyRow, "name" | "project_id">, what: string) {
  return { summary: `Key ${name} ${what}`, target: { type: "key", id }, projectId: project_id };
}

function lastsUntil({ expires_at }: KeyRow) {
  return { expires_at: isoTimeOrNull(expires_at) };
}

function granterOf(caller: Caller): Granter {
  const { endsAt, project } = caller;
  return { has: (scope) => hasScope(caller, scope), endsAt, projectRef: project.ref };
}

/** A key in a list. */
function itemView(row: KeyRow, use: KeyUseRow | null): KeyItem {
  return {
    id: bytesToUuid(row.id),
    masked_secret: `${row.prefix}_...`,
    last4: row.last4,
    ...termsView(row),
    revoked_at: isoTimeOrNull(row.revoked_at),
    last_used_at: isoTimeOrNull(use?.at ?? null),
  };
}

/** What every answer about a key says of it. */
function termsView({ prefix, name, scopes, environment, metadata, ...row }: NewKeyRow) {
  return {
    prefix,
    name,
    scopes: JSON.parse(scopes) as string[],
    ...(environment === null ? {} : { environment }),
    ...(metadata === null ? {} : { metadata: JSON.parse(metadata) as Record<string, string> }),
    project_id: row.project_id,
    created_at: isoTime(row.created_at),
    expires_at: isoTimeOrNull(row.expires_at),
  };
}
