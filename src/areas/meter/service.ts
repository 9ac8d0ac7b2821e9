import { deducted, type LedgerEntry, type LedgerPage, refilled } from "../../kernel/data/ledger.ts";
import { bytesToUuid } from "../../kernel/data/uuid.ts";
import { ApiError, invalidField, isUnavailable } from "../../kernel/errors.ts";
import { decodeNumberCursor, encodeCursor } from "../../kernel/http/requests/pagination.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import type { MeterActor } from "./actor.ts";
import { FIRST_KIND, KINDS, MeterBook, type MeterChange } from "./book.ts";
import type { MeterBalance, MeterItem, MeterPage, MeterState } from "./schema.ts";
import type { MeterEntryRow, MeterStore } from "./store.ts";

/** Characters that sort before and after all characters of ids. */
const BEFORE_IDS = "!";
const AFTER_IDS = "~";

/** The operations of tenant meters. Changes run within units of work; reads return only committed state. */
export class MeterService {
  readonly book: MeterBook;

  constructor(
    private readonly store: MeterStore,
    private readonly kernel: Pick<Kernel, "writer" | "log" | "clock" | "scheduler">,
    inMemoryMax?: number,
  ) {
    this.book = new MeterBook(store, kernel, inMemoryMax);
  }

  /**
   * Reads meters after applying due expiries and refills durably, so that setting the clock back does not undo them. If the
   * disk is full, reads still ignore expired holds.
   */
  readSettled<T>(
    projectRef: number,
    meterIds: readonly string[],
    read: () => T | Promise<T>,
  ): T | Promise<T> {
    const now = this.kernel.clock.now();
    const isDue = (id: string): boolean => this.book.isDue(this.book.find(projectRef, id), now);
    if (!meterIds.some(isDue)) return read();
    const due = meterIds.filter(isDue);
    const settled = this.kernel.writer.submit((tx) => {
      for (const meterId of due) this.book.current(tx, { projectRef, meterId });
    });
    const unlessFull = (error: unknown): void => {
      if (!isUnavailable(error)) throw error;
    };
    return settled.catch(unlessFull).then(read);
  }

  /** Returns a meter's balance as {@link readSettled} does; 0 for a meter that does not exist. */
  readBalance(projectRef: number, meterId: string): MeterState | Promise<MeterState> {
    const meter = this.book.find(projectRef, meterId);
    const now = this.kernel.clock.now();
    // Hardly any read finds something due.
    if (!this.book.isDue(meter, now)) return this.balanceOf(meter, projectRef, meterId, now);
    return this.readSettled(projectRef, [meterId], () => this.balance(projectRef, meterId));
  }

  /** Returns a meter's balance without what is due. */
  balance(projectRef: number, meterId: string): MeterState {
    const meter = this.book.find(projectRef, meterId);
    return this.balanceOf(meter, projectRef, meterId, this.kernel.clock.now());
  }

  private balanceOf(
    meter: MeterActor | undefined,
    projectRef: number,
    meterId: string,
    now: number,
  ): MeterState {
    const state = this.stateOf(meter, meterId, now);
    const extras = meter === undefined ? null : this.book.extrasOf(meter);
    if (extras?.plan) state.has_plan = true;
    if (extras?.threshold) state.alert = "meter";
    else if (this.book.thresholds.has(projectRef)) state.alert = "project";
    return state;
  }

  /** Returns a meter's balance, available and held credits at a time. */
  stateOf(meter: MeterActor | undefined, meter_id: string, now: number): MeterState {
    if (meter === undefined) return { balance: 0, meter_id, available: 0, held: 0 };
    const { balance } = meter;
    const held = this.book.heldAt(meter, now);
    return { balance, meter_id, available: balance - held, held };
  }

  /** @throws ApiError `invalid_request` for an amount that is not positive, `insufficient_balance`. */
  deduct(tx: Tx, change: MeterChange, amount: number): MeterBalance {
    return this.book.apply(tx, change, "deduct", (balance, held) =>
      deducted(balance, amount, { meter_id: change.meterId, available: balance - held }, () =>
        this.planAdvice(change),
      ),
    );
  }

  /** Explains why a meter with a refill plan has too few credits, for the message of an error; empty without a plan. */
  planAdvice({ projectRef, meterId }: Pick<MeterChange, "projectRef" | "meterId">): string {
    const meter = this.book.find(projectRef, meterId);
    const plan = meter === undefined ? null : (this.book.extrasOf(meter)?.plan ?? null);
    if (plan === null) return "";
    return ` The next refill of the plan is at ${isoTime(plan.nextAt)}. To refill now, use POST /v1/meter/${meterId}/refill, or set the plan with "start_now": true.`;
  }

  /** @throws ApiError `invalid_request` for an amount that is not positive, or past the largest balance. */
  refill(tx: Tx, change: MeterChange, amount: number): MeterBalance {
    return this.book.apply(tx, change, "refill", (balance) => refilled(balance, amount));
  }

  /** Sets a balance. @throws ApiError `conflict` below what is held. */
  reset(tx: Tx, change: MeterChange, balance: number): MeterBalance {
    const before = this.book.current(tx, change)?.balance ?? 0;
    tx.audit({
      summary: `Meter ${change.meterId} set to ${balance}`,
      target: { type: "meter", id: change.meterId },
      before: { balance: before },
      after: { balance },
    });
    return this.book.apply(tx, change, "reset", (_, held) => {
      if (balance >= held) return balance;
      const message = `The balance cannot be ${balance}, because ${held} credits are held. Capture or release the holds first.`;
      throw new ApiError("conflict", message, { extras: { held } });
    });
  }

  /** Returns a page of a meter's ledger, newest first. @throws ApiError `validation_error` for a cursor of another meter. */
  history(projectRef: number, meterId: string, limit: number, cursor: string | undefined): LedgerPage {
    const actor = this.book.find(projectRef, meterId);
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

  /** Returns a page of a project's meters, by id. */
  list(
    projectRef: number,
    prefix: string,
    limit: number,
    cursor: string | undefined,
  ): MeterPage | Promise<MeterPage> {
    const from = cursor === undefined ? prefix : cursor + BEFORE_IDS;
    const ids = this.store.idsBetween(projectRef, from, prefix + AFTER_IDS, limit + 1);
    const shown = ids.slice(0, limit).map(({ meter_id }) => meter_id);
    const last = shown.at(-1);
    return this.readSettled(projectRef, shown, () => {
      const page = {
        meters: shown.map((meterId) => this.itemOf(projectRef, meterId)),
        ...(this.book.thresholds.has(projectRef) && { has_alert: true }),
      };
      return ids.length > limit && last !== undefined ? { ...page, cursor: last } : page;
    });
  }

  /** Returns the number of a project's meters, counted up to `countedMax`. */
  countTo(projectRef: number, countedMax: number): number {
    return this.store.countTo(projectRef, countedMax);
  }

  /** See {@link MeterBook.removeRows}. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    return this.book.removeRows(tx, projectRef, rowsMax);
  }

  /** Writes all rows at the end of the process. */
  finish(): Promise<void> {
    return this.book.finish();
  }

  private itemOf(projectRef: number, meterId: string): MeterItem {
    const { balance, meter_id, available } = this.balance(projectRef, meterId);
    const at = this.store.entry(this.book.find(projectRef, meterId)?.lastSequence ?? 0)?.at ?? 0;
    return { meter_id, balance, available, updated_at: isoTime(at) };
  }
}

function entryView({ meter_ref, previous, hold_id, ...row }: MeterEntryRow): LedgerEntry {
  return {
    ...row,
    kind: KINDS[row.kind - FIRST_KIND] ?? "reset",
    at: isoTime(row.at),
    request_id: row.request_id.length === 0 ? null : bytesToUuid(row.request_id),
    ...(hold_id === null ? {} : { hold_id }),
  };
}
