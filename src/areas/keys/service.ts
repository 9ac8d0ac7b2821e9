import { changed } from "../../kernel/audit/change.ts";
import {
  type Caller,
  type CallerAccount,
  type CallerPerson,
  type Charger,
  hasManagedKey,
  hasScope,
} from "../../kernel/callers/caller.ts";
import { AddressRanges } from "../../kernel/data/address-ranges.ts";
import type { UsageQuery } from "../../kernel/data/usage.ts";
import { bytesToUuid, isUuid, uuidToBytes } from "../../kernel/data/uuid.ts";
import { ApiError, withFieldPrefix } from "../../kernel/errors.ts";
import type { AcrossNetwork } from "../../kernel/http/operations/perform.ts";
import type { TierLimit } from "../../kernel/limits/tier-limits.ts";
import { keyDigest, mintKey } from "../../kernel/secrets/key-format.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import { isoTime, isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { type AllowanceRow, allowanceOf, type UsesTerms } from "./allowance.ts";
import {
  assertActive,
  assertMayChange,
  assertMayGrant,
  assertMayRevoke,
  EXPIRED_FREED_MAX,
  type Granter,
  graceExpiryOf,
  hasPassed,
  RETENTION_MS,
  REVOKED_PER_REQUEST_MAX,
  ROTATED_PREFIX,
  ROTATION_LIMIT_FACTOR,
} from "./domain.ts";
import { importedDigestHex, isImported } from "./imported-digest.ts";
import { type KeyLimits, limitedOf } from "./rate-limits.ts";
import { type KeyDeps, type KeyRegistry, managedRef } from "./registry.ts";
import type {
  ImportedKey,
  Key,
  KeyCreateBody,
  KeyCreated,
  KeyItem,
  KeyPage,
  KeyPatchBody,
  KeyRevoked,
  KeyRotated,
  KeysImported,
  KeysRevoked,
  KeyUsage,
} from "./schema.ts";
import type { KeyRow, KeyWalk, NewKeyRow, RemovableKey, RevocableKey } from "./store.ts";
import {
  assertConsistent,
  createdTerms,
  type ImportedTerms,
  importedTerms,
  type KeyTerms,
  type ParsedTerms,
  parseTexts,
  termsView,
  updatedTerms,
} from "./terms.ts";
import { keyUsageOf } from "./usage.ts";

const LAST_CHARACTERS = 4;
/** The operation that imported keys are charged for. */
export const IMPORT = "keys.import";
/** Keys that one page of a list scans, at most: it may have to skip a million, and other requests wait meanwhile. */
export const KEYS_SCANNED_MAX = 1_000;
/** Characters of JSON after which a page of a list ends: one key can have 16 KiB of metadata and 25 KiB of scopes. */
const PAGE_BYTES_MAX = 512 * 1024;
/** Keys that one unit of work revokes: a few milliseconds of the writer's time, even if each key is large. */
export const REVOKED_PER_UNIT = 100;

/** Keys of one owner to revoke. */
interface KeysOfOwner {
  readonly keys: readonly RevocableKey[];
  /** Whether the owner has more than one request revokes. */
  readonly more: boolean;
}

type NewKey = KeyTerms &
  Pick<NewKeyRow, "account_ref" | "project_ref" | "project_id" | "allowance_ref" | "created_by" | "holder">;

export interface KeyFilter {
  readonly owner_id?: string;
  readonly environment?: string;
  readonly created_by?: string;
}

/** The use cases of managed keys. */
export class KeyService {
  /** The scopes that a credential can have: set once all areas have declared their endpoints. */
  knownScopes: ReadonlySet<string> = new Set();
  private nextRef: number;

  constructor(
    private readonly deps: KeyDeps & {
      readonly registry: KeyRegistry;
      readonly tierLimit: TierLimit;
      readonly limits: KeyLimits;
      readonly writer: Writer;
      readonly charger: Charger;
      /** Removes a key with what belongs to it. */
      readonly remove: (tx: Tx, key: RemovableKey) => void;
    },
  ) {
    this.nextRef = deps.store.highestRef() + 1;
  }

  /** Checks a creation's body beyond its schema, before the unit of work. @throws ApiError `validation_error` */
  parseCreation(body: KeyCreateBody, now: number): ParsedTerms<KeyTerms> {
    return createdTerms(body, now, this.knownScopes);
  }

  /**
   * Creates a key of a project. With `projectId` null it is a key of the account, or of the caller's project if the caller
   * is bound to one.
   * @throws ApiError `not_found`, `forbidden`, `key_limit_exceeded`
   */
  create(
    tx: Tx,
    caller: Caller,
    { columns, uses }: ParsedTerms<KeyTerms>,
    projectId: string | null,
  ): KeyCreated {
    const { account, projectBound } = caller;
    const boundProject = projectBound ? caller.project : null;
    const project = projectId === null ? boundProject : this.deps.projects.find(account.ref, projectId);
    if (
      projectId !== null &&
      (project === null || (boundProject !== null && boundProject.ref !== project.ref))
    )
      throw new ApiError("not_found", "There is no project with this id.");
    const projectFields = { project_ref: project?.ref ?? null, project_id: project?.id ?? null };
    const created_by = caller.person?.id ?? null;
    const creator = { created_by, holder: this.creatorOf(caller) };
    const key = { ...columns, ...projectFields, account_ref: account.ref, allowance_ref: null, ...creator };
    assertMayGrant(key, granterOf(caller));
    this.assertRolesExist(account, key);
    this.assertCapacity(tx, account);
    const created = this.insert(tx, caller, key, uses ?? null);
    const { key_id: id, secret: _, created_at: __, ...after } = created;
    tx.audit({ ...aboutKey(id, key, "created"), before: null, after });
    return created;
  }

  /** Checks the keys of an import beyond their schema. @throws ApiError `validation_error` */
  parseImport(keys: readonly ImportedKey[], now: number): ImportedTerms[] {
    return keys.map((key, index) =>
      withFieldPrefix(`keys.${index}.`, () => importedTerms(key, now, this.knownScopes)),
    );
  }

  /**
   * Imports keys by the hashes of their secrets, all or none. One whose hash the account knows stays unchanged. Charges each
   * new key but the first; `waiveCharge` refunds that one if there is none.
   * @throws ApiError `forbidden`, `key_limit_exceeded`, `insufficient_balance`
   */
  importAll(tx: Tx, caller: Caller, keys: readonly ImportedTerms[], waiveCharge: () => void): KeysImported {
    const imported = keys.map((key, index) => {
      const existing = this.withHash(tx, caller.account.ref, key.hash);
      return existing === null
        ? { index, key_id: withFieldPrefix(`keys.${index}.`, () => this.importOne(tx, caller, key)) }
        : { index, key_id: existing, existing: true as const };
    });
    const added = imported.filter(({ existing }) => existing === undefined).length;
    if (added === 0) waiveCharge();
    if (added > 1) this.deps.charger.charge(tx, caller.account, IMPORT, added - 1);
    const summary = `${added} ${added === 1 ? "key" : "keys"} imported`;
    const target = { type: "project", id: caller.project.id };
    tx.audit(added === 0 ? null : { summary, target, before: null, after: { imported: added } });
    return { keys: imported };
  }

  private importOne(tx: Tx, caller: Caller, { columns, uses, hash }: ImportedTerms): string {
    const { account, project, projectBound, person } = caller;
    const key = {
      ...columns,
      project_ref: projectBound ? project.ref : null,
      project_id: projectBound ? project.id : null,
      account_ref: account.ref,
      allowance_ref: null,
      created_by: person?.id ?? null,
      holder: null,
    };
    assertMayGrant(key, granterOf(caller));
    this.assertRolesExist(account, key);
    this.assertCapacity(tx, account);
    const digest = Buffer.from(importedDigestHex(account.ref, hash), "hex");
    return bytesToUuid(this.add(tx, caller, { ...key, digest, last4: "" }, uses ?? null).id);
  }

  /** Id of the account's key whose secret has a hash; null when there is none. Removes one that only waits for its purge. */
  private withHash(tx: Tx, accountRef: number, hash: string): string | null {
    const { store, projects } = this.deps;
    for (const digest of [hash, importedDigestHex(accountRef, hash)]) {
      const row = store.storedWithDigest(Buffer.from(digest, "hex"));
      if (row === null || row.account_ref !== accountRef) continue;
      const isGone =
        row.deleted !== 0 ||
        hasPassed(row.purge_at, tx.now) ||
        (row.project_ref !== null && projects.isDeleted(row.project_ref));
      if (!isGone) return bytesToUuid(row.id);
      this.deps.remove(tx, row);
    }
    return null;
  }

  /**
   * A page of the keys that the caller can see, created before a time, newest first. It scans a limited number of keys,
   * including those that it does not show (purged soon, of a deleted project, or of another environment), and ends early
   * when it reaches that number.
   */
  list(caller: Caller, now: number, limit: number, before: number, filter: KeyFilter = {}): KeyPage {
    const { environment = null } = filter;
    const walk = this.walkOf(caller, filter);
    const scanEnd = walk.endOfScan({ before, rows: KEYS_SCANNED_MAX });
    const keys: KeyItem[] = [];
    let position = before;
    let bytes = 0;
    for (let isDone = false; !isDone; ) {
      const rows = walk.page({ before: position, scanEnd, environment, limit: limit + 1 });
      for (const listed of rows) {
        position = listed.created_at;
        if (!this.isVisible(caller, listed, now)) continue;
        const newest = keys.at(-1);
        if (newest !== undefined && (keys.length === limit || bytes >= PAGE_BYTES_MAX))
          return { keys, has_more: true, next_cursor: newest.created_at };
        const row = this.deps.store.rowOf(listed.ref);
        if (row === null || !hasCreator(row, filter)) continue;
        bytes += (row.permissions?.length ?? 0) + (row.roles?.length ?? 0);
        bytes += row.scopes.length + (row.metadata?.length ?? 0) + (row.ratelimits?.length ?? 0);
        keys.push(this.itemView(row, now));
      }
      isDone = rows.length <= limit;
    }
    return scanEnd === 0
      ? { keys, has_more: false, next_cursor: null }
      : { keys, has_more: true, next_cursor: isoTime(scanEnd) };
  }

  /** @throws ApiError `not_found` */
  get(caller: Caller, id: string, now: number): Key {
    return this.view(this.visible(caller, id, now), now);
  }

  /**
   * Updates a key: omitted fields keep their value.
   * @throws ApiError `not_found`, `forbidden`, `conflict`, `validation_error`
   */
  update(tx: Tx, caller: Caller, id: string, body: KeyPatchBody): Key {
    const { store, registry, limits } = this.deps;
    const row = this.visible(caller, id, tx.now);
    assertActive(row, tx.now, "changed");
    const { columns, uses } = updatedTerms(body, tx.now);
    const updatedRow: KeyRow = { ...row, ...columns };
    assertConsistent(updatedRow, uses, this.knownScopes);
    const granter = granterOf(caller);
    assertMayChange(row, granter);
    assertMayGrant(updatedRow, granter);
    if (columns.roles !== undefined) this.assertRolesExist(caller.account, updatedRow);
    const before = this.view(row, tx.now);
    if (updatedRow.ratelimits !== row.ratelimits) limits.change(tx, limitedOf(row), limitedOf(updatedRow));
    store.update(tx, updatedRow);
    registry.update(tx, updatedRow);
    if (uses !== undefined) this.setUses(tx, row.allowance_ref ?? row.ref, uses);
    const after = this.view(updatedRow, tx.now);
    const change = changed({ ...aboutKey(before.id, updatedRow, "changed"), before, after });
    tx.audit(change);
    if (change !== null) this.recordActivity(tx, caller, row.project_ref);
    return after;
  }

  /**
   * Creates a copy of a key with a new id and secret; the old key works until its grace period has passed.
   * @throws ApiError `not_found`, `forbidden`, `conflict`, `key_limit_exceeded`
   */
  rotate(tx: Tx, caller: Caller, id: string, graceHours: number): KeyRotated {
    const row = this.visible(caller, id, tx.now);
    assertActive(row, tx.now, "rotated");
    assertMayGrant(row, granterOf(caller));
    this.assertCapacity(tx, caller.account, ROTATION_LIMIT_FACTOR);
    const expires_at = graceExpiryOf(row.expires_at, graceHours, tx.now);
    this.deps.store.setRotated(tx, tx.now, expires_at, row.ref);
    this.deps.registry.change(tx, row.digest, { expires_at });
    // Both keys share one allowance, even if it is set only later.
    const created = this.insert(tx, caller, {
      ...row,
      prefix: row.prefix === "" ? ROTATED_PREFIX : row.prefix,
      allowance_ref: row.allowance_ref ?? row.ref,
    });
    const after = { new_key_id: created.key_id, expires_at: isoTime(expires_at) };
    tx.audit({ ...aboutKey(bytesToUuid(row.id), row, "rotated"), before: expiryOf(row), after });
    return {
      new_key_id: created.key_id,
      new_secret: created.secret,
      old_key_id: bytesToUuid(row.id),
      old_expires_at: isoTime(expires_at),
      grace_hours: graceHours,
    };
  }

  /** Revokes a key; a second revocation changes nothing. @throws ApiError `not_found`, `forbidden` */
  revoke(tx: Tx, caller: Caller, id: string): KeyRevoked {
    const row = this.visible(caller, id, tx.now);
    assertMayRevoke(row, granterOf(caller));
    const revoked_at = row.revoked_at ?? tx.now;
    const about = aboutKey(bytesToUuid(row.id), row, "revoked");
    const before = { revoked_at: isoTimeOrNull(row.revoked_at) };
    tx.audit(changed({ ...about, before, after: { revoked_at: isoTime(revoked_at) } }));
    if (row.revoked_at === null) this.revokeRow(tx, caller, row);
    return { key_id: bytesToUuid(row.id), revoked_at: isoTime(revoked_at), status: "revoked" };
  }

  /**
   * Revokes the keys of an owner that the caller can see: the first of them together with the charge, the others in
   * further units of work, since a unit delays all other requests.
   * @throws ApiError `forbidden` when one of the keys has a scope that the caller's key lacks: then none is revoked.
   */
  revokeByOwner(caller: Caller, ownerId: string): AcrossNetwork<KeysOfOwner, void, KeysRevoked> {
    return {
      claim: (tx) => {
        const found = this.keysOfOwner(tx, caller, ownerId);
        const after = { revoked: found.keys.length };
        const target = { type: "key_owner", id: ownerId };
        const summary = `Keys of owner ${ownerId} revoked`;
        tx.audit(found.keys.length === 0 ? null : { summary, target, before: null, after });
        for (const key of found.keys.slice(0, REVOKED_PER_UNIT)) this.revokeRow(tx, caller, key);
        return found;
      },
      outside: async ({ keys }) => {
        for (let from = REVOKED_PER_UNIT; from < keys.length; from += REVOKED_PER_UNIT) {
          const unit = keys.slice(from, from + REVOKED_PER_UNIT);
          await this.deps.writer.submit((tx) => {
            tx.affects = caller.account.ref;
            for (const key of unit)
              if (this.deps.store.isRevocable(key.ref) === 1) this.revokeRow(tx, caller, key);
          });
        }
      },
      settle: (_tx, { keys, more }) => ({ revoked: keys.length, more }),
    };
  }

  /** The usage of a key by hour or day. @throws ApiError `not_found`, `validation_error` */
  usage(caller: Caller, id: string, now: number, query: UsageQuery): KeyUsage {
    const { ref } = this.visible(caller, id, now);
    return keyUsageOf(query, now, (from, to) => this.deps.uses.hoursOf(ref, from, to));
  }

  /** Ids of keys that a person created and that are not revoked, up to {@link REVOKED_PER_REQUEST_MAX}. */
  createdBy(accountRef: number, personId: string): string[] {
    const { store } = this.deps;
    return store
      .revocableOfCreator(accountRef, personId, REVOKED_PER_REQUEST_MAX)
      .map(({ id }) => bytesToUuid(id));
  }

  /** Revokes keys that a person created, up to {@link REVOKED_PER_REQUEST_MAX}. @throws ApiError `forbidden` */
  revokeCreatedBy(tx: Tx, caller: Caller, personId: string): void {
    const { store } = this.deps;
    const keys = store.revocableOfCreator(caller.account.ref, personId, REVOKED_PER_REQUEST_MAX);
    for (const key of keys) assertMayRevoke(key, granterOf(caller));
    for (const key of keys) this.revokeRow(tx, caller, key);
  }

  /**
   * Who holds the key behind a credential, the same after rotations: the person who created it, or else the key; for a key that
   * another key created, its holder. Null if it is not a managed key.
   */
  holderOf(credential: string): string | null {
    const ref = managedRef(credential);
    const key = ref === null ? null : this.deps.store.holder(ref);
    if (key === null) return null;
    if (key.holder !== null) return key.holder;
    return key.created_by === null ? `key:${key.allowance_ref ?? key.ref}` : `person:${key.created_by}`;
  }

  /** The holder of the key that creates another one; null for a person, and for the platform key. */
  private creatorOf(caller: Caller): string | null {
    return hasManagedKey(caller) ? this.holderOf(caller.session?.credential ?? caller.credential) : null;
  }

  private assertRolesExist(
    { defaultProject }: CallerAccount,
    { project_ref, roles }: Pick<NewKeyRow, "project_ref" | "roles">,
  ): void {
    this.deps.roles.assertExist(project_ref ?? defaultProject.ref, parseTexts(roles));
  }

  private keysOfOwner(tx: Tx, caller: Caller, ownerId: string): KeysOfOwner {
    const { store } = this.deps;
    const { account, project, projectBound } = caller;
    const limit = REVOKED_PER_REQUEST_MAX + 1;
    const rows = projectBound
      ? store.revocableOfOwnerIn(account.ref, ownerId, project.ref, limit)
      : store.revocableOfOwner(account.ref, ownerId, limit);
    const keys = rows.slice(0, REVOKED_PER_REQUEST_MAX).filter((row) => this.isVisible(caller, row, tx.now));
    for (const key of keys) assertMayRevoke(key, granterOf(caller));
    return { keys, more: rows.length > REVOKED_PER_REQUEST_MAX };
  }

  private revokeRow(tx: Tx, caller: Caller, row: Pick<KeyRow, "ref" | "digest" | "project_ref">): void {
    const purge_at = tx.now + RETENTION_MS;
    this.deps.store.setRevoked(tx, tx.now, purge_at, row.ref);
    this.deps.registry.change(tx, row.digest, { revoked_at: tx.now, purge_at });
    this.recordActivity(tx, caller, row.project_ref);
  }

  /** Sets how often the keys that share an allowance can be used; null for unlimited. */
  private setUses(tx: Tx, ref: number, uses: UsesTerms | null): void {
    const { store, registry } = this.deps;
    if (uses === null) store.removeAllowance(tx, ref);
    else store.setAllowance(tx, { ref, ...allowanceOf(uses, tx.now) });
    registry.allowancesChanged(tx);
  }

  /** At the limit, expired keys stop counting: from now on their records are stored as long as those of revoked keys. */
  private assertCapacity(tx: Tx, account: CallerAccount, times = 1): void {
    const { tierLimit, store, registry } = this.deps;
    if (!tierLimit.hasCapacity(account, times)) {
      const purge_at = tx.now + RETENTION_MS;
      for (const { ref, digest } of store.expired(account.ref, tx.now, EXPIRED_FREED_MAX)) {
        store.setPurgeAt(tx, purge_at, ref);
        registry.change(tx, digest, { purge_at });
      }
    }
    tierLimit.assertCapacity(account, times);
  }

  private insert(tx: Tx, caller: Caller, key: NewKey, uses: UsesTerms | null = null): KeyCreated {
    const secret = mintKey(key.prefix, this.deps.ids);
    const ofSecret = { digest: keyDigest(secret), last4: secret.slice(-LAST_CHARACTERS) };
    const row = this.add(tx, caller, { ...key, ...ofSecret }, uses);
    const { prefix } = row;
    return {
      key_id: bytesToUuid(row.id),
      secret,
      prefix,
      ...termsView(row, this.allowanceOf(row), tx.now),
    };
  }

  /** Stores a new key. */
  private add(
    tx: Tx,
    caller: Caller,
    key: NewKey & Pick<NewKeyRow, "digest" | "last4">,
    uses: UsesTerms | null,
  ): NewKeyRow {
    const { store, ids } = this.deps;
    const row: NewKeyRow = {
      ...key,
      ref: this.nextRef++,
      id: uuidToBytes(ids.uuidV7()),
      // Later than the account's newest key, so that it can serve as a cursor.
      created_at: Math.max(tx.now, store.newestOf(key.account_ref) + 1),
    };
    store.insert(tx, row);
    if (uses !== null) this.setUses(tx, row.ref, uses);
    this.recordActivity(tx, caller, row.project_ref);
    return row;
  }

  private allowanceOf({ ref, allowance_ref }: NewKeyRow): AllowanceRow | null {
    return this.deps.store.allowance(allowance_ref ?? ref);
  }

  private itemView(row: KeyRow, now: number): KeyItem {
    return {
      id: bytesToUuid(row.id),
      masked_secret: row.prefix === "" ? "..." : `${row.prefix}_...`,
      last4: row.last4,
      prefix: row.prefix === "" ? null : row.prefix,
      ...termsView(row, this.allowanceOf(row), now),
      revoked_at: isoTimeOrNull(row.revoked_at),
      last_used_at: isoTimeOrNull(this.deps.uses.lastUseOf(row.ref)?.at ?? null),
      ...(isImported(row.digest) ? { imported: true } : {}),
    };
  }

  private view(row: KeyRow, now: number): Key {
    const { ip = null, ua = null } = this.deps.uses.lastUseOf(row.ref) ?? {};
    return {
      ...this.itemView(row, now),
      ...(ip === null ? {} : { last_used_ip: ip }),
      ...(ua === null ? {} : { last_used_ua: ua }),
    };
  }

  /** A change of a key counts as activity in its project; of a key of the account, in the caller's. */
  private recordActivity(tx: Tx, caller: Caller, projectRef: number | null): void {
    this.deps.projects.activity.changed(tx, projectRef ?? caller.project.ref);
  }

  private visible(caller: Caller, id: string, now: number): KeyRow {
    const text = id.toLowerCase();
    const row = isUuid(text) ? this.deps.store.withId(uuidToBytes(text)) : null;
    if (row !== null && this.isVisible(caller, row, now)) return row;
    throw new ApiError("not_found", "There is no key with this id.");
  }

  private isVisible(
    caller: Caller,
    row: Pick<KeyRow, "account_ref" | "project_ref" | "purge_at">,
    now: number,
  ): boolean {
    if (row.account_ref !== caller.account.ref || hasPassed(row.purge_at, now)) return false;
    if (caller.projectBound && row.project_ref !== caller.project.ref) return false;
    return row.project_ref === null || !this.deps.projects.isDeleted(row.project_ref);
  }

  private walkOf(caller: Caller, { owner_id, created_by }: KeyFilter): KeyWalk<Record<never, never>> {
    const { store } = this.deps;
    const { account, project, projectBound } = caller;
    const accountRef = account.ref;
    if (owner_id !== undefined) return withScope(store.ofOwner, { accountRef, ownerId: owner_id });
    if (created_by !== undefined) return withScope(store.ofCreator, { accountRef, createdBy: created_by });
    return projectBound
      ? withScope(store.ofProject, { accountRef, projectRef: project.ref })
      : withScope(store.ofAccount, { accountRef });
  }
}

function withScope<Scope extends object>(walk: KeyWalk<Scope>, scope: Scope): KeyWalk<Record<never, never>> {
  return {
    endOfScan: (query) => walk.endOfScan({ ...scope, ...query }),
    page: (query) => walk.page({ ...scope, ...query }),
  };
}

/** Whether a person can give a key a scope: only owners give `*`, and only people of the account read people. */
function mayGrantAsPerson({ role, isOfAccount }: CallerPerson, scope: string): boolean {
  if (role === "owner") return true;
  return scope !== "*" && (isOfAccount || !scope.startsWith("people:"));
}

/** Whether a key is one that the person of a filter created. */
function hasCreator({ created_by }: KeyRow, filter: KeyFilter): boolean {
  return filter.created_by === undefined || created_by === filter.created_by;
}

/** Common fields of the audit entries of a key. */
function aboutKey(id: string, { name, project_id }: Pick<KeyRow, "name" | "project_id">, what: string) {
  return { summary: `Key ${name} ${what}`, target: { type: "key", id }, projectId: project_id };
}

function expiryOf({ expires_at }: KeyRow) {
  return { expires_at: isoTimeOrNull(expires_at) };
}

function granterOf(caller: Caller): Granter {
  const { endsAt, project, allowedIps = null, person } = caller;
  const isOfAllProjects = person === undefined ? hasScope(caller, "*") : person.isOfAccount;
  const addresses = allowedIps && {
    texts: allowedIps.texts,
    covers: (packed: Uint8Array | null) => packed !== null && allowedIps.covers(AddressRanges.of(packed)),
  };
  const has = (scope: string) =>
    person === undefined ? hasScope(caller, scope) : mayGrantAsPerson(person, scope);
  return { has, isOfAllProjects, expiresAt: endsAt, projectRef: project.ref, addresses };
}
