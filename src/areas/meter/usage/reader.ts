import { sortedBy } from "../../../kernel/data/sorted.ts";
import { errorText } from "../../../kernel/errors.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { NOBODY, type Tx } from "../../../kernel/storage/tx.ts";
import { monotonicMs, realDelay } from "../../../kernel/time/clock.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import type { RecentEntries } from "../recent-entries.ts";
import type { UsageEntry, UsageRow, UsageStore } from "../store.ts";
import { addEntry, emptySums } from "./sums.ts";

/** Meter reference of the sums of a project. */
export const WHOLE_PROJECT = 0;

/** Entries per round. It limits the sums in memory; larger rounds write fewer rows in total. */
export const ROUND_ENTRIES_MAX = 50_000;
/** Longest delay of a round with fewer changes, in milliseconds. */
const ROUND_EVERY_MS = 10_000;
/** Entries per step, up to two milliseconds. */
const ENTRIES_PER_STEP = 1_000;
/** Pause between steps for other requests. */
const PAUSE_MS = 2;
/** Rows per unit of work, about a millisecond. */
const ROWS_PER_UNIT = 250;

/**
 * Computes hourly sums of the ledger in the background, in the order of its entries. A round stores its end position, sums the
 * entries up to it, which are in memory except after a start or a failure, writes the sorted rows in slices, and stores its
 * completion. After a crash, the round is repeated to the same end; the last entry of each row shows whether the row has been
 * written.
 */
export class UsageReader {
  private rounds: Promise<void> | null = null;
  private stopping = false;
  /** Delays the first round after a start, unless many entries are pending. */
  private lastRoundAt = monotonicMs();

  constructor(
    private readonly store: UsageStore,
    private readonly kernel: Pick<Kernel, "writer" | "log">,
    private readonly recent: RecentEntries,
  ) {}

  /** Upper limit of the entries after the last round; unused numbers are included. */
  get backlog(): number {
    return this.store.highestSequence() - this.store.through();
  }

  /** Reports changes. Starts a round if one is due. */
  changed(): void {
    const isLate = monotonicMs() - this.lastRoundAt >= ROUND_EVERY_MS;
    if (isLate || this.backlog >= ROUND_ENTRIES_MAX) void this.catchUp();
  }

  /** Runs rounds until all current entries are included, or the disk fails. */
  catchUp(): Promise<void> {
    this.rounds ??= this.read().finally(() => {
      this.rounds = null;
    });
    return this.rounds;
  }

  /** Stops reading. The next start continues. */
  async stop(): Promise<void> {
    this.stopping = true;
    await this.rounds;
  }

  private async read(): Promise<void> {
    try {
      // Later entries are left to the next run: large rounds write fewer pages.
      const last = this.store.highestSequence();
      while (!this.stopping && this.store.through() < last) await this.round();
    } catch (error) {
      this.kernel.log.warn("meter usage could not be computed, retrying", { error: errorText(error) });
    }
  }

  private async round(): Promise<void> {
    const { store } = this;
    this.lastRoundAt = monotonicMs();
    const after = store.through();
    const begun = store.begun();
    const end = begun > after ? begun : Math.min(store.highestSequence(), after + ROUND_ENTRIES_MAX);
    // Taken before the first commit, between two batches. A round that is repeated reads its entries from the ledger.
    const entries = this.recent.take(after, end);
    if (end !== begun) await this.submit((tx) => store.setBegun(tx, end));
    const rows = await this.sums(entries === null ? this.stepsOfLedger(after, end) : stepsOf(entries));
    if (this.stopping) return;
    for (let start = 0; start < rows.length; start += ROWS_PER_UNIT) {
      const slice = rows.slice(start, start + ROWS_PER_UNIT);
      await this.submit((tx) => this.write(tx, slice));
      if (this.stopping) return;
    }
    await this.submit((tx) => store.setThrough(tx, end));
  }

  private submit(work: (tx: Tx) => unknown): Promise<void> {
    return this.kernel.writer.submit((tx) => {
      tx.affects = NOBODY;
      work(tx);
    });
  }

  /** Writes rows, which are sorted by project, except those of projects without meters: they are deleted. */
  private write(tx: Tx, rows: readonly Row[]): void {
    let project = Number.NaN;
    let hasMeters = false;
    for (const row of rows) {
      if (row.project_ref !== project) {
        project = row.project_ref;
        hasMeters = this.store.hasMeters(project) > 0;
      }
      if (hasMeters) this.store.add(tx, row);
    }
  }

  private *stepsOfLedger(after: number, end: number): Generator<readonly UsageEntry[]> {
    for (let from = after; from < end; from += ENTRIES_PER_STEP)
      yield this.store.between(from, Math.min(end, from + ENTRIES_PER_STEP));
  }

  /** Returns the sums of entries, in the order of their rows. */
  private async sums(steps: Iterable<readonly UsageEntry[]>): Promise<Row[]> {
    const ofMeters = new HourSums();
    const ofProjects = new HourSums();
    for (const entries of steps) {
      for (const entry of entries) {
        const { project_ref, meter_ref, at } = entry;
        const hour = Math.floor(at / HOUR_MS);
        addEntry(ofMeters.at(meter_ref, hour, project_ref, meter_ref), entry);
        addEntry(ofProjects.at(project_ref, hour, project_ref, WHOLE_PROJECT), entry);
      }
      await realDelay(PAUSE_MS);
      if (this.stopping) break;
    }
    const byMeter = sortedBy([...ofProjects.rows, ...ofMeters.rows], ({ meter_ref }) => meter_ref);
    return sortedBy(byMeter, ({ project_ref }) => project_ref);
  }
}

function* stepsOf(entries: readonly UsageEntry[]): Generator<readonly UsageEntry[]> {
  for (let start = 0; start < entries.length; start += ENTRIES_PER_STEP)
    yield entries.slice(start, start + ENTRIES_PER_STEP);
}

type Row = { -readonly [Name in keyof UsageRow]: number };

/** Sums by meter or project, and hour. */
class HourSums {
  readonly rows: Row[] = [];
  private readonly hours = new Map<number, Map<number, Row>>();

  /** Returns the sums of the meter or project `ref`, which begin empty. */
  at(ref: number, hour: number, project_ref: number, meter_ref: number): Row {
    const byRef = this.hours.get(hour) ?? new Map<number, Row>();
    let row = byRef.get(ref);
    if (row === undefined) {
      row = { project_ref, meter_ref, ...emptySums(hour) };
      this.hours.set(hour, byRef.set(ref, row));
      this.rows.push(row);
    }
    return row;
  }
}
