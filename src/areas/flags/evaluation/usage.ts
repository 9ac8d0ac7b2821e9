import { BatchedWrites, type PendingWrite } from "../../../kernel/background/batched-writes.ts";
import { hourOf } from "../../../kernel/data/usage.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { HOUR_MS, MINUTE_MS } from "../../../kernel/time/units.ts";
import { COUNTED_VARIANTS_MAX, NO_VALUE } from "../domain.ts";
import type { FlagStore } from "../store.ts";

/** Number of evaluated flags that triggers a write, to limit the memory. */
const PENDING_USES_MAX = 50_000;
/** Longest delay of a write, in milliseconds. A crash loses at most the evaluations of this time. */
const WRITE_AFTER_MS = MINUTE_MS;
/** Rows per unit of work: each is read, parsed and written, with up to some kilobytes of counts. */
const ROWS_PER_UNIT = 50;
const DAY_HOURS = 24;

/** Evaluations of a flag that are not written yet. */
export interface FlagUse extends PendingWrite {
  /** Hour of the last one, as epoch milliseconds. */
  at: number;
  /** True after the flag's deletion; then nothing is written. */
  isDeleted: boolean;
  /** The hour and variant that were counted last. */
  hour: number;
  variant: string;
  count: number;
  /** Counts of other hours and variants, by {@link cellOf}; null while there are none. */
  others: Map<string, number> | null;
}

/** A flag in memory that can be evaluated. */
export interface UsedFlag {
  readonly ref: number;
  use: FlagUse | null;
}

/** Evaluations with one variant in one hour. */
export interface VariantCount {
  /** Since 1970. */
  readonly hour: number;
  readonly variant: string;
  readonly count: number;
}

/** Numbers by hour of the day, by variant, as they are stored. */
type DayCounts = Record<string, Record<string, number>>;

/** Counts individual evaluations of flags, in memory only; the rows are written later by {@link BatchedWrites}. */
export class FlagUsage extends BatchedWrites<FlagUse> {
  constructor(
    private readonly store: Pick<
      FlagStore,
      "saveUse" | "removeUse" | "evaluations" | "saveEvaluations" | "removeEvaluations"
    >,
    { writer, log }: Pick<Kernel, "writer" | "log">,
  ) {
    super({
      writer,
      log,
      warning: "flag evaluations could not be written, retrying",
      waitMs: WRITE_AFTER_MS,
      marksMax: PENDING_USES_MAX,
      rowsPerUnit: ROWS_PER_UNIT,
      write: (tx, use) => this.writeUse(tx, use),
    });
  }

  /** Counts an evaluation of a flag. */
  count(flag: UsedFlag, now: number, variant: string = NO_VALUE): void {
    const use = this.useOf(flag);
    const hour = hourOf(now);
    if (use.hour !== hour || use.variant !== variant) turn(use, hour, variant);
    use.count += 1;
  }

  /** Returns the hour of a flag's last evaluation, written or not; null if there was none. */
  lastEvaluation(ref: number, written: number | null): number | null {
    return this.held(ref)?.at || written;
  }

  /** The counts of the hours from `fromHour` until before `toHour`, written or not. An hour and variant can occur twice. */
  hoursOf(ref: number, fromHour: number, toHour: number): VariantCount[] {
    const [from, to] = [Math.floor(fromHour / DAY_HOURS), Math.floor((toHour - 1) / DAY_HOURS)];
    const written = this.store
      .evaluations(ref, from, to)
      .flatMap(({ day, counts }) => countsOf(day, JSON.parse(counts)));
    const use = this.held(ref);
    const unwritten = use === undefined ? [] : cellsOf(use);
    return [...written, ...unwritten].filter(({ hour }) => hour >= fromHour && hour < toHour);
  }

  /** Removes a deleted flag. */
  forget(tx: Tx, ref: number): void {
    this.store.removeUse(tx, ref);
    this.store.removeEvaluations(tx, ref);
    const use = this.held(ref);
    if (use === undefined) return;
    use.isDeleted = true;
    tx.onRollback(() => {
      use.isDeleted = false;
    });
  }

  private useOf(flag: UsedFlag): FlagUse {
    const { use } = flag;
    if (use !== null && this.isDue(use)) return use;
    const due = this.held(flag.ref) ?? newUse(flag.ref);
    this.mark(due);
    flag.use = due;
    return due;
  }

  /** Adds the counts to the stored ones, and clears them in memory. */
  private writeUse(tx: Tx, use: FlagUse): void {
    const { ref, at, isDeleted, count, others } = use;
    if (isDeleted) return;
    this.store.saveUse(tx, ref, at);
    const days = Map.groupBy(cellsOf(use), ({ hour }) => Math.floor(hour / DAY_HOURS));
    for (const [day, cells] of days) {
      const [stored] = this.store.evaluations(ref, day, day);
      const counts: DayCounts = stored === undefined ? {} : JSON.parse(stored.counts);
      for (const cell of cells) addTo(counts, cell);
      this.store.saveEvaluations(tx, ref, day, JSON.stringify(counts));
    }
    use.count = 0;
    use.others = null;
    tx.onRollback(() => {
      use.count = count;
      use.others = others;
    });
  }
}

function newUse(ref: number): FlagUse {
  return { ref, at: 0, isDeleted: false, dueInRound: 0, hour: 0, variant: NO_VALUE, count: 0, others: null };
}

/** Continues with another hour or variant. */
function turn(use: FlagUse, hour: number, variant: string): void {
  if (use.count > 0) {
    use.others ??= new Map();
    use.others.set(cellOf(use.hour, use.variant), use.count);
  }
  const cell = cellOf(hour, variant);
  use.at = hour * HOUR_MS;
  use.hour = hour;
  use.variant = variant;
  use.count = use.others?.get(cell) ?? 0;
  use.others?.delete(cell);
}

function cellOf(hour: number, variant: string): string {
  return `${hour}/${variant}`;
}

function cellsOf({ hour, variant, count, others }: FlagUse): VariantCount[] {
  const cells = count > 0 ? [{ hour, variant, count }] : [];
  for (const [cell, count] of others ?? []) {
    const end = cell.indexOf("/");
    cells.push({ hour: Number(cell.slice(0, end)), variant: cell.slice(end + 1), count });
  }
  return cells;
}

function countsOf(day: number, counts: DayCounts): VariantCount[] {
  return Object.entries(counts).flatMap(([variant, hours]) =>
    Object.entries(hours).map(([hour, count]) => ({ hour: day * DAY_HOURS + Number(hour), variant, count })),
  );
}

/** A day counts a limited number of variants: a flag can get new names at any time. */
function addTo(counts: DayCounts, { hour, variant, count }: VariantCount): void {
  const isKnown = Object.hasOwn(counts, variant);
  if (!isKnown && Object.keys(counts).length >= COUNTED_VARIANTS_MAX) return;
  const hours = (isKnown ? counts[variant] : undefined) ?? {};
  const name = String(hour % DAY_HOURS);
  hours[name] = (hours[name] ?? 0) + count;
  counts[variant] = hours;
}
