import { isoTime, isoTimeOrNull } from "../../kernel/date-time.ts";
import { type Caller, type CallerAccount, type CallerProject, hasScope } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
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
  errorOf,
  type Granted,
  type Granter,
  isPurged,
  LET_GO_MAX,
  nextCreatedAt,
  noSuchKey,
  noSuchProject,
  RETENTION_MS,
  ROTATION_ROOM,
} from "./domain.ts";
import type { KeyProjects } from "./ports.ts";
import type { KeyRegistry } from "./registry.ts";
import type { Key, KeyCreated, KeyItem, KeyPage, KeyRevoked, KeyRotated, KeyVerdict } from "./schema.ts";
import type { KeyRow, KeyStore, KeyUseRow, NewKeyRow } from "./store.ts";
import type { ClientMeta, KeyUses } from "./uses.ts";

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

/** What a key is to be. */
export interface KeyTerms {
  readonly prefix: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly environment: string | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** Epoch milliseconds. */
  readonly expiresAt: number | null;
}

/** What a new row is made of. */
type NewKey = Omit<NewKeyRow, "ref" | "id" | "digest" | "last4" | "created_at">;

/** The use cases of managed keys. */
export class KeyService {
  /** The areas that a scope can name: known once all areas have declared their endpoints. */
  scopeAreas: readonly string[] = [];
  private nextRef: number;

  constructor(
    private readonly deps: Pick<Kernel, "ids"> & {
      readonly store: KeyStore;
      readonly registry: KeyRegistry;
      readonly uses: KeyUses;
      readonly projects: KeyProjects;
      readonly bound: TierBound;
    },
  ) {
    this.nextRef = deps.store.highestRef() + 1;
  }

  /** @throws ApiError `validation_error` for scopes that a Bearer credential cannot carry. Before the unit of work. */
  check(terms: Pick<KeyTerms, "prefix" | "scopes">): void {
    assertScopesKnown(terms.prefix, terms.scopes, this.scopeAreas);
  }

  /** Makes a key of the account, or of the project of a caller that has only one. @throws ApiError `forbidden`, `key_limit_exceeded` */
  create(tx: Tx, caller: Caller, terms: KeyTerms): KeyCreated {
    return this.make(tx, caller, terms, ownProjectOf(caller));
  }

  /** Makes a key of one project. @throws ApiError `not_found`, `forbidden`, `key_limit_exceeded` */
  createInProject(tx: Tx, caller: Caller, projectId: string, terms: KeyTerms): KeyCreated {
    const project = this.deps.projects.find(caller.account.ref, projectId);
    if (project === null || (caller.projectBound && caller.project.ref !== project.ref))
      throw noSuchProject();
    return this.make(tx, caller, terms, project);
  }

  /** A page of the keys that the caller sees, made before a moment, newest first. */
  list(caller: Caller, now: number, limit: number, before: number): KeyPage {
    const { rows, next } = this.rowsBefore(caller, before, limit, now);
    const keys = rows.map((row) => keyItemView(row, this.deps.uses.lastOf(row.ref)));
    return { keys, has_more: next !== null, next_cursor: next === null ? null : isoTime(next) };
  }

  /** @throws ApiError `not_found` */
  get(caller: Caller, id: string, now: number): Key {
    const row = this.visible(caller, id, now);
    return keyView(row, this.deps.uses.lastOf(row.ref));
  }

  /**
   * Makes a key like another; that one works until its grace has passed.
   * @throws ApiError `not_found`, `forbidden`, `conflict`, `key_limit_exceeded`
   */
  rotate(tx: Tx, caller: Caller, id: string, graceHours: number): KeyRotated {
    const row = this.visible(caller, id, tx.now);
    assertMayRotate(row, tx.now);
    assertMayGrant(grantedBy(row), granterOf(caller));
    this.assertRoom(tx, caller.account, ROTATION_ROOM);
    const expiresAt = endOfGrace(row.expires_at, graceHours, tx.now);
    const { store, registry } = this.deps;
    store.setRotated(tx, row.ref, expiresAt);
    registry.change(tx, row.digest, { expiresAt });
    const made = this.insert(tx, caller, row);
    return {
      new_key_id: made.key_id,
      new_secret: made.secret,
      old_key_id: bytesToUuid(row.id),
      old_expires_at: isoTime(expiresAt),
      grace_hours: graceHours,
    };
  }

  /** Revokes a key; doing it again changes nothing. @throws ApiError `not_found`, `forbidden` */
  revoke(tx: Tx, caller: Caller, id: string): KeyRevoked {
    const row = this.visible(caller, id, tx.now);
    assertMayRevoke(grantedBy(row), granterOf(caller));
    if (row.revoked_at === null) {
      const purgeAt = tx.now + RETENTION_MS;
      this.deps.store.setRevoked(tx, row.ref, purgeAt);
      this.deps.registry.change(tx, row.digest, { revokedAt: tx.now, purgeAt });
      this.touch(tx, caller, row.project_ref);
    }
    const revokedAt = row.revoked_at ?? tx.now;
    return { key_id: bytesToUuid(row.id), revoked_at: isoTime(revokedAt), status: "revoked" };
  }

  /** Verifies a secret. Keys that the caller does not see are unknown. */
  verify(tx: Tx, caller: Caller, secret: string, client: ClientMeta): KeyVerdict {
    if (!hasValidChecksum(secret)) return UNKNOWN;
    const key = this.deps.registry.find(keyDigestHex(secret));
    if (key === undefined || key.accountRef !== caller.account.ref) return UNKNOWN;
    if (caller.projectBound && key.project?.ref !== caller.project.ref) return UNKNOWN;
    const error = errorOf(key, tx.now);
    if (error === "invalid_key") return UNKNOWN;
    if (error === null) tx.afterCommit(() => this.deps.uses.note(key, tx.now, client));
    const { id, project, scopes } = key;
    return {
      valid: error === null,
      key_id: id,
      project_id: project?.id ?? null,
      scopes: [...scopes.list],
      error,
    };
  }

  private make(tx: Tx, caller: Caller, terms: KeyTerms, project: CallerProject | null): KeyCreated {
    assertMayGrant({ ...terms, projectRef: project?.ref ?? null }, granterOf(caller));
    this.assertRoom(tx, caller.account);
    return this.insert(tx, caller, {
      account_ref: caller.account.ref,
      project_ref: project?.ref ?? null,
      project_id: project?.id ?? null,
      prefix: terms.prefix,
      name: terms.name,
      scopes: JSON.stringify(terms.scopes),
      environment: terms.environment,
      metadata: terms.metadata === null ? null : JSON.stringify(terms.metadata),
      expires_at: terms.expiresAt,
    });
  }

  /** Keys that have ended make room: from now on their records are kept as long as those of revoked ones. */
  private assertRoom(tx: Tx, account: CallerAccount, times = 1): void {
    const { bound, store, registry } = this.deps;
    if (!bound.hasRoom(account, times)) {
      const purgeAt = tx.now + RETENTION_MS;
      for (const { ref, digest } of store.ended(account.ref, tx.now, LET_GO_MAX)) {
        store.setPurgeAt(tx, ref, purgeAt);
        registry.change(tx, digest, { purgeAt });
      }
    }
    bound.assertRoom(account, times);
  }

  private insert(tx: Tx, caller: Caller, key: NewKey): KeyCreated {
    const { store, ids } = this.deps;
    const secret = mintKey(key.prefix, ids);
    const row: KeyRow = {
      ...key,
      ref: this.nextRef++,
      id: uuidToBytes(ids.uuidV7()),
      digest: keyDigest(secret),
      last4: secret.slice(-LAST_CHARACTERS),
      created_at: nextCreatedAt(store.newestOf(key.account_ref), tx.now),
      rotated_at: null,
      revoked_at: null,
      deleted: 0,
      purge_at: null,
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
    if (row === null || !this.isVisible(caller, row, now)) throw noSuchKey();
    return row;
  }

  private isVisible(caller: Caller, row: KeyRow, now: number): boolean {
    if (row.account_ref !== caller.account.ref || isPurged(row.purge_at, now)) return false;
    if (caller.projectBound && row.project_ref !== caller.project.ref) return false;
    return row.project_ref === null || !this.deps.projects.isDeleted(row.project_ref);
  }

  /**
   * Passes over rows that are to be purged or belong to a deleted project, up to a bound where the page ends early.
   * `next`: where the next page begins; null after the last.
   */
  private rowsBefore(
    caller: Caller,
    before: number,
    limit: number,
    now: number,
  ): { rows: KeyRow[]; next: number | null } {
    const found: KeyRow[] = [];
    let position = before;
    let passedOver = 0;
    // The first read is nearly always enough; if not, there may be very many to pass over.
    for (let size = limit + 1; ; size = KEYS_PASSED_OVER_MAX) {
      const rows = this.deps.store.before(
        position,
        size,
        caller.account.ref,
        ownProjectOf(caller)?.ref ?? null,
      );
      for (const row of rows) {
        if (this.isVisible(caller, row, now)) {
          if (found.length === limit) return { rows: found, next: found.at(-1)?.created_at ?? position };
          found.push(row);
        } else {
          passedOver += 1;
        }
        position = row.created_at;
      }
      if (rows.length < size) return { rows: found, next: null };
      if (passedOver >= KEYS_PASSED_OVER_MAX) return { rows: found, next: position };
    }
  }
}

function grantedBy(row: KeyRow): Granted {
  const scopes = JSON.parse(row.scopes) as readonly string[];
  return { prefix: row.prefix, scopes, expiresAt: row.expires_at, projectRef: row.project_ref };
}

/** The only project that a key of one project sees; null for a key of the account. */
function ownProjectOf({ projectBound, project }: Caller): CallerProject | null {
  return projectBound ? project : null;
}

function granterOf(caller: Caller): Granter {
  const { endsAt, project } = caller;
  return { has: (scope) => hasScope(caller, scope), endsAt, projectRef: project.ref };
}

/** A key in a list. */
function keyItemView(row: KeyRow, use: KeyUseRow | null): KeyItem {
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
function keyView(row: KeyRow, use: KeyUseRow | null): Key {
  const { ip = null, ua = null } = use ?? {};
  return {
    ...keyItemView(row, use),
    ...(ip === null ? {} : { last_used_ip: ip }),
    ...(ua === null ? {} : { last_used_ua: ua }),
  };
}

/** What every answer about a key says of it. */
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
