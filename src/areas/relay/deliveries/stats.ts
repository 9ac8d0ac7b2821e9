import { slices } from "../../../kernel/background/time-slices.ts";
import { monotonicMs } from "../../../kernel/time/clock.ts";
import { NOTIFICATION, RELAY_RETENTION_MS } from "../domain.ts";
import { filtersOf, type OfMessages } from "./listing.ts";
import { RELAY_STATUSES, type RelayStats, type RelayStatsQuery } from "./schema.ts";
import type { InFlight } from "./status.ts";
import { kindNumber, type RelayStore, type RelaySummary, statusNumber } from "./store.ts";

/** Deliveries of each status that statistics count, newest first: about 10 ms of work. */
export const STATS_ROWS_MAX = 10_000;
/** Intervals of a histogram. */
export const STATS_POINTS = 48;
/** Longest count, including waits for other requests. */
const STATS_MS_MAX = 1_000;
/** Deliveries read in one step: less than a slice even if each has stored a body of 1 MiB, which SQLite walks over. */
const ROWS_PER_STEP = 10;

interface StatsDeps {
  readonly store: Pick<RelayStore, "summaries">;
  readonly inFlight: InFlight;
}

/**
 * Counts a project's deliveries, in slices of the event loop. With `since` it stops at the first delivery that is older:
 * deliveries that were created before the wall clock was set back may be missing.
 */
export async function deliveryStats(
  { store, inFlight }: StatsDeps,
  projectRef: number,
  query: RelayStatsQuery,
  of: OfMessages,
  now: number,
): Promise<RelayStats> {
  const { since, until } = query;
  const end = until ?? now + 1;
  const start = since ?? end - RELAY_RETENTION_MS;
  const width = Math.max(1, (end - start) / STATS_POINTS);
  const points = Array.from({ length: STATS_POINTS }, (_, at) => ({
    at: Math.round(start + at * width),
    delivered: 0,
    failed: 0,
  }));
  const counts = {
    scheduled: 0,
    delivering: 0,
    delivered: 0,
    failed: 0,
    cancelled: 0,
  };
  // Alerts are counted even if they are omitted.
  const filters = { ...filtersOf(query, of), notKind: null };
  const alert = kindNumber(NOTIFICATION);
  const deadline = monotonicMs() + STATS_MS_MAX;
  let [alerts, oldest, more] = [0, Number.POSITIVE_INFINITY, false];
  const count = (status: (typeof RELAY_STATUSES)[number], { kind, created_at, ref }: RelaySummary): void => {
    if (kind === alert) alerts += 1;
    if (kind === alert && query.filter === "deliveries") return;
    counts[status === "scheduled" && inFlight.has(ref) ? "delivering" : status] += 1;
    oldest = Math.min(oldest, created_at);
    const point = points[Math.floor((created_at - start) / width)];
    if (point !== undefined && (status === "delivered" || status === "failed")) point[status] += 1;
  };
  for (const status of RELAY_STATUSES) {
    const scanned = { ...filters, projectRef, status: statusNumber(status) };
    const isWhole = await scan(store, scanned, deadline, (row) => count(status, row));
    more ||= !isWhole;
  }
  return {
    counts,
    alerts,
    ...(more ? { more } : {}),
    oldest_at: oldest === Number.POSITIVE_INFINITY ? null : oldest,
    points,
  };
}

/** Passes the matching deliveries of a status on, newest first. Returns whether it has read all of them. */
async function scan(
  store: StatsDeps["store"],
  scanned: Omit<Parameters<RelayStore["summaries"]>[0], "before" | "limit">,
  deadline: number,
  onMatch: (row: RelaySummary) => void,
): Promise<boolean> {
  let before = Number.MAX_SAFE_INTEGER;
  for (let read = 0; read < STATS_ROWS_MAX && monotonicMs() < deadline; read += ROWS_PER_STEP) {
    if (slices.isOver) await slices.next();
    const rows = store.summaries({ ...scanned, before, limit: ROWS_PER_STEP });
    for (const row of rows) if (row.matches === 1) onMatch(row);
    const last = rows.at(-1);
    if (last === undefined || rows.length < ROWS_PER_STEP || last.created_at < (scanned.since ?? 0))
      return true;
    before = last.ref;
  }
  return store.summaries({ ...scanned, before, limit: 1 }).length === 0;
}
