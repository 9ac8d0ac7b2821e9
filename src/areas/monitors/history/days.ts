import { slices } from "../../../kernel/background/time-slices.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { DAY_MS, dayOf } from "../../../kernel/time/units.ts";
import { NO_CHECKS, sumOf } from "../domain.ts";
import type { MonitorRow } from "../store.ts";
import type { DayCount, DayRow, DayStore } from "./day-store.ts";
import { standingBy } from "./standing.ts";
import { unobserved } from "./unobserved.ts";

/** Retention of daily counts: a year, and the rest of its first month. */
export const RETENTION_DAYS = 400;
/** When the previous days are aggregated, UTC: after the last slow check of the day has ended. */
const SCHEDULE = "11 0 * * *";
/** Monitors that are aggregated in one unit of work: 30 days of each take some milliseconds. */
export const MONITORS_PER_UNIT = 50;

/** Daily counts of monitors: calculated from hours until the day is aggregated, then stored. */
export class Days {
  constructor(private readonly store: DayStore) {}

  /** Registers the nightly aggregation. A late start loses nothing: hours are stored for 30 days. */
  register(kernel: Pick<Kernel, "scheduler" | "writer" | "clock">): void {
    kernel.scheduler.recurring("monitors.days", SCHEDULE, async () => {
      let after: number | null = 0;
      while (after !== null) after = await this.aggregate(kernel, after);
    });
  }

  /** Aggregates the previous days of the next monitors and deletes expired ones. Returns the last monitor; null at the end. */
  private async aggregate(
    { scheduler, writer, clock }: Pick<Kernel, "scheduler" | "writer" | "clock">,
    after: number,
  ): Promise<number | null> {
    const refs = this.store.monitorsAfter(after, MONITORS_PER_UNIT).map(({ ref }) => ref);
    const today = dayOf(clock.now());
    const days: (DayRow & { readonly ref: number })[] = [];
    for (const ref of refs) {
      if (slices.isOver) await slices.next();
      for (const count of this.countsOf(ref, this.store.lastDay(ref), today)) {
        const range = { from: count.day, to: count.day + DAY_MS };
        days.push({ ...count, ...(await unobserved(this.store, ref, range)), ref });
      }
    }
    await writer.submit((tx) => {
      for (const day of days) this.store.save(tx, day);
      if (!scheduler.clockTrust.isTrusted) return;
      for (const ref of refs) this.store.removeBefore(tx, ref, today - RETENTION_DAYS * DAY_MS);
    });
    return refs.length < MONITORS_PER_UNIT ? null : (refs.at(-1) ?? null);
  }

  /**
   * Daily counts of a monitor from `day` on, today included, by the start of the day. The last stored day is counted
   * again from its hours, as the next aggregation does: when a test clock advances far, checks of one day can be recorded
   * on the next. Unobserved times of a day are known once it is aggregated. The time that the last check has stood for until
   * `now` is included.
   */
  since(monitor: MonitorRow, day: number, now: number): ReadonlyMap<number, DayRow> {
    const { ref } = monitor;
    const days = new Map(this.store.since(ref, day).map((row) => [row.day, row]));
    const from = [...days.keys()].at(-1) ?? day;
    for (const count of this.countsOf(ref, from, Number.MAX_SAFE_INTEGER)) {
      const stored = days.get(count.day);
      if (count.checks < (stored?.checks ?? 0)) continue;
      const { observerMs = 0, maintenanceMs = 0 } = stored ?? {};
      days.set(count.day, { ...count, observerMs, maintenanceMs });
    }
    for (const { at, ...stood } of standingBy(DAY_MS, monitor, day, now)) {
      const counted = days.get(at) ?? { day: at, observerMs: 0, maintenanceMs: 0, ...NO_CHECKS };
      days.set(at, { ...counted, ...sumOf(counted, stood) });
    }
    return days;
  }

  /** Counts by day from the hours of a time range, the current hour included. */
  private countsOf(ref: number, from: number, until: number): DayCount[] {
    const closed = this.store.ofClosedHours({ ref, from, until });
    const current = this.store.currentHour(ref);
    if (current === null || current.hour < from || current.hour >= until) return closed;
    if (current.checks === 0 && current.knownMs === 0) return closed;
    const day = dayOf(current.hour);
    const before = closed.find((count) => count.day === day) ?? NO_CHECKS;
    const sum = { day, ...sumOf(before, current) };
    return [...closed.filter((count) => count.day !== day), sum].sort((a, b) => a.day - b.day);
  }
}
