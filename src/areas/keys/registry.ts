import { ActorRegistry } from "../../kernel/actors/registry.ts";
import { bytesToUuid } from "../../kernel/data/uuid.ts";
import { AddressRanges } from "../../kernel/http/access/address-ranges.ts";
import type { Authenticator, Caller, CallerAccount, CallerProject } from "../../kernel/http/access/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { ProjectActivity } from "../../kernel/projects/activity.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { BEARER_PREFIX, errorOf, type KeyEnd } from "./domain.ts";
import type { KeyUse, KeyUses } from "./key-uses.ts";
import { type KeyLimit, keyLimits } from "./limits.ts";
import type { KeyRow, KeyStore, VerifiedKeyRow } from "./store.ts";
import type { KeyVerdict } from "./verify-schema.ts";

/** Keys kept in memory, about a kilobyte each: the ones in use. Beyond them a key costs one indexed read. */
export const KEYS_IN_MEMORY_MAX = 65_536;
/** Lists of scopes, and of limits, that keys share. When there are more, the sharing starts again. */
const LISTS_SHARED_MAX = 4_096;

/** Longest metadata, as JSON, that is kept in memory with its key; longer ones are read when they are answered. */
const METADATA_HELD_MAX = 512;

/** The account that a key belongs to, live until it is passivated. */
interface KeyAccount extends CallerAccount {
  /** Set when it has left the memory: then it must be read again. */
  readonly passivated: boolean;
}

/** The accounts, as far as keys need them. */
export interface KeyAccounts {
  account(accountRef: number): KeyAccount;
}

/** The projects, as far as keys need them. */
export interface KeyProjects {
  /** The account's project with this id; null when there is none or it is deleted. */
  find(accountRef: number, id: string): CallerProject | null;
  /** Whether a project has been deleted. */
  isDeleted(projectRef: number): boolean;
  readonly activity: ProjectActivity;
}

/** What keys are built on. */
export interface KeyParts extends Pick<Kernel, "clock" | "ids"> {
  readonly store: KeyStore;
  readonly accounts: KeyAccounts;
  readonly projects: KeyProjects;
  readonly uses: KeyUses;
}

/** The scopes of a key. */
interface Scopes {
  readonly list: readonly string[];
  readonly set: ReadonlySet<string>;
}

const NO_LIMITS: readonly KeyLimit[] = [];

/** What many keys have alike, each list once: the scopes and the limits of a plan. */
class KeyLists {
  private readonly scopes = new Map<string, Scopes>();
  private readonly limits = new Map<string, readonly KeyLimit[]>();

  scopesOf(json: string): Scopes {
    return shared(this.scopes, json, () => {
      const list = JSON.parse(json) as readonly string[];
      return { list, set: new Set(list) };
    });
  }

  limitsOf(json: string | null): readonly KeyLimit[] {
    return json === null ? NO_LIMITS : shared(this.limits, json, () => keyLimits(json));
  }
}

function shared<List>(lists: Map<string, List>, json: string, read: () => List): List {
  const known = lists.get(json);
  if (known !== undefined) return known;
  if (lists.size >= LISTS_SHARED_MAX) lists.clear();
  const list = read();
  lists.set(json, list);
  return list;
}

/** A key in memory, as far as verifying it and calling with it need it. */
export type ActiveKey = ReturnType<typeof activeKey>;

function activeKey(row: VerifiedKeyRow, lists: KeyLists) {
  const { project_ref: ref, project_id: id } = row;
  return {
    idle: true,
    recent: false,
    ref: row.ref,
    id: bytesToUuid(row.id),
    accountRef: row.account_ref,
    /** The only project that it works in; null for a key of the account. */
    project: ref === null || id === null ? null : { ref, id },
    isBearer: row.prefix === BEARER_PREFIX,
    /** The key whose allowance it draws on. */
    allowanceRef: row.allowance_ref ?? row.ref,
    /** Whether that has limited uses, as it was last looked up: see {@link KeyRegistry.hasAllowance}. */
    hasAllowance: false,
    allowanceSeen: -1,
    revoked_at: row.revoked_at,
    purge_at: row.purge_at,
    /** Whether its row says that its project has been deleted. */
    isEmptied: row.deleted !== 0,
    use: null as KeyUse | null,
    caller: null as ManagedCaller | null,
    ...changeableOf(row, lists),
  };
}

/** What of a key in memory a change of its row changes. */
function changeableOf(row: VerifiedKeyRow, lists: KeyLists) {
  const { name, environment, metadata, expires_at, owner_id, meter_id, enabled, allowed_ips } = row;
  const isHeld = metadata === null || metadata.length <= METADATA_HELD_MAX;
  return {
    scopes: lists.scopesOf(row.scopes),
    name,
    environment,
    expires_at,
    owner_id,
    meter_id,
    /** As JSON; undefined where it is too long to be held. */
    metadata: isHeld ? metadata : undefined,
    isEnabled: enabled !== 0,
    allowedIps: allowed_ips === null ? null : AddressRanges.of(allowed_ips),
    limits: lists.limitsOf(row.ratelimits),
    /** What verify answers where nothing bounds the key; null until it is asked. */
    verdict: null as KeyVerdict | null,
  };
}

/** How the credentials of managed keys begin. */
const MANAGED = "managed:";

/** The reference of the managed key that a credential names; null when it names none. */
export function managedRef(credential: string): number | null {
  return credential.startsWith(MANAGED) ? Number(credential.slice(MANAGED.length)) : null;
}

/** The caller behind a managed key. */
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

/** The keys in memory, found by the digest of their secret: one map look-up for a key in use. */
export class KeyRegistry implements Authenticator {
  private readonly active: ActorRegistry<string, ActiveKey>;
  private readonly lists = new KeyLists();
  /** Rises whenever an allowance is made or goes: what keys know of theirs is looked up again. */
  private allowancesKnown = 0;

  constructor(
    private readonly deps: KeyParts,
    inMemoryMax = KEYS_IN_MEMORY_MAX,
  ) {
    this.active = new ActorRegistry(inMemoryMax);
  }

  /** The key of a digest (hex), or undefined when there is none. */
  find(digest: string): ActiveKey | undefined {
    return this.active.get(digest, () => {
      const row = this.deps.store.withDigest(Buffer.from(digest, "hex"));
      return row === null ? undefined : activeKey(row, this.lists);
    });
  }

  authenticate(digest: string): Caller | null {
    return this.callerOf(this.find(digest));
  }

  /** The same for keys in memory alone: null also for one that would have to be read. */
  authenticateActive(digest: string): Caller | null {
    return this.callerOf(this.active.get(digest, () => undefined));
  }

  /** Whether a key's project has been deleted. */
  isDeleted({ isEmptied, project }: ActiveKey): boolean {
    return isEmptied || (project !== null && this.deps.projects.isDeleted(project.ref));
  }

  /** What has ended a key by a moment; null when nothing has. */
  errorOf(key: ActiveKey, now: number): KeyEnd | null {
    const error = errorOf(key, now);
    return (error === null || error === "expired") && this.isDeleted(key) ? "deleted" : error;
  }

  /** Whether the uses of a key are limited: one comparison, but for the first time after some key's came or went. */
  hasAllowance(key: ActiveKey): boolean {
    if (key.allowanceSeen !== this.allowancesKnown) {
      key.hasAllowance = this.deps.store.allowance(key.allowanceRef) !== null;
      key.allowanceSeen = this.allowancesKnown;
    }
    return key.hasAllowance;
  }

  /** Notes that an allowance has come or gone: several keys may draw on it. */
  allowancesChanged(tx: Tx): void {
    this.allowancesKnown += 1;
    tx.onRollback(() => {
      this.allowancesKnown += 1;
    });
  }

  /** Changes a key in memory to what its row now is. */
  update(tx: Tx, row: KeyRow): void {
    this.change(tx, row.digest, changeableOf(row, this.lists));
  }

  /** Changes a key in memory within the unit of work that changes its row. */
  change(tx: Tx, digest: Uint8Array, change: Partial<ActiveKey>): void {
    const name = Buffer.from(digest).toString("hex");
    const key = this.active.peek(name);
    if (key !== undefined) {
      const before = Object.fromEntries(
        Object.keys(change).map((field) => [field, key[field as keyof ActiveKey]]),
      );
      // What was answered for it holds no longer.
      Object.assign(key, change, { verdict: null });
      tx.onRollback(() => Object.assign(key, before, { verdict: null }));
    }
    // A later unit of the batch may read the row as this one leaves it: a rollback drops what it read. The key itself
    // stays: requests under way hold it, and must see what the second run of the batch makes of it.
    tx.onRollback(() => {
      if (key === undefined || this.active.peek(name) !== key) this.active.drop(name);
    });
  }

  /** Drops a key whose row goes, or has lost what it held. */
  drop(tx: Tx, digest: Uint8Array): void {
    const name = Buffer.from(digest).toString("hex");
    this.active.drop(name);
    tx.onRollback(() => this.active.drop(name));
  }

  /** A revoked or expired key has no caller; one of a deleted project has, so that the guard can say so. */
  private callerOf(key: ActiveKey | undefined): Caller | null {
    if (key === undefined || !key.isBearer) return null;
    const { clock, uses, accounts } = this.deps;
    const now = clock.now();
    if (errorOf(key, now) !== null || !key.isEnabled) return null;
    uses.note(key, now);
    if (key.caller === null || key.caller.account.passivated) {
      key.caller = new ManagedCaller(key, accounts.account(key.accountRef), this);
    }
    return key.caller;
  }
}
