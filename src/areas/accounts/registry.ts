import { ActorRegistry } from "../../kernel/actors/registry.ts";
import type { CallerProject } from "../../kernel/http/caller.ts";
import { AccountActor } from "./actor.ts";
import type { DefaultProjects } from "./ports.ts";
import type { AccountRow, AccountStore } from "./store.ts";

/** Accounts kept in memory when idle: some hundred bytes each. */
export const ACCOUNTS_IN_MEMORY_MAX = 20_000;

/** The accounts in memory. */
export class Accounts {
  private readonly actors;
  private touched = new Set<AccountActor>();

  constructor(
    private readonly store: AccountStore,
    private readonly projects: DefaultProjects,
    inMemoryMax: number = ACCOUNTS_IN_MEMORY_MAX,
  ) {
    this.actors = new ActorRegistry<number, AccountActor>(inMemoryMax, (actor) => {
      actor.passivated = true;
    });
  }

  /** The account of a reference that is known to exist. */
  get(ref: number): AccountActor {
    return this.actors.get(ref, () => {
      const row = this.store.account(ref);
      if (row === null) throw new Error(`account ${ref} is gone`);
      return actorOf(row, this.projects.defaultOf(ref), this.store.platformKeyRange(ref));
    });
  }

  /** The account of a user id, or null. */
  byUserId(userId: string): AccountActor | null {
    const row = this.store.accountByUserId(userId);
    return row === null ? null : this.get(row.ref);
  }

  /** Marks an account as changed in this batch: it stays in memory, where its changes can be taken back, until the batch ends. */
  touch(actor: AccountActor): void {
    actor.dirty = true;
    this.touched.add(actor);
  }

  /** The accounts touched since the last call. */
  takeTouched(): ReadonlySet<AccountActor> {
    const touched = this.touched;
    if (touched.size > 0) this.touched = new Set();
    return touched;
  }

  /** Takes in an account that a unit of work has just made. */
  add(row: AccountRow, defaultProject: CallerProject): AccountActor {
    const actor = actorOf(row, defaultProject, { oldest: 0, newest: 0 });
    this.actors.insert(row.ref, actor);
    return actor;
  }

  /** Forgets an account whose making was rolled back. */
  drop(ref: number): void {
    const actor = this.actors.peek(ref);
    if (actor !== undefined) actor.passivated = true;
    this.actors.drop(ref);
  }
}

function actorOf(
  row: AccountRow,
  defaultProject: CallerProject,
  keys: { oldest: number; newest: number },
): AccountActor {
  return new AccountActor({
    ref: row.ref,
    userId: row.user_id,
    email: row.email,
    createdAt: row.created_at,
    tier: row.tier,
    balance: row.balance,
    suspended: row.suspended !== 0,
    rotatedAt: row.rotated_at,
    grantedMonth: row.granted_month,
    defaultProject,
    newestKey: keys.newest,
    oldestKey: keys.oldest,
  });
}
