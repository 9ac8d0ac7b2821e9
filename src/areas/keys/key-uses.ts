import { Rounds, type WrittenLater } from "../../kernel/background/batched-writes.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { OUTCOMES, type Outcome } from "./domain.ts";
import type { HourRow, KeyStore, KeyUseRow } from "./store.ts";

/** Keys used since the last round after which a round begins: bounds what is held in memory for it. */
export const USES_WAITING_MAX = 50_000;
/** Longest wait for a round: what a crash can lose of the last uses. */
const WRITE_AFTER_MS = 5_000;
/** Rows written in one unit of work: under a millisecond. */
const ROWS_PER_UNIT = 100;

const HOUR_MS = 60 * 60 * 1000;
const VALID = OUTCOMES.indexOf("valid");
/** Cells of one hour: at least as many as there are outcomes. */
const CELLS = 16;

/** The last use of a key, and how often it was used, as far as it is not written yet. What is null has not been said: what is stored stays. */
export interface KeyUse extends WrittenLater, KeyUseRow {
  /** Set when the key's row is gone: nothing is written for it. */
  gone: boolean;
  /** The hour and outcome that were counted last, as one number. */
  cell: number;
  count: number;
  /** Counts of other cells; null while there are none. */
  others: Map<number, number> | null;
}

/** What a caller says of the client that showed the key. */
export type ClientMeta = Pick<KeyUseRow, "ip" | "ua">;

const NOTHING_SAID: ClientMeta = { ip: null, ua: null };

/** A key, as far as its uses are noted. */
interface UsedKey {
  readonly ref: number;
  use: KeyUse | null;
}

/** When and how often keys were used. A use costs no write: it is noted in memory, and the rows follow in {@link Rounds}. */
export class KeyUses extends Rounds<KeyUse> {
  constructor(
    private readonly store: KeyStore,
    { writer, log }: Pick<Kernel, "writer" | "log">,
  ) {
    super({
      writer,
      log,
      warning: "uses of keys could not be written yet",
      waitMs: WRITE_AFTER_MS,
      marksMax: USES_WAITING_MAX,
      rowsPerUnit: ROWS_PER_UNIT,
      write: (tx, use) => writeUse(tx, store, use),
    });
  }

  /** Notes a use of a key. */
  note(key: UsedKey, at: number, { ip, ua }: ClientMeta = NOTHING_SAID): void {
    const use = this.useOf(key);
    use.at = at;
    use.ip = ip ?? use.ip;
    use.ua = ua ?? use.ua;
    count(use, cellOf(at, VALID));
  }

  /** Notes that a key was refused: no use, but counted. */
  noteRefusal(key: UsedKey, at: number, outcome: Outcome): void {
    count(this.useOf(key), cellOf(at, OUTCOMES.indexOf(outcome)));
  }

  /** The last use of a key, written or not; null when it was never used. */
  lastOf(ref: number): KeyUseRow | null {
    const stored = this.store.use(ref);
    const use = this.held(ref);
    if (use === undefined || use.at === 0) return stored;
    return { at: use.at, ip: use.ip ?? stored?.ip ?? null, ua: use.ua ?? stored?.ua ?? null };
  }

  /** How often a key was used in each hour from one to before another, written or not: an hour may stand there twice. */
  hoursOf(ref: number, fromHour: number, toHour: number): HourRow[] {
    const use = this.held(ref);
    const waiting = use === undefined ? [] : cellsOf(use);
    return [
      ...this.store.usage(ref, fromHour, toHour),
      ...waiting.filter(({ hour }) => hour >= fromHour && hour < toHour),
    ];
  }

  /** Forgets a key whose row is going. */
  forget(ref: number): void {
    const use = this.held(ref);
    if (use !== undefined) use.gone = true;
  }

  private useOf(key: UsedKey): KeyUse {
    const { use } = key;
    if (use !== null && this.isDue(use)) return use;
    // Marked once per key and round, so that a round begins after as many keys, not uses.
    const due = this.held(key.ref) ?? freshUse(key.ref);
    this.mark(due);
    key.use = due;
    return due;
  }
}

function freshUse(ref: number): KeyUse {
  return {
    ref,
    at: 0,
    ip: null,
    ua: null,
    gone: false,
    dueInRound: 0,
    cell: 0,
    count: 0,
    others: null,
  };
}

/** The hour of a moment, since 1970. */
export function hourOf(at: number): number {
  return Math.floor(at / HOUR_MS);
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

/** Writes a use within a unit of work: counts are added to what is stored, so they go from memory with it. */
function writeUse(tx: Tx, store: KeyStore, use: KeyUse): void {
  const { ref, at, ip, ua, gone, count, others } = use;
  if (gone) return;
  if (at > 0) store.saveUse(tx, ref, at, ip, ua);
  for (const row of cellsOf(use)) store.addUsage(tx, ref, row.hour, row.outcome, row.count);
  use.count = 0;
  use.others = null;
  tx.onRollback(() => {
    use.count = count;
    use.others = others;
  });
}
