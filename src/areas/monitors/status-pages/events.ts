import { mapInSlices, slices } from "../../../kernel/background/time-slices.ts";
import { shownName } from "../domain.ts";
import { DAY_MS } from "../history/days.ts";
import { type Markup, paragraphs } from "../incidents/markup.ts";
import type { MonitorParts } from "../ports.ts";
import type { MonitorRow } from "../store.ts";
import type { PageFacts, PageIncident, PageMaintenance, PageUpdate } from "./facts.ts";
import type { PageRow } from "./store.ts";
import { bytesOf, TextBudget } from "./text-budget.ts";

/** How long incidents and maintenance that are over stay on a page. */
export const PAST_DAYS = 15;
/** How long before it begins maintenance is announced. */
const AHEAD_DAYS = 14;
/** Maximum number of incidents on a page: as many as people read on one. */
export const INCIDENTS_MAX = 50;
/** Newest updates of an incident that a page and its feed show: the incident's own page shows the others. */
export const UPDATES_SHOWN = 3;
/** Monitors that an incident names: the others are counted. */
const NAMES_MAX = 10;

/** An update on a page. */
export type ShownUpdate = PageUpdate & { readonly markup: Markup };
/** An incident on a page, with the places of its monitors there. */
export type ShownIncident = Omit<PageIncident, "updates"> & {
  readonly numbers: readonly number[];
  /** Names of its monitors as the page shows them, as the end of a sentence; empty where there are none. */
  readonly names: string;
  /** The newest first. */
  readonly updates: readonly ShownUpdate[];
};
/** Maintenance on a page. */
export type ShownMaintenance = PageMaintenance & {
  readonly numbers: readonly number[];
  readonly names: string;
  readonly markup: Markup;
};

/** What people are told on a page, besides how its monitors are. */
export interface PageEvents {
  readonly page: PageRow;
  readonly now: number;
  /** Newest first. */
  readonly incidents: readonly ShownIncident[];
  readonly maintenance: readonly ShownMaintenance[];
  /** Impacts of all open incidents, also of those that have no space on the page. */
  readonly openImpacts: ReadonlySet<PageIncident["impact"]>;
  /** Positions of monitors that are in maintenance. */
  readonly maintainedPositions: ReadonlySet<number>;
  readonly isUnderMaintenance: boolean;
}

/** What news is read from. */
export interface EventParts extends Pick<MonitorParts, "monitors"> {
  readonly facts: PageFacts;
}

/** The monitors of a page by their places, from 1. One that is gone leaves its place empty, until the page is changed. */
export type Positions = ReadonlyMap<number, MonitorRow>;

/** Looks up the monitors of a page, or those of the given ids alone. */
export async function loadPositions(
  { monitors }: EventParts,
  { settings, projectRef }: PageRow,
  only?: ReadonlySet<string>,
): Promise<Positions> {
  const positions = new Map<number, MonitorRow>();
  const known = new Map<string, MonitorRow | null>();
  const ids = settings.groups.flatMap(({ monitor_ids }) => monitor_ids);
  for (const [index, id] of ids.entries()) {
    if (only?.has(id) === false) continue;
    if (slices.isOver) await slices.next();
    const row = known.get(id) ?? monitors.find(id);
    known.set(id, row);
    if (row !== null && row.projectRef === projectRef) positions.set(index + 1, row);
  }
  return positions;
}

/** The name of a monitor on a page. A host says more than its owner may want to say: what has no name has a number. */
export function displayName({ settings }: PageRow, number: number, row: MonitorRow): string {
  return row.settings.name !== null || settings.show_urls ? shownName(row.settings) : `Monitor ${number}`;
}

/** Whether maintenance is in progress at a time. */
export function isInProgress({ startsAt, endsAt }: PageMaintenance, now: number): boolean {
  return startsAt <= now && now < endsAt;
}

/** Reads what a page tells of incidents and maintenance, as much as `budget` has space for: what is open comes first. */
export async function loadEvents(
  { facts }: EventParts,
  page: PageRow,
  {
    now,
    positions,
    budget,
  }: { readonly now: number; readonly positions: Positions; readonly budget: TextBudget },
): Promise<PageEvents> {
  const from = now - PAST_DAYS * DAY_MS;
  const about = aboutOf(page, positions);
  const windows = await facts.maintenance(page.projectRef, from, now + AHEAD_DAYS * DAY_MS);
  const planned = await mapInSlices(windows, (one) => ({ ...one, ...about(one.monitorIds) }));
  const onPage = planned.filter((one) => one.public && isAboutPage(one));
  const current = onPage.filter((one) => isInProgress(one, now));
  const { publish_incidents } = page.settings;
  const read =
    publish_incidents === "none"
      ? []
      : facts.incidents(page.projectRef, {
          since: from,
          withAutomatic: publish_incidents === "all",
          max: INCIDENTS_MAX,
          updatesMax: UPDATES_SHOWN,
        });
  const all = await mapInSlices(read, (one) => ({ ...one, ...about(one.monitorIds) }));
  const visible = all.filter((one) => isPublic(page, one));
  const incidentsOf = (ones: typeof visible) =>
    mapInSlices(ones, (one) => shownIncident(one, positions, page, budget));
  const open = await incidentsOf(visible.filter(({ resolvedAt }) => resolvedAt === null));
  const maintenance = await mapInSlices(onPage, (one) => shownMaintenance(one, budget));
  const past = await incidentsOf(visible.filter(({ resolvedAt }) => resolvedAt !== null));
  const shown = new Map([...open, ...past].flatMap((one) => (one === null ? [] : [[one.id, one]])));
  return {
    page,
    now,
    incidents: visible.flatMap(({ id }) => shown.get(id) ?? []),
    maintenance: maintenance.filter((one) => one !== null),
    openImpacts: new Set(visible.flatMap(({ impact, resolvedAt }) => (resolvedAt === null ? [impact] : []))),
    maintainedPositions: new Set(current.flatMap(({ numbers }) => numbers)),
    isUnderMaintenance: current.length > 0,
  };
}

/** One incident with all updates that fit a page; null where the page does not show it to anyone. */
export async function incidentOf(
  parts: EventParts,
  page: PageRow,
  incidentId: string,
  updatesMax: number,
): Promise<ShownIncident | null> {
  const found = parts.facts.incident(page.projectRef, incidentId, updatesMax);
  if (found === null || page.settings.publish_incidents === "none") return null;
  const positions = await loadPositions(parts, page, new Set(found.monitorIds));
  const one = { ...found, ...aboutOf(page, positions)(found.monitorIds) };
  return isPublic(page, one) ? shownIncident(one, positions, page, new TextBudget()) : null;
}

type About = Pick<ShownIncident, "monitorIds" | "numbers" | "names">;

/** Tells where on a page the monitors of something are, and what they are called there; of one with several places, the first. */
function aboutOf(page: PageRow, positions: Positions) {
  const numbersOf = Map.groupBy(positions.keys(), (number) => positions.get(number)?.monitorId);
  return (monitorIds: readonly string[]): Pick<About, "numbers" | "names"> => {
    const numbers = monitorIds.flatMap((id) => numbersOf.get(id) ?? []);
    const firsts = monitorIds.flatMap((id) => numbersOf.get(id)?.[0] ?? []).sort((one, other) => one - other);
    const names = firsts.slice(0, NAMES_MAX).flatMap((number) => {
      const row = positions.get(number);
      return row === undefined ? [] : [displayName(page, number, row)];
    });
    const more = firsts.length - names.length;
    const all = `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
    return { numbers, names: all === "" ? "" : `. ${all}` };
  };
}

function isAboutPage({ monitorIds, numbers }: About): boolean {
  return monitorIds.length === 0 || numbers.length > 0;
}

function isPublic({ settings }: PageRow, one: PageIncident & About): boolean {
  if (one.kind === "manual") return one.public && isAboutPage(one);
  return settings.publish_incidents === "all" && one.numbers.length > 0;
}

/** Null where there is no space for it. An update that does not fit leaves out the older ones. */
function shownIncident(
  one: PageIncident & About,
  positions: Positions,
  page: PageRow,
  budget: TextBudget,
): ShownIncident | null {
  const title = titleOf(one, positions, page);
  if (!budget.reserve(headBytes({ ...one, title }))) return null;
  const updates: ShownUpdate[] = [];
  for (const update of one.updates) {
    const markup = paragraphs(update.message, update.links ?? undefined);
    if (!budget.reserve(bytesOf(update.message, markup))) break;
    updates.push({ ...update, markup });
  }
  return { ...one, title, updates };
}

function shownMaintenance(one: PageMaintenance & About, budget: TextBudget): ShownMaintenance | null {
  const markup = paragraphs(one.message);
  const fits = budget.reserve(headBytes(one) + bytesOf(one.message, markup));
  return fits ? { ...one, markup } : null;
}

function headBytes({ title, names, numbers }: About & { readonly title: string }): number {
  return bytesOf(title) + bytesOf(names) + String(numbers).length;
}

/** The title that a monitor gives may contain a host: it is told in the names of the page. */
function titleOf(
  { titleGiven, title, numbers, resolvedAt }: PageIncident & About,
  positions: Positions,
  page: PageRow,
): string {
  if (titleGiven) return title;
  // It is about one monitor, which may stand on the page more than once.
  const number = numbers[0] ?? 0;
  const row = positions.get(number);
  const name = row === undefined ? "" : displayName(page, number, row);
  return `${name} ${resolvedAt === null ? "is" : "was"} down`;
}

/** How many updates of an incident are not shown, in words; null where all are. */
export function omittedText({ updates, updatesCount }: ShownIncident): string | null {
  const omitted = updatesCount - updates.length;
  if (omitted <= 0) return null;
  return `${omitted} earlier ${omitted === 1 ? "update" : "updates"}`;
}
