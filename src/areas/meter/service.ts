import { ActorRegistry } from "../../kernel/actors/registry.ts";
import { isoTime } from "../../kernel/date-time.ts";
import { invalidField } from "../../kernel/errors.ts";
import { decodeNumberCursor, encodeCursor } from "../../kernel/http/pagination.ts";
import type { EntryKind, LedgerEntry, LedgerPage } from "../../kernel/ledger-entry.ts";
import type { Logger } from "../../kernel/log.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import { bytesToUuid, uuidToBytes } from "../../kernel/uuid.ts";
import { MeterActor } from "./actor.ts";
import { assertPositive, deducted, type Movement, refilled, resetTo } from "./domain.ts";
import { Settlement } from "./settlement.ts";
import type { MeterEntryRow, MeterRow, MeterStore } from "./store.ts";

/**
 * Meters kept in memory when idle, about half a kilobyte each with everything around them. Beyond it, a meter
 * that was not used lately costs one indexed read.
 */
export const METERS_IN_MEMORY_MAX = 131_072;

/** How kinds are stored: the ledger has many rows, and a number takes one byte. */
const KIND_CODES = { deduct: 1, refill: 2, reset: 3 } as const;
const KIND_NAMES: Readonly<Record<number, EntryKind>> = { 1: "deduct", 2: "refill", 3: "reset" };

/** A tenant meter's balance, as its endpoints answer it. */
export interface MeterBalanceView {
  readonly balance: number;
  readonly meter_id: string;
}

/** Where a change belongs: the project, the meter, and the request that causes it. */
export interface MeterChange {
  readonly projectRef: number;
  readonly meterId: string;
  readonly requestId: string;
}

/** The use cases of tenant meters. Changes run within units of work; reads see committed state only. */
export class MeterService {
  private readonly store: MeterStore;
  private readonly actors;
  private readonly settlement: Settlement;
  private nextRef: number;
  private nextSequence: number;

  constructor(deps: { store: MeterStore; writer: Writer; log: Logger; inMemoryMax?: number }) {
    const { store, writer, log } = deps;
    this.store = store;
    this.actors = new ActorRegistry<string, MeterActor>(deps.inMemoryMax ?? METERS_IN_MEMORY_MAX);
    this.nextRef = store.highestRef() + 1;
    // Entries that were removed with their project leave their numbers unused: a settlement may have passed them.
    this.nextSequence = Math.max(store.highestSequence(), store.settledThrough()) + 1;
    this.settlement = new Settlement({ store, writer, log, ledgerPosition: () => this.nextSequence - 1 });
    this.settlement.recover();
  }

  /** A meter's balance; 0 for one that does not exist, and none is made. */
  balance(projectRef: number, meterId: string): MeterBalanceView {
    return { balance: this.find(projectRef, meterId)?.balance ?? 0, meter_id: meterId };
  }

  /** @throws ApiError `invalid_request` for an amount that is not positive, `insufficient_balance`. */
  deduct(tx: Tx, change: MeterChange, amount: number): MeterBalanceView {
    assertPositive(amount);
    const actor = this.find(change.projectRef, change.meterId);
    const movement = deducted(actor?.balance ?? 0, amount, change.meterId);
    // A meter that does not exist has nothing to take from: the line above has refused.
    return this.apply(tx, actor ?? this.create(tx, change), change, "deduct", movement);
  }

  /** @throws ApiError `invalid_request` for an amount that is not positive, or past the largest balance. */
  refill(tx: Tx, change: MeterChange, amount: number): MeterBalanceView {
    assertPositive(amount);
    const actor = this.find(change.projectRef, change.meterId);
    const movement = refilled(actor?.balance ?? 0, amount);
    return this.apply(tx, actor ?? this.create(tx, change), change, "refill", movement);
  }

  /** Sets a balance. */
  reset(tx: Tx, change: MeterChange, balance: number): MeterBalanceView {
    const actor = this.find(change.projectRef, change.meterId) ?? this.create(tx, change);
    return this.apply(tx, actor, change, "reset", resetTo(actor.balance, balance));
  }

  /** A page of a meter's ledger, newest first. @throws ApiError `validation_error` for a cursor of another meter. */
  history(projectRef: number, meterId: string, limit: number, cursor: string | undefined): LedgerPage {
    const actor = this.find(projectRef, meterId);
    let sequence = cursor === undefined ? (actor?.lastSequence ?? 0) : decodeNumberCursor(cursor);
    const entries: LedgerEntry[] = [];
    while (sequence !== 0 && entries.length < limit) {
      const entry = this.store.entry(sequence);
      if (entry === null || entry.meter_ref !== actor?.ref) {
        throw invalidField("cursor", "is not a cursor of this meter's history");
      }
      entries.push(entryView(entry));
      sequence = entry.previous;
    }
    return sequence === 0 ? { entries } : { entries, cursor: encodeCursor([sequence]) };
  }

  /** Meters of a project. */
  count(projectRef: number): number {
    return this.store.count(projectRef);
  }

  /**
   * Removes at most `rowsMax` meters and entries of a deleted project, each meter's newest entries first, so that
   * what is left stays a whole ledger. Returns how many it removed.
   */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    let left = rowsMax;
    for (const row of this.store.ofProject(projectRef, rowsMax)) {
      const key = `${projectRef}/${row.meter_id}`;
      const actor = this.actors.peek(key) ?? this.settlement.held(row.ref) ?? actorOf(row);
      left -= this.removeEntries(tx, actor, left);
      if (left === 0) break;
      this.store.remove(tx, row.ref);
      this.actors.drop(key);
      left -= 1;
      if (left === 0) break;
    }
    return rowsMax - left;
  }

  private removeEntries(tx: Tx, actor: MeterActor, rowsMax: number): number {
    const { lastSequence } = actor;
    tx.onRollback(() => {
      actor.lastSequence = lastSequence;
    });
    let removed = 0;
    while (removed < rowsMax && actor.lastSequence !== 0) {
      const entry = this.store.entry(actor.lastSequence);
      this.store.removeEntry(tx, actor.lastSequence);
      actor.lastSequence = entry?.previous ?? 0;
      removed += 1;
    }
    // Where entries are left, the row leads to the newest of them; otherwise it is the next to go.
    if (removed === rowsMax) this.store.settle(tx, actor.ref, actor.balance, actor.lastSequence);
    return removed;
  }

  /** Brings every row up to the ledger. For the end of the process. */
  finish(): Promise<void> {
    return this.settlement.finish();
  }

  private find(projectRef: number, meterId: string): MeterActor | undefined {
    return this.actors.get(`${projectRef}/${meterId}`, () => {
      const row = this.store.find(projectRef, meterId);
      if (row === null) return undefined;
      return this.settlement.held(row.ref) ?? actorOf(row);
    });
  }

  private create(tx: Tx, { projectRef, meterId }: MeterChange): MeterActor {
    const key = `${projectRef}/${meterId}`;
    const actor = new MeterActor(this.nextRef++, 0, 0);
    this.store.insert(tx, actor.ref, projectRef, meterId);
    this.actors.insert(key, actor);
    tx.onRollback(() => this.actors.drop(key));
    return actor;
  }

  private apply(
    tx: Tx,
    actor: MeterActor,
    change: MeterChange,
    kind: keyof typeof KIND_CODES,
    movement: Movement,
  ): MeterBalanceView {
    const { balance, lastSequence } = actor;
    const entry: MeterEntryRow = {
      sequence: this.nextSequence++,
      previous: lastSequence,
      kind: KIND_CODES[kind],
      amount: movement.amount,
      balance_after: movement.balance,
      at: tx.now,
      request_id: uuidToBytes(change.requestId),
    };
    this.settlement.mark(actor);
    actor.balance = movement.balance;
    actor.lastSequence = entry.sequence;
    tx.onRollback(() => {
      actor.balance = balance;
      actor.lastSequence = lastSequence;
    });
    this.store.append(tx, entry, actor.ref);
    return { balance: movement.balance, meter_id: change.meterId };
  }
}

function actorOf({ ref, balance, last_sequence }: MeterRow): MeterActor {
  return new MeterActor(ref, balance, last_sequence);
}

function entryView(row: MeterEntryRow): LedgerEntry {
  return {
    sequence: row.sequence,
    kind: KIND_NAMES[row.kind] ?? "reset",
    amount: row.amount,
    balance_after: row.balance_after,
    at: isoTime(row.at),
    request_id: bytesToUuid(row.request_id),
  };
}
