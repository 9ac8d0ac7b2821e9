import { invalidField } from "../../../kernel/errors.ts";
import { decodeNumberCursor, encodeCursor } from "../../../kernel/http/requests/pagination.ts";
import { CHECK_RETENTION_MS } from "../checks/checks.ts";
import { secondsOf, uptimePercent } from "../domain.ts";
import { LIST_LIMIT, type MonitorCheck, type MonitorHistory } from "../schema.ts";
import type { CheckStore, MonitorRow, StoredCheck } from "../store.ts";
import { SUPPRESSION_REASONS } from "../suppression/suppression.ts";

const DAY_HOURS = 24;

/** Lists a monitor's checks, newest first, with its uptime. @throws ApiError `validation_error` for a cursor of another list. */
export function historyOf(
  store: CheckStore,
  monitor: MonitorRow,
  now: number,
  { limit = LIST_LIMIT, cursor }: { limit?: number; cursor?: string },
): MonitorHistory {
  const checks: MonitorCheck[] = [];
  let sequence = cursor === undefined ? monitor.lastCheck : sequenceOf(store, cursor, monitor.ref);
  while (sequence !== 0 && checks.length < limit) {
    const check = store.check(sequence);
    // Older checks have expired.
    if (check === null) break;
    checks.push(checkOf(check));
    sequence = check.previous;
  }
  const more = checks.length === limit && store.check(sequence) !== null;
  const counts = [...store.hoursSince(monitor.ref, now - CHECK_RETENTION_MS), monitor];
  const percent = (days: number) => uptimePercent(counts, now, days * DAY_HOURS);
  return {
    checks,
    uptime: { "24h": percent(1), "7d": percent(7), "30d": percent(30) },
    ...(more ? { cursor: encodeCursor([sequence]) } : {}),
  };
}

function sequenceOf(store: CheckStore, cursor: string, ref: number): number {
  const sequence = decodeNumberCursor(cursor);
  const check = store.check(sequence);
  if (check !== null && check.ref !== ref) {
    throw invalidField("cursor", "is not a cursor of this monitor's history");
  }
  return sequence;
}

function checkOf({ at, up, latencyMs, responseStatus, error, manual, mark }: StoredCheck): MonitorCheck {
  return {
    checked_at: secondsOf(at),
    status: up === 0 ? "down" : "up",
    latency_ms: latencyMs,
    response_status: responseStatus,
    error,
    manual: manual !== 0,
    observer_offline: mark === SUPPRESSION_REASONS.observer_offline,
    maintenance: mark === SUPPRESSION_REASONS.maintenance,
  };
}
