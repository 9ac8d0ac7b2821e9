import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { CallerAccount, CallerProject } from "../../kernel/http/caller.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { TierName } from "../../kernel/tiers.ts";
import type { AccountRow, AccountStore, ChargeCell } from "./store.ts";

/** Accounts kept in memory when idle: some hundred bytes each. */
export const ACCOUNTS_IN_MEMORY_MAX = 20_000;

/** The projects of an account, as far as accounts need them. */
export interface DefaultProjects {
  /** Makes the default project of a new account. */
  createDefault(tx: Tx, accountRef: number): CallerProject;
  /** The default project of an account. */
  defaultOf(accountRef: number): CallerProject;
}

/** An account in memory: its balance is here, and written once per batch. */
export class AccountActor implements CallerAccount, Actor {
  readonly ref: number;
  readonly userId: string;
  readonly email: string;
  readonly createdAt: number;
  tier: TierName;
  tierSince = 0;
  balance: number;
  suspended: boolean;
  rotatedAt: number | null;
  /** Number of the newest platform key: older ones are in their grace. 0 before there is a key. */
  newestKey: number;
  /** Platform keys with a smaller number have been ended all at once. */
  oldestKey: number;
  /** Charges of the current hour, by operation. */
  readonly cells = new Map<string, ChargeCell>();
  /** Cells with charges that are not written yet. */
  readonly unwritten = new Set<ChargeCell>();
  recent = false;
  /** Whether the balance is not written yet. */
  dirty = false;
  /** Set when the actor is dropped: what still holds it must ask for the account again. */
  passivated = false;

  constructor(
    row: AccountRow,
    public defaultProject: CallerProject,
    keys: { oldest: number; newest: number },
  ) {
    this.ref = row.ref;
    this.userId = row.user_id;
    this.email = row.email;
    this.createdAt = row.created_at;
    this.tier = row.tier;
    this.balance = row.balance;
    this.suspended = row.suspended !== 0;
    this.rotatedAt = row.rotated_at;
    this.newestKey = keys.newest;
    this.oldestKey = keys.oldest;
  }

  get idle(): boolean {
    return !this.dirty;
  }
}

/** The accounts in memory. */
export class Accounts {
  private readonly actors: ActorRegistry<number, AccountActor>;
  private touched = new Set<AccountActor>();

  constructor(
    private readonly store: AccountStore,
    private readonly projects: DefaultProjects,
    inMemoryMax: number = ACCOUNTS_IN_MEMORY_MAX,
  ) {
    this.actors = new ActorRegistry(inMemoryMax, (actor) => {
      actor.passivated = true;
    });
  }

  /** The account of a reference that is known to exist. */
  get(ref: number): AccountActor {
    return this.actors.get(ref, () => {
      const row = this.store.account(ref);
      if (row === null) throw new Error(`account ${ref} is gone`);
      return new AccountActor(row, this.projects.defaultOf(ref), this.store.platformKeyRange(ref));
    });
  }

  /** The account of a user id, or null. */
  byUserId(userId: string): AccountActor | null {
    const row = this.store.accountByUserId(userId);
    return row === null ? null : this.get(row.ref);
  }

  /** Keeps an account in memory until the batch ends: its changes are taken back or written there. */
  touch(actor: AccountActor): void {
    actor.dirty = true;
    this.touched.add(actor);
  }

  /** Changes an account in memory, unless the unit of work is taken back. */
  change(tx: Tx, actor: AccountActor, changes: AccountChanges): void {
    this.touch(actor);
    const before = Object.fromEntries(
      Object.keys(changes).map((name) => [name, actor[name as keyof AccountChanges]]),
    );
    Object.assign(actor, changes);
    tx.onRollback(() => Object.assign(actor, before));
  }

  /** The accounts touched since the last call. */
  takeTouched(): ReadonlySet<AccountActor> {
    const touched = this.touched;
    if (touched.size > 0) this.touched = new Set();
    return touched;
  }

  /** Takes in an account that this unit of work makes, with its default project. */
  add(tx: Tx, row: AccountRow): AccountActor {
    const { ref } = row;
    const actor = new AccountActor(row, this.projects.createDefault(tx, ref), { oldest: 0, newest: 0 });
    this.actors.insert(ref, actor);
    tx.onRollback(() => {
      actor.passivated = true;
      this.actors.drop(ref);
    });
    return actor;
  }
}

/** What changes in an account beside its balance. */
export type AccountChanges = Partial<
  Pick<
    AccountActor,
    "tier" | "tierSince" | "suspended" | "rotatedAt" | "newestKey" | "oldestKey" | "defaultProject"
  >
>;
