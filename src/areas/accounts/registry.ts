import { ActorRegistry } from "../../kernel/actors/registry.ts";
import type { CallerProject } from "../../kernel/http/caller.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { AccountRow, AccountStore, ChargeRow } from "./store.ts";

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
export type AccountActor = ReturnType<typeof accountActor>;

function accountActor(row: AccountRow, defaultProject: CallerProject) {
  return {
    ...row,
    suspended: row.suspended !== 0,
    tierSince: 0,
    defaultProject,
    /** Charges of the current hour, by operation. */
    cells: new Map<string, ChargeRow>(),
    /** Cells with charges that are not written yet. */
    unwritten: new Set<ChargeRow>(),
    recent: false,
    /** False while the balance is not written yet. */
    idle: true,
    /** Set when the actor is dropped: what still holds it must ask for the account again. */
    passivated: false,
  };
}

/** What changes in an account beside its balance. */
type AccountChanges = Partial<Omit<AccountActor, "balance">>;

/** The accounts in memory. */
export class Accounts {
  /** What this batch has changed. */
  readonly touched = new Set<AccountActor>();
  private readonly actors: ActorRegistry<number, AccountActor>;

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
      return accountActor(row, this.projects.defaultOf(ref));
    });
  }

  /** Keeps an account in memory until the batch ends: its changes are taken back or written there. */
  touch(actor: AccountActor): void {
    actor.idle = false;
    this.touched.add(actor);
  }

  /** Changes an account in memory, unless the unit of work is taken back. */
  change(tx: Tx, actor: AccountActor, changes: AccountChanges): void {
    this.touch(actor);
    const names = Object.keys(changes) as (keyof AccountChanges)[];
    const before = Object.fromEntries(names.map((name) => [name, actor[name]]));
    Object.assign(actor, changes);
    tx.onRollback(() => Object.assign(actor, before));
  }

  /** Takes in an account that this unit of work makes, with its default project. */
  add(tx: Tx, row: AccountRow): AccountActor {
    const { ref } = row;
    const actor = accountActor(row, this.projects.createDefault(tx, ref));
    this.actors.insert(ref, actor);
    tx.onRollback(() => {
      actor.passivated = true;
      this.actors.drop(ref);
    });
    return actor;
  }
}
