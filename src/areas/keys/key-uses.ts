import { BatchedWrites, type PendingWrite } from "../../kernel/background/batched-writes.ts";
import { hourOf } from "../../kernel/data/usage.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { OUTCOMES, type Outcome } from "./domain.ts";
import type { HourRow, KeyStore, KeyUseRow } from "./store.ts";

/** Number of used keys at which they are written immediately: limits the memory that they take. */
export const UNWRITTEN_USES_MAX = 50_000;
/** Longest time until a use is written: what a crash can lose. */
const WRITE_AFTER_MS = 5_000;
/** Rows written in one unit of work: under a millisecond. */
const ROWS_PER_UNIT = 100;

const VALID = OUTCOMES.indexOf("valid");
/** Counters per hour: at least as many as there are outcomes. */
const CELLS = 16;

/** The last use of a key and its counts that are not written yet. An `ip` or `ua` of null keeps the stored one. */
export interface KeyUse extends PendingWrite, KeyUseRow {
  /** True once the key's row has been removed: nothing is written for it. */
  isRemoved: boolean;
  /** The hour and outcome that were counted last, as one number. */
  cell: number;
  count: number;
  /** Counts of other hours and outcomes; null while there are none. */
  others: Map<number, number> | null;
}

/** The client that sent the key, as the caller reported it. */
export type ClientMeta = Pick<KeyUseRow, "ip" | "ua">;

const DEFAULTS: ClientMeta = { ip: null, ua: null };

interface UsedKey {
  readonly ref: number;
  use: KeyUse | null;
}

/** Records when and how often keys were used. A use is recorded in memory and written in the background. */
export class KeyUses extends BatchedWrites<KeyUse> {
  constructor(
    private readonly store: KeyStore,
    { writer, log }: Pick<Kernel, "writer" | "log">,
  ) {
    super({
      writer,
      log,
      warning: "uses of keys could not be written yet",
      waitMs: WRITE_AFTER_MS,
      marksMax: UNWRITTEN_USES_MAX,
      rowsPerUnit: ROWS_PER_UNIT,
      write: (tx, use) => writeUse(tx, store, use),
    });
  }

  /** Records a valid use. */
  recordUse(key: UsedKey, at: number, { ip, ua }: ClientMeta = DEFAULTS): void {
    const use = this.useOf(key);
    use.at = at;
    use.ip = ip ?? use.ip;
    use.ua = ua ?? use.ua;
    count(use, cellOf(at, VALID));
  }

  /** Counts a rejected use: it does not change the last use. */
  recordRejection(key: UsedKey, at: number, outcome: Outcome): void {
    count(this.useOf(key), cellOf(at, OUTCOMES.indexOf(outcome)));
  }

  /** The last use of a key, written or not; null if it was never used. */
  lastUseOf(ref: number): KeyUseRow | null {
    const stored = this.store.use(ref);
    const use = this.held(ref);
    if (use === undefined || use.at === 0) return stored;
    return { at: use.at, ip: use.ip ?? stored?.ip ?? null, ua: use.ua ?? stored?.ua ?? null };
  }

  /** The counts of the hours from `fromHour` until before `toHour`, written or not. An hour and outcome can occur twice. */
  hoursOf(ref: number, fromHour: number, toHour: number): HourRow[] {
    const use = this.held(ref);
    const unwritten = use === undefined ? [] : cellsOf(use);
    return [
      ...this.store.usage(ref, fromHour, toHour),
      ...unwritten.filter(({ hour }) => hour >= fromHour && hour < toHour),
    ];
  }

  /** Discards what is not written of a key that is removed. */
  forget(ref: number): void {
    const use = this.held(ref);
    if (use !== undefined) use.isRemoved = true;
  }

  private useOf(key: UsedKey): KeyUse {
    const { use } = key;
    if (use !== null && this.isDue(use)) return use;
    // Marked once per key, so that the number of keys triggers a write, not the number of uses.
    const due = this.held(key.ref) ?? newUse(key.ref);
    this.mark(due);
    key.use = due;
    return due;
  }
}

function newUse(ref: number): KeyUse {
  return {
    ref,
    at: 0,
    ip: null,
    ua: null,
    isRemoved: false,
    dueInRound: 0,
    cell: 0,
    count: 0,
    others: null,
  };
}

function cellOf(at: number, outcome: number): number {
  return hourOf(at) * CELLS + outcome;
}

function count(use: KeyUse, cell: number): void {
  if (use.cell !== cell) {
    if (use.count > 0) {
      use.others ??= new Map();
      use.others.set(use.cell, use.count);
    }
    use.cell = cell;
    use.count = use.others?.get(cell) ?? 0;
    use.others?.delete(cell);
  }
  use.count += 1;
}

function cellsOf({ cell, count, others }: KeyUse): HourRow[] {
  const all = [...(others ?? []), ...(count > 0 ? [[cell, count] as const] : [])];
  return all.map(([cell, count]) => ({
    hour: Math.floor(cell / CELLS),
    outcome: cell % CELLS,
    count,
  }));
}

/** Writes a use. Its counts are added to the stored ones, so they are cleared in memory. */
function writeUse(tx: Tx, store: KeyStore, use: KeyUse): void {
  const { ref, at, ip, ua, isRemoved, count, others } = use;
  if (isRemoved) return;
  if (at > 0) store.saveUse(tx, ref, at, ip, ua);
  for (const row of cellsOf(use)) store.addUsage(tx, ref, row.hour, row.outcome, row.count);
  use.count = 0;
  use.others = null;
  tx.onRollback(() => {
    use.count = count;
    use.others = others;
  });
}
