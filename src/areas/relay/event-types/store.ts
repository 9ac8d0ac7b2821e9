import type { ManagedBy } from "../../../kernel/resources/managed.ts";
import type { Database } from "../../../kernel/storage/database.ts";

/** A stored event type. `schema` and `example`: JSON; null without one. */
export type EventTypeRow = {
  readonly ref: number;
  readonly name: string;
  readonly description: string | null;
  readonly enforce: number;
  readonly archived: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly managed_by: ManagedBy;
  readonly schema: string | null;
  readonly example: string | null;
};
type NewEventType = Omit<EventTypeRow, "ref"> & { readonly projectRef: number };
/** What a check of a message needs. */
type CheckedType = Pick<EventTypeRow, "enforce" | "schema">;

const COLUMNS =
  "ref, name, description, enforce, archived, created_at, updated_at, managed_by, schema, example";

export type EventTypeStore = ReturnType<typeof eventTypeStore>;

/** All SQL of event types. */
export function eventTypeStore(db: Database) {
  return {
    find: db.one<EventTypeRow, [projectRef: number, name: string]>(
      `SELECT ${COLUMNS} FROM relay_event_types WHERE project_ref = ? AND name = ?`,
    ),
    /** The type that messages are checked by; null for an unknown or archived one, and one without a schema. */
    checked: db.one<CheckedType, [projectRef: number, name: string]>(
      "SELECT enforce, schema FROM relay_event_types WHERE project_ref = ? AND name = ? AND archived = 0 AND schema IS NOT NULL",
    ),
    /** The types of a project, newest first. */
    page: db.all<EventTypeRow, [projectRef: number, archived: number, before: number, limit: number]>(
      `SELECT ${COLUMNS} FROM relay_event_types WHERE project_ref = ? AND archived = ? AND ref < ? ORDER BY ref DESC LIMIT ?`,
    ),
    count: db.number<[projectRef: number, archived: number]>(
      "SELECT count(*) AS n FROM relay_event_types WHERE project_ref = ? AND archived = ?",
    ),
    save: db.change<[row: NewEventType]>(
      `INSERT INTO relay_event_types (project_ref, name, description, enforce, archived, created_at, updated_at, managed_by, schema, example)
       VALUES ($projectRef, $name, $description, $enforce, $archived, $created_at, $updated_at, $managed_by, $schema, $example)
       ON CONFLICT (project_ref, name) DO UPDATE SET description = $description, enforce = $enforce, archived = $archived, updated_at = $updated_at,
       managed_by = $managed_by, schema = $schema, example = $example`,
    ),
    archive: db.change<[now: number, ref: number]>(
      "UPDATE relay_event_types SET archived = 1, updated_at = ? WHERE ref = ?",
    ),
    /** Removes the types of a project that were archived first, except some. */
    removeArchived: db.change<[projectRef: number, kept: number]>(
      `DELETE FROM relay_event_types WHERE ref IN (SELECT ref FROM relay_event_types WHERE project_ref = ? AND archived = 1
       ORDER BY updated_at DESC, ref DESC LIMIT -1 OFFSET ?)`,
    ),
    removeOfProject: db.change<[projectRef: number, limit: number]>(
      "DELETE FROM relay_event_types WHERE ref IN (SELECT ref FROM relay_event_types WHERE project_ref = ? LIMIT ?)",
    ),
    countInvalid: db.change<[projectRef: number, name: string, hour: number]>(
      `INSERT INTO relay_event_type_invalid (project_ref, name, hour, messages) VALUES (?, ?, ?, 1)
       ON CONFLICT DO UPDATE SET messages = messages + 1`,
    ),
    invalidSince: db.number<[projectRef: number, name: string, hour: number]>(
      "SELECT coalesce(sum(messages), 0) AS n FROM relay_event_type_invalid WHERE project_ref = ? AND name = ? AND hour > ?",
    ),
    removeOldInvalid: db.change<[before: number, limit: number]>(
      "DELETE FROM relay_event_type_invalid WHERE (project_ref, name, hour) IN (SELECT project_ref, name, hour FROM relay_event_type_invalid WHERE hour < ? LIMIT ?)",
    ),
    removeInvalidOf: db.change<[projectRef: number, limit: number]>(
      "DELETE FROM relay_event_type_invalid WHERE (project_ref, name, hour) IN (SELECT project_ref, name, hour FROM relay_event_type_invalid WHERE project_ref = ? LIMIT ?)",
    ),
  };
}
