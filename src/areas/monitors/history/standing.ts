import { timeStood, type UptimeCounts } from "../domain.ts";
import type { MonitorRow } from "../store.ts";
import { checksTarget } from "../types.ts";

type Standing = Pick<MonitorRow, "standsSince" | "standsUp" | "settings">;

/**
 * Until when the last check of a monitor stands for its state, at the latest: until the second check after it would have ended.
 * What comes later was not observed, since the server was down. The silence of a heartbeat is observed: it is recorded when it is
 * too long.
 */
export function standsUntil({ standsSince, settings }: Standing): number {
  if (!checksTarget(settings.type)) return Number.POSITIVE_INFINITY;
  return (standsSince ?? 0) + 2 * settings.interval + settings.timeout;
}

/** What the last check of a monitor has stood for from an instant until now. Its row does not count it yet. */
export function standingSince(monitor: Standing, from: number, now: number): UptimeCounts {
  return timeStood(monitor, from, Math.min(now, standsUntil(monitor)));
}
