import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { monotonicMs } from "../../../kernel/time/clock.ts";
import type { PageFacts } from "../status-pages/facts.ts";
import type { DayRow, DayStore } from "./day-store.ts";

/** A day, in milliseconds. */
export const DAY_MS = 24 * 60 * 60 * 1000;
/** How long daily figures are kept: a year, and what makes its first month whole. */
export const DAYS_KEPT = 400;
/** When the days that are over are folded, UTC: after the last slow check of the day has ended. */
const SCHEDULE = "11 0 * * *";
/** Monitors in one unit of work: those of a month without a single fold are some milliseconds. */
export const FOLDED_AT_ONCE = 50;
/** A unit of work takes no further monitor after so long: what monitors have been planned for can take its time. */
const FOLD_MS_MAX = 50;

/** The beginning of a moment's day, UTC. */
export function dayOf(epochMs: number): number {
  return epochMs - (epochMs % DAY_MS);
}

/** The daily figures of monitors: folded from hours when a day is over, and read from hours until they are. */
export class Days {
  constructor(
    private readonly store: DayStore,
    private readonly facts: Pick<PageFacts, "unobserved">,
  ) {}

  /** Registers the nightly fold. A start late after it folds what was missed: hours are kept for 30 days. */
  register({ scheduler, writer }: Pick<Kernel, "scheduler" | "writer">): void {
    scheduler.recurring("monitors.days", SCHEDULE, async () => {
      let after: number | null = 0;
      while (after !== null) {
        const from: number = after;
        after = await writer.submit((tx) => this.fold(tx, from, scheduler.clockTrust.isTrusted));
      }
    });
  }

  /** Folds the days that are over of the next monitors, and removes those whose retention is over, if it may. Returns the last of them, null when there are no more. */
  fold(tx: Tx, after: number, mayRemove = true): number | null {
    const refs = this.store.monitorsAfter(after, FOLDED_AT_ONCE);
    const today = dayOf(tx.now);
    const startedAt = monotonicMs();
    for (const { ref } of refs) {
      const last = this.store.lastDay(ref);
      const counts = this.store.ofHours({ ref, from: last, until: today });
      for (const count of counts)
        this.store.fold(tx, { ...count, ...this.facts.unobserved(ref, count.day, count.day + DAY_MS), ref });
      if (mayRemove) this.store.removeBefore(tx, ref, today - DAYS_KEPT * DAY_MS);
      if (monotonicMs() - startedAt > FOLD_MS_MAX) return ref;
    }
    return refs.length < FOLDED_AT_ONCE ? null : (refs.at(-1)?.ref ?? null);
  }

  /**
   * The figures of the days from one on, today's among them, by their beginning. The last day that was folded is counted
   * anew, as the next fold does: on a long way of the test clock checks of a day are recorded on the next one. What was
   * not counted of a day, and why, is known once it is over.
   */
  since(ref: number, day: number): ReadonlyMap<number, DayRow> {
    const days = new Map(this.store.since(ref, day).map((row) => [row.day, row]));
    const from = [...days.keys()].at(-1) ?? day;
    for (const count of this.store.ofHours({ ref, from, until: Number.MAX_SAFE_INTEGER })) {
      const { observerMs, maintenanceMs, checks } = days.get(count.day) ?? {
        ...count,
        ...OBSERVED,
        checks: 0,
      };
      if (count.checks >= checks) days.set(count.day, { ...count, observerMs, maintenanceMs });
    }
    return days;
  }
}

const OBSERVED = { observerMs: 0, maintenanceMs: 0 };
