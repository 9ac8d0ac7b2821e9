import { column, elsewhere, once, type RowOf, resourceTable } from "../../../kernel/resources/table.ts";
import type { Database } from "../../../kernel/storage/database.ts";
import type { ScheduleItem } from "./schema.ts";

const SETTINGS = {
  name: column<string | null>(),
  cron: column<string>(),
  time_zone: column<string>(),
  target_url: column<string | null>(),
  method: column<ScheduleItem["method"]>(),
  event_type: column<string | null>(),
  /** Sealed. */
  headers: column<Uint8Array | null>(),
  /** JSON, as it is sent. */
  payload: column<string>(),
  state: column<ScheduleItem["state"]>(),
  missed: column<ScheduleItem["missed"]>(),
  overlap: column<ScheduleItem["overlap"]>(),
  starts_at: column<number | null>(),
  ends_at: column<number | null>(),
  /** JSON; null for the default. */
  retry_schedule: column<string | null>(),
  callback_url: column<string | null>(),
  failure_callback_url: column<string | null>(),
};

const SCHEDULES = {
  name: "relay_schedules",
  id: "schedule_id",
  columns: {
    ...SETTINGS,
    accountRef: once(column<number>()),
    next_run_at: column<number | null>(),
    last_run_at: elsewhere(column<number | null>()),
    last_relay_id: elsewhere(column<string | null>()),
    last_message_id: elsewhere(column<string | null>()),
    runs: elsewhere(column<number>()),
    skipped: elsewhere(column<number>()),
    last_error: elsewhere(column<string | null>()),
    created_at: once(column<number>()),
    updated_at: column<number>(),
  },
};

export type ScheduleRow = RowOf<typeof SCHEDULES>;
export type ScheduleSettings = Pick<ScheduleRow, keyof typeof SETTINGS>;
/** The state that runs change. */
export type ScheduleProgress = Pick<
  ScheduleRow,
  "next_run_at" | "last_run_at" | "last_relay_id" | "last_message_id" | "runs" | "skipped" | "last_error"
>;
export type ScheduleStore = ReturnType<typeof scheduleStore>;

/** The names of the settings. */
export const SETTING_NAMES = Object.keys(SETTINGS) as (keyof ScheduleSettings)[];
// A payload may be as long as a request: a page does not read it.
const WITHOUT_PAYLOAD = { payload: "''" };

/** All SQL of schedules. */
export function scheduleStore(db: Database) {
  const rows = resourceTable(db, SCHEDULES);
  return {
    ...rows,
    /** Records a run, or a skipped one. */
    progress: db.change<[row: ScheduleProgress & Pick<ScheduleRow, "ref">]>(
      `UPDATE relay_schedules SET next_run_at = $next_run_at, last_run_at = $last_run_at, last_relay_id = $last_relay_id,
       last_message_id = $last_message_id, runs = $runs, skipped = $skipped, last_error = $last_error WHERE ref = $ref`,
    ),
    named: rows.one<[projectRef: number, name: string]>(
      "WHERE project_ref = ? AND name = ?",
      WITHOUT_PAYLOAD,
    ),
    /** A project's schedules below a reference, newest first, without their payloads. */
    page: rows.all<[projectRef: number, before: number, limit: number]>(
      "WHERE project_ref = ? AND ref < ? ORDER BY ref DESC LIMIT ?",
      WITHOUT_PAYLOAD,
    ),
    someOfProject: db.all<{ readonly ref: number }, [projectRef: number, limit: number]>(
      "SELECT ref FROM relay_schedules WHERE project_ref = ? LIMIT ?",
    ),
    count: db.number<[projectRef: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM relay_schedules INDEXED BY relay_schedules_of_project WHERE project_ref = ? LIMIT ?)",
    ),
  };
}
