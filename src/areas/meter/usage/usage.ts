import { ApiError } from "../../../kernel/errors.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { realDelay } from "../../../kernel/time/clock.ts";
import { isoTime, timestampOfQuery } from "../../../kernel/time/date-time.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import type { MeterBook } from "../book.ts";
import type { HourRow, UsageEntry, UsageStore } from "../store.ts";
import { bucketAfter, bucketOf, type UsageRange, usageRangeOf } from "./ranges.ts";
import { type UsageReader, WHOLE_PROJECT } from "./reader.ts";
import type { MeterUsage, ProjectUsage, UsageBucket, UsageQuery } from "./schema.ts";
import { addEntry, addSums, emptySums } from "./sums.ts";

/** Entries after the sums that a request reads, in two milliseconds. With more, it waits for the reader. */
export const TAIL_MAX = 10_000;
/** Longest wait, in milliseconds. More is only pending after an update of an old data folder. */
const WAIT_MS = 5_000;

/** Usage series of meters, from hourly sums and the entries after them. */
export class UsageService {
  constructor(
    private readonly store: UsageStore,
    private readonly reader: UsageReader,
    private readonly book: MeterBook,
    private readonly kernel: Pick<Kernel, "clock">,
  ) {}

  /** Returns the usage of a meter by bucket. @throws ApiError `validation_error`, `service_unavailable`. */
  async ofMeter(projectRef: number, meter_id: string, query: UsageQuery): Promise<MeterUsage> {
    const range = this.range(query);
    await this.waitForReader();
    const ref = this.book.find(projectRef, meter_id)?.ref;
    const after = this.store.through();
    const later = ref === undefined ? [] : this.store.ofMeterAfter(after, ref);
    const hours = ref === undefined ? [] : this.hours(projectRef, ref, range, later);
    return { meter_id, ...rangeView(range), data: bucketsOf(hours, range) };
  }

  /** Returns the usage of all meters of a project by bucket. @throws ApiError `validation_error`, `service_unavailable`. */
  async ofProject(projectRef: number, query: UsageQuery): Promise<ProjectUsage> {
    const range = this.range(query);
    await this.waitForReader();
    const later = this.store.ofProjectAfter(this.store.through(), projectRef);
    const buckets = bucketsOf(this.hours(projectRef, WHOLE_PROJECT, range, later), range);
    return { ...rangeView(range), data: buckets.map(({ balance, ...bucket }) => bucket) };
  }

  private range(query: UsageQuery): UsageRange {
    const { from, to } = query;
    const requested = {
      from: from === undefined ? null : timestampOfQuery("from", from),
      to: to === undefined ? null : timestampOfQuery("to", to),
    };
    return usageRangeOf(query, requested, this.kernel.clock.now());
  }

  private async waitForReader(): Promise<void> {
    if (this.reader.backlog <= TAIL_MAX) return;
    await Promise.race([this.reader.catchUp(), realDelay(WAIT_MS)]);
    if (this.reader.backlog <= TAIL_MAX) return;
    const message = "The usage is still being computed. Retry in a few seconds.";
    throw new ApiError("service_unavailable", message, { retryAfterSeconds: 1 });
  }

  /** Returns the hourly sums of a range, including later entries. */
  private hours(
    projectRef: number,
    ref: number,
    { from, to }: UsageRange,
    later: readonly UsageEntry[],
  ): Iterable<HourRow> {
    const [first, end] = [from / HOUR_MS, to / HOUR_MS];
    const rows = this.store.hours(projectRef, ref, first, end);
    const hours = new Map(rows.map((row) => [row.hour, row]));
    for (const entry of later) {
      const hour = Math.floor(entry.at / HOUR_MS);
      if (hour < first || hour >= end) continue;
      const sums = hours.get(hour) ?? emptySums(hour);
      // A running round may have written some rows already.
      if (entry.sequence > sums.last_sequence) addEntry(sums, entry);
      hours.set(hour, sums);
    }
    return hours.values();
  }
}

function rangeView({ from, to, granularity }: UsageRange) {
  return { from: isoTime(from), to: isoTime(to), granularity };
}

function bucketsOf(hours: Iterable<HourRow>, { granularity }: UsageRange): UsageBucket[] {
  const buckets = new Map<number, HourRow>();
  for (const row of hours) {
    const begin = bucketOf(granularity, row.hour * HOUR_MS);
    const sums = buckets.get(begin) ?? emptySums(row.hour);
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
