import { isoTime } from "../../kernel/date-time.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { CallerAccount, Charger } from "../../kernel/http/caller.ts";
import { decodeNumberCursor, pageOf } from "../../kernel/http/pagination.ts";
import { BALANCE_MAX, type EntryKind, type LedgerEntry, type LedgerPage } from "../../kernel/ledger-entry.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import { isUnlimited } from "../../kernel/tiers.ts";
import { bytesToUuid, uuidToBytes } from "../../kernel/uuid.ts";
import type { AccountActor, ChargeCell } from "./actor.ts";
import type { CreditCounts } from "./credit-counts.ts";
import { hourOf } from "./domain.ts";
import type { Accounts } from "./registry.ts";
import type { AccountEntryRow, AccountStore } from "./store.ts";

/**
 * The accounts' own balances. Changes happen in memory, within units of work; at the end of each batch every
 * touched account is written once: its balance, and one row per operation that it paid for.
 */
export class AccountLedger implements Charger {
  private nextSequence: number;

  constructor(
    private readonly store: AccountStore,
    private readonly accounts: Accounts,
    writer: Writer,
    private readonly credits: CreditCounts,
  ) {
    this.nextSequence = store.highestNumber("entry") + 1;
    writer.beforeCommit((tx) => this.write(tx));
  }

  charge(tx: Tx, account: CallerAccount, operation: string, cost: number): void {
    if (isUnlimited(account.tier)) return;
    const actor = this.accounts.get(account.ref);
    if (actor.balance < cost) throw this.insufficient(actor, `This request costs ${cost}`);
    this.book(tx, actor, operation, cost, 1);
  }

  refund(tx: Tx, account: CallerAccount, operation: string, cost: number): void {
    if (isUnlimited(account.tier)) return;
    const actor = this.accounts.get(account.ref);
    // The account may have filled its balance up since. Beyond the largest integer sums do not hold, nor does its ledger.
    if (cost > BALANCE_MAX - actor.balance) return;
    this.book(tx, actor, operation, -cost, -1);
  }

  /**
   * Lowers the own balance. @throws ApiError `insufficient_balance` with `balance` and `user_id`; nothing changes.
   */
  deduct(tx: Tx, actor: AccountActor, amount: number, requestId: string): void {
    if (actor.balance < amount) throw this.insufficient(actor, `The deduction is ${amount}`);
    this.append(tx, actor, "deduct", -amount, requestId);
  }

  /** Raises the own balance. @throws ApiError `invalid_request` when it would pass the largest integer. */
  refill(tx: Tx, actor: AccountActor, amount: number, requestId: string): void {
    if (amount > BALANCE_MAX - actor.balance) {
      throw new ApiError("invalid_request", `The balance would pass ${BALANCE_MAX}. Nothing was changed.`);
    }
    this.append(tx, actor, "refill", amount, requestId);
  }

  /** Sets the own balance: the operator's doing. */
  reset(tx: Tx, actor: AccountActor, balance: number, requestId: string): void {
    this.append(tx, actor, "reset", balance - actor.balance, requestId);
  }

  /** Raises the balance to `figure` if it is lower. */
  grantUpTo(tx: Tx, actor: AccountActor, figure: number): void {
    if (actor.balance < figure) this.append(tx, actor, "grant", figure - actor.balance, null);
  }

  /** Records the balance that a new account starts with. */
  recordInitial(tx: Tx, actor: AccountActor): void {
    const { ref, balance } = actor;
    if (balance === 0) return;
    this.store.appendEntry(tx, {
      sequence: this.nextSequence++,
      accountRef: ref,
      kind: "grant",
      amount: balance,
      balanceAfter: balance,
      at: tx.now,
      requestId: null,
    });
  }

  /** A page of an account's ledger, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  history(accountRef: number, limit: number, cursor: string | undefined): LedgerPage {
    const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeNumberCursor(cursor);
    const page = pageOf(this.store.entries(accountRef, before, limit + 1), limit, (row) => [row.sequence]);
    const entries = page.items.map(entryView);
    return page.cursor === undefined ? { entries } : { entries, cursor: page.cursor };
  }

  private append(
    tx: Tx,
    actor: AccountActor,
    kind: EntryKind,
    amount: number,
    requestId: string | null,
  ): void {
    this.move(tx, actor, amount);
    this.store.appendEntry(tx, {
      sequence: this.nextSequence++,
      accountRef: actor.ref,
      kind,
      amount,
      balanceAfter: actor.balance,
      at: tx.now,
      requestId: requestId === null ? null : uuidToBytes(requestId),
    });
  }

  private book(tx: Tx, actor: AccountActor, operation: string, cost: number, count: number): void {
    const cell = this.cellOf(actor, operation, hourOf(tx.now));
    const balanceAfterBefore = cell.balanceAfter;
    this.move(tx, actor, -cost);
    cell.count += count;
    cell.amount -= cost;
    cell.balanceAfter = actor.balance;
    actor.unwritten.add(cell);
    const { charged, refunded } = cell.credits;
    if (cost > 0) charged.add(cost);
    else refunded.add(-cost);
    tx.onRollback(() => {
      if (cost > 0) charged.add(-cost);
      else refunded.add(cost);
      cell.count -= count;
      cell.amount += cost;
      cell.balanceAfter = balanceAfterBefore;
    });
  }

  private move(tx: Tx, actor: AccountActor, amount: number): void {
    this.accounts.touch(actor);
    actor.balance += amount;
    tx.onRollback(() => {
      actor.balance -= amount;
    });
  }

  /** The cell of this hour. One of an earlier hour is left to its row; a row of this hour is taken up again. */
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
      credits: this.credits.of(operation),
    };
    actor.cells.set(operation, cell);
    return cell;
  }

  /** Writes what this batch changed. When the batch is taken back, memory is put right by each unit's own undo. */
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

  private insufficient(actor: AccountActor, what: string): ApiError {
    return new ApiError(
      "insufficient_balance",
      `${what}, but the balance is ${actor.balance}. Refill it first.`,
      {
        extras: { balance: actor.balance, user_id: actor.userId },
      },
    );
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
