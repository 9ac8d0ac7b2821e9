import type { MonitorStatus } from "../../../../client/generated/api.ts";

/** The state of the target; a paused monitor has none. */
export function stateOf(monitor: MonitorStatus): string {
  const { active, status, degraded } = monitor;
  if (!active) return "paused";
  if ("overdue" in monitor && monitor.overdue === true) return "overdue";
  return degraded ? "degraded" : status;
}
