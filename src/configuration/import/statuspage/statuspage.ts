import { PAGE_LENGTHS_MAX } from "../../../areas/status-pages/schema.ts";
import type { Draft } from "../draft.ts";
import { addPages, type PageGroup, shortened, splitGroup } from "../page-groups.ts";
import { isObject, SourceObject, shown } from "../source.ts";
import { incidentOf, type KnownComponents } from "./incidents.ts";
import type { StatuspageExport } from "./read.ts";

/** Fields of components and groups that are state, or have no counterpart because nothing checks a component. */
const STATE = ["id", "page_id", "created_at", "updated_at", "position", "start_date", "showcase"];
const OPERATIONAL = new Set(["operational", "under_maintenance"]);

/** A component that is not operational, and the monitor that it has become. */
interface Impaired {
  readonly component: SourceObject;
  readonly name: string;
  readonly status: string;
}

/**
 * Imports a page of Atlassian Statuspage: components become manual monitors, groups those of a status page, and incidents keep their
 * times and updates. `now`: epoch milliseconds. @throws StartupError
 */
export function importStatuspage(draft: Draft, source: StatuspageExport, now: number): void {
  for (const [index, value] of source.groups.entries()) groupOf(draft, value, index);
  const known: KnownComponents = { byId: new Map(), byName: new Map(), inOpenIncidents: new Set() };
  const { groups, impaired } = componentsOf(draft, source, known);
  const incidents = source.incidents.map(
    (value, index) => new SourceObject(draft, `incident ${index + 1}`, value, "incident"),
  );
  const titles = new Set<string>();
  for (const incident of oldestFirst(incidents)) incidentOf(draft, incident, { known, titles, now });
  for (const { component, name, status } of impaired)
    if (!known.inOpenIncidents.has(name))
      component.noteChange("status", `is operational, not ${shown(status)}: create an incident if it is not`);
  pageOf(draft, source.page, groups);
  if (source.subscribers > 0)
    draft.noteChange(
      { noun: "page", label: "Statuspage" },
      "subscribers",
      `are not part of a file: import the ${source.subscribers} with ninefold page subscribers import SLUG FILE`,
    );
}

/** Imports the components. Returns the groups of the page, and the components that are not operational. */
function componentsOf(draft: Draft, source: StatuspageExport, known: KnownComponents) {
  const groupNames = namesById([...source.groups, ...source.components.filter(isGroup)]);
  const groups = new Map<string, string[]>();
  const impaired: Impaired[] = [];
  for (const [index, value] of inOrder(source.components.filter((item) => !isGroup(item))).entries()) {
    const component = new SourceObject(draft, `component ${index + 1}`, value, "component");
    const title = component.text("name") ?? `component ${index + 1}`;
    component.label = `component ${shown(title)}`;
    const groupId = component.text("group_id");
    const groupName = component.any("group");
    const ownGroup = typeof groupName === "string" ? groupName : "";
    const group = (groupId === null ? ownGroup : groupNames.get(groupId)) ?? "";
    const status = component.text("status") ?? "operational";
    const id = component.text("id");
    component.ignore(...STATE, "automation_email");
    if (component.flag("only_show_if_degraded")) component.note("only_show_if_degraded", "is always shown");
    component.rest();
    const values = { type: "manual", group: group === "" ? null : group };
    const name = draft.add({ section: "monitors", name: title, subject: component, values });
    if (name === null) continue;
    if (id !== null) known.byId.set(id, name);
    known.byName.set(title, name);
    groups.set(group, [...(groups.get(group) ?? []), name]);
    if (!OPERATIONAL.has(status.toLowerCase())) impaired.push({ component, name, status });
  }
  return { groups: [...groups].map(([name, monitors]) => ({ name, monitors })), impaired };
}

function namesById(groups: readonly unknown[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const value of groups) {
    const { id, name } = isObject(value) ? value : {};
    if (typeof id === "string" && typeof name === "string") names.set(id, name);
  }
  return names;
}

/** The list of components has groups, too. */
function isGroup(value: unknown): boolean {
  return isObject(value) && value["group"] === true;
}

function groupOf(draft: Draft, value: unknown, index: number): void {
  const group = new SourceObject(draft, `group ${index + 1}`, value, "group");
  group.label = `group ${shown(group.text("name") ?? "")}`;
  group.ignore(...STATE, "components");
  group.rest();
}

/** In the order of the page. */
function inOrder(components: readonly unknown[]): readonly unknown[] {
  const positionOf = (value: unknown) => {
    const position = isObject(value) ? Number(value["position"] ?? Number.NaN) : Number.NaN;
    return Number.isNaN(position) ? Number.MAX_SAFE_INTEGER : position;
  };
  return components.toSorted((a, b) => positionOf(a) - positionOf(b));
}

/** The API lists the newest first; here, the newest is created last. */
function oldestFirst(incidents: readonly SourceObject[]): readonly SourceObject[] {
  const startOf = (incident: SourceObject) => {
    const time = Date.parse(String(incident.any("started_at") ?? incident.any("created_at")));
    return Number.isNaN(time) ? 0 : time;
  };
  return incidents.toReversed().sort((a, b) => startOf(a) - startOf(b));
}

/** The status page. It is never left out: what is too long is shortened, and groups that are too large are split. */
function pageOf(draft: Draft, value: unknown, groups: readonly PageGroup[]): void {
  const page = new SourceObject(draft, "page", value ?? {});
  const name = page.text("name") ?? "Status";
  page.label = `page ${shown(name)}`;
  const slug = page.text("subdomain") ?? page.text("name") ?? "status";
  const description = page.text("page_description") ?? page.text("headline");
  const values = {
    title: shortened(page, "name", name, PAGE_LENGTHS_MAX.title),
    description:
      description && shortened(page, "page_description", description, PAGE_LENGTHS_MAX.description),
    index: value === null ? null : !page.flag("hidden_from_search"),
  };
  for (const field of ["domain", "url"] as const) {
    const address = page.text(field);
    if (address !== null)
      page.noteChange(field, `is another one: ${shown(address)} leads to the new page if you redirect it`);
  }
  const zone = page.text("time_zone");
  if (zone !== null && zone !== "UTC" && zone !== "Etc/UTC")
    page.noteChange("time_zone", `is that of the project: set ${shown(zone)} there`);
  // Colors, style sheets, rights and counts of other products.
  page.ignore(...page.names.filter((field) => !PAGE_FIELDS.has(field)));
  page.rest();
  const all = groups.flatMap((group) =>
    splitGroup(page, {
      ...group,
      name: shortened(page, "group name", group.name, PAGE_LENGTHS_MAX.groupName),
    }),
  );
  addPages(draft, page, slug, { values, groups: all });
}

/** Fields of a page that are noted if they have a value and are not carried over. */
const PAGE_FIELDS: ReadonlySet<string> = new Set([
  "support_url",
  "css_body_background_color",
  "viewers_must_be_team_members",
  "ip_restrictions",
  "notifications_from_email",
  "notifications_email_footer",
]);
