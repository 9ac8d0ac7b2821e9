import { invalidField } from "../../../kernel/errors.ts";
import { decodeNumberCursor, encodeCursor } from "../../../kernel/http/requests/pagination.ts";
import { DAY_MS, dayOf, secondsOf } from "../../../kernel/time/units.ts";
import type { Alerting } from "../alerting.ts";
import { CHECK_RETENTION_MS, percentUp, uptimePercent } from "../domain.ts";
import { LOCAL } from "../options.ts";
import {
  LIST_LIMIT,
  type MonitorCheck,
  type MonitorHistory,
  type MonitorHistoryQuery,
  type MonitorRange,
} from "../schema.ts";
import {
  type CheckStore,
  icmpOf,
  type MonitorRow,
  type StoredCheck,
  SUPPRESSION_REASONS,
  UNKNOWN_MARK,
} from "../store.ts";
import { isLocalOnly } from "../votes/votes.ts";
import type { Days } from "./days.ts";
import { RANGES, seriesByProbe, seriesOf } from "./series.ts";
import { hoursAfter } from "./standing.ts";

const DAY_HOURS = 24;
/** Checks that are walked for one page, where only those of one probe are wanted: some milliseconds. */
const WALKED_MAX = 1_000;

/** Most outages that are counted: a target that is down every two hours for 90 days. It takes a millisecond. */
export const OUTAGES_MAX = 1_000;

interface HistoryDeps {
  readonly checks: CheckStore;
  readonly days: Days;
  readonly alerting: Pick<Alerting, "outagesOf">;
}

/** Lists a monitor's checks, newest first, with its uptime and outages. @throws ApiError `validation_error` for a cursor of another list. */
export function historyOf(
  deps: HistoryDeps,
  monitor: MonitorRow,
  now: number,
  { limit = LIST_LIMIT, cursor, range, probe }: MonitorHistoryQuery,
): MonitorHistory {
  const { checks: store, days } = deps;
  const checks: MonitorCheck[] = [];
  let sequence = cursor === undefined ? monitor.lastCheck : sequenceOf(store, cursor, monitor.ref);
  for (let walked = 0; sequence !== 0 && checks.length < limit && walked < WALKED_MAX; walked += 1) {
    const check = store.check(sequence);
    // Older checks have expired.
    if (check === null) sequence = 0;
    else {
      const shown = checkOf(check);
      if (probe === undefined || shown.probe === probe) checks.push(shown);
      sequence = check.previous;
    }
  }
  const more = sequence !== 0 && store.check(sequence) !== null;
  const counts = hoursAfter(store, monitor, now - CHECK_RETENTION_MS, now);
  const percent = (count: number) => uptimePercent(counts, now, count * DAY_HOURS);
  const quarter = [...days.since(monitor, dayOf(now) + DAY_MS - RANGES["90d"], now).values()];
  return {
    checks,
    uptime: { "24h": percent(1), "7d": percent(7), "30d": percent(30), "90d": percentUp(quarter) },
    outages: outagesOf(deps.alerting, monitor, now),
    ...(range === undefined ? {} : { series: seriesOf(deps, monitor, now, range) }),
    ...(range === "24h" && !isLocalOnly(monitor.settings.probes)
      ? { series_by_probe: seriesByProbe(deps, monitor, now) }
      : {}),
    ...(more ? { cursor: encodeCursor([sequence]) } : {}),
  };
}

/** Number and duration of a monitor's outages in each range. */
function outagesOf(alerting: HistoryDeps["alerting"], { ref, monitorId, settings }: MonitorRow, now: number) {
  const isManual = settings.type === "manual";
  const query = { ref, monitorId, isManual, since: now - RANGES["90d"], rowsMax: OUTAGES_MAX };
  const found = alerting.outagesOf(query);
  const outages = isManual ? merged(found) : found;
  const totalOf = (range: MonitorRange) => {
    const since = now - RANGES[range];
    const within = outages.filter(({ to }) => (to ?? now) >= since);
    const durations = within.map(({ from, to }) => Math.max(0, (to ?? now) - Math.max(from, since)));
    return { count: within.length, duration_ms: durations.reduce((sum, ms) => sum + ms, 0) };
  };
  return { "24h": totalOf("24h"), "7d": totalOf("7d"), "30d": totalOf("30d"), "90d": totalOf("90d") };
}

interface Outage {
  /** Epoch milliseconds. */
  readonly from: number;
  /** Null while it continues. */
  readonly to: number | null;
}

/** Outages without those that are in others: manual incidents can overlap. */
function merged(outages: readonly Outage[]): Outage[] {
  const result: Outage[] = [];
  for (const outage of outages.toSorted((a, b) => a.from - b.from)) {
    const last = result.at(-1);
    const isApart = last === undefined || (last.to !== null && last.to < outage.from);
    if (isApart) result.push(outage);
    else result[result.length - 1] = { from: last.from, to: laterOf(last.to, outage.to) };
  }
  return result;
}

function laterOf(left: number | null, right: number | null): number | null {
  return left === null || right === null ? null : Math.max(left, right);
}

function sequenceOf(store: CheckStore, cursor: string, ref: number): number {
  const sequence = decodeNumberCursor(cursor);
  const check = store.check(sequence);
  if (check !== null && check.ref !== ref) {
    throw invalidField("cursor", "is not a cursor of this monitor's history");
  }
  return sequence;
}

function checkOf({
  at,
  up,
  latencyMs,
  responseStatus,
  error,
  manual,
  mark,
  probe,
  icmp,
}: StoredCheck): MonitorCheck {
  const packets = icmpOf(icmp);
  return {
    checked_at: secondsOf(at),
    status: mark === UNKNOWN_MARK ? "unknown" : up === 0 ? "down" : "up",
    latency_ms: latencyMs,
    response_status: responseStatus,
    error,
    manual: manual !== 0,
    probe: probe ?? LOCAL,
    observer_offline: mark === SUPPRESSION_REASONS.observer_offline,
    maintenance: mark === SUPPRESSION_REASONS.maintenance,
    ...(packets !== null && { icmp: packets }),
  };
}
