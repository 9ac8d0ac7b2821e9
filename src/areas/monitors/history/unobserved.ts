import { slices } from "../../../kernel/background/time-slices.ts";
import { CronTimes } from "../../../kernel/scheduler/calendar.ts";
import type { DayStore, MonitorMaintenance, Unobserved } from "./day-store.ts";
import { type Interval, Intervals } from "./intervals.ts";

/**
 * Calculates how long no result of a monitor counted between two times (epoch milliseconds). Runs in slices of the event
 * loop: a calendar can have a window every minute. Of maintenance, the first `INTERVALS_MAX` separate intervals count.
 */
export async function unobserved(
  store: Pick<DayStore, "outages" | "maintenanceOf">,
  monitorRef: number,
  { from, to }: Interval,
): Promise<Unobserved> {
  const offline = new Intervals({ from, to });
  for (const outage of store.outages({ from, to })) offline.add(outage);
  const maintenance = new Intervals({ from, to });
  for (const planned of store.maintenanceOf(monitorRef)) {
    if (planned.schedule === null) maintenance.add(planned);
    else await addWindows(maintenance, planned);
  }
  return { observerMs: offline.totalMs, maintenanceMs: maintenance.totalMs };
}

/** Adds the windows of recurring maintenance; windows within time that is already covered are passed over. */
async function addWindows(
  intervals: Intervals,
  { schedule, tz, durationMs, createdAt }: MonitorMaintenance,
): Promise<void> {
  const { from, to } = intervals.range;
  const times = new CronTimes(schedule ?? "", tz ?? "UTC");
  const duration = durationMs ?? 0;
  let start = times.after(Math.max(createdAt, from) - duration);
  while (start !== null && start < to) {
    if (slices.isOver) await slices.next();
    const begin = Math.max(start, createdAt, from);
    intervals.add({ from: begin, to: start + duration });
    const coveredUntil = intervals.coveredUntil(begin);
    if (coveredUntil === to) return;
    start = times.after(Math.max(start, coveredUntil - duration));
  }
}
