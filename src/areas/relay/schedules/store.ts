import type { Database } from "../../../kernel/storage/database.ts";
import type { ScheduleItem } from "./schema.ts";

export type ScheduleSettings = Pick<
  ScheduleItem,
  | "name"
  | "cron"
  | "time_zone"
  | "target_url"
  | "method"
  | "event_type"
  | "state"
  | "missed"
  | "overlap"
  | "starts_at"
  | "ends_at"
> & {
  /** Sealed. */
  readonly headers: Uint8Array | null;
  /** JSON, as it is sent. */
  readonly payload: string;
  /** JSON; null for the default. */
  readonly retry_schedule: string | null;
};

/** The state that runs change. */
export type ScheduleProgress = Pick<
  ScheduleItem,
  "next_run_at" | "last_run_at" | "last_relay_id" | "last_message_id" | "runs" | "skipped"
>;

export type ScheduleRow = ScheduleSettings &
  ScheduleProgress &
  Pick<ScheduleItem, "schedule_id" | "created_at" | "updated_at"> & {
    readonly ref: number;
    readonly accountRef: number;
    readonly projectRef: number;
  };

type NewSchedule = Omit<ScheduleRow, keyof ScheduleProgress | "updated_at"> &
  Pick<ScheduleRow, "next_run_at">;

const SETTINGS =
  "name, cron, time_zone, target_url, method, event_type, headers, payload, state, missed, overlap, starts_at, ends_at, retry_schedule, next_run_at";
const VALUES =
  "$name, $cron, $time_zone, $target_url, $method, $event_type, $headers, $payload, $state, $missed, $overlap, $starts_at, $ends_at, $retry_schedule, $next_run_at";
const SELECT = `SELECT ref, schedule_id, account_ref AS accountRef, project_ref AS projectRef, ${SETTINGS}, last_run_at,
  last_relay_id, last_message_id, runs, skipped, created_at, updated_at FROM relay_schedules`;
// A payload may be as long as a request: a page does not read it.
const SELECT_ITEM = SELECT.replace(" payload,", " '' AS payload,");

export type ScheduleStore = ReturnType<typeof scheduleStore>;

/** All SQL of schedules. */
export function scheduleStore(db: Database) {
  return {
    /** The largest reference used so far; 0 when there is none. */
    highestRef: db.number("SELECT seq AS n FROM sqlite_sequence WHERE name = 'relay_schedules'"),
    insert: db.change<[row: NewSchedule]>(
      `INSERT INTO relay_schedules (ref, schedule_id, account_ref, project_ref, ${SETTINGS}, created_at, updated_at)
       VALUES ($ref, $schedule_id, $accountRef, $projectRef, ${VALUES}, $created_at, $created_at)`,
    ),
    update: db.change<
      [row: ScheduleSettings & Pick<ScheduleRow, "ref" | "next_run_at"> & { readonly now: number }]
    >(`UPDATE relay_schedules SET (${SETTINGS}) = (${VALUES}), updated_at = $now WHERE ref = $ref`),
    /** Records a run, or a skipped one. */
    progress: db.change<[row: ScheduleProgress & Pick<ScheduleRow, "ref">]>(
      `UPDATE relay_schedules SET next_run_at = $next_run_at, last_run_at = $last_run_at, last_relay_id = $last_relay_id,
       last_message_id = $last_message_id, runs = $runs, skipped = $skipped WHERE ref = $ref`,
    ),
    remove: db.change<[ref: number]>("DELETE FROM relay_schedules WHERE ref = ?"),
    ofRef: db.one<ScheduleRow, [ref: number]>(`${SELECT} WHERE ref = ?`),
    find: db.one<ScheduleRow, [scheduleId: string]>(`${SELECT} WHERE schedule_id = ?`),
    named: db.one<ScheduleRow, [projectRef: number, name: string]>(
      `${SELECT_ITEM} WHERE project_ref = ? AND name = ?`,
    ),
    /** A project's schedules below a reference, newest first, without their payloads. */
    page: db.all<ScheduleRow, [projectRef: number, before: number, limit: number]>(
      `${SELECT_ITEM} WHERE project_ref = ? AND ref < ? ORDER BY ref DESC LIMIT ?`,
    ),
    someOfProject: db.all<{ readonly ref: number }, [projectRef: number, limit: number]>(
      "SELECT ref FROM relay_schedules WHERE project_ref = ? LIMIT ?",
    ),
    count: db.number<[projectRef: number]>(
      "SELECT count(*) AS n FROM relay_schedules INDEXED BY relay_schedules_of_project WHERE project_ref = ?",
    ),
  };
}
