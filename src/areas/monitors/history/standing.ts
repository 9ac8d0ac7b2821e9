import type { Tx } from "../../../kernel/storage/tx.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import {
  CHECK_RETENTION_MS,
  type HourCount,
  hourOf,
  NO_CHECKS,
  sumOf,
  timeStood,
  timeStoodBy,
} from "../domain.ts";
import type { AreaDeps } from "../ports.ts";
import type { CheckStore, MonitorRow } from "../store.ts";
import { checksTarget } from "../types.ts";

type Deps = Pick<AreaDeps, "monitors" | "checks" | "scheduler">;

/**
 * Until when the last check of a monitor stands for its state, at the latest: until the second check after it would have ended.
 * What comes later was not observed, since the server was down. The silence of a heartbeat is observed: it is recorded when it is
 * too long.
 */
function standsUntil({ standsSince, settings }: Pick<MonitorRow, "standsSince" | "settings">): number {
  if (!checksTarget(settings.type)) return Number.POSITIVE_INFINITY;
  return (standsSince ?? 0) + 2 * settings.interval + settings.timeout;
}

/** The time that the last check of a monitor has stood for until now, by hours or days (`sizeMs`). Its row does not count it yet. */
export function standingBy(sizeMs: number, monitor: MonitorRow, from: number, now: number) {
  return timeStoodBy(sizeMs, monitor, from, Math.min(now, standsUntil(monitor)));
}

/** Counts of the hours that began after an instant, with the time that the last check has stood for until now. */
export function hoursAfter(
  checks: Pick<CheckStore, "hoursSince">,
  monitor: MonitorRow,
  since: number,
  now: number,
): HourCount[] {
  const hours = new Map(checks.hoursSince(monitor.ref, since).map((count) => [count.hour, count]));
  hours.set(monitor.hour, monitor);
  for (const { at: hour, ...stood } of standingBy(HOUR_MS, monitor, hourOf(since), now))
    hours.set(hour, { hour, ...sumOf(hours.get(hour) ?? NO_CHECKS, stood) });
  return [...hours.values()].filter(({ hour }) => hour > since);
}

/**
 * A monitor with the time counted that its last check has stood for until an instant, each part in its hour. Stores the hours
 * that ended before; those beyond the retention of checks are not counted.
 */
export function settled({ checks, scheduler }: Deps, tx: Tx, monitor: MonitorRow, at: number): MonitorRow {
  const { ref } = monitor;
  const until = Math.min(at, standsUntil(monitor));
  // A slow check can end after one of the next hour. It counts there: a completed hour does not change.
  const hour = Math.max(hourOf(at), monitor.hour);
  if (hour === monitor.hour) return { ...monitor, ...sumOf(monitor, timeStood(monitor, 0, until)) };
  const hours = new Map([[monitor.hour, { hour: monitor.hour, ...sumOf(monitor, NO_CHECKS) }]]);
  const from = Math.max(monitor.hour, hour - CHECK_RETENTION_MS);
  for (const { at: stoodAt, ...stood } of timeStoodBy(HOUR_MS, monitor, from, until))
    hours.set(stoodAt, { hour: stoodAt, ...sumOf(hours.get(stoodAt) ?? NO_CHECKS, stood) });
  const current = hours.get(hour) ?? { hour, ...NO_CHECKS };
  hours.delete(hour);
  for (const count of hours.values())
    if (count.checks > 0 || count.knownMs > 0) checks.insertHour(tx, { ref, ...count });
  if (scheduler.clockTrust.isTrusted) checks.removeHoursBefore(tx, ref, hour - CHECK_RETENTION_MS);
  return { ...monitor, ...current };
}

/**
 * Counts the time that a monitor's last check has stood for until now. From now on the check stands for nothing if the target
 * is not observed: paused, or in maintenance. Otherwise it still does, and so does the status of a heartbeat that is observed again,
 * since there is no check until its next ping.
 */
export function settle(deps: Deps, tx: Tx, ref: number, isObserved: boolean): void {
  const monitor = deps.monitors.monitor(ref);
  if (monitor === null) return;
  const { standsSince, standsUp, status, settings } = monitor;
  const stands = standsSince !== null && tx.now < standsUntil(monitor);
  const isKnown = stands || (status !== "unknown" && !checksTarget(settings.type));
  deps.monitors.updateState(tx, {
    ...settled(deps, tx, monitor, tx.now),
    standsSince: isObserved && isKnown ? tx.now : null,
    standsUp: stands ? standsUp : status === "up",
  });
}
