import { DAY_MS, HOUR_MS } from "../../../kernel/time/units.ts";
import { percentUp, uptimePercent } from "../domain.ts";
import type { CheckStore, MonitorRow } from "../store.ts";
import { hoursAfter } from "./standing.ts";

const DAY_HOURS = DAY_MS / HOUR_MS;

/** A monitor's share of time that was up, in percent: of the last 24 hours, and of each of them, the current one last. */
export function lastDayOf(
  checks: Pick<CheckStore, "hoursSince">,
  monitor: MonitorRow,
  now: number,
): { uptime: number | null; hours: (number | null)[] } {
  const counts = hoursAfter(checks, monitor, now - DAY_MS, now);
  const current = now - (now % HOUR_MS);
  return {
    uptime: uptimePercent(counts, now, DAY_HOURS),
    hours: Array.from({ length: DAY_HOURS }, (_, at) => {
      const hour = current - (DAY_HOURS - 1 - at) * HOUR_MS;
      return percentUp(counts.filter((count) => count.hour === hour));
    }),
  };
}
