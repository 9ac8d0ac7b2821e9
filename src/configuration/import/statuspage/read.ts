import { StartupError } from "../../../kernel/errors.ts";
import { columnName, parseCsv, recordsOf } from "../csv.ts";
import { isObject, looksLikeJson, parseJson } from "../source.ts";

/** What Statuspage has of a page, each item as its API returns it. */
export interface StatuspageExport {
  readonly page: unknown;
  readonly components: readonly unknown[];
  readonly groups: readonly unknown[];
  /** With scheduled maintenance. */
  readonly incidents: readonly unknown[];
  readonly subscribers: number;
}

type Part = "page" | "components" | "groups" | "incidents" | "subscribers";

/** Members of responses, and of files that are put together from them. */
const MEMBERS: Readonly<Record<string, Part>> = {
  components: "components",
  component_groups: "groups",
  groups: "groups",
  incidents: "incidents",
  scheduled_maintenances: "incidents",
  subscribers: "subscribers",
};

/** Names of columns in tables, by the name in the API. */
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  id: ["incident_id", "component_id"],
  name: ["incident_name", "component_name", "incident", "component", "title"],
  group: ["component_group", "group_name"],
  started_at: ["started", "start", "start_time", "start_date", "created_at", "created"],
  resolved_at: ["resolved", "end", "end_time", "ended_at"],
  components: ["affected_components", "component_names", "components_affected"],
  body: ["message", "update_body", "update", "description"],
  update_at: ["display_at", "updated_at"],
};

/** Puts the contents of files together: responses of the API, lists of their items, or tables. @throws StartupError */
export function readStatuspage(
  files: readonly { readonly path: string; readonly text: string }[],
): StatuspageExport {
  const parts = new Map<Part, unknown[]>();
  const add = (part: Part, items: readonly unknown[]) =>
    parts.set(part, [...(parts.get(part) ?? []), ...items]);
  for (const { path, text } of files) {
    if (looksLikeJson(text)) addJson(parseJson(text, path), path, add);
    else addTable(parseCsv(text, path), path, add);
  }
  if (parts.size === 0)
    throw new StartupError("The files have no components, groups, incidents or subscribers of Statuspage.");
  const of = (part: Part) => parts.get(part) ?? [];
  return {
    page: of("page")[0] ?? null,
    components: of("components"),
    groups: of("groups"),
    incidents: of("incidents"),
    subscribers: of("subscribers").length,
  };
}

function addJson(value: unknown, path: string, add: (part: Part, items: readonly unknown[]) => void): void {
  if (Array.isArray(value)) {
    if (value.length > 0) add(partOf(value[0], path), value);
    return;
  }
  if (!isObject(value)) throw new StartupError(`${path} must be an object or a list.`);
  // A group has `components` too, as ids.
  if (typeof value["name"] === "string" && !Object.values(value).some(Array.isArray)) add("page", [value]);
  if (isObject(value["page"])) add("page", [value["page"]]);
  for (const [name, part] of Object.entries(MEMBERS)) {
    const items = value[name];
    if (Array.isArray(items)) add(part, items);
  }
}

/** What an item of a list is. @throws StartupError */
function partOf(item: unknown, path: string): Part {
  const names = isObject(item) ? new Set(Object.keys(item)) : new Set<string>();
  if (names.has("incident_updates") || names.has("impact")) return "incidents";
  if (names.has("email") || names.has("mode")) return "subscribers";
  if (names.has("components") && !names.has("status")) return "groups";
  if (names.has("name")) return "components";
  throw new StartupError(
    `${path} has a list of items that are no components, groups, incidents or subscribers.`,
  );
}

function addTable(
  rows: string[][],
  path: string,
  add: (part: Part, items: readonly unknown[]) => void,
): void {
  const names = new Set((rows[0] ?? []).map(columnName));
  if (names.has("email") || names.has("email_address")) {
    add("subscribers", rows.slice(1));
    return;
  }
  const records = recordsOf(rows).map(withApiNames);
  const [first] = records;
  if (first === undefined || !("name" in first))
    throw new StartupError(
      `${path} must be JSON, or a table with the column name, title, incident or email.`,
    );
  if ("impact" in first || "resolved_at" in first || ("body" in first && "started_at" in first))
    add("incidents", incidentsOf(records));
  else add("components", records);
}

function withApiNames(record: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const renamed = { ...record };
  for (const [name, others] of Object.entries(COLUMNS)) {
    const other = name in renamed ? undefined : others.find((candidate) => candidate in renamed);
    if (other === undefined) continue;
    renamed[name] = renamed[other] ?? "";
    delete renamed[other];
  }
  return renamed;
}

/** Rows with the same id, or the same name and start, are updates of one incident. */
function incidentsOf(records: readonly Readonly<Record<string, string>>[]): readonly unknown[] {
  const byIncident = Map.groupBy(records, ({ id, name, started_at }) => id || `${name}\n${started_at}`);
  return [...byIncident.values()].map((rows) => {
    const { body: _, update_at, update_status, components = "", ...incident } = rows[0] ?? {};
    const updates = rows
      .filter(({ body = "" }) => body !== "")
      .map((row) => ({
        body: row["body"],
        status: row["update_status"] ?? row["status"],
        display_at: row["update_at"] || row["started_at"],
      }));
    const names = components.split(/[;,|]/).map((name) => name.trim());
    return {
      ...incident,
      components: names.filter((name) => name !== "").map((name) => ({ name })),
      incident_updates: updates,
    };
  });
}
