import { ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Authenticator, Caller, CallerAccount, CallerProject } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { ProjectActivity } from "../../kernel/project-activity.ts";
import { Rounds, type WrittenLater } from "../../kernel/rounds.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { bytesToUuid } from "../../kernel/uuid.ts";
import { BEARER_PREFIX, errorOf, type KeyError } from "./domain.ts";
import type { KeyRow, KeyStore, KeyUseRow } from "./store.ts";

/** Keys kept in memory, under a kilobyte each: the ones in use. Beyond them a key costs one indexed read. */
export const KEYS_IN_MEMORY_MAX = 65_536;
/** Lists of scopes that keys share. When there are more, the sharing starts again. */
const SCOPE_LISTS_MAX = 4_096;

/** Keys used since the last round after which a round begins: bounds what is held in memory for it. */
export const USES_WAITING_MAX = 50_000;
/** Longest wait for a round: what a crash can lose of the last uses. */
const WRITE_AFTER_MS = 5_000;
/** Rows written in one unit of work: under a millisecond. */
const ROWS_PER_UNIT = 100;

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

/** A key in memory, as far as verifying it and calling with it need it. */
export type ActiveKey = ReturnType<typeof activeKey>;

function activeKey(row: KeyRow, scopes: Scopes) {
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
    scopes,
    expires_at: row.expires_at,
    revoked_at: row.revoked_at,
    purge_at: row.purge_at,
    /** Whether its row says that its project has been deleted. */
    isEmptied: row.deleted !== 0,
    use: null as KeyUse | null,
    caller: null as ManagedCaller | null,
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
  readonly scopes: ReadonlySet<string>;

  constructor(
    private readonly key: ActiveKey,
    readonly account: KeyAccount,
    private readonly keys: KeyRegistry,
  ) {
    this.credential = MANAGED + key.ref;
    this.projectBound = key.project !== null;
    this.scopes = key.scopes.set;
  }

  get project(): CallerProject {
    return this.key.project ?? this.account.defaultProject;
  }

  get projectDeleted(): boolean {
    return this.keys.isDeleted(this.key);
  }

  get revoked(): boolean {
    return this.key.revoked_at !== null;
  }

  get endsAt(): number | null {
    return this.key.expires_at;
  }
}

/** The keys in memory, found by the digest of their secret: one map look-up for a key in use. */
export class KeyRegistry implements Authenticator {
  private readonly active: ActorRegistry<string, ActiveKey>;
  private readonly scopeLists = new Map<string, Scopes>();

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
      return row === null ? undefined : activeKey(row, this.scopesOf(row.scopes));
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

  /** What is wrong with a key at a moment; null when it is valid. */
  errorOf(key: ActiveKey, now: number): KeyError | null {
    return errorOf(key, now) ?? (this.isDeleted(key) ? "deleted" : null);
  }

  /** Changes a key in memory within the unit of work that changes its row. */
  change(
    tx: Tx,
    digest: Uint8Array,
    change: Partial<Pick<ActiveKey, "expires_at" | "revoked_at" | "purge_at">>,
  ): void {
    const name = Buffer.from(digest).toString("hex");
    const key = this.active.peek(name);
    if (key !== undefined) {
      const { expires_at, revoked_at, purge_at } = key;
      Object.assign(key, change);
      tx.onRollback(() => Object.assign(key, { expires_at, revoked_at, purge_at }));
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
    if (errorOf(key, now) !== null) return null;
    uses.note(key, now);
    if (key.caller === null || key.caller.account.passivated) {
      key.caller = new ManagedCaller(key, accounts.account(key.accountRef), this);
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

/** The last use of a key, as far as it is not written yet. What is null has not been said: what is stored stays. */
interface KeyUse extends WrittenLater, KeyUseRow {
  /** Set when the key's row is gone: nothing is written for it. */
  gone: boolean;
}

/** What a caller says of the client that showed the key. */
export type ClientMeta = Pick<KeyUseRow, "ip" | "ua">;

const NOTHING_SAID: ClientMeta = { ip: null, ua: null };

/** When keys were last used. A use costs no write: it is noted in memory, and the rows follow in {@link Rounds}. */
export class KeyUses extends Rounds<KeyUse> {
  constructor(
    private readonly store: KeyStore,
    { writer, log }: Pick<Kernel, "writer" | "log">,
  ) {
    super({
      writer,
      log,
      warning: "uses of keys could not be written yet",
      waitMs: WRITE_AFTER_MS,
      marksMax: USES_WAITING_MAX,
      rowsPerUnit: ROWS_PER_UNIT,
      write: (tx, { ref, at, ip, ua, gone }) => {
        if (!gone) store.saveUse(tx, ref, at, ip, ua);
      },
    });
  }

  /** Notes a use of a key. */
  note(key: Pick<ActiveKey, "ref" | "use">, at: number, { ip, ua }: ClientMeta = NOTHING_SAID): void {
    let { use } = key;
    if (use === null || !this.isDue(use)) {
      // Marked once per key and round, so that a round begins after as many keys, not uses.
      use = this.held(key.ref) ?? { ref: key.ref, at: 0, ip: null, ua: null, gone: false, dueInRound: 0 };
      this.mark(use);
      key.use = use;
    }
    use.at = at;
    use.ip = ip ?? use.ip;
    use.ua = ua ?? use.ua;
  }

  /** The last use of a key, written or not; null when it was never used. */
  lastOf(ref: number): KeyUseRow | null {
    const stored = this.store.use(ref);
    const use = this.held(ref);
    if (use === undefined) return stored;
    return { at: use.at, ip: use.ip ?? stored?.ip ?? null, ua: use.ua ?? stored?.ua ?? null };
  }

  /** Forgets a key whose row is going. */
  forget(ref: number): void {
    const use = this.held(ref);
    if (use !== undefined) use.gone = true;
  }
}
