import { mapInSlices } from "../../../kernel/background/time-slices.ts";
import type { DayRow } from "../history/day-store.ts";
import { DAY_MS, type Days, dayOf } from "../history/days.ts";
import type { MonitorParts } from "../ports.ts";
import type { MonitorRow } from "../store.ts";
import {
  displayName,
  type EventParts,
  isInProgress,
  loadEvents,
  loadPositions,
  type PageEvents,
} from "./events.ts";
import type { PageRow } from "./store.ts";
import { bytesOf, TextBudget } from "./text-budget.ts";

/** Days that the bars show. */
export const DAYS_SHOWN = 90;
/** Monitors of a page with bars, in its order: the bars of so many make a page of 1.6 MB. The rest has its figure alone. */
export const BARS_MAX = 250;

/** How something is, as pages say it. */
export type ShownState = "up" | "degraded" | "down" | "maintenance" | "paused" | "unknown";

/** A monitor on a page. */
export interface ShownMonitor {
  /** Its place, from 1. */
  readonly number: number;
  readonly name: string;
  readonly url: string | null;
  readonly state: ShownState;
  /** Percent of 90 days, cut to two decimals; null without checks. */
  readonly uptime: number | null;
  /** Null where latencies are not shown. */
  readonly latencyMs: number | null;
  /** From the first day to today; null for a day without checks. Null: without bars. */
  readonly days: readonly (DayRow | null)[] | null;
  readonly row: MonitorRow;
}

/** All that a page shows at a time. */
export interface StatusView extends PageEvents {
  readonly state: ShownState;
  readonly sentence: string;
  /** The latest check, epoch milliseconds; null before the first. */
  readonly checkedAt: number | null;
  /** Epoch milliseconds of the first day of the bars. */
  readonly firstDay: number;
  readonly groups: readonly { readonly name: string; readonly monitors: readonly ShownMonitor[] }[];
}

/** What views are made from. */
export interface ViewParts extends EventParts, Pick<MonitorParts, "checks"> {
  readonly days: Days;
}

/** Looks at everything that a page shows, in slices of the event loop. */
export async function buildView(parts: ViewParts, page: PageRow, now: number): Promise<StatusView> {
  const budget = new TextBudget();
  const positions = await loadPositions(parts, page);
  const events = await loadEvents(parts, page, { now, positions, budget });
  const firstDay = dayOf(now) - (DAYS_SHOWN - 1) * DAY_MS;
  const monitors = await mapInSlices(positions, ([number, row]) => {
    const shown = monitorOf(page, { number, row }, events.maintainedPositions);
    const fits = shown.url === null || budget.reserve(bytesOf(shown.url));
    return { ...shown, url: fits ? shown.url : null, ...historyOf(parts, { number, row, firstDay }) };
  });
  const times = monitors.flatMap(({ row }) => row.lastCheckedAt ?? []);
  return {
    ...events,
    firstDay,
    groups: groupsOf(page, new Map(monitors.map((shown) => [shown.number, shown]))),
    checkedAt: times.reduce<number | null>((latest, at) => Math.max(latest ?? at, at), null),
    ...summaryOf(monitors, events),
  };
}

/** The monitor in one place of a page, as badges show it; null where there is none. */
export async function monitorAt(
  parts: ViewParts,
  page: PageRow,
  number: number,
  now: number,
): Promise<ShownMonitor | null> {
  const id = page.settings.groups.flatMap(({ monitor_ids }) => monitor_ids)[number - 1];
  const row = id === undefined ? null : parts.monitors.find(id);
  if (row === null || row.projectRef !== page.projectRef) return null;
  const windows = await parts.facts.maintenance(page.projectRef, now, now + 1);
  const isUnderMaintenance = windows.some(
    (one) => isInProgress(one, now) && one.monitorIds.includes(row.monitorId),
  );
  const maintainedPositions = new Set(isUnderMaintenance ? [number] : []);
  const firstDay = dayOf(now) - (DAYS_SHOWN - 1) * DAY_MS;
  return {
    ...monitorOf(page, { number, row }, maintainedPositions),
    ...historyOf(parts, { number, row, firstDay }),
  };
}

function groupsOf({ settings }: PageRow, shown: ReadonlyMap<number, ShownMonitor>): StatusView["groups"] {
  let number = 0;
  return settings.groups
    .map(({ name, monitor_ids }) => ({
      name,
      monitors: monitor_ids.flatMap(() => {
        number += 1;
        return shown.get(number) ?? [];
      }),
    }))
    .filter(({ monitors }) => monitors.length > 0);
}

function monitorOf(
  page: PageRow,
  { number, row }: { readonly number: number; readonly row: MonitorRow },
  maintainedPositions: ReadonlySet<number>,
): Omit<ShownMonitor, "uptime" | "days"> {
  const { settings } = page;
  return {
    number,
    name: displayName(page, number, row),
    // What is not requested has no address, but an id.
    url: settings.show_urls && row.settings.url.startsWith("http") ? row.settings.url : null,
    state: stateOf(row, maintainedPositions.has(number)),
    latencyMs: settings.show_latency ? row.latencyMs : null,
    row,
  };
}

function historyOf(
  { days }: ViewParts,
  { number, row, firstDay }: { readonly number: number; readonly row: MonitorRow; readonly firstDay: number },
): Pick<ShownMonitor, "uptime" | "days"> {
  const byDay = days.since(row.ref, firstDay);
  return {
    uptime: uptimeOf([...byDay.values()]),
    days:
      number > BARS_MAX
        ? null
        : Array.from({ length: DAYS_SHOWN }, (_, index) => byDay.get(firstDay + index * DAY_MS) ?? null),
  };
}

function stateOf(row: MonitorRow, isUnderMaintenance: boolean): ShownState {
  if (isUnderMaintenance) return "maintenance";
  if (!row.settings.active) return "paused";
  return row.status === "up" && row.degraded ? "degraded" : row.status;
}

/** Percent of checks that were up, cut to two decimals: nothing but 100 is shown as 100. Null without checks. */
export function uptimeOf(rows: readonly { readonly checks: number; readonly up: number }[]): number | null {
  const [checks, up] = rows.reduce(([all, good], row) => [all + row.checks, good + row.up], [0, 0]);
  return percentOf(checks, up);
}

/** The same of one count. */
export function percentOf(checks: number, up: number): number | null {
  // Multiplied first: a quotient such as 0.69 lies a little below itself, and would lose its last digit.
  return checks === 0 ? null : Math.floor((up * 10_000) / checks) / 100;
}

/** Percent of the last hours, cut as that of days. */
export function uptimeOfHours(
  { checks }: ViewParts,
  row: MonitorRow,
  now: number,
  hours: number,
): number | null {
  const since = now - hours * (DAY_MS / 24);
  return uptimeOf([...checks.hoursSince(row.ref, since), row].filter(({ hour }) => hour > since));
}

function summaryOf(
  shown: readonly ShownMonitor[],
  { openImpacts, isUnderMaintenance }: PageEvents,
): Pick<StatusView, "state" | "sentence"> {
  const known = shown.filter(({ state }) => state !== "unknown" && state !== "paused");
  const down = known.filter(({ state }) => state === "down").length;
  if (down > 0) return { state: "down", sentence: downSentence(down, known.length) };
  if (openImpacts.has("outage")) return { state: "down", sentence: "There is an outage" };
  if (openImpacts.has("degraded") || known.some(({ state }) => state === "degraded"))
    return { state: "degraded", sentence: "Some systems are slow" };
  if (isUnderMaintenance) return { state: "maintenance", sentence: "Maintenance is under way" };
  if (known.length === 0) return { state: "unknown", sentence: "Nothing is known yet" };
  return { state: "up", sentence: "All systems work" };
}

function downSentence(down: number, known: number): string {
  if (down === known) return known === 1 ? "The system is down" : "All systems are down";
  return `${down} of ${known} systems ${down === 1 ? "is" : "are"} down`;
}
