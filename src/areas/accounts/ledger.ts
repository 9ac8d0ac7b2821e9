import { ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Caller, CallerAccount, CallerProject, Charger } from "../../kernel/callers/caller.ts";
import {
  BALANCE_MAX,
  deducted,
  type EntryKind,
  insufficientBalance,
  type LedgerEntry,
  type LedgerPage,
  refilled,
} from "../../kernel/data/ledger.ts";
import { bytesToUuid, uuidToBytes } from "../../kernel/data/uuid.ts";
import { pageOf, pageStart } from "../../kernel/http/requests/pagination.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { isUnlimited } from "../../kernel/limits/tiers.ts";
import type { Counter } from "../../kernel/metrics/instruments.ts";
import type { AuditChange, Tx } from "../../kernel/storage/tx.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { hourOf } from "./domain.ts";
import type { AccountBalance } from "./schema.ts";
import type { AccountEntryRow, AccountRow, AccountStore, ChargeRow } from "./store.ts";

/** Idle accounts in memory: some hundred bytes each. */
export const ACCOUNTS_IN_MEMORY_MAX = 20_000;

/**
 * Accounts with unwritten charges at which a batch is started immediately: it writes all of them, some microseconds each,
 * and delays other work meanwhile.
 */
export const UNWRITTEN_ACCOUNTS_MAX = 500;

/** What accounts need of the projects. */
export interface DefaultProjects {
  /** Creates the default project of a new account. */
  createDefault(tx: Tx, accountRef: number): CallerProject;
  defaultOf(accountRef: number): CallerProject;
}

/** An account in memory. Its balance is changed here and written once per batch. */
export type AccountActor = ReturnType<typeof accountActor>;

/** Stands for the default project of a deleted account. No project has this reference. */
const NO_PROJECT: CallerProject = { ref: 0, id: "" };

function accountActor(row: AccountRow, defaultProject: CallerProject) {
  return {
    ...row,
    suspended: row.suspended !== 0,
    deleted: row.deletedAt !== null,
    tierSince: 0,
    defaultProject,
    /** Charges of the current hour, by operation. */
    chargeRows: new Map<string, ChargeRow>(),
    /** Rows with charges that are not written yet. */
    unwritten: new Set<ChargeRow>(),
    recent: false,
    /** False while the balance is not written yet. */
    idle: true,
    /** True once the actor is dropped: its users must get the account again. */
    passivated: false,
  };
}

/** Changes of an account other than of its balance. */
type AccountChanges = Partial<Omit<AccountActor, "balance">>;

/** The accounts in memory. */
export class Accounts {
  /** Accounts that have changed since the last commit. */
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

  /** The account of a reference, which must exist. */
  get(ref: number): AccountActor {
    return this.actors.get(ref, () => {
      const row = this.store.account(ref);
      if (row === null) throw new Error(`account ${ref} does not exist`);
      return accountActor(row, row.deletedAt === null ? this.projects.defaultOf(ref) : NO_PROJECT);
    });
  }

  /** Keeps an account in memory until a batch has written its changes. */
  touch(actor: AccountActor): void {
    actor.idle = false;
    this.touched.add(actor);
  }

  /** Changes an account in memory; a rollback restores it. */
  change(tx: Tx, actor: AccountActor, changes: AccountChanges): void {
    this.touch(actor);
    const names = Object.keys(changes) as (keyof AccountChanges)[];
    const before = Object.fromEntries(names.map((name) => [name, actor[name]]));
    Object.assign(actor, changes);
    tx.onRollback(() => Object.assign(actor, before));
  }

  /** Forgets a removed account. */
  drop(ref: number): void {
    const actor = this.actors.peek(ref);
    if (actor === undefined) return;
    actor.passivated = true;
    this.touched.delete(actor);
    this.actors.drop(ref);
  }

  /** Adds an account that this unit of work creates, with its default project. */
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

/** The request that changes a balance. */
type Cause = { readonly caller: Caller; readonly requestId: string };

/**
 * The accounts' balances. Units of work change them in memory; requests that change nothing else are also charged between
 * two batches. At the end of each batch every touched account is written once: its balance, and one row per charged
 * operation.
 */
export class AccountLedger implements Charger {
  private nextSequence: number;
  /** Credits of each counted operation, all accounts together. */
  private charged: Readonly<Record<string, Counter>> = {};
  private refunded: Readonly<Record<string, Counter>> = {};

  constructor(
    private readonly store: AccountStore,
    private readonly accounts: Accounts,
    private readonly kernel: Pick<Kernel, "writer" | "metrics">,
  ) {
    this.nextSequence = store.highestEntry() + 1;
    kernel.writer.beforeCommit((tx) => this.write(tx));
  }

  /** Declares the metrics of the credits that these operations cost. */
  countCredits(operations: readonly { readonly name: string }[]): void {
    const names = operations.map(({ name }) => name);
    const declare = (which: string, help: string) =>
      this.kernel.metrics.counters({ name: `ninefold_credits_${which}_total`, help }, "operation", names);
    this.charged = declare("charged", "Credits charged for operations.");
    this.refunded = declare("refunded", "Credits refunded for operations that failed.");
  }

  charge(tx: Tx, account: CallerAccount, operation: string, cost: number): void {
    if (isUnlimited(account.tier)) return;
    const actor = this.accounts.get(account.ref);
    const { balance } = actor;
    if (balance < cost) {
      const message = `The account balance is ${balance} credits, but this request costs ${cost}. Refill the balance.`;
      throw insufficientBalance(message, balance, { user_id: actor.userId });
    }
    this.recordCharge(tx, actor, operation, cost, 1);
  }

  refund(tx: Tx, account: CallerAccount, operation: string, cost: number): void {
    if (isUnlimited(account.tier)) return;
    const actor = this.accounts.get(account.ref);
    // The balance may have been refilled since. Above the largest safe integer the ledger would not add up.
    if (cost > BALANCE_MAX - actor.balance) return;
    this.recordCharge(tx, actor, operation, -cost, -1);
  }

  balance({ ref }: CallerAccount): AccountBalance {
    const { balance, userId } = this.accounts.get(ref);
    return { balance, user_id: userId };
  }

  /** Lowers a balance. @throws ApiError `insufficient_balance`, `invalid_request`; nothing changes. */
  deduct(tx: Tx, { caller, requestId }: Cause, amount: number): AccountBalance {
    const actor = this.accounts.get(caller.account.ref);
    const balance = deducted(actor.balance, amount, { user_id: actor.userId });
    tx.audit(balanceChange(actor, `${amount} credits deducted`, balance));
    this.set(tx, actor, "deduct", balance, requestId);
    return this.balance(actor);
  }

  /** Raises a balance. @throws ApiError `invalid_request`; nothing changes. */
  refill(tx: Tx, { caller, requestId }: Cause, amount: number): AccountBalance {
    const actor = this.accounts.get(caller.account.ref);
    const balance = refilled(actor.balance, amount);
    tx.audit(balanceChange(actor, `${amount} credits added`, balance));
    this.set(tx, actor, "refill", balance, requestId);
    return this.balance(actor);
  }

  /** Raises a balance to `minimum` if it is lower. */
  grantUpTo(tx: Tx, actor: AccountActor, minimum: number): void {
    if (actor.balance < minimum) this.set(tx, actor, "grant", minimum, null);
  }

  /** Sets a balance and writes its ledger entry. */
  set(tx: Tx, actor: AccountActor, kind: EntryKind, balance: number, requestId: string | null): void {
    const amount = balance - actor.balance;
    this.addToBalance(tx, actor, amount);
    const request = requestId === null ? null : uuidToBytes(requestId);
    const sequence = this.nextSequence++;
    this.store.writeEntry(tx, sequence, actor.ref, kind, amount, balance, tx.now, request, null, null);
  }

  /** A page of an account's ledger, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  history({ ref }: CallerAccount, limit: number, cursor: string | undefined): LedgerPage {
    const before = pageStart(cursor);
    const rows = this.entriesBefore(ref, before, limit + 1);
    const { items, ...next } = pageOf(rows, limit, (row) => [row.sequence]);
    return { entries: items.map(entryView), ...next };
  }

  /** Stored entries, merged with the charges that are not written yet. */
  private entriesBefore(ref: number, before: number, limit: number): AccountEntryRow[] {
    const rows = this.store.entriesBefore(ref, before, limit);
    const unwritten = [...this.accounts.get(ref).unwritten].filter(({ sequence }) => sequence < before);
    if (unwritten.length === 0) return rows;
    const entries = new Map(rows.map((row) => [row.sequence, row]));
    for (const row of unwritten) entries.set(row.sequence, { ...row, kind: "charge", request_id: null });
    return [...entries.values()].sort((a, b) => b.sequence - a.sequence).slice(0, limit);
  }

  private recordCharge(tx: Tx, actor: AccountActor, operation: string, cost: number, count: number): void {
    const row = this.chargeRowOf(actor, operation, hourOf(tx.now));
    const { balance_after } = row;
    const isFirst = !actor.unwritten.has(row);
    this.addToBalance(tx, actor, -cost);
    row.count += count;
    row.amount -= cost;
    row.balance_after = actor.balance;
    actor.unwritten.add(row);
    const counter = (cost > 0 ? this.charged : this.refunded)[operation];
    counter?.add(Math.abs(cost));
    tx.onRollback(() => {
      counter?.add(-Math.abs(cost));
      row.count -= count;
      row.amount += cost;
      row.balance_after = balance_after;
      // A row without a charge is not written.
      if (isFirst) actor.unwritten.delete(row);
    });
  }

  private addToBalance(tx: Tx, actor: AccountActor, amount: number): void {
    this.accounts.touch(actor);
    if (this.accounts.touched.size === UNWRITTEN_ACCOUNTS_MAX) this.kernel.writer.writeMemory();
    actor.balance += amount;
    tx.onRollback(() => {
      actor.balance -= amount;
    });
  }

  /** The row of an hour: from memory or the database, or a new one. */
  private chargeRowOf(actor: AccountActor, operation: string, at: number): ChargeRow {
    const findAccount = actor.chargeRows.get(operation);
    if (findAccount !== undefined && findAccount.at === at) return findAccount;
    // If the wall clock was set back, the row of this hour may be unwritten, and the stored one out of date.
    const unwritten = [...actor.unwritten].find((row) => row.operation === operation && row.at === at);
    const row = unwritten ??
      this.store.charge(actor.ref, operation, at) ?? {
        sequence: this.nextSequence++,
        amount: 0,
        balance_after: actor.balance,
        at,
        operation,
        count: 0,
      };
    actor.chargeRows.set(operation, row);
    return row;
  }

  /** Writes all touched accounts. If the batch is rolled back, the next one writes their state at that time. */
  private write(tx: Tx): void {
    const { touched } = this.accounts;
    if (touched.size === 0) return;
    const written = [...touched].map((actor) => ({ actor, rows: [...actor.unwritten] }));
    for (const { actor, rows } of written) {
      const { ref, balance } = actor;
      this.store.setBalance(tx, balance, ref);
      for (const { sequence, amount, balance_after, at, operation, count } of rows) {
        this.store.writeEntry(tx, sequence, ref, "charge", amount, balance_after, at, null, operation, count);
      }
      // At once: reads are charged until the batch is confirmed, and those charges are for the next one.
      actor.unwritten.clear();
      actor.idle = true;
    }
    touched.clear();
    tx.onRollback(() => {
      for (const { actor, rows } of written) {
        this.accounts.touch(actor);
        for (const row of rows) actor.unwritten.add(row);
      }
    });
  }
}

function balanceChange({ userId, balance }: AccountActor, summary: string, after: number): AuditChange {
  const target = { type: "account", id: userId };
  return { summary: `Account balance: ${summary}`, target, before: { balance }, after: { balance: after } };
}

function entryView({ operation, count, ...row }: AccountEntryRow): LedgerEntry {
  return {
    ...row,
    at: isoTime(row.at),
    request_id: row.request_id === null ? null : bytesToUuid(row.request_id),
    ...(operation === null ? {} : { operation, count: count ?? 0 }),
  };
}
