import { ActorRegistry } from "../../kernel/actors/registry.ts";
import type { AuditChange } from "../../kernel/audit/change.ts";
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
import type { Caller, CallerAccount, CallerProject, Charger } from "../../kernel/http/access/caller.ts";
import { pageOf, pageStart } from "../../kernel/http/requests/pagination.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { isUnlimited } from "../../kernel/limits/tiers.ts";
import type { Counter } from "../../kernel/metrics/instruments.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { hourOf } from "./domain.ts";
import type { OwnBalance } from "./schema.ts";
import type { AccountEntryRow, AccountRow, AccountStore, ChargeRow } from "./store.ts";

/** Accounts kept in memory when idle: some hundred bytes each. */
export const ACCOUNTS_IN_MEMORY_MAX = 20_000;

/**
 * Accounts whose charges wait in memory before they get a batch at once: it writes them all, some microseconds each, and
 * everything else waits for it.
 */
export const UNWRITTEN_ACCOUNTS_MAX = 500;

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
  /** What has changed since the last commit. */
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

  /** Keeps an account in memory until a batch has written its changes. */
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

/** The request that changes a balance. */
type Cause = { readonly caller: Caller; readonly requestId: string };

/**
 * The accounts' balances. Changes happen in memory, within units of work, and charges of what changes nothing else also
 * between two batches; at the end of each batch every touched account is written once: its balance, and one row per
 * operation that it paid for.
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

  /** Counts from now on what these operations cost. */
  countCredits(operations: readonly { readonly name: string }[]): void {
    const names = operations.map(({ name }) => name);
    const declare = (which: string, help: string) =>
      this.kernel.metrics.counters({ name: `ninefold_credits_${which}_total`, help }, "operation", names);
    this.charged = declare("charged", "Credits charged for operations.");
    this.refunded = declare("refunded", "Credits given back, since the work came to nothing.");
  }

  charge(tx: Tx, account: CallerAccount, operation: string, cost: number): void {
    if (isUnlimited(account.tier)) return;
    const actor = this.accounts.get(account.ref);
    const { balance } = actor;
    if (balance < cost) {
      const message = `This request costs ${cost}, but the balance is ${balance}. Refill it first.`;
      throw insufficientBalance(message, balance, { user_id: actor.userId });
    }
    this.book(tx, actor, operation, cost, 1);
  }

  refund(tx: Tx, account: CallerAccount, operation: string, cost: number): void {
    if (isUnlimited(account.tier)) return;
    const actor = this.accounts.get(account.ref);
    // The account may have filled its balance up since. Beyond the largest integer sums do not hold, nor does its ledger.
    if (cost > BALANCE_MAX - actor.balance) return;
    this.book(tx, actor, operation, -cost, -1);
  }

  /** The balance of an account. */
  balance({ ref }: CallerAccount): OwnBalance {
    const { balance, userId } = this.accounts.get(ref);
    return { balance, user_id: userId };
  }

  /** Lowers a balance. @throws ApiError `insufficient_balance`, `invalid_request`; nothing changes. */
  deduct(tx: Tx, { caller, requestId }: Cause, amount: number): OwnBalance {
    const actor = this.accounts.get(caller.account.ref);
    const balance = deducted(actor.balance, amount, { user_id: actor.userId });
    tx.audit(ownChange(actor, `${amount} credits deducted`, balance));
    this.set(tx, actor, "deduct", balance, requestId);
    return this.balance(actor);
  }

  /** Raises a balance. @throws ApiError `invalid_request`; nothing changes. */
  refill(tx: Tx, { caller, requestId }: Cause, amount: number): OwnBalance {
    const actor = this.accounts.get(caller.account.ref);
    const balance = refilled(actor.balance, amount);
    tx.audit(ownChange(actor, `${amount} credits added`, balance));
    this.set(tx, actor, "refill", balance, requestId);
    return this.balance(actor);
  }

  /** Raises a balance to `figure` if it is lower. */
  grantUpTo(tx: Tx, actor: AccountActor, figure: number): void {
    if (actor.balance < figure) this.set(tx, actor, "grant", figure, null);
  }

  /** Sets a balance, and writes the entry that says so. */
  set(tx: Tx, actor: AccountActor, kind: EntryKind, balance: number, requestId: string | null): void {
    const amount = balance - actor.balance;
    this.move(tx, actor, amount);
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

  /** What is written, and above it the charges that are not yet. */
  private entriesBefore(ref: number, before: number, limit: number): AccountEntryRow[] {
    const rows = this.store.entriesBefore(ref, before, limit);
    const unwritten = [...this.accounts.get(ref).unwritten].filter(({ sequence }) => sequence < before);
    if (unwritten.length === 0) return rows;
    const entries = new Map(rows.map((row) => [row.sequence, row]));
    for (const cell of unwritten) entries.set(cell.sequence, { ...cell, kind: "charge", request_id: null });
    return [...entries.values()].sort((a, b) => b.sequence - a.sequence).slice(0, limit);
  }

  private book(tx: Tx, actor: AccountActor, operation: string, cost: number, count: number): void {
    const cell = this.cellOf(actor, operation, hourOf(tx.now));
    const { balance_after } = cell;
    const isFirst = !actor.unwritten.has(cell);
    this.move(tx, actor, -cost);
    cell.count += count;
    cell.amount -= cost;
    cell.balance_after = actor.balance;
    actor.unwritten.add(cell);
    const counter = (cost > 0 ? this.charged : this.refunded)[operation];
    counter?.add(Math.abs(cost));
    tx.onRollback(() => {
      counter?.add(-Math.abs(cost));
      cell.count -= count;
      cell.amount += cost;
      cell.balance_after = balance_after;
      // Nothing was charged: a row would say nothing.
      if (isFirst) actor.unwritten.delete(cell);
    });
  }

  private move(tx: Tx, actor: AccountActor, amount: number): void {
    this.accounts.touch(actor);
    if (this.accounts.touched.size === UNWRITTEN_ACCOUNTS_MAX) this.kernel.writer.writeMemory();
    actor.balance += amount;
    tx.onRollback(() => {
      actor.balance -= amount;
    });
  }

  /** The cell of an hour: a new one, unless it is in memory or has a row already. */
  private cellOf(actor: AccountActor, operation: string, at: number): ChargeRow {
    const known = actor.cells.get(operation);
    if (known !== undefined && known.at === at) return known;
    // A wall clock that was set back comes into an hour whose cell may not be written yet: its row would be an old one.
    const unwritten = [...actor.unwritten].find((cell) => cell.operation === operation && cell.at === at);
    const cell = unwritten ??
      this.store.charge(actor.ref, operation, at) ?? {
        sequence: this.nextSequence++,
        amount: 0,
        balance_after: actor.balance,
        at,
        operation,
        count: 0,
      };
    actor.cells.set(operation, cell);
    return cell;
  }

  /** Writes what has changed. When the batch is taken back all of it is written with the next one, as memory says then. */
  private write(tx: Tx): void {
    const { touched } = this.accounts;
    if (touched.size === 0) return;
    for (const { ref, balance, unwritten } of touched) {
      this.store.setBalance(tx, balance, ref);
      for (const { sequence, amount, balance_after, at, operation, count } of unwritten) {
        this.store.writeEntry(tx, sequence, ref, "charge", amount, balance_after, at, null, operation, count);
      }
    }
    tx.afterCommit(() => {
      for (const actor of touched) {
        actor.unwritten.clear();
        actor.idle = true;
      }
      touched.clear();
    });
  }
}

function ownChange({ userId, balance }: AccountActor, summary: string, after: number): AuditChange {
  const target = { type: "account", id: userId };
  return { summary: `Own balance: ${summary}`, target, before: { balance }, after: { balance: after } };
}

function entryView({ operation, count, ...row }: AccountEntryRow): LedgerEntry {
  return {
    ...row,
    at: isoTime(row.at),
    request_id: row.request_id === null ? null : bytesToUuid(row.request_id),
    ...(operation === null ? {} : { operation, count: count ?? 0 }),
  };
}
