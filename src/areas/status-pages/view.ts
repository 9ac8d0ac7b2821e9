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
import { STATE_LABELS } from "./labels.ts";
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

/** The state of several monitors: the worst one. */
export interface Summary {
  readonly state: ShownState;
  readonly sentence: string;
  /** The sentence in few words, for headings and badges. */
  readonly label: string;
}

/** Monitors under one heading. */
export interface ShownGroup extends Summary {
  /** Position on the page, from 1. */
  readonly number: number;
  readonly name: string;
  readonly monitors: readonly ShownMonitor[];
}

/** A group by itself. */
export interface GroupView {
  readonly group: ShownGroup;
  /** Start of the first day of the bars, in epoch milliseconds. */
  readonly firstDay: number;
  /** Time of the latest check of its monitors, in epoch milliseconds; null before the first check. */
  readonly checkedAt: number | null;
}

/** The states of a page and its groups. */
export interface PageSummary extends Summary {
  readonly groups: readonly (Summary & Pick<ShownGroup, "number" | "name">)[];
}

/** Everything that a page shows. */
export interface StatusView extends PageEvents, Summary {
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
  const { events, monitors } = await loadMonitors(deps, page, now);
  return {
    ...events,
    firstDay: firstDayOf(now),
    firstHour: firstHourOf(now),
    groups: groupsOf(page, monitors),
    checkedAt: lastCheckOf(monitors),
    ...summaryOf(monitors, events),
  };
}

/** Collects what a page shows of the group at a position. Null if there is none, or all its monitors are deleted. */
export async function buildGroup(
  deps: EventDeps,
  page: PageRow,
  number: number,
  now: number,
): Promise<GroupView | null> {
  const ids = page.settings.groups[number - 1]?.monitor_ids;
  if (ids === undefined) return null;
  const { monitors } = await loadMonitors(deps, page, now, new Set(ids));
  const group = groupsOf(page, monitors).find((shown) => shown.number === number);
  return group === undefined
    ? null
    : { group, firstDay: firstDayOf(now), checkedAt: lastCheckOf(group.monitors) };
}

/** Collects the states of a page and its groups, without the histories of the monitors, in slices of the event loop. */
export async function summarize(deps: EventDeps, page: PageRow, now: number): Promise<PageSummary> {
  const positions = await loadPositions(deps, page);
  const events = await loadEvents(deps, page, { now, positions, budget: new TextBudget() });
  const states = await mapInSlices(positions, ([number, monitor]) => ({
    number,
    state: stateOf(monitor, number, events),
  }));
  const groups = groupsOf(page, states).map(({ monitors: _monitors, ...group }) => group);
  return { ...summaryOf(states, events), groups };
}

/** Loads the events and monitors of a page, or only the monitors with the given ids and what concerns them. */
async function loadMonitors(deps: EventDeps, page: PageRow, now: number, only?: ReadonlySet<string>) {
  const budget = new TextBudget();
  const positions = await loadPositions(deps, page, only);
  const events = await loadEvents(deps, page, { now, positions, budget });
  const [firstDay, firstHour] = [firstDayOf(now), firstHourOf(now)];
  const monitors = await mapInSlices(positions, ([number, monitor]): ShownMonitor => {
    const shown = monitorOf(page, { number, monitor }, events);
    const fits = shown.url === null || budget.reserve(bytesOf(shown.url));
    const history = historyOf({ number, monitor, firstDay, firstHour, now });
    return { ...shown, url: fits ? shown.url : null, ...history };
  });
  return { events, monitors };
}

function lastCheckOf(monitors: readonly ShownMonitor[]): number | null {
  const times = monitors.flatMap(({ monitor }) => monitor.lastCheckedAt ?? []);
  return times.reduce<number | null>((latest, at) => Math.max(latest ?? at, at), null);
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
  const firstDay = firstDayOf(now);
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

function firstDayOf(now: number): number {
  return dayOf(now) - (DAYS_SHOWN - 1) * DAY_MS;
}

function firstHourOf(now: number): number {
  return Math.floor(now / HOUR_MS) * HOUR_MS - (HOURS_SHOWN - 1) * HOUR_MS;
}

type NumberedState = Pick<ShownMonitor, "number" | "state">;

/** Groups with at least one monitor. An incident of the whole page says nothing about a single group. */
function groupsOf<T extends NumberedState>({ settings }: PageRow, shown: readonly T[]) {
  const byNumber = new Map(shown.map((monitor) => [monitor.number, monitor]));
  let number = 0;
  return settings.groups
    .map(({ name, monitor_ids }, index) => {
      const monitors = monitor_ids.flatMap(() => {
        number += 1;
        return byNumber.get(number) ?? [];
      });
      const isUnderMaintenance = monitors.some(({ state }) => state === "maintenance");
      const summary = summaryOf(monitors, { openImpacts: new Set(), isUnderMaintenance });
      return { number: index + 1, name, monitors, ...summary };
    })
    .filter(({ monitors }) => monitors.length > 0);
}

/** Monitors with a result: neither paused nor without checks. */
function knownOf<T extends Pick<ShownMonitor, "state">>(monitors: readonly T[]): T[] {
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
  shown: readonly Pick<ShownMonitor, "state">[],
  { openImpacts, isUnderMaintenance }: Pick<PageEvents, "openImpacts" | "isUnderMaintenance">,
): Summary {
  const known = knownOf(shown);
  const rest = restOf(shown);
  const countOf = (counted: ShownState) => shown.filter(({ state }) => state === counted).length;
  const down = countOf("down");
  if (down > 0) {
    const label = down === known.length ? "Outage" : "Partial outage";
    return { state: "down", sentence: outageSentence(down, known.length, rest), label };
  }
  if (openImpacts.has("outage"))
    return { state: "down", sentence: "Partial outage", label: "Partial outage" };
  if (openImpacts.has("degraded") || countOf("degraded") > 0) return alike("degraded");
  const overdue = countOf("overdue");
  if (overdue > 0)
    return {
      ...alike("overdue"),
      sentence: `${overdue} of ${known.length} ${known.length === 1 ? "system is" : "systems are"} overdue`,
    };
  if (isUnderMaintenance) return alike("maintenance");
  if (known.length === 0) return { ...alike("unknown"), sentence: "No data yet" };
  if (known.length === shown.length) return { ...alike("up"), sentence: "All systems operational" };
  return {
    state: "up",
    sentence: `${known.length} of ${shown.length} systems operational${rest}`,
    label: `${known.length} of ${shown.length} operational`,
  };
}

/** The label of a state as the sentence, too. */
function alike(state: ShownState): Summary {
  return { state, sentence: STATE_LABELS[state], label: STATE_LABELS[state] };
}

/** What is not known of, as the end of a sentence; empty if there is nothing. */
function restOf(shown: readonly Pick<ShownMonitor, "state">[]): string {
  const paused = shown.filter(({ state }) => state === "paused").length;
  const unknown = shown.length - knownOf(shown).length - paused;
  return `${paused > 0 ? `, ${paused} paused` : ""}${unknown > 0 ? `, ${unknown} without data` : ""}`;
}

/** `rest`: monitors of which nothing is known, which can be operational. */
function outageSentence(down: number, known: number, rest: string): string {
  const are = down === 1 ? "is" : "are";
  if (down < known) return `Partial outage: ${down} of ${known} systems ${are} down`;
  return rest === ""
    ? "Major outage"
    : `Outage: ${down} ${down === 1 ? "system" : "systems"} ${are} down${rest}`;
}
