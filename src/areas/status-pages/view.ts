import { mapInSlices } from "../../kernel/background/time-slices.ts";
import type { ShownState } from "../../kernel/data/incident-words.ts";
import { DAY_MS, dayOf, HOUR_MS } from "../../kernel/time/units.ts";
import { uptimeOf } from "./domain.ts";
import {
  displayName,
  type EventDeps,
  type Impacts,
  isInProgress,
  loadEvents,
  loadPositions,
  openImpacts,
  type PageEvents,
} from "./events.ts";
import type { MonitorWithHistory, PageDay, PageMonitor } from "./ports.ts";
import type { PageRow } from "./store.ts";
import { bytesOf, TextBudget } from "./text-budget.ts";

/** Number of days for which a page shows uptime. */
export const DAYS_SHOWN = 90;
/** Number of hours of the bars of the last day. The current hour is the last one. */
export const HOURS_SHOWN = 24;
/** Maximum number of monitors with bars, which make a page of 1.6 MB. Further monitors show their uptime as a number only. */
export const BARS_MAX = 250;

/** A monitor as a page shows it. */
export interface ShownMonitor {
  /** Position on the page, from 1. */
  readonly number: number;
  readonly name: string;
  readonly url: string | null;
  readonly state: ShownState;
  /** Percentage of successful checks in 90 days, rounded down to two decimals; null without checks. */
  readonly uptime: number | null;
  /** Latency of the latest check in milliseconds; null if the page does not show latencies. */
  readonly latencyMs: number | null;
  /** Days from the first one to today, null for a day without checks; null if the monitor has no bars. */
  readonly days: readonly (PageDay | null)[] | null;
  /** Percentage of successful checks in each of the last 24 hours, null without checks; null if the monitor has no bars. */
  readonly hours: readonly (number | null)[] | null;
  readonly monitor: MonitorWithHistory;
}

/** Monitors under one heading, with the worst of their states. */
export interface ShownGroup {
  readonly name: string;
  readonly state: ShownState;
  /** Whether all monitors with a result are down. */
  readonly isAllDown: boolean;
  readonly monitors: readonly ShownMonitor[];
}

/** Everything that a page shows. */
export interface StatusView extends PageEvents {
  readonly state: ShownState;
  readonly sentence: string;
  /** Time of the latest check of any monitor, in epoch milliseconds; null before the first check. */
  readonly checkedAt: number | null;
  /** Start of the first day of the bars, in epoch milliseconds. */
  readonly firstDay: number;
  /** Start of the first of the 24 hours, in epoch milliseconds. */
  readonly firstHour: number;
  readonly groups: readonly ShownGroup[];
}

/** Collects everything that a page shows, in slices of the event loop. */
export async function buildView(deps: EventDeps, page: PageRow, now: number): Promise<StatusView> {
  const budget = new TextBudget();
  const positions = await loadPositions(deps, page);
  const events = await loadEvents(deps, page, { now, positions, budget });
  const firstDay = dayOf(now) - (DAYS_SHOWN - 1) * DAY_MS;
  const firstHour = firstHourOf(now);
  const monitors = await mapInSlices(positions, ([number, monitor]) => {
    const shown = monitorOf(page, { number, monitor }, events);
    const fits = shown.url === null || budget.reserve(bytesOf(shown.url));
    const history = historyOf({ number, monitor, firstDay, firstHour, now });
    return { ...shown, url: fits ? shown.url : null, ...history };
  });
  const times = monitors.flatMap(({ monitor }) => monitor.lastCheckedAt ?? []);
  return {
    ...events,
    firstDay,
    firstHour,
    groups: groupsOf(page, new Map(monitors.map((shown) => [shown.number, shown]))),
    checkedAt: times.reduce<number | null>((latest, at) => Math.max(latest ?? at, at), null),
    ...summaryOf(monitors, events),
  };
}

/** Returns the monitor at a position of a page, as badges show it: without bars. Null if there is none. */
export async function monitorAt(
  deps: EventDeps,
  page: PageRow,
  number: number,
  now: number,
): Promise<ShownMonitor | null> {
  const id = page.settings.groups.flatMap(({ monitor_ids }) => monitor_ids)[number - 1];
  const monitor = id === undefined ? null : deps.monitors.findWithHistory(id);
  if (monitor === null || monitor.projectRef !== page.projectRef) return null;
  const windows = await deps.eventReader.maintenance(page.projectRef, now, now + 1);
  const isUnderMaintenance = windows.some(
    (window) => isInProgress(window, now) && window.monitorIds.includes(monitor.monitorId),
  );
  const firstDay = dayOf(now) - (DAYS_SHOWN - 1) * DAY_MS;
  const events = {
    maintainedPositions: new Set(isUnderMaintenance ? [number] : []),
    impacts: openImpacts(deps, page, now, new Map([[number, monitor]])),
  };
  return {
    ...monitorOf(page, { number, monitor }, events),
    uptime: uptimeOf([...monitor.days(firstDay, now).values()]),
    days: null,
    hours: null,
  };
}

function firstHourOf(now: number): number {
  return Math.floor(now / HOUR_MS) * HOUR_MS - (HOURS_SHOWN - 1) * HOUR_MS;
}

function groupsOf({ settings }: PageRow, shown: ReadonlyMap<number, ShownMonitor>): StatusView["groups"] {
  let number = 0;
  return settings.groups
    .map(({ name, monitor_ids }) => {
      const monitors = monitor_ids.flatMap(() => {
        number += 1;
        return shown.get(number) ?? [];
      });
      const known = knownOf(monitors);
      const isAllDown = known.length > 0 && known.every(({ state }) => state === "down");
      return { name, state: worstOf(known), isAllDown, monitors };
    })
    .filter(({ monitors }) => monitors.length > 0);
}

/** States from the worst to the best. */
const WORST_FIRST: readonly ShownState[] = ["down", "degraded", "overdue", "maintenance", "up"];

function worstOf(monitors: readonly ShownMonitor[]): ShownState {
  return WORST_FIRST.find((state) => monitors.some((monitor) => monitor.state === state)) ?? "unknown";
}

/** Monitors with a result: neither paused nor without checks. */
function knownOf(monitors: readonly ShownMonitor[]): ShownMonitor[] {
  return monitors.filter(({ state }) => state !== "unknown" && state !== "paused");
}

function monitorOf(
  page: PageRow,
  { number, monitor }: { readonly number: number; readonly monitor: MonitorWithHistory },
  events: Pick<PageEvents, "maintainedPositions" | "impacts">,
): Omit<ShownMonitor, "uptime" | "days" | "hours"> {
  const { settings } = page;
  return {
    number,
    name: displayName(page, number, monitor),
    // A heartbeat has no URL: its setting contains an id.
    url: settings.show_urls && monitor.url.startsWith("http") ? monitor.url : null,
    state: stateOf(monitor, number, events),
    // The latency of a heartbeat is the duration of a run of its job.
    latencyMs: settings.show_latency && monitor.hasTarget ? monitor.latencyMs : null,
    monitor,
  };
}

function historyOf({
  number,
  monitor,
  firstDay,
  firstHour,
  now,
}: HistoryQuery): Pick<ShownMonitor, "uptime" | "days" | "hours"> {
  const byDay = monitor.days(firstDay, now);
  const uptime = uptimeOf([...byDay.values()]);
  if (number > BARS_MAX) return { uptime, days: null, hours: null };
  const counts = monitor.hours(firstHour - 1, now);
  const byHour = new Map(counts.map((count) => [count.hour, uptimeOf([count])]));
  return {
    uptime,
    days: Array.from({ length: DAYS_SHOWN }, (_, index) => byDay.get(firstDay + index * DAY_MS) ?? null),
    hours: Array.from({ length: HOURS_SHOWN }, (_, index) => byHour.get(firstHour + index * HOUR_MS) ?? null),
  };
}

interface HistoryQuery {
  readonly number: number;
  readonly monitor: MonitorWithHistory;
  readonly firstDay: number;
  readonly firstHour: number;
  readonly now: number;
}

/** A monitor is as bad as its checks say, or as an open incident that names it. */
export function stateOf(
  monitor: Pick<PageMonitor, "isActive" | "status" | "degraded" | "overdue">,
  number: number,
  {
    maintainedPositions,
    impacts,
  }: { readonly maintainedPositions: ReadonlySet<number>; readonly impacts: Impacts },
): ShownState {
  if (maintainedPositions.has(number)) return "maintenance";
  const impact = impacts.get(number);
  if (impact === "outage") return "down";
  const { isActive, status, degraded, overdue } = monitor;
  if (isActive && status === "down") return "down";
  if (impact === "degraded") return "degraded";
  if (!isActive) return "paused";
  if (overdue) return "overdue";
  return status === "up" && degraded ? "degraded" : status;
}

/** Percentage of the time in the last hours that was up, rounded down; null without checks. */
export function uptimeOfHours(monitor: MonitorWithHistory, now: number, hours: number): number | null {
  return uptimeOf(monitor.hours(now - hours * HOUR_MS, now));
}

function summaryOf(
  shown: readonly ShownMonitor[],
  { openImpacts, isUnderMaintenance }: PageEvents,
): Pick<StatusView, "state" | "sentence"> {
  const known = knownOf(shown);
  const down = known.filter(({ state }) => state === "down").length;
  if (down > 0) return { state: "down", sentence: outageSentence(down, known.length) };
  if (openImpacts.has("outage")) return { state: "down", sentence: "Partial outage" };
  if (openImpacts.has("degraded") || known.some(({ state }) => state === "degraded"))
    return { state: "degraded", sentence: "Degraded performance" };
  const overdue = known.filter(({ state }) => state === "overdue").length;
  if (overdue > 0)
    return {
      state: "overdue",
      sentence: `${overdue} of ${known.length} ${known.length === 1 ? "system is" : "systems are"} overdue`,
    };
  if (isUnderMaintenance) return { state: "maintenance", sentence: "Under maintenance" };
  if (known.length === 0) return { state: "unknown", sentence: "No data yet" };
  return { state: "up", sentence: "All systems operational" };
}

function outageSentence(down: number, known: number): string {
  if (down === known) return "Major outage";
  return `Partial outage: ${down} of ${known} systems ${down === 1 ? "is" : "are"} down`;
}
