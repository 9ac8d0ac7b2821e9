import type { Database } from "../../../kernel/storage/database.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { linksOf } from "./markup.ts";
import type { Incident, IncidentStatus } from "./schema.ts";

/** An incident as stored. */
export interface IncidentRow {
  readonly ref: number;
  readonly incidentId: string;
  readonly projectRef: number;
  /** Monitor that opened the incident; null for a manual one. */
  readonly monitorRef: number | null;
  readonly title: string;
  /** Whether the title was written by a person, not derived from the monitor's name. */
  readonly titleGiven: boolean;
  readonly impact: Incident["impact"];
  readonly status: IncidentStatus;
  readonly cause: string | null;
  readonly monitorIds: readonly string[];
  readonly startedAt: number;
  readonly acknowledgedAt: number | null;
  readonly acknowledgedBy: string | null;
  readonly resolvedAt: number | null;
  readonly isPublic: boolean;
  readonly suppressedBy: string | null;
}

/** An update of an incident. */
export type IncidentUpdate = {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly status: IncidentStatus;
  readonly message: string;
};

/** An update as it is stored. */
export type StoredUpdate = IncidentUpdate & {
  /** Offsets of the links in the message, as JSON of `linksOf`; null in rows that were stored without them. */
  readonly links: string | null;
};

/** Filter of a list of incidents. Null matches any value. */
export interface IncidentFilter {
  readonly isOpen: boolean | null;
  readonly monitorId: string | null;
}

type Stored = Omit<IncidentRow, "monitorIds" | "isPublic" | "titleGiven"> & {
  /** JSON. */
  readonly monitorIds: string;
  readonly isPublic: number;
  readonly titleGiven: number;
};
type PageParams = { readonly projectRef: number; readonly before: number; readonly rowsMax: number };

const SELECT = `SELECT ref, incident_id AS incidentId, project_ref AS projectRef, monitor_ref AS monitorRef, title,
  title_given AS titleGiven, impact, status, cause, monitor_ids AS monitorIds, started_at AS startedAt, acknowledged_at AS acknowledgedAt,
  acknowledged_by AS acknowledgedBy, resolved_at AS resolvedAt, public AS isPublic, suppressed_by AS suppressedBy FROM incidents`;
const OPEN = "resolved_at IS NULL";
const RESOLVED = "resolved_at IS NOT NULL";

export type IncidentStore = ReturnType<typeof incidentStore>;

/** All SQL of incidents. */
export function incidentStore(db: Database) {
  const withId = db.one<Stored, [incidentId: string]>(`${SELECT} WHERE incident_id = ?`);
  const openOf = db.one<Stored, [monitorRef: number]>(`${SELECT} WHERE monitor_ref = ? AND ${OPEN}`);
  const insert = db.change<[row: Stored]>(
    `INSERT INTO incidents (ref, incident_id, project_ref, monitor_ref, title, title_given, impact, status, cause, monitor_ids, started_at,
     acknowledged_at, acknowledged_by, resolved_at, public, suppressed_by) VALUES ($ref, $incidentId, $projectRef, $monitorRef, $title,
     $titleGiven, $impact, $status, $cause, $monitorIds, $startedAt, $acknowledgedAt, $acknowledgedBy, $resolvedAt, $isPublic, $suppressedBy)`,
  );
  const insertMonitor = db.change<[monitorId: string, ref: number]>(
    "INSERT INTO incident_monitors (monitor_id, incident_ref) VALUES (?, ?)",
  );
  const update = db.change<[row: Stored]>(
    `UPDATE incidents SET title = $title, title_given = $titleGiven, status = $status, acknowledged_at = $acknowledgedAt, acknowledged_by = $acknowledgedBy,
     resolved_at = $resolvedAt, public = $isPublic, suppressed_by = $suppressedBy WHERE ref = $ref`,
  );
  const addUpdate = db.change<[update: StoredUpdate & { readonly ref: number }]>(
    `INSERT INTO incident_updates (incident_ref, number, at, status, message, links)
     SELECT $ref, 1 + coalesce(max(number), 0), $at, $status, $message, $links FROM incident_updates WHERE incident_ref = $ref`,
  );
  return {
    ...pageStore(db),
    ...removalStore(db),
    /** Largest reference ever assigned; 0 for none. */
    highestRef: db.number("SELECT seq AS n FROM sqlite_sequence WHERE name = 'incidents'"),
    insert(tx: Tx, row: IncidentRow): void {
      insert(tx, storedOf(row));
      for (const monitorId of row.monitorIds) insertMonitor(tx, monitorId, row.ref);
    },
    /** Writes the fields that can change: all but the monitors and the start. */
    update: (tx: Tx, row: IncidentRow) => update(tx, storedOf(row)),
    find(incidentId: string): IncidentRow | null {
      const stored = withId(incidentId);
      return stored && rowOf(stored);
    },
    /** Open incident of a monitor. */
    openOf(monitorRef: number): IncidentRow | null {
      const stored = openOf(monitorRef);
      return stored && rowOf(stored);
    },
    /** Number of open incidents of a project, counted up to a maximum. */
    openCount: db.number<[projectRef: number, countMax: number]>(
      `SELECT count(*) AS n FROM (SELECT 1 FROM incidents WHERE project_ref = ? AND ${OPEN} LIMIT ?)`,
    ),
    /** Number of open manual incidents of a project. */
    openManualCount: db.number<[projectRef: number]>(
      `SELECT count(*) AS n FROM incidents WHERE project_ref = ? AND monitor_ref IS NULL AND ${OPEN}`,
    ),
    /** Updates of an incident, oldest first. */
    updates: db.all<IncidentUpdate, [ref: number]>(
      "SELECT at, status, message FROM incident_updates WHERE incident_ref = ? ORDER BY number",
    ),
    /** Number of updates of an incident. */
    updatesCount: db.number<[ref: number]>(
      "SELECT max(number) AS n FROM incident_updates WHERE incident_ref = ?",
    ),
    /** Newest updates of an incident, newest first. */
    newestUpdates: db.all<StoredUpdate, [ref: number, rowsMax: number]>(
      "SELECT at, status, message, links FROM incident_updates WHERE incident_ref = ? ORDER BY number DESC LIMIT ?",
    ),
    addUpdate(tx: Tx, ref: number, update: IncidentUpdate): void {
      addUpdate(tx, { ...update, ref, links: JSON.stringify(linksOf(update.message)) });
    },
  };
}

/** Pages of a project's incidents, newest first, below a reference. Each filter has its own statement and index. */
function pageStore(db: Database) {
  const END = "ORDER BY ref DESC LIMIT $rowsMax";
  const ofProject = (state: string) =>
    db.all<Stored, [PageParams]>(
      `${SELECT} WHERE project_ref = $projectRef AND ref < $before AND ${state} ${END}`,
    );
  const ofMonitor = (state: string) =>
    db.all<Stored, [PageParams & { monitorId: string }]>(
      `${SELECT} JOIN incident_monitors ON incident_ref = ref
       WHERE monitor_id = $monitorId AND incident_ref < $before AND project_ref = $projectRef AND ${state} ORDER BY incident_ref DESC LIMIT $rowsMax`,
    );
  const [all, open, resolved] = [ofProject("1"), ofProject(OPEN), ofProject(RESOLVED)];
  const [allOf, openOf, resolvedOf] = [ofMonitor("1"), ofMonitor(OPEN), ofMonitor(RESOLVED)];
  const pick = <T>(isOpen: boolean | null, [any, is, isNot]: readonly [T, T, T]): T =>
    isOpen === null ? any : isOpen ? is : isNot;
  return {
    page(params: PageParams, { isOpen, monitorId }: IncidentFilter): IncidentRow[] {
      const rows =
        monitorId === null
          ? pick(isOpen, [all, open, resolved])(params)
          : pick(isOpen, [allOf, openOf, resolvedOf])({ ...params, monitorId });
      return rows.map(rowOf);
    },
  };
}

/** Removal of incidents with their updates and monitors. */
function removalStore(db: Database) {
  const select = (where: string) =>
    `SELECT ref, monitor_ids AS monitorIds FROM incidents WHERE ${where} LIMIT ?`;
  type Removed = { readonly ref: number; readonly monitorIds: string };
  const resolvedBefore = db.all<Removed, [time: number, rowsMax: number]>(select("resolved_at < ?"));
  const ofProject = db.all<Removed, [projectRef: number, rowsMax: number]>(select("project_ref = ?"));
  const removeUpdates = db.change<[ref: number]>("DELETE FROM incident_updates WHERE incident_ref = ?");
  const removeMonitor = db.change<[monitorId: string, ref: number]>(
    "DELETE FROM incident_monitors WHERE monitor_id = ? AND incident_ref = ?",
  );
  const remove = db.change<[ref: number]>("DELETE FROM incidents WHERE ref = ?");
  function removeAll(tx: Tx, rows: readonly Removed[], rowsMax: number): number {
    let removed = 0;
    for (const { ref, monitorIds } of rows) {
      if (removed >= rowsMax) return rowsMax;
      removed += removeUpdates(tx, ref) + remove(tx, ref);
      for (const monitorId of JSON.parse(monitorIds)) removed += removeMonitor(tx, monitorId, ref);
    }
    return Math.min(removed, rowsMax);
  }
  return {
    /** Removes about `rowsMax` rows of incidents that were resolved before a time. Returns the number, smaller when none is left. */
    removeOld: (tx: Tx, rowsMax: number, before: number) =>
      removeAll(tx, resolvedBefore(before, rowsMax), rowsMax),
    /** Removes about `rowsMax` rows of a project. Returns the number, smaller when none is left. */
    removeOfProject: (tx: Tx, projectRef: number, rowsMax: number) =>
      removeAll(tx, ofProject(projectRef, rowsMax), rowsMax),
  };
}

function storedOf(row: IncidentRow): Stored {
  return {
    ...row,
    monitorIds: JSON.stringify(row.monitorIds),
    isPublic: row.isPublic ? 1 : 0,
    titleGiven: row.titleGiven ? 1 : 0,
  };
}

function rowOf(stored: Stored): IncidentRow {
  return {
    ...stored,
    monitorIds: JSON.parse(stored.monitorIds),
    isPublic: stored.isPublic !== 0,
    titleGiven: stored.titleGiven !== 0,
  };
}
