import type { DayRow } from "./day-store.ts";
import { DAY_MS, type Days, dayOf } from "./days.ts";
import { shownName } from "./domain.ts";
import type { PageFacts, PageIncident, PageMaintenance } from "./page-facts.ts";
import type { PageRow } from "./page-store.ts";
import type { MonitorParts } from "./ports.ts";
import type { MonitorRow } from "./store.ts";

/** Days that the bars show. */
export const DAYS_SHOWN = 90;
/** How long incidents and maintenance that are over stay on a page. */
export const PAST_DAYS = 15;
/** How long before it begins maintenance is announced. */
const AHEAD_DAYS = 14;
/** Incidents that are shown at most: what a page that people read has room for. */
export const INCIDENTS_MAX = 50;
/** Monitors of a page with bars, in its order: the bars of so many make a page of 2 MB. The rest has its figure alone. */
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

/** An incident on a page, with the places of its monitors there. */
export type ShownIncident = PageIncident & { readonly numbers: readonly number[] };
/** Maintenance on a page. */
export type ShownMaintenance = PageMaintenance & { readonly numbers: readonly number[] };

/** All that a page shows at a moment. */
export interface StatusView {
  readonly page: PageRow;
  readonly now: number;
  readonly state: ShownState;
  readonly sentence: string;
  /** The latest check, epoch milliseconds; null before the first. */
  readonly checkedAt: number | null;
  /** Epoch milliseconds of the first day of the bars. */
  readonly firstDay: number;
  readonly groups: readonly { readonly name: string; readonly monitors: readonly ShownMonitor[] }[];
  /** Newest first. */
  readonly incidents: readonly ShownIncident[];
  readonly maintenance: readonly ShownMaintenance[];
}

/** What views are made from. */
export interface ViewParts extends Pick<MonitorParts, "monitors" | "checks"> {
  readonly days: Days;
  readonly facts: PageFacts;
}

/** Looks at everything that a page shows. */
export function viewOf(parts: ViewParts, page: PageRow, now: number): StatusView {
  const { facts } = parts;
  const places = placesOf(parts, page);
  const numbers = Map.groupBy(places.keys(), (number) => places.get(number)?.monitorId);
  const numbersOf = (ids: readonly string[]): number[] => ids.flatMap((id) => numbers.get(id) ?? []);
  const onPage = (ids: readonly string[]): boolean => ids.length === 0 || numbersOf(ids).length > 0;
  const from = now - PAST_DAYS * DAY_MS;
  const maintenance = facts
    .maintenance(page.projectRef, from, now + AHEAD_DAYS * DAY_MS)
    .filter((one) => one.public && onPage(one.monitorIds))
    .map((one) => ({ ...one, numbers: numbersOf(one.monitorIds) }));
  const quiet = new Set(maintenance.filter((one) => isUnderWay(one, now)).flatMap(({ numbers }) => numbers));
  const firstDay = dayOf(now) - (DAYS_SHOWN - 1) * DAY_MS;
  const shown = new Map(
    [...places].map(([number, row]) => [number, monitorOf(parts, page, { number, row, firstDay }, quiet)]),
  );
  const groups = groupsOf(page, shown);
  const incidents = shownIncidents(facts, page, from)
    .filter(({ kind, monitorIds }) =>
      kind === "auto" ? numbersOf(monitorIds).length > 0 : onPage(monitorIds),
    )
    .map((one) => ({ ...one, numbers: numbersOf(one.monitorIds) }))
    .map((one) => ({ ...one, title: titleOf(one, shown) }));
  const isMaintained = maintenance.some((one) => isUnderWay(one, now));
  const open = incidents.filter(({ resolvedAt }) => resolvedAt === null);
  const times = [...shown.values()].flatMap(({ row }) => row.lastCheckedAt ?? []);
  return {
    ...{ page, now, firstDay, groups, incidents, maintenance },
    checkedAt: times.length === 0 ? null : Math.max(...times),
    ...summaryOf([...shown.values()], open, isMaintained),
  };
}

/** Whether it is on at a moment. */
export function isUnderWay({ startsAt, endsAt }: PageMaintenance, now: number): boolean {
  return startsAt <= now && now < endsAt;
}

/** The monitors of a page by their places. One that is gone leaves its place empty, until the page is changed. */
function placesOf({ monitors }: ViewParts, { settings, projectRef }: PageRow): Map<number, MonitorRow> {
  const places = new Map<number, MonitorRow>();
  for (const [index, id] of settings.groups.flatMap(({ monitor_ids }) => monitor_ids).entries()) {
    const row = monitors.find(id);
    if (row !== null && row.projectRef === projectRef) places.set(index + 1, row);
  }
  return places;
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
  { days }: ViewParts,
  { settings }: PageRow,
  { number, row, firstDay }: { number: number; row: MonitorRow; firstDay: number },
  quiet: ReadonlySet<number>,
): ShownMonitor {
  const byDay = days.since(row.ref, firstDay);
  const isNamed = row.settings.name !== null || settings.show_urls;
  return {
    number,
    // A host says more than its owner may want to say: what has no name has a number.
    name: isNamed ? shownName(row.settings) : `Monitor ${number}`,
    // What is not asked has no address, but an id.
    url: settings.show_urls && row.settings.url.startsWith("http") ? row.settings.url : null,
    state: stateOf(row, quiet.has(number)),
    uptime: uptimeOf([...byDay.values()]),
    latencyMs: settings.show_latency ? row.latencyMs : null,
    days:
      number > BARS_MAX
        ? null
        : Array.from({ length: DAYS_SHOWN }, (_, index) => byDay.get(firstDay + index * DAY_MS) ?? null),
    row,
  };
}

function stateOf(row: MonitorRow, isMaintained: boolean): ShownState {
  if (isMaintained) return "maintenance";
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

function shownIncidents(facts: PageFacts, page: PageRow, since: number): readonly PageIncident[] {
  const { publish_incidents: published } = page.settings;
  if (published === "none") return [];
  const withAutomatic = published === "all";
  return facts
    .incidents(page.projectRef, { since, withAutomatic, max: INCIDENTS_MAX })
    .filter((one) => (one.kind === "manual" ? one.public : withAutomatic));
}

/** What a check has found is told in the names of the page: an incident's own title may hold a host. */
function titleOf(
  { kind, title, numbers, resolvedAt }: ShownIncident,
  shown: ReadonlyMap<number, ShownMonitor>,
): string {
  if (kind === "manual") return title;
  // It is about one monitor, which may stand on the page more than once.
  const name = shown.get(numbers[0] ?? 0)?.name ?? "";
  return `${name} ${resolvedAt === null ? "is" : "was"} down`;
}

function summaryOf(
  shown: readonly ShownMonitor[],
  open: readonly PageIncident[],
  isMaintained: boolean,
): Pick<StatusView, "state" | "sentence"> {
  const known = shown.filter(({ state }) => state !== "unknown" && state !== "paused");
  const down = known.filter(({ state }) => state === "down").length;
  const told = (impact: PageIncident["impact"]) => open.some((one) => one.impact === impact);
  if (down > 0) return { state: "down", sentence: downSentence(down, known.length) };
  if (told("outage")) return { state: "down", sentence: "There is an outage" };
  if (told("degraded") || known.some(({ state }) => state === "degraded"))
    return { state: "degraded", sentence: "Some systems are slow" };
  if (isMaintained) return { state: "maintenance", sentence: "Maintenance is under way" };
  if (known.length === 0) return { state: "unknown", sentence: "Nothing is known yet" };
  return { state: "up", sentence: "All systems work" };
}

function downSentence(down: number, known: number): string {
  if (down === known) return known === 1 ? "The system is down" : "All systems are down";
  return `${down} of ${known} systems ${down === 1 ? "is" : "are"} down`;
}
