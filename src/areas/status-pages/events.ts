import { mapInSlices, slices } from "../../kernel/background/time-slices.ts";
import { type Markup, paragraphs } from "../../kernel/data/markup.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import type { EventReader, PageIncident, PageMaintenance, PageUpdate } from "./event-reader.ts";
import type { MonitorWithHistory, PageDeps, PageMonitor } from "./ports.ts";
import type { PageRow } from "./store.ts";
import { bytesOf, TextBudget } from "./text-budget.ts";

/** Days for which a page shows resolved incidents and past maintenance. */
export const PAST_DAYS = 15;
/** Days before its start from which a page announces maintenance. */
const AHEAD_DAYS = 14;
/** Days for which a page shows outages: those of its bars. */
export const OUTAGE_DAYS = 90;
/** Maximum number of outages on a page, the newest. */
export const OUTAGES_MAX = 100;
/** Automatic incidents of a project that are searched for outages of the page's monitors: more are not stored for a page. */
const OUTAGES_SEARCHED_MAX = 500;
/** Maximum number of incidents on a page. */
export const INCIDENTS_MAX = 50;
/** Number of updates of an incident on a page and in its feed, newest first. The incident's own page shows all of them. */
export const UPDATES_SHOWN = 3;
/** Maximum number of monitor names in an incident: further ones are counted. */
const NAMES_MAX = 10;

/** An update with its rendered message. */
export type ShownUpdate = PageUpdate & { readonly markup: Markup };
/** An incident with the positions of its monitors on the page. */
export type ShownIncident = Omit<PageIncident, "updates"> & {
  readonly numbers: readonly number[];
  /** Names of its monitors on the page, such as `Shop, API and 3 more`; empty without monitors. */
  readonly names: string;
  /** Newest first. */
  readonly updates: readonly ShownUpdate[];
};
/** A time in which a monitor of the page was down. */
export interface ShownOutage {
  /** Names it in the feed; never shown. */
  readonly id: string;
  /** Position of the monitor on the page, the first one. */
  readonly number: number;
  /** Name of the monitor on the page. */
  readonly name: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** Null while it continues. */
  readonly endedAt: number | null;
}
/** A maintenance window with the positions of its monitors on the page, and its rendered message. */
export type ShownMaintenance = PageMaintenance & {
  readonly numbers: readonly number[];
  readonly names: string;
  readonly markup: Markup;
};

/** Worst impact by position on the page. */
export type Impacts = ReadonlyMap<number, PageIncident["impact"]>;

/** Incidents and maintenance of a page. */
export interface PageEvents {
  readonly page: PageRow;
  readonly now: number;
  /** Newest first. */
  readonly incidents: readonly ShownIncident[];
  readonly maintenance: readonly ShownMaintenance[];
  /** Newest first; empty unless the page publishes them. */
  readonly outages: readonly ShownOutage[];
  /** Impacts of all open incidents, also of those that do not fit the page. */
  readonly openImpacts: ReadonlySet<PageIncident["impact"]>;
  /** Worst impact of the open incidents that name a monitor, by its position. */
  readonly impacts: Impacts;
  /** Positions of monitors that are under maintenance. */
  readonly maintainedPositions: ReadonlySet<number>;
  readonly isUnderMaintenance: boolean;
}

export interface EventDeps extends Pick<PageDeps, "monitors"> {
  readonly eventReader: EventReader;
}

/** Monitors of a page by position, from 1. The position of a deleted monitor stays empty until the page is updated. */
export type Positions = ReadonlyMap<number, MonitorWithHistory>;

/** Loads the monitors of a page, or only those with the given ids. */
export async function loadPositions(
  { monitors }: EventDeps,
  { settings, projectRef }: PageRow,
  only?: ReadonlySet<string>,
): Promise<Positions> {
  const positions = new Map<number, MonitorWithHistory>();
  const known = new Map<string, MonitorWithHistory | null>();
  const ids = settings.groups.flatMap(({ monitor_ids }) => monitor_ids);
  for (const [index, id] of ids.entries()) {
    if (only?.has(id) === false) continue;
    if (slices.isOver) await slices.next();
    const row = known.get(id) ?? monitors.findWithHistory(id);
    known.set(id, row);
    if (row !== null && row.projectRef === projectRef) positions.set(index + 1, row);
  }
  return positions;
}

/** Name of a monitor on a page. A monitor without a name is shown by its position, since its host may be confidential. */
export function displayName({ settings }: PageRow, number: number, monitor: PageMonitor): string {
  return monitor.isNamed || settings.show_urls ? monitor.name : `Monitor ${number}`;
}

export function isInProgress({ startsAt, endsAt }: PageMaintenance, now: number): boolean {
  return startsAt <= now && now < endsAt;
}

interface EventQuery {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly positions: ReadonlyMap<number, PageMonitor>;
  readonly budget: TextBudget;
}

/**
 * Loads the incidents and the maintenance of a page, as far as `budget` has space: open incidents first, then maintenance, then
 * resolved incidents.
 */
export async function loadEvents(
  { eventReader }: EventDeps,
  page: PageRow,
  { now, positions, budget }: EventQuery,
): Promise<PageEvents> {
  const from = now - PAST_DAYS * DAY_MS;
  const find = monitorFinder(page, positions);
  const windows = await eventReader.maintenance(page.projectRef, from, now + AHEAD_DAYS * DAY_MS);
  const located = await mapInSlices(windows, (window) => ({ ...window, ...find(window.monitorIds) }));
  const onPage = located.filter((window) => window.public && concernsPage(window));
  const current = onPage.filter((window) => isInProgress(window, now));
  const { publish_incidents } = page.settings;
  const read =
    publish_incidents === "none"
      ? []
      : eventReader.incidents(page.projectRef, {
          since: from,
          withAutomatic: publish_incidents === "all",
          max: INCIDENTS_MAX,
          updatesMax: UPDATES_SHOWN,
        });
  const all = await mapInSlices(read, (incident) => ({ ...incident, ...find(incident.monitorIds) }));
  const visible = all.filter((incident) => isPublic(page, incident));
  const renderAll = (incidents: typeof visible) =>
    mapInSlices(incidents, (incident) => renderIncident(incident, positions, page, budget));
  const open = await renderAll(visible.filter(({ resolvedAt }) => resolvedAt === null));
  const maintenance = await mapInSlices(onPage, (window) => renderMaintenance(window, budget));
  const past = await renderAll(visible.filter(({ resolvedAt }) => resolvedAt !== null));
  const outages = await loadOutages(eventReader, page, { now, positions, budget }, find);
  const shown = new Map(
    [...open, ...past].flatMap((incident) => (incident === null ? [] : [[incident.id, incident]])),
  );
  return {
    page,
    now,
    incidents: visible.flatMap(({ id }) => shown.get(id) ?? []),
    maintenance: maintenance.filter((window) => window !== null),
    outages,
    openImpacts: new Set(visible.flatMap(({ impact, resolvedAt }) => (resolvedAt === null ? [impact] : []))),
    impacts: impactsOf(visible),
    maintainedPositions: new Set(current.flatMap(({ numbers }) => numbers)),
    isUnderMaintenance: current.length > 0,
  };
}

/** Whether a page shows the outages of its monitors. */
function publishesOutages({ settings: { publish_incidents } }: PageRow): boolean {
  return publish_incidents === "outages" || publish_incidents === "all";
}

async function loadOutages(
  eventReader: EventReader,
  page: PageRow,
  { now, positions, budget }: EventQuery,
  find: ReturnType<typeof monitorFinder>,
): Promise<ShownOutage[]> {
  if (!publishesOutages(page)) return [];
  const since = now - OUTAGE_DAYS * DAY_MS;
  const found = eventReader.outages(page.projectRef, since, OUTAGES_SEARCHED_MAX);
  const located = await mapInSlices(found, ({ monitorIds, ...outage }) => ({
    ...outage,
    number: find(monitorIds).numbers[0],
  }));
  const outages: ShownOutage[] = [];
  for (const { number, ...outage } of located) {
    const monitor = number === undefined ? undefined : positions.get(number);
    if (number === undefined || monitor === undefined) continue;
    const name = displayName(page, number, monitor);
    if (outages.length === OUTAGES_MAX || !budget.reserve(bytesOf(name))) break;
    outages.push({ ...outage, number, name });
  }
  return outages;
}

/** Worst impact of open incidents by position. */
export function impactsOf(
  incidents: readonly Pick<ShownIncident, "impact" | "resolvedAt" | "numbers">[],
): Impacts {
  const impacts = new Map<number, PageIncident["impact"]>();
  for (const { impact, resolvedAt, numbers } of incidents) {
    if (resolvedAt !== null) continue;
    for (const number of numbers) if (impacts.get(number) !== "outage") impacts.set(number, impact);
  }
  return impacts;
}

/** Worst impact of the open manual incidents of a page that name the monitors at these positions. */
export function openImpacts(
  { eventReader }: EventDeps,
  page: PageRow,
  now: number,
  positions: ReadonlyMap<number, PageMonitor>,
): Impacts {
  if (page.settings.publish_incidents === "none") return new Map();
  const query = { since: now, withAutomatic: false, max: INCIDENTS_MAX, updatesMax: 0 };
  const find = monitorFinder(page, positions);
  const read = eventReader
    .incidents(page.projectRef, query)
    .map((incident) => ({ ...incident, ...find(incident.monitorIds) }));
  return impactsOf(read.filter((incident) => isPublic(page, incident)));
}

/** Loads an incident with all updates that fit a page. Returns null if the page does not show the incident. */
export async function loadIncident(
  deps: EventDeps,
  page: PageRow,
  incidentId: string,
  updatesMax: number,
): Promise<ShownIncident | null> {
  const found = deps.eventReader.incident(page.projectRef, incidentId, updatesMax);
  if (found === null || page.settings.publish_incidents === "none") return null;
  const positions = await loadPositions(deps, page, new Set(found.monitorIds));
  const located = { ...found, ...monitorFinder(page, positions)(found.monitorIds) };
  return isPublic(page, located) ? renderIncident(located, positions, page, new TextBudget()) : null;
}

/** How a page shows an incident. */
export interface IncidentPreview {
  /** Whether the page shows it; otherwise it would if the incident were public. */
  readonly shown: boolean;
  readonly incident_title: string;
  /** Names of its monitors on the page; empty for none. */
  readonly affected: string;
}

/** Returns how a page shows an incident of some monitors, or would if it were public; null for a page that never shows it. */
export function previewOf(
  page: PageRow,
  incident: PageIncident,
  monitors: readonly PageMonitor[],
): IncidentPreview | null {
  if (page.settings.publish_incidents === "none") return null;
  const rows = new Map(monitors.map((row) => [row.monitorId, row]));
  const positions = new Map<number, PageMonitor>();
  let number = 0;
  for (const { monitor_ids } of page.settings.groups) {
    for (const id of monitor_ids) {
      number += 1;
      const row = rows.get(id);
      if (row !== undefined) positions.set(number, row);
    }
  }
  const located = { ...incident, ...monitorFinder(page, positions)(incident.monitorIds) };
  if (!isPublic(page, { ...located, public: true })) return null;
  return {
    shown: isPublic(page, located),
    incident_title: titleOf(located, positions, page),
    affected: located.names,
  };
}

type MonitorsOnPage = Pick<ShownIncident, "monitorIds" | "numbers" | "names">;

/**
 * Returns a function that finds the positions and names of monitors on a page. A monitor with several positions is named by the
 * first one.
 */
function monitorFinder(page: PageRow, positions: ReadonlyMap<number, PageMonitor>) {
  const numbersOf = Map.groupBy(positions.keys(), (number) => positions.get(number)?.monitorId);
  return (monitorIds: readonly string[]): Pick<MonitorsOnPage, "numbers" | "names"> => {
    const numbers = monitorIds.flatMap((id) => numbersOf.get(id) ?? []);
    const firsts = monitorIds.flatMap((id) => numbersOf.get(id)?.[0] ?? []).sort((a, b) => a - b);
    const names = firsts.slice(0, NAMES_MAX).flatMap((number) => {
      const row = positions.get(number);
      return row === undefined ? [] : [displayName(page, number, row)];
    });
    const more = firsts.length - names.length;
    return { numbers, names: `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}` };
  };
}

function concernsPage({ monitorIds, numbers }: MonitorsOnPage): boolean {
  return monitorIds.length === 0 || numbers.length > 0;
}

function isPublic({ settings }: PageRow, incident: PageIncident & MonitorsOnPage): boolean {
  if (incident.kind === "manual") return incident.public && concernsPage(incident);
  return settings.publish_incidents === "all" && incident.numbers.length > 0;
}

/** Renders an incident. Returns null if it does not fit. After the first update that does not fit, older ones are omitted. */
function renderIncident(
  incident: PageIncident & MonitorsOnPage,
  positions: ReadonlyMap<number, PageMonitor>,
  page: PageRow,
  budget: TextBudget,
): ShownIncident | null {
  const title = titleOf(incident, positions, page);
  if (!budget.reserve(headBytes({ ...incident, title }))) return null;
  const updates: ShownUpdate[] = [];
  for (const update of incident.updates) {
    const markup = paragraphs(update.message, update.links ?? undefined);
    if (!budget.reserve(bytesOf(update.message, markup))) break;
    updates.push({ ...update, markup });
  }
  return { ...incident, title, updates };
}

function renderMaintenance(
  window: PageMaintenance & MonitorsOnPage,
  budget: TextBudget,
): ShownMaintenance | null {
  const markup = paragraphs(window.message);
  const fits = budget.reserve(headBytes(window) + bytesOf(window.message, markup));
  return fits ? { ...window, markup } : null;
}

function headBytes({ title, names, numbers }: MonitorsOnPage & { readonly title: string }): number {
  return bytesOf(title) + bytesOf(names) + String(numbers).length;
}

/** Title of an incident. An automatic title can contain a host, so it is composed again with the monitor's name on the page. */
function titleOf(
  { titleGiven, title, numbers, resolvedAt }: PageIncident & MonitorsOnPage,
  positions: ReadonlyMap<number, PageMonitor>,
  page: PageRow,
): string {
  if (titleGiven) return title;
  // An automatic incident has one monitor, which can have several positions.
  const number = numbers[0] ?? 0;
  const row = positions.get(number);
  const name = row === undefined ? "" : displayName(page, number, row);
  return `${name} ${resolvedAt === null ? "is" : "was"} down`;
}

/** Names of monitors as the end of a sentence; empty for none. */
export function endingWith(names: string): string {
  return names === "" ? "" : `. ${names}`;
}

/** Number of omitted updates as text, such as `3 earlier updates`; null if all are shown. */
export function omittedText({ updates, updatesCount }: ShownIncident): string | null {
  const omitted = updatesCount - updates.length;
  if (omitted <= 0) return null;
  return `${omitted} earlier ${omitted === 1 ? "update" : "updates"}`;
}
