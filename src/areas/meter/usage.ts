import { realDelay } from "../../kernel/clock.ts";
import { isoTime, momentOfQuery } from "../../kernel/date-time.ts";
import { ApiError, errorText } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { BALANCE_MAX } from "../../kernel/ledger.ts";
import { removeInSlices } from "../../kernel/removal.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { bucketAfter, bucketOf, HOUR_MS, type Stretch, stretchOf } from "./domain.ts";
import type { MeterUsage, ProjectUsage, UsageBucket, UsageQuery } from "./schema-usage.ts";
import type { MeterService } from "./service.ts";
import type { HourRow, UsageStore } from "./usage-store.ts";

/** Entries added up in one unit of work: about a millisecond. */
const ENTRIES_PER_UNIT = 500;
/** Entries that a question adds to the sums by itself: beyond, it waits for the reader. At most as many as 64 bits hold. */
export const TAIL_MAX = 1_000;
/** Longest wait for it. Only after an update of an old data folder there is more to read than that. */
const WAIT_MS = 5_000;

/** What stands for a meter in the sums of a whole project. */
const PROJECT = 0;

/**
 * Sums of the ledger by hour. A reader in the background takes the entries in their order and notes how far it has come;
 * whoever asks adds what came after.
 */
export class UsageService {
  private reading: Promise<void> | null = null;
  private stopping = false;

  constructor(
    private readonly store: UsageStore,
    private readonly meters: MeterService,
    private readonly kernel: Pick<Kernel, "writer" | "clock" | "log">,
  ) {}

  /** Lets the reader catch up, beside everything else. */
  wake(): void {
    if (this.reading !== null || this.stopping) return;
    this.reading = this.read().finally(() => {
      this.reading = null;
    });
  }

  /** Ends the reading: what is left is for the next start. */
  async stop(): Promise<void> {
    this.stopping = true;
    await this.reading;
  }

  /** What became of a meter, bucket by bucket. @throws ApiError `validation_error`, `service_unavailable`. */
  async ofMeter(projectRef: number, meter_id: string, query: UsageQuery): Promise<MeterUsage> {
    const stretch = this.stretch(query);
    await this.caughtUp();
    const ref = this.meters.book.find(projectRef, meter_id)?.ref;
    const rows =
      ref === undefined
        ? []
        : this.rows(projectRef, ref, stretch, () => this.store.meterTail(this.store.through(), ref));
    return { meter_id, ...stretchView(stretch), data: bucketsOf(rows, stretch) };
  }

  /** The same over all meters of a project. @throws ApiError `validation_error`, `service_unavailable`. */
  async ofProject(projectRef: number, query: UsageQuery): Promise<ProjectUsage> {
    const stretch = this.stretch(query);
    await this.caughtUp();
    const tail = () => this.store.projectTail(this.store.through(), projectRef);
    const buckets = bucketsOf(this.rows(projectRef, PROJECT, stretch, tail), stretch);
    return { ...stretchView(stretch), data: buckets.map(({ balance, ...bucket }) => bucket) };
  }

  private stretch(query: UsageQuery): Stretch {
    const { from, to } = query;
    const given = {
      from: from === undefined ? null : momentOfQuery("from", from),
      to: to === undefined ? null : momentOfQuery("to", to),
    };
    return stretchOf(query, given, this.kernel.clock.now());
  }

  private rows(projectRef: number, ref: number, { from, to }: Stretch, tail: () => HourRow[]): HourRow[] {
    const [first, end] = [from / HOUR_MS, to / HOUR_MS];
    const later = tail().filter(({ hour }) => hour >= first && hour < end);
    return [...this.store.hours(projectRef, ref, first, end), ...later];
  }

  private async caughtUp(): Promise<void> {
    const isBehind = () => this.store.isBehind(this.store.through(), TAIL_MAX) !== null;
    if (!isBehind()) return;
    this.wake();
    await Promise.race([this.reading, realDelay(WAIT_MS)]);
    if (!isBehind()) return;
    const message = "The ledger is still being added up. Try again in a moment.";
    throw new ApiError("service_unavailable", message, { retryAfterSeconds: 1 });
  }

  private async read(): Promise<void> {
    const slice = () => this.kernel.writer.submit((tx) => this.readSlice(tx));
    await removeInSlices(slice, () => this.stopping).catch((error) => {
      this.kernel.log.warn("the ledger could not be added up yet", { error: errorText(error) });
    });
  }

  /** Returns whether there may be more. */
  private readSlice(tx: Tx): boolean {
    const after = this.store.through();
    const through = this.store.endOfSlice(after, ENTRIES_PER_UNIT);
    if (through === 0) return false;
    this.store.addMeters(tx, after, through);
    this.store.addProjects(tx, after, through);
    this.store.setThrough(tx, through);
    return true;
  }
}

function stretchView({ from, to, granularity }: Stretch) {
  return { from: isoTime(from), to: isoTime(to), granularity };
}

type Sums = Omit<HourRow, "hour">;

function bucketsOf(rows: readonly HourRow[], { granularity }: Stretch): UsageBucket[] {
  const buckets = new Map<number, Sums>();
  for (const row of rows) {
    const begin = bucketOf(granularity, row.hour * HOUR_MS);
    const known = buckets.get(begin);
    buckets.set(begin, known === undefined ? row : merged(known, row));
  }
  return [...buckets.entries()]
    .sort(([a], [b]) => a - b)
    .map(([begin, { deducted, refilled, reset, entries, balance }]) => ({
      ...{ from: isoTime(begin), to: isoTime(bucketAfter(granularity, begin)) },
      ...{ deducted, refilled, reset, entries, balance },
    }));
}

function merged(one: Sums, other: Sums): Sums {
  const later = one.last_sequence > other.last_sequence ? one : other;
  return {
    deducted: bounded(one.deducted + other.deducted),
    refilled: bounded(one.refilled + other.refilled),
    reset: bounded(one.reset + other.reset),
    entries: one.entries + other.entries,
    last_sequence: later.last_sequence,
    balance: later.balance,
  };
}

/** Sums end at what JSON carries exactly. */
function bounded(sum: number): number {
  return Math.max(-BALANCE_MAX, Math.min(BALANCE_MAX, sum));
}
