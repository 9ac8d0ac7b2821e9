import { ActorRegistry } from "../../kernel/actors/registry.ts";
import { type Caller, type CallerAccount, type CallerProject, MANAGED } from "../../kernel/callers/caller.ts";
import { AddressRanges } from "../../kernel/data/address-ranges.ts";
import { bytesToUuid } from "../../kernel/data/uuid.ts";
import type { Authenticator } from "../../kernel/http/access/guard.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { LruMap } from "../../kernel/limits/lru-map.ts";
import type { ProjectActivity } from "../../kernel/projects/activity.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { BEARER_PREFIX, type InactiveReason, inactiveReasonOf } from "./domain.ts";
import { HeldTexts } from "./held-texts.ts";
import type { KeyUse, KeyUses } from "./key-uses.ts";
import { bucketsOf, type KeyLimit, keyLimits } from "./rate-limits.ts";
import type { KeyRoles } from "./roles/roles.ts";
import type { KeyRow, KeyStore, VerifiedKeyRow } from "./store.ts";
import type { KeyVerdict } from "./verify-schema.ts";

/** Recently used keys in memory, about a kilobyte each. Any other key costs one indexed read. */
export const KEYS_IN_MEMORY_MAX = 65_536;
/** Lists of texts, and of limits, that keys share: some hundred bytes each. */
const LISTS_SHARED_MAX = 4_096;

/** Longest metadata, in characters of JSON, that is in memory with its key; longer metadata is read when needed. */
const METADATA_IN_MEMORY_MAX = 512;

/** The account of a key, up to date until it is passivated. */
interface KeyAccount extends CallerAccount {
  /** True once the account has been dropped from memory: then it must be read again. */
  readonly passivated: boolean;
}

/** What keys need of the accounts. */
export interface KeyAccounts {
  account(accountRef: number): KeyAccount;
}

/** What keys need of the projects. */
export interface KeyProjects {
  /** The account's project with this id; null when there is none or it is deleted. */
  find(accountRef: number, id: string): CallerProject | null;
  isDeleted(projectRef: number): boolean;
  readonly activity: ProjectActivity;
}

export interface KeyDeps extends Pick<Kernel, "clock" | "ids"> {
  readonly store: KeyStore;
  readonly accounts: KeyAccounts;
  readonly projects: KeyProjects;
  readonly uses: KeyUses;
  readonly roles: KeyRoles;
}

const NO_LIMITS: readonly KeyLimit[] = [];
const NO_TEXTS = new HeldTexts([]);

/** Shares equal lists of scopes, of permissions and of limits between keys, since many keys have those of the same plan. */
class KeyLists {
  private readonly texts = new LruMap<string, HeldTexts>(LISTS_SHARED_MAX);
  private readonly limits = new LruMap<string, readonly KeyLimit[]>(LISTS_SHARED_MAX);

  textsOf(json: string | null): HeldTexts {
    return json === null
      ? NO_TEXTS
      : this.texts.getOrAdd(json, () => new HeldTexts(JSON.parse(json) as readonly string[]));
  }

  limitsOf(json: string | null): readonly KeyLimit[] {
    return json === null ? NO_LIMITS : this.limits.getOrAdd(json, () => keyLimits(json));
  }
}

/** A key in memory, with what verifications and requests need of it. */
export type ActiveKey = ReturnType<typeof activeKey>;

function activeKey(row: VerifiedKeyRow, lists: KeyLists) {
  const { project_ref: ref, project_id: id } = row;
  return {
    idle: true,
    recent: false,
    ref: row.ref,
    id: bytesToUuid(row.id),
    accountRef: row.account_ref,
    /** The only project in which it works; null for a key of the account. */
    project: ref === null || id === null ? null : { ref, id },
    isBearer: row.prefix === BEARER_PREFIX,
    /** The key that owns its allowance. */
    allowanceRef: row.allowance_ref ?? row.ref,
    /** Whether its uses are limited, as of `allowanceVersion`: see {@link KeyRegistry.hasAllowance}. */
    hasAllowance: false,
    allowanceVersion: -1,
    revoked_at: row.revoked_at,
    purge_at: row.purge_at,
    /** Whether its row was cleared because its project was deleted. */
    isEmptied: row.deleted !== 0,
    use: null as KeyUse | null,
    caller: null as ManagedCaller | null,
    ...updatableFields(row, lists),
  };
}

/** The fields of a key in memory that an update of its row can change. */
function updatableFields(row: VerifiedKeyRow, lists: KeyLists) {
  const { name, environment, metadata, expires_at, owner_id, meter_id, enabled, allowed_ips } = row;
  const isInMemory = metadata === null || metadata.length <= METADATA_IN_MEMORY_MAX;
  const limits = lists.limitsOf(row.ratelimits);
  return {
    scopes: lists.textsOf(row.scopes),
    permissions: lists.textsOf(row.permissions),
    /** Names. */
    roles: lists.textsOf(row.roles).list,
    name,
    environment,
    expires_at,
    owner_id,
    meter_id,
    /** As JSON; undefined if it is too long to be in memory. */
    metadata: isInMemory ? metadata : undefined,
    isEnabled: enabled !== 0,
    allowedIps: allowed_ips === null ? null : AddressRanges.of(allowed_ips),
    limits,
    buckets: bucketsOf(row, limits),
    /** Cached verdict on the valid key without its limits; null until the first verification. */
    verdict: null as KeyVerdict | null,
  };
}

/** The reference of a credential's managed key; null for other credentials. */
export function managedRef(credential: string): number | null {
  return credential.startsWith(MANAGED) ? Number(credential.slice(MANAGED.length)) : null;
}

class ManagedCaller implements Caller {
  readonly credential: string;
  readonly superseded = false;
  readonly projectBound: boolean;

  constructor(
    private readonly key: ActiveKey,
    readonly account: KeyAccount,
    private readonly keys: KeyRegistry,
  ) {
    this.credential = MANAGED + key.ref;
    this.projectBound = key.project !== null;
  }

  get scopes(): ReadonlySet<string> {
    return this.key.scopes.set;
  }

  get allowedIps(): AddressRanges | null {
    return this.key.allowedIps;
  }

  get project(): CallerProject {
    return this.key.project ?? this.account.defaultProject;
  }

  get projectDeleted(): boolean {
    return this.keys.isDeleted(this.key);
  }

  get revoked(): boolean {
    return this.key.revoked_at !== null || !this.key.isEnabled;
  }

  get endsAt(): number | null {
    return this.key.expires_at;
  }
}

/** The keys in memory by the digest of their secret: one map lookup for a recently used key. */
export class KeyRegistry implements Authenticator {
  private readonly active: ActorRegistry<string, ActiveKey>;
  private readonly lists = new KeyLists();
  /** Increases whenever an allowance is created or removed, which invalidates `hasAllowance` of all keys. */
  private allowancesVersion = 0;

  constructor(
    private readonly deps: KeyDeps,
    inMemoryMax = KEYS_IN_MEMORY_MAX,
  ) {
    this.active = new ActorRegistry(inMemoryMax);
  }

  /** The key of a digest (hex); undefined when there is none. */
  find(digest: string): ActiveKey | undefined {
    return this.active.get(digest, () => {
      const row = this.deps.store.withDigest(Buffer.from(digest, "hex"));
      return row === null ? undefined : activeKey(row, this.lists);
    });
  }

  authenticate(digest: string): Caller | null {
    return this.callerOf(this.find(digest));
  }

  /** Like {@link authenticate}, but without reading: null for a key that is not in memory. */
  authenticateActive(digest: string): Caller | null {
    return this.callerOf(this.active.get(digest, () => undefined));
  }

  isDeleted({ isEmptied, project }: ActiveKey): boolean {
    return isEmptied || (project !== null && this.deps.projects.isDeleted(project.ref));
  }

  /** Why a key no longer works at `now`; null if it does. */
  inactiveReasonOf(key: ActiveKey, now: number): InactiveReason | null {
    const error = inactiveReasonOf(key, now);
    return (error === null || error === "expired") && this.isDeleted(key) ? "deleted" : error;
  }

  /** Whether the uses of a key are limited. One comparison, unless an allowance was created or removed since the last time. */
  hasAllowance(key: ActiveKey): boolean {
    if (key.allowanceVersion !== this.allowancesVersion) {
      key.hasAllowance = this.deps.store.allowance(key.allowanceRef) !== null;
      key.allowanceVersion = this.allowancesVersion;
    }
    return key.hasAllowance;
  }

  /** What a key holds by its permissions and its roles; scopes are extra. A key of the account has roles of the default project. */
  permissionsOf({ permissions, roles, project, accountRef }: ActiveKey): readonly HeldTexts[] {
    if (roles.length === 0) return [permissions];
    const { ref } = project ?? this.deps.accounts.account(accountRef).defaultProject;
    return [permissions, ...this.deps.roles.permissionsOf(ref, roles)];
  }

  /** Call after an allowance is created or removed: several keys may share it. */
  allowancesChanged(tx: Tx): void {
    this.allowancesVersion += 1;
    tx.onRollback(() => {
      this.allowancesVersion += 1;
    });
  }

  /** Updates a key in memory from its changed row. */
  update(tx: Tx, row: KeyRow): void {
    this.change(tx, row.digest, updatableFields(row, this.lists));
  }

  /** Updates fields of a key in memory, within the unit of work that changes its row. */
  change(tx: Tx, digest: Uint8Array, change: Partial<ActiveKey>): void {
    const name = Buffer.from(digest).toString("hex");
    const key = this.active.peek(name);
    if (key !== undefined) {
      const before = Object.fromEntries(
        Object.keys(change).map((field) => [field, key[field as keyof ActiveKey]]),
      );
      // The cached verdict is out of date.
      Object.assign(key, change, { verdict: null });
      tx.onRollback(() => Object.assign(key, before, { verdict: null }));
    }
    // A later unit of the batch may read the row as this one leaves it: a rollback drops what that unit read. The key that
    // was in memory stays: requests in flight refer to it and must see the result of the second run of the batch.
    tx.onRollback(() => {
      if (key === undefined || this.active.peek(name) !== key) this.active.drop(name);
    });
  }

  /** Drops a key whose row is removed or cleared. */
  drop(tx: Tx, digest: Uint8Array): void {
    const name = Buffer.from(digest).toString("hex");
    this.active.drop(name);
    tx.onRollback(() => this.active.drop(name));
  }

  /** A revoked or expired key has no caller. A key of a deleted project has one, so that the guard can report that. */
  private callerOf(key: ActiveKey | undefined): Caller | null {
    if (key === undefined || !key.isBearer) return null;
    const { clock, uses, accounts } = this.deps;
    const now = clock.now();
    if (inactiveReasonOf(key, now) !== null || !key.isEnabled) return null;
    uses.recordUse(key, now);
    if (key.caller === null || key.caller.account.passivated) {
      key.caller = new ManagedCaller(key, accounts.account(key.accountRef), this);
    }
    return key.caller.account.deleted ? null : key.caller;
  }
}
