import { MONITORS_MAX } from "../../../areas/monitors/maintenance/schema.ts";
import { StartupError } from "../../../kernel/errors.ts";
import { isCron, isTimeZone } from "../../../kernel/scheduler/calendar.ts";
import { SECOND_MS } from "../../../kernel/time/units.ts";
import type { Draft } from "../draft.ts";
import { IMPORT_DEFAULTS, type ImportOptions, isObject, SourceObject, shown } from "../source.ts";
import { monitorOf, type Names, namesOf, normalized } from "./monitors.ts";
import { notificationOf } from "./notifications.ts";
import { statusPageOf } from "./status-pages.ts";

/**
 * Imports a backup of Uptime Kuma, or what {@link readKumaDatabase} has read. `keepsIds`: push monitors keep their tokens.
 * @throws StartupError
 */
export function importKuma(draft: Draft, value: unknown, options: ImportOptions = IMPORT_DEFAULTS): void {
  if (!isObject(value) || !Array.isArray(value["monitorList"]))
    throw new StartupError('A backup of Uptime Kuma must have {"monitorList": […]}.');
  const all = new SourceObject(draft, "Uptime Kuma", value);
  const channels = new Map(
    all.list("notificationList").map((notification) => notificationOf(draft, notification)),
  );
  const monitorList = all.list("monitorList").map(normalized);
  const groups = new Map<unknown, string>();
  for (const monitor of monitorList)
    if (isObject(monitor) && monitor["type"] === "group" && typeof monitor["name"] === "string")
      groups.set(monitor["id"], monitor["name"]);
  const monitors = new Map(
    monitorList.map((monitor) => monitorOf(draft, monitor, { ...options, channels, groups })),
  );
  for (const page of all.list("statusPageList")) statusPageOf(draft, page, monitors);
  for (const maintenance of all.list("maintenanceList")) maintenanceOf(draft, maintenance, monitors);
  all.ignore("version");
  all.rest();
}

function maintenanceOf(draft: Draft, value: unknown, monitors: Names): void {
  const maintenance = new SourceObject(draft, "maintenance", value);
  const title = maintenance.text("title") ?? "maintenance";
  maintenance.label = `maintenance ${shown(title)}`;
  if (!maintenance.flag("active")) {
    maintenance.noteLoss("active", "is disabled: not carried over");
    return;
  }
  const times = timesOf(maintenance);
  if (times === null) return;
  const names = namesOf(maintenance, maintenance.list("monitors"), monitors);
  const values = {
    message: maintenance.text("description"),
    public: maintenance.flag("is_public"),
    ...times,
  };
  maintenance.ignore(
    "id",
    "user_id",
    "last_start_date",
    "start_time",
    "end_time",
    "weekdays",
    "days_of_month",
  );
  maintenance.ignore("cron", "duration", "timezone", "interval_day");
  maintenance.rest();
  if (names.length > MONITORS_MAX)
    maintenance.noteChange("monitors", `are those of several entries: one has at most ${MONITORS_MAX}`);
  for (let from = 0; from === 0 || from < names.length; from += MONITORS_MAX) {
    const part = names.slice(from, from + MONITORS_MAX);
    draft.add({
      section: "maintenance",
      name: title,
      subject: maintenance,
      values: { ...values, monitors: part },
    });
  }
}

/** Null for times that no maintenance can have. */
function timesOf(maintenance: SourceObject): Readonly<Record<string, unknown>> | null {
  const strategy = maintenance.text("strategy") ?? "single";
  const tz = timeZoneOf(maintenance);
  if (strategy === "single") return windowOf(maintenance, tz);
  const days = maintenance.number("interval_day") ?? 1;
  const [cron, seconds] = [maintenance.text("cron"), maintenance.number("duration")];
  const isEveryFewDays = strategy === "recurring-interval" && days !== 1;
  if (strategy === "manual" || isEveryFewDays || cron === null || seconds === null || !isCron(cron, tz)) {
    maintenance.noteLoss(
      "strategy",
      `${shown(strategy)} is not supported with these times: not carried over`,
    );
    return null;
  }
  return { schedule: cron, tz, duration_ms: seconds * SECOND_MS };
}

function timeZoneOf(maintenance: SourceObject): string {
  const name = maintenance.text("timezone");
  if (name !== null && isTimeZone(name)) return name;
  maintenance.noteChange("timezone", "is UTC: that of the server of Uptime Kuma is unknown");
  return "UTC";
}

function windowOf(maintenance: SourceObject, tz: string): Readonly<Record<string, unknown>> | null {
  const times = (["start_date", "end_date"] as const).map((name) => instantOf(maintenance.text(name), tz));
  const [starts_at = null, ends_at = null] = times;
  if (starts_at !== null && ends_at !== null) return { starts_at, ends_at };
  maintenance.noteLoss("start_date", "start and end must be times: not carried over");
  return null;
}

/** A time on the clocks of a time zone, `2030-01-31 22:00:00`, as RFC 3339; null for anything else. */
function instantOf(text: string | null, tz: string): string | null {
  const [, day, time, seconds = ":00"] =
    /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2})(:\d{2})?(?:\.\d{1,3})?Z?$/.exec(text ?? "") ?? [];
  const local = Date.parse(`${day}T${time}${seconds}Z`);
  if (Number.isNaN(local)) return null;
  // The offset at the time itself may differ from that at the same digits in UTC.
  const first = local - offsetMs(tz, local);
  return new Date(local - offsetMs(tz, first)).toISOString();
}

function offsetMs(tz: string, moment: number): number {
  const format = new Intl.DateTimeFormat("en-US", { timeZone: tz, timeZoneName: "longOffset" });
  const name = format.formatToParts(moment).find(({ type }) => type === "timeZoneName")?.value ?? "GMT";
  const [, sign, hours = "0", minutes = "0"] = /^GMT([+-])(\d{2}):(\d{2})/.exec(name) ?? [];
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60 * SECOND_MS;
}
