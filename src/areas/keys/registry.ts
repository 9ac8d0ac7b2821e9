import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Authenticator, Caller, CallerProject } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { bytesToUuid } from "../../kernel/uuid.ts";
import { BEARER_PREFIX, errorOf, type KeyValidity } from "./domain.ts";
import type { KeyAccount, KeyAccounts, KeyProjects } from "./ports.ts";
import type { KeyRow, KeyStore } from "./store.ts";
import type { KeyUse, KeyUses, UsedKey } from "./uses.ts";

/** Keys kept in memory, under a kilobyte each: the ones in use. Beyond them a key costs one indexed read. */
export const KEYS_IN_MEMORY_MAX = 65_536;
/** Lists of scopes that keys share. When there are more, the sharing starts again. */
const SCOPE_LISTS_MAX = 4_096;

/** The scopes of a key. */
interface Scopes {
  readonly list: readonly string[];
  readonly set: ReadonlySet<string>;
}

/** A key in memory, as far as verifying it and calling with it need it. */
export class ActiveKey implements Actor, UsedKey, KeyValidity {
  readonly idle = true;
  recent = false;
  readonly ref: number;
  readonly id: string;
  readonly accountRef: number;
  /** The only project that it works in; null for a key of the account. */
  readonly project: CallerProject | null;
  readonly isBearer: boolean;
  expiresAt: number | null;
  revokedAt: number | null;
  purgeAt: number | null;
  use: KeyUse | null = null;
  caller: ManagedCaller | null = null;
  private readonly rowDeleted: boolean;

  constructor(
    row: KeyRow,
    readonly scopes: Scopes,
    private readonly projects: KeyProjects,
  ) {
    this.ref = row.ref;
    this.id = bytesToUuid(row.id);
    this.accountRef = row.account_ref;
    this.project = projectOf(row);
    this.isBearer = row.prefix === BEARER_PREFIX;
    this.expiresAt = row.expires_at;
    this.revokedAt = row.revoked_at;
    this.purgeAt = row.purge_at;
    this.rowDeleted = row.deleted !== 0;
  }

  get deleted(): boolean {
    return this.rowDeleted || (this.project !== null && this.projects.isDeleted(this.project.ref));
  }
}

function projectOf(row: KeyRow): CallerProject | null {
  if (row.project_ref === null || row.project_id === null) return null;
  return { ref: row.project_ref, id: row.project_id };
}

/** The caller behind a managed key. */
class ManagedCaller implements Caller {
  readonly credential: string;
  readonly isPlatformKey = false;
  readonly superseded = false;
  readonly projectBound: boolean;

  constructor(
    private readonly key: ActiveKey,
    readonly account: KeyAccount,
  ) {
    this.credential = `managed:${key.ref}`;
    this.projectBound = key.project !== null;
  }

  get scopes(): ReadonlySet<string> {
    return this.key.scopes.set;
  }

  get project(): CallerProject {
    return this.key.project ?? this.account.defaultProject;
  }

  get projectDeleted(): boolean {
    return this.key.deleted;
  }

  get revoked(): boolean {
    return this.key.revokedAt !== null;
  }

  get endsAt(): number | null {
    return this.key.expiresAt;
  }
}

/** The keys in memory, found by the digest of their secret: one map look-up for a key in use. */
export class KeyRegistry implements Authenticator {
  private readonly active: ActorRegistry<string, ActiveKey>;
  private readonly scopeLists = new Map<string, Scopes>();

  constructor(
    private readonly deps: Pick<Kernel, "clock"> & {
      readonly store: KeyStore;
      readonly accounts: KeyAccounts;
      readonly projects: KeyProjects;
      readonly uses: KeyUses;
    },
    inMemoryMax = KEYS_IN_MEMORY_MAX,
  ) {
    this.active = new ActorRegistry(inMemoryMax);
  }

  /** The key of a digest (hex), or undefined when there is none. */
  find(digest: string): ActiveKey | undefined {
    return this.active.get(digest, () => this.load(digest));
  }

  authenticate(digest: string): Caller | null {
    return this.callerOf(this.find(digest));
  }

  /** The same for keys in memory alone: null also for one that would have to be read. */
  authenticateActive(digest: string): Caller | null {
    return this.callerOf(this.active.get(digest, () => undefined));
  }

  /** Changes a key in memory within the unit of work that changes its row. */
  change(
    tx: Tx,
    digest: Uint8Array,
    change: Partial<Pick<ActiveKey, "expiresAt" | "revokedAt" | "purgeAt">>,
  ): void {
    const name = Buffer.from(digest).toString("hex");
    const key = this.active.peek(name);
    if (key !== undefined) {
      const { expiresAt, revokedAt, purgeAt } = key;
      Object.assign(key, change);
      tx.onRollback(() => Object.assign(key, { expiresAt, revokedAt, purgeAt }));
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

  private load(digest: string): ActiveKey | undefined {
    const { store, projects } = this.deps;
    const row = store.withDigest(Buffer.from(digest, "hex"));
    return row === null ? undefined : new ActiveKey(row, this.scopesOf(row.scopes), projects);
  }

  /** A revoked or expired key has no caller; one of a deleted project has, so that the guard can say so. */
  private callerOf(key: ActiveKey | undefined): Caller | null {
    if (key === undefined || !key.isBearer) return null;
    const { clock, uses, accounts } = this.deps;
    const now = clock.now();
    const error = errorOf(key, now);
    if (error !== null && error !== "deleted") return null;
    uses.note(key, now);
    if (key.caller === null || key.caller.account.passivated) {
      key.caller = new ManagedCaller(key, accounts.account(key.accountRef));
    }
    return key.caller;
  }

  private scopesOf(json: string): Scopes {
    const known = this.scopeLists.get(json);
    if (known !== undefined) return known;
    if (this.scopeLists.size >= SCOPE_LISTS_MAX) this.scopeLists.clear();
    const list = JSON.parse(json) as readonly string[];
    const scopes = { list, set: new Set(list) };
    this.scopeLists.set(json, scopes);
    return scopes;
  }
}
