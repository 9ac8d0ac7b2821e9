import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import { isoTime } from "../../kernel/date-time.ts";
import { invalidField } from "../../kernel/errors.ts";
import { decodeNumberCursor, encodeCursor } from "../../kernel/http/pagination.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import {
  deducted,
  type EntryKind,
  type LedgerEntry,
  type LedgerPage,
  refilled,
} from "../../kernel/ledger.ts";
import { Rounds, type WrittenLater } from "../../kernel/rounds.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { bytesToUuid, uuidToBytes } from "../../kernel/uuid.ts";
import type { MeterBalance, MeterItem, MeterPage } from "./schema.ts";
import type { MeterEntryRow, MeterRow, MeterStore } from "./store.ts";

/**
 * Meters kept in memory when idle, about half a kilobyte each with everything around them. Beyond it, a meter
 * that was not used lately costs one indexed read.
 */
export const METERS_IN_MEMORY_MAX = 131_072;
/** Changes after which balances are flushed: bounds what start-up replays, and how many meters wait in memory. */
export const FLUSH_AFTER_ENTRIES = 50_000;
/** Longest wait when there are fewer changes. */
const FLUSH_AFTER_MS = 2_000;
/** Rows written in one unit of work: about a millisecond. */
const ROWS_PER_UNIT = 250;

/** Sorts before, and behind, whatever an id can go on with. */
const BEFORE_IDS = "!";
const BEHIND_IDS = "~";

/** How kinds are stored: the ledger has many rows, and a number takes one byte. */
const KIND_CODES = { deduct: 1, refill: 2, reset: 3 } as const;
const KIND_NAMES: Readonly<Record<number, EntryKind>> = { 1: "deduct", 2: "refill", 3: "reset" };
type Kind = keyof typeof KIND_CODES;

/** Where a change belongs: the project, the meter, and the request that causes it. */
export interface MeterChange {
  readonly projectRef: number;
  readonly meterId: string;
  readonly requestId: string;
}

/** A tenant meter in memory. Every change writes the ledger; the meter's row follows now and then. */
class MeterActor implements Actor, WrittenLater {
  recent = false;
  dueInRound = 0;

  constructor(
    readonly ref: number,
    public balance: number,
    public lastSequence: number,
  ) {}

  /** Until its row is written, the balance stands here and in the ledger alone. */
  get idle(): boolean {
    return this.dueInRound === 0;
  }
}

/** The use cases of tenant meters. Changes run within units of work; reads see committed state only. */
export class MeterService {
  private readonly actors: ActorRegistry<string, MeterActor>;
  /** Brings the rows up to the ledger in the background. */
  private readonly flusher: Rounds<MeterActor>;
  private nextRef: number;
  private nextSequence: number;

  constructor(
    private readonly store: MeterStore,
    kernel: Pick<Kernel, "writer" | "log">,
    inMemoryMax: number = METERS_IN_MEMORY_MAX,
  ) {
    this.actors = new ActorRegistry(inMemoryMax);
    this.nextRef = store.highestRef() + 1;
    // Entries that were removed with their project leave their numbers unused: a flush may have passed them.
    this.nextSequence = Math.max(store.highestSequence(), store.flushedThrough()) + 1;
    this.flusher = new Rounds({
      ...kernel,
      warning: "balances of meters could not be flushed yet",
      waitMs: FLUSH_AFTER_MS,
      marksMax: FLUSH_AFTER_ENTRIES,
      rowsPerUnit: ROWS_PER_UNIT,
      write: (tx, { ref, balance, lastSequence }) => store.saveBalance(tx, balance, lastSequence, ref),
      // A round notes how far the ledger went when it began: start-up reads the entries after that.
      begun: () => {
        const position = this.nextSequence - 1;
        return (tx) => store.setFlushedThrough(tx, position);
      },
    });
    this.takeUp();
  }

  /** A meter's balance; 0 for one that does not exist, and none is made. */
  balance(projectRef: number, meterId: string): MeterBalance {
    return { balance: this.find(projectRef, meterId)?.balance ?? 0, meter_id: meterId };
  }

  /** @throws ApiError `invalid_request` for an amount that is not positive, `insufficient_balance`. */
  deduct(tx: Tx, change: MeterChange, amount: number): MeterBalance {
    const owner = { meter_id: change.meterId };
    return this.apply(tx, change, "deduct", (balance) => deducted(balance, amount, owner));
  }

  /** @throws ApiError `invalid_request` for an amount that is not positive, or past the largest balance. */
  refill(tx: Tx, change: MeterChange, amount: number): MeterBalance {
    return this.apply(tx, change, "refill", (balance) => refilled(balance, amount));
  }

  /** Sets a balance. */
  reset(tx: Tx, change: MeterChange, balance: number): MeterBalance {
    const before = this.find(change.projectRef, change.meterId)?.balance ?? 0;
    tx.audit({
      summary: `Meter ${change.meterId} set to ${balance}`,
      target: { type: "meter", id: change.meterId },
      ...{ before: { balance: before }, after: { balance } },
    });
    return this.apply(tx, change, "reset", () => balance);
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

  /** A page of a project's meters, by id. */
  list(projectRef: number, prefix: string, limit: number, cursor: string | undefined): MeterPage {
    const from = cursor === undefined ? prefix : cursor + BEFORE_IDS;
    const ids = this.store.idsBetween(projectRef, from, prefix + BEHIND_IDS, limit + 1);
    const meters = ids.slice(0, limit).map(({ meter_id }) => this.itemOf(projectRef, meter_id));
    const last = meters.at(-1);
    return ids.length > limit && last !== undefined ? { meters, cursor: last.meter_id } : { meters };
  }

  /** Meters of a project, counted to a figure. */
  countTo(projectRef: number, countedMax: number): number {
    return this.store.countTo(projectRef, countedMax);
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
    for (const row of this.store.someOfProject(projectRef, rowsMax)) {
      const key = `${projectRef}/${row.meter_id}`;
      left -= this.removeEntries(tx, this.actors.peek(key) ?? this.actorOf(row), left);
      if (left === 0) break;
      this.store.remove(tx, row.ref);
      this.actors.drop(key);
      left -= 1;
      if (left === 0) break;
    }
    return rowsMax - left;
  }

  /** Brings every row up to the ledger. For the end of the process. */
  finish(): Promise<void> {
    return this.flusher.finish();
  }

  /** Takes up the entries that no round has reached: they are newer than the rows. */
  private takeUp(): void {
    for (const { meter_ref, balance_after, sequence } of this.store.entriesAfter(
      this.store.flushedThrough(),
    )) {
      const actor = this.flusher.held(meter_ref) ?? new MeterActor(meter_ref, 0, 0);
      actor.balance = balance_after;
      actor.lastSequence = sequence;
      this.flusher.hold(actor);
    }
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
    if (removed === rowsMax) this.store.saveBalance(tx, actor.balance, actor.lastSequence, actor.ref);
    return removed;
  }

  private itemOf(projectRef: number, meter_id: string): MeterItem {
    const { balance = 0, lastSequence = 0 } = this.find(projectRef, meter_id) ?? {};
    const at = this.store.entry(lastSequence)?.at ?? 0;
    return { meter_id, balance, available: balance, updated_at: isoTime(at) };
  }

  private find(projectRef: number, meterId: string): MeterActor | undefined {
    return this.actors.get(`${projectRef}/${meterId}`, () => {
      const row = this.store.find(projectRef, meterId);
      return row === null ? undefined : this.actorOf(row);
    });
  }

  private actorOf({ ref, balance, last_sequence }: MeterRow): MeterActor {
    return this.flusher.held(ref) ?? new MeterActor(ref, balance, last_sequence);
  }

  private create(tx: Tx, { projectRef, meterId }: MeterChange): MeterActor {
    const key = `${projectRef}/${meterId}`;
    const actor = new MeterActor(this.nextRef++, 0, 0);
    this.store.insert(tx, actor.ref, projectRef, meterId);
    this.actors.insert(key, actor);
    tx.onRollback(() => this.actors.drop(key));
    return actor;
  }

  private apply(tx: Tx, change: MeterChange, kind: Kind, next: (balance: number) => number): MeterBalance {
    const known = this.find(change.projectRef, change.meterId);
    const balanceAfter = next(known?.balance ?? 0);
    // Made once nothing refuses the change.
    const actor = known ?? this.create(tx, change);
    const { balance, lastSequence } = actor;
    const sequence = this.nextSequence++;
    this.flusher.mark(actor);
    actor.balance = balanceAfter;
    actor.lastSequence = sequence;
    tx.onRollback(() => {
      actor.balance = balance;
      actor.lastSequence = lastSequence;
    });
    this.store.append(
      tx,
      sequence,
      actor.ref,
      lastSequence,
      KIND_CODES[kind],
      balanceAfter - balance,
      balanceAfter,
      tx.now,
      uuidToBytes(change.requestId),
    );
    return { balance: balanceAfter, meter_id: change.meterId };
  }
}

function entryView({ meter_ref, previous, ...row }: MeterEntryRow): LedgerEntry {
  const at = isoTime(row.at);
  return { ...row, kind: KIND_NAMES[row.kind] ?? "reset", at, request_id: bytesToUuid(row.request_id) };
}
