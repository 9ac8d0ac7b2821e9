import { errorText, StartupError } from "../../../kernel/errors.ts";
import { ForeignDatabase, type ForeignRow } from "../../../kernel/storage/foreign-database.ts";
import { INPUT_BYTES_MAX } from "../source.ts";

/** Rows of a table: a hundred times what a large installation has. */
export const ROWS_MAX = 100_000;

/** Reads the settings of Uptime Kuma 1 and 2 from its database, which is opened read-only. @throws StartupError */
export function readKumaDatabase(path: string): unknown {
  try {
    using database = new ForeignDatabase(path, { rowsMax: ROWS_MAX, bytesMax: INPUT_BYTES_MAX });
    if (!database.has("monitor") || !database.has("monitor_notification"))
      throw new StartupError(`${path} is not a database of Uptime Kuma: it has no monitors.`);
    return settingsOf(database);
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw new StartupError(`${path} cannot be read as a database (${errorText(error)}).`);
  }
}

function settingsOf(database: ForeignDatabase): unknown {
  const by = (table: string, column: string) => Map.groupBy(database.rows(table), (row) => row[column]);
  const notifications = by("monitor_notification", "monitor_id");
  const tags = by("monitor_tag", "monitor_id");
  const names = new Map(database.rows("tag").map(({ id, name }) => [id, name]));
  const groups = by("group", "status_page_id");
  const members = by("monitor_group", "group_id");
  const domains = by("status_page_cname", "status_page_id");
  const maintained = by("monitor_maintenance", "maintenance_id");
  const shownOn = by("maintenance_status_page", "maintenance_id");
  return {
    notificationList: database.rows("notification"),
    monitorList: database.rows("monitor").map((row) => ({
      ...row,
      notificationIDList: (notifications.get(row["id"]) ?? []).map((link) => link["notification_id"]),
      tags: (tags.get(row["id"]) ?? []).map((tag) => ({
        name: names.get(tag["tag_id"]),
        value: tag["value"],
      })),
    })),
    statusPageList: database.rows("status_page").map((row) => ({
      ...row,
      domains: (domains.get(row["id"]) ?? []).map(({ domain }) => domain),
      groups: sorted(groups.get(row["id"])).map(({ id, name }) => ({
        name,
        monitors: sorted(members.get(id)).map((member) => member["monitor_id"]),
        shows_urls: (members.get(id) ?? []).some((member) => member["send_url"] === 1),
      })),
    })),
    maintenanceList: database.rows("maintenance").map((row) => ({
      ...row,
      monitors: (maintained.get(row["id"]) ?? []).map((link) => link["monitor_id"]),
      is_public: (shownOn.get(row["id"]) ?? []).length > 0,
    })),
  };
}

function sorted(rows: readonly ForeignRow[] = []): readonly ForeignRow[] {
  return rows.toSorted((a, b) => Number(a["weight"]) - Number(b["weight"]));
}
