import { ApiError } from "../../../kernel/errors.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { realDelay } from "../../../kernel/time/clock.ts";
import { isoTime, timestampOfQuery } from "../../../kernel/time/date-time.ts";
import type { MeterBook } from "../book.ts";
import { bucketAfter, bucketOf, HOUR_MS, type Stretch, stretchOf } from "../domain.ts";
import { type UsageReader, WHOLE_PROJECT } from "./reader.ts";
import type { MeterUsage, ProjectUsage, UsageBucket, UsageQuery } from "./schema.ts";
import type { HourRow, UsageEntry, UsageStore } from "./store.ts";
import { addEntry, addSums, noSums } from "./sums.ts";

/** Entries that a question looks through beyond the sums, in two milliseconds: with more, it waits for the reader. */
export const TAIL_MAX = 10_000;
/** Longest wait for it. Only after an update of an old data folder there is more to read than that. */
const WAIT_MS = 5_000;

/** Series of what became of meters: from the sums by hour, and from the entries that are not in them yet. */
export class UsageService {
  constructor(
    private readonly store: UsageStore,
    private readonly reader: UsageReader,
    private readonly book: MeterBook,
    private readonly kernel: Pick<Kernel, "clock">,
  ) {}

  /** What became of a meter, bucket by bucket. @throws ApiError `validation_error`, `service_unavailable`. */
  async ofMeter(projectRef: number, meter_id: string, query: UsageQuery): Promise<MeterUsage> {
    const stretch = this.stretch(query);
    await this.caughtUp();
    const ref = this.book.find(projectRef, meter_id)?.ref;
    const after = this.store.through();
    const later = ref === undefined ? [] : this.store.ofMeterAfter(after, ref);
    const hours = ref === undefined ? [] : this.hours(projectRef, ref, stretch, later);
    return { meter_id, ...stretchView(stretch), data: bucketsOf(hours, stretch) };
  }

  /** The same over all meters of a project. @throws ApiError `validation_error`, `service_unavailable`. */
  async ofProject(projectRef: number, query: UsageQuery): Promise<ProjectUsage> {
    const stretch = this.stretch(query);
    await this.caughtUp();
    const later = this.store.ofProjectAfter(this.store.through(), projectRef);
    const buckets = bucketsOf(this.hours(projectRef, WHOLE_PROJECT, stretch, later), stretch);
    return { ...stretchView(stretch), data: buckets.map(({ balance, ...bucket }) => bucket) };
  }

  private stretch(query: UsageQuery): Stretch {
    const { from, to } = query;
    const given = {
      from: from === undefined ? null : timestampOfQuery("from", from),
      to: to === undefined ? null : timestampOfQuery("to", to),
    };
    return stretchOf(query, given, this.kernel.clock.now());
  }

  private async caughtUp(): Promise<void> {
    if (this.reader.behind <= TAIL_MAX) return;
    await Promise.race([this.reader.catchUp(), realDelay(WAIT_MS)]);
    if (this.reader.behind <= TAIL_MAX) return;
    const message = "The ledger is still being added up. Try again in a moment.";
    throw new ApiError("service_unavailable", message, { retryAfterSeconds: 1 });
  }

  /** The hours of a stretch, with later entries that are not in their sums yet. */
  private hours(
    projectRef: number,
    ref: number,
    { from, to }: Stretch,
    later: readonly UsageEntry[],
  ): Iterable<HourRow> {
    const [first, end] = [from / HOUR_MS, to / HOUR_MS];
    const rows = this.store.hours(projectRef, ref, first, end);
    const hours = new Map(rows.map((row) => [row.hour, row]));
    for (const entry of later) {
      const hour = Math.floor(entry.at / HOUR_MS);
      if (hour < first || hour >= end) continue;
      const sums = hours.get(hour) ?? noSums(hour);
      // A round that is under way has written some of its rows.
      if (entry.sequence > sums.last_sequence) addEntry(sums, entry);
      hours.set(hour, sums);
    }
    return hours.values();
  }
}

function stretchView({ from, to, granularity }: Stretch) {
  return { from: isoTime(from), to: isoTime(to), granularity };
}

function bucketsOf(hours: Iterable<HourRow>, { granularity }: Stretch): UsageBucket[] {
  const buckets = new Map<number, HourRow>();
  for (const row of hours) {
    const begin = bucketOf(granularity, row.hour * HOUR_MS);
    const sums = buckets.get(begin) ?? noSums(row.hour);
    addSums(sums, row);
    buckets.set(begin, sums);
  }
  return [...buckets.entries()]
    .sort(([a], [b]) => a - b)
    .map(([begin, { deducted, refilled, reset, entries, balance }]) => ({
      from: isoTime(begin),
      to: isoTime(bucketAfter(granularity, begin)),
      deducted,
      refilled,
      reset,
      entries,
      balance,
    }));
}
