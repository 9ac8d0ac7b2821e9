import { isoTime } from "../../kernel/date-time.ts";
import type { CallerAccount, Charger } from "../../kernel/http/caller.ts";
import { decodeNumberCursor, pageOf } from "../../kernel/http/pagination.ts";
import {
  BALANCE_MAX,
  deducted,
  type EntryKind,
  insufficientBalance,
  type LedgerEntry,
  type LedgerPage,
  refilled,
} from "../../kernel/ledger.ts";
import type { Counter } from "../../kernel/metrics/instruments.ts";
import type { Metrics } from "../../kernel/metrics/metrics.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import { isUnlimited } from "../../kernel/tiers.ts";
import { bytesToUuid, uuidToBytes } from "../../kernel/uuid.ts";
import { hourOf } from "./domain.ts";
import type { AccountActor, Accounts } from "./registry.ts";
import type { AccountEntryRow, AccountStore, ChargeCell } from "./store.ts";

/**
 * The accounts' balances. Changes happen in memory, within units of work; at the end of each batch every touched
 * account is written once: its balance, and one row per operation that it paid for.
 */
export class AccountLedger implements Charger {
  private nextSequence: number;
  /** Credits of each counted operation, all accounts together. */
  private charged: Readonly<Record<string, Counter>> = {};
  private refunded: Readonly<Record<string, Counter>> = {};

  constructor(
    private readonly store: AccountStore,
    private readonly accounts: Accounts,
    writer: Writer,
  ) {
    this.nextSequence = store.highestNumber("entry") + 1;
    writer.beforeCommit((tx) => this.write(tx));
  }

  /** Counts from now on what these operations cost. */
  countCredits(metrics: Metrics, operations: readonly string[]): void {
    const declare = (which: string, help: string): Readonly<Record<string, Counter>> =>
      metrics.counters({ name: `ninefold_credits_${which}_total`, help }, "operation", operations);
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

  /** Lowers a balance. @throws ApiError `insufficient_balance`, `invalid_request`; nothing changes. */
  deduct(tx: Tx, actor: AccountActor, amount: number, requestId: string): void {
    const balance = deducted(actor.balance, amount, { user_id: actor.userId });
    this.append(tx, actor, "deduct", balance, requestId);
  }

  /** Raises a balance. @throws ApiError `invalid_request`; nothing changes. */
  refill(tx: Tx, actor: AccountActor, amount: number, requestId: string): void {
    this.append(tx, actor, "refill", refilled(actor.balance, amount), requestId);
  }

  /** Sets a balance. Only the operator may. */
  reset(tx: Tx, actor: AccountActor, balance: number, requestId: string): void {
    this.append(tx, actor, "reset", balance, requestId);
  }

  /** Raises a balance to `figure` if it is lower. */
  grantUpTo(tx: Tx, actor: AccountActor, figure: number): void {
    if (actor.balance < figure) this.append(tx, actor, "grant", figure, null);
  }

  /** Records the balance that a new account starts with. */
  recordInitial(tx: Tx, actor: AccountActor): void {
    if (actor.balance !== 0) this.record(tx, actor, "grant", actor.balance, null);
  }

  /** A page of an account's ledger, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  history(accountRef: number, limit: number, cursor: string | undefined): LedgerPage {
    const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeNumberCursor(cursor);
    const rows = this.store.entries(accountRef, before, limit + 1);
    const { items, ...next } = pageOf(rows, limit, (row) => [row.sequence]);
    return { entries: items.map(entryView), ...next };
  }

  private append(
    tx: Tx,
    actor: AccountActor,
    kind: EntryKind,
    balance: number,
    requestId: string | null,
  ): void {
    const amount = balance - actor.balance;
    this.move(tx, actor, amount);
    this.record(tx, actor, kind, amount, requestId);
  }

  private record(
    tx: Tx,
    actor: AccountActor,
    kind: EntryKind,
    amount: number,
    requestId: string | null,
  ): void {
    this.store.appendEntry(tx, actor.ref, {
      sequence: this.nextSequence++,
      kind,
      amount,
      balance_after: actor.balance,
      request_id: requestId === null ? null : uuidToBytes(requestId),
    });
  }

  private book(tx: Tx, actor: AccountActor, operation: string, cost: number, count: number): void {
    const cell = this.cellOf(actor, operation, hourOf(tx.now));
    const { balanceAfter } = cell;
    this.move(tx, actor, -cost);
    cell.count += count;
    cell.amount -= cost;
    cell.balanceAfter = actor.balance;
    actor.unwritten.add(cell);
    const counter = (cost > 0 ? this.charged : this.refunded)[operation];
    counter?.add(Math.abs(cost));
    tx.onRollback(() => {
      counter?.add(-Math.abs(cost));
      cell.count -= count;
      cell.amount += cost;
      cell.balanceAfter = balanceAfter;
    });
  }

  private move(tx: Tx, actor: AccountActor, amount: number): void {
    this.accounts.touch(actor);
    actor.balance += amount;
    tx.onRollback(() => {
      actor.balance -= amount;
    });
  }

  /** The cell of this hour: a new one, unless it is in memory or has a row already. */
  private cellOf(actor: AccountActor, operation: string, hour: number): ChargeCell {
    const known = actor.cells.get(operation);
    if (known !== undefined && known.hour === hour) return known;
    const row = this.store.charge(actor.ref, operation, hour);
    const cell: ChargeCell = {
      sequence: row?.sequence ?? this.nextSequence++,
      operation,
      hour,
      count: row?.count ?? 0,
      amount: row?.amount ?? 0,
      balanceAfter: row?.balance_after ?? actor.balance,
      stored: row !== null,
    };
    actor.cells.set(operation, cell);
    return cell;
  }

  /** Writes what this batch changed. When the batch is taken back, each unit undoes its own changes in memory. */
  private write(tx: Tx): void {
    for (const actor of this.accounts.takeTouched()) {
      this.store.setBalance(tx, actor.ref, actor.balance);
      for (const cell of actor.unwritten) this.writeCell(tx, actor, cell);
      actor.unwritten.clear();
      actor.dirty = false;
    }
  }

  private writeCell(tx: Tx, actor: AccountActor, cell: ChargeCell): void {
    // A first charge that was rolled back, alone or with its batch, leaves a cell with nothing in it.
    if (!cell.stored && cell.count === 0) return;
    this.store.writeCharge(tx, actor.ref, cell);
    if (cell.stored) return;
    cell.stored = true;
    tx.onRollback(() => {
      cell.stored = false;
    });
  }
}

function entryView(row: AccountEntryRow): LedgerEntry {
  return {
    sequence: row.sequence,
    kind: row.kind,
    amount: row.amount,
    balance_after: row.balance_after,
    at: isoTime(row.at),
    request_id: row.request_id === null ? null : bytesToUuid(row.request_id),
    ...(row.operation === null ? {} : { operation: row.operation, count: row.count ?? 0 }),
  };
}
