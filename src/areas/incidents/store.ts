import type { AlertEvent, Impact, IncidentStatus } from "../../kernel/data/incident-words.ts";
import { linksOf } from "../../kernel/data/markup.ts";
import type { ProbeState } from "../../kernel/data/probe-state.ts";
import { column, flag, json, once, type RowOf, resourceTable } from "../../kernel/resources/table.ts";
import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Incident } from "./schema.ts";

const INCIDENTS = {
  name: "incidents",
  id: "incident_id",
  columns: {
    /** Monitor that opened the incident; null for a manual one. */
    monitorRef: once(column<number | null>()),
    title: column<string>(),
    /** Whether the title was written by a person, not derived from the monitor's name. */
    titleGiven: flag(),
    impact: column<Incident["impact"]>(),
    status: column<IncidentStatus>(),
    cause: once(column<string | null>()),
    monitorIds: json<readonly string[]>(),
    startedAt: once(column<number>()),
    acknowledgedAt: column<number | null>(),
    acknowledgedBy: column<string | null>(),
    resolvedAt: column<number | null>(),
    /** Until when nobody is notified again, epoch milliseconds; null: it was not snoozed. */
    snoozedUntil: column<number | null>(),
    isPublic: flag("public"),
    /** Whether subscribers of status pages were notified of it. */
    announced: flag(),
    suppressedBy: column<string | null>(),
  },
};

/** An incident as stored. */
export type IncidentRow = RowOf<typeof INCIDENTS>;

/** An update of an incident. */
export type IncidentUpdate = {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly status: IncidentStatus;
  readonly message: string;
  /** Name of the person or key that posted it, for readers of the API only; null in rows that were stored without it. */
  readonly author: string | null;
};

/** An update as it is stored. */
export type StoredUpdate = IncidentUpdate & {
  /** Offsets of the links in the message, as JSON of `linksOf`; null in rows that were stored without them. */
  readonly links: string | null;
};

/** Alerts of an incident that are stored: the first ones, and the latest in place of the last. */
export const INCIDENT_ALERTS_MAX = 100;

/** An alert that was sent about an incident. */
export type IncidentAlert = {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly event: AlertEvent;
  /** Names of the channels, and addresses of e-mails without a channel. */
  readonly channels: readonly string[];
};

/** A message with which a channel gets alerts later: the channel, by reference, and the number of the message. */
export type DigestKey = {
  readonly channelRef: number;
  readonly number: number;
};

/** Filter of a list of incidents. Null matches any value. */
export interface IncidentFilter {
  readonly isOpen: boolean | null;
  readonly monitorId: string | null;
  /** Whether only manual ones are wanted, of any monitors. */
  readonly isManual?: boolean;
}

/** Characters of the error of a probe that an incident stores: as many as a probe may send. */
export const PROBE_ERROR_LENGTH_MAX = 500;

type PageParams = { readonly projectRef: number; readonly before: number; readonly rowsMax: number };

/** Incidents of a monitor that are searched for the timeline of another incident. */
const [NEAR_BEFORE, NEAR_AFTER] = [1, 3];

const OPEN = "resolved_at IS NULL";
const RESOLVED = "resolved_at IS NOT NULL";
const MANUAL = "monitor_ref IS NULL";

export type IncidentStore = ReturnType<typeof incidentStore>;

/** All SQL of incidents. */
export function incidentStore(db: Database) {
  const rows = resourceTable(db, INCIDENTS);
  const insertMonitor = db.change<[monitorId: string, ref: number]>(
    "INSERT INTO incident_monitors (monitor_id, incident_ref) VALUES (?, ?)",
  );
  const removeMonitor = removeMonitorStatement(db);
  const addUpdate = db.change<[update: StoredUpdate & { readonly ref: number }]>(
    `INSERT INTO incident_updates (incident_ref, number, at, status, message, links, author)
     SELECT $ref, 1 + coalesce(max(number), 0), $at, $status, $message, $links, $author FROM incident_updates WHERE incident_ref = $ref`,
  );
  return {
    ...rows,
    ...removalStore(db),
    ...alertStore(db),
    ...linkStore(db),
    ...probeStateStore(db),
    insert(tx: Tx, row: IncidentRow): void {
      rows.insert(tx, row);
      for (const monitorId of row.monitorIds) insertMonitor(tx, monitorId, row.ref);
    },
    /** Replaces the monitors by which an incident is found. */
    setMonitors(tx: Tx, { ref, monitorIds }: IncidentRow, next: readonly string[]): void {
      for (const monitorId of monitorIds) removeMonitor(tx, monitorId, ref);
      for (const monitorId of next) insertMonitor(tx, monitorId, ref);
    },
    pageBy: pageBy(rows),
    /** Open incident of a monitor. */
    openOf: rows.one<[monitorRef: number]>(`WHERE monitor_ref = ? AND ${OPEN}`),
    /**
     * Newest outages of a monitor among its newest `rowsMax` incidents, without those that ended before a time. `isManual`: those
     * of a manual monitor are the manual incidents with that impact.
     */
    outagesOf: db.all<
      { readonly from: number; readonly to: number | null },
      [
        {
          readonly ref: number;
          readonly monitorId: string;
          readonly isManual: boolean;
          readonly since: number;
          readonly rowsMax: number;
        },
      ]
    >(
      `SELECT "from", "to" FROM (
         SELECT monitor_ref, impact, started_at AS "from", resolved_at AS "to" FROM incident_monitors JOIN incidents ON ref = incident_ref
         WHERE monitor_id = $monitorId ORDER BY incident_ref DESC LIMIT $rowsMax
       ) WHERE (monitor_ref = $ref OR ($isManual AND monitor_ref IS NULL AND impact = 'outage')) AND ("to" IS NULL OR "to" >= $since)`,
    ),
    /** Number of open incidents of a project, counted up to a maximum. */
    openCount: db.number<[projectRef: number, countMax: number]>(
      `SELECT count(*) AS n FROM (SELECT 1 FROM incidents WHERE project_ref = ? AND ${OPEN} LIMIT ?)`,
    ),
    /** Number of open incidents of all projects, counted up to a maximum. */
    openCountOfAll: db.number<[countMax: number]>(
      `SELECT count(*) AS n FROM (SELECT 1 FROM incidents WHERE ${OPEN} LIMIT ?)`,
    ),
    /** Number of open manual incidents of a project, counted up to a maximum. */
    openManualCount: db.number<[projectRef: number, countMax: number]>(
      `SELECT count(*) AS n FROM (SELECT 1 FROM incidents INDEXED BY incidents_open_by_people
       WHERE project_ref = ? AND ${MANUAL} AND ${OPEN} LIMIT ?)`,
    ),
    impactsIn: impactsIn(db),
    /** Updates of an incident, oldest first. */
    updates: db.all<IncidentUpdate, [ref: number]>(
      "SELECT at, status, message, author FROM incident_updates WHERE incident_ref = ? ORDER BY number",
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

/** Worst impact of the open manual incidents of a project, by the ids of the monitors that they name. */
function impactsIn(db: Database): (projectRef: number) => ReadonlyMap<string, Impact> {
  const open = db.all<{ readonly impact: Impact; readonly monitorIds: string }, [projectRef: number]>(
    `SELECT impact, monitor_ids AS monitorIds FROM incidents INDEXED BY incidents_open_by_people
     WHERE project_ref = ? AND ${MANUAL} AND ${OPEN}`,
  );
  return (projectRef) => {
    const impacts = new Map<string, Impact>();
    for (const { impact, monitorIds } of open(projectRef))
      for (const id of JSON.parse(monitorIds) as string[])
        if (impacts.get(id) !== "outage") impacts.set(id, impact);
    return impacts;
  };
}

/** Alerts that were sent about incidents. */
function alertStore(db: Database) {
  type Stored = Pick<IncidentAlert, "at" | "event"> & { readonly channels: string };
  type Digested = { readonly channelRef: number | null; readonly digest: number | null };
  const insert = db.change<[alert: Stored & Digested & { readonly ref: number }]>(
    `INSERT OR REPLACE INTO incident_alerts (incident_ref, number, at, event, channels, channel_ref, digest)
     SELECT $ref, min(1 + coalesce(max(number), 0), ${INCIDENT_ALERTS_MAX}), $at, $event, $channels, $channelRef, $digest
     FROM incident_alerts WHERE incident_ref = $ref`,
  );
  const digestOf =
    "alert_digests AS sent ON sent.channel_ref = alert.channel_ref AND sent.number = alert.digest";
  const alerts = db.all<Stored, [ref: number, rowsMax: number]>(
    `SELECT coalesce(sent.at, alert.at) AS at, event, channels FROM incident_alerts AS alert LEFT JOIN ${digestOf}
     WHERE incident_ref = ? AND (digest IS NULL OR sent.at IS NOT NULL) ORDER BY alert.number LIMIT ?`,
  );
  const addDigest = db.change<[digest: DigestKey & { readonly projectRef: number; readonly at: number }]>(
    "INSERT INTO alert_digests (channel_ref, number, project_ref, at) VALUES ($channelRef, $number, $projectRef, $at)",
  );
  const digestsOf = (condition: string) =>
    db.change<[value: number, rowsMax: number]>(
      `DELETE FROM alert_digests WHERE (channel_ref, number) IN (SELECT channel_ref, number FROM alert_digests WHERE ${condition} LIMIT ?)`,
    );
  const nearest = (condition: string) =>
    db.all<{ readonly ref: number }, [monitorId: string, ref: number, rowsMax: number]>(
      `SELECT incident_ref AS ref FROM incident_monitors WHERE monitor_id = ? AND incident_ref ${condition} LIMIT ?`,
    );
  const before = nearest("< ? ORDER BY incident_ref DESC");
  const after = nearest("> ? ORDER BY incident_ref");
  return {
    /** `digest`: the message with which a channel gets the alert; null: it was sent. */
    addAlert(tx: Tx, ref: number, { channels, ...alert }: IncidentAlert, digest: DigestKey | null): void {
      const { channelRef = null, number = null } = digest ?? {};
      insert(tx, { ...alert, ref, channels: JSON.stringify(channels), channelRef, digest: number });
    },
    /** From now on, timelines show the alerts of a message. */
    addDigest,
    /** Removes alerts of an incident whose messages were not sent. */
    removeUnsent: db.change<[ref: number]>(
      `DELETE FROM incident_alerts AS alert WHERE incident_ref = ? AND digest IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM alert_digests AS sent WHERE sent.channel_ref = alert.channel_ref AND sent.number = alert.digest)`,
    ),
    removeDigestsOfProject: digestsOf("project_ref = ?"),
    removeDigestsBefore: digestsOf("at < ?"),
    /** Alerts of an incident that channels were sent, oldest first. */
    alerts: (ref: number, rowsMax: number): IncidentAlert[] =>
      alerts(ref, rowsMax).map((alert) => ({ ...alert, channels: JSON.parse(alert.channels) })),
    /** References of the nearest incidents of a monitor before and after another one. */
    near: (monitorId: string, ref: number): number[] =>
      [...before(monitorId, ref, NEAR_BEFORE), ...after(monitorId, ref, NEAR_AFTER)].map(
        (found) => found.ref,
      ),
  };
}

/** What each probe saw when incidents were opened. Lists do not read it. */
function probeStateStore(db: Database) {
  const stored = db.one<{ readonly states: string | null }, [ref: number]>(
    "SELECT probe_states AS states FROM incidents WHERE ref = ?",
  );
  const set = db.change<[states: string, ref: number]>("UPDATE incidents SET probe_states = ? WHERE ref = ?");
  return {
    /** Of at most as many probes as a monitor has. */
    setProbeStates(tx: Tx, ref: number, states: readonly ProbeState[]): void {
      const bounded = states.map(({ error, ...state }) => ({
        ...state,
        error: error?.slice(0, PROBE_ERROR_LENGTH_MAX).toWellFormed() ?? null,
      }));
      set(tx, JSON.stringify(bounded), ref);
    },
    /** Empty where only the server checked the monitor. */
    probeStatesAtStart: (ref: number): ProbeState[] => JSON.parse(stored(ref)?.states ?? "[]"),
  };
}

/** Uses of the links in alerts. */
function linkStore(db: Database) {
  return {
    isUsedLink: db.number<[incidentRef: number, digest: Uint8Array]>(
      "SELECT 1 AS n FROM incident_link_uses WHERE incident_ref = ? AND digest = ?",
    ),
    usedLinks: db.number<[incidentRef: number]>(
      "SELECT count(*) AS n FROM incident_link_uses WHERE incident_ref = ?",
    ),
    addUsedLink: db.change<[incidentRef: number, digest: Uint8Array]>(
      "INSERT INTO incident_link_uses (incident_ref, digest) VALUES (?, ?)",
    ),
  };
}

/** Pages of a project's incidents, newest first, below a reference. Each filter has its own statement and index. */
function pageBy({ all }: Pick<ReturnType<typeof resourceTable<typeof INCIDENTS.columns>>, "all">) {
  const ofProject = (state: string) =>
    all<[PageParams]>(
      `WHERE project_ref = $projectRef AND ref < $before AND ${state} ORDER BY ref DESC LIMIT $rowsMax`,
    );
  const ofMonitor = (state: string) =>
    all<[PageParams & { monitorId: string }]>(
      `JOIN incident_monitors ON incident_ref = ref
       WHERE monitor_id = $monitorId AND incident_ref < $before AND project_ref = $projectRef AND ${state} ORDER BY incident_ref DESC LIMIT $rowsMax`,
    );
  const [any, open, resolved] = [ofProject("1"), ofProject(OPEN), ofProject(RESOLVED)];
  const manual = [MANUAL, `${MANUAL} AND ${OPEN}`, `${MANUAL} AND ${RESOLVED}`].map(ofProject);
  const [anyManual = any, openManual = any, resolvedManual = any] = manual;
  const [anyOf, openOf, resolvedOf] = [ofMonitor("1"), ofMonitor(OPEN), ofMonitor(RESOLVED)];
  const pick = <T>(isOpen: boolean | null, [either, is, isNot]: readonly [T, T, T]): T =>
    isOpen === null ? either : isOpen ? is : isNot;
  return (params: PageParams, { isOpen, monitorId, isManual = false }: IncidentFilter): IncidentRow[] =>
    isManual
      ? pick(isOpen, [anyManual, openManual, resolvedManual])(params)
      : monitorId === null
        ? pick(isOpen, [any, open, resolved])(params)
        : pick(isOpen, [anyOf, openOf, resolvedOf])({ ...params, monitorId });
}

/** Removal of incidents with their updates and monitors. */
function removalStore(db: Database) {
  const select = (where: string) =>
    `SELECT ref, monitor_ids AS monitorIds FROM incidents WHERE ${where} LIMIT ?`;
  type Removed = { readonly ref: number; readonly monitorIds: string };
  const resolvedBefore = db.all<Removed, [time: number, rowsMax: number]>(select("resolved_at < ?"));
  const ofProject = db.all<Removed, [projectRef: number, rowsMax: number]>(select("project_ref = ?"));
  const removeUpdates = db.change<[ref: number]>("DELETE FROM incident_updates WHERE incident_ref = ?");
  const removeAlerts = db.change<[ref: number]>("DELETE FROM incident_alerts WHERE incident_ref = ?");
  const removeMonitor = removeMonitorStatement(db);
  const remove = db.change<[ref: number]>("DELETE FROM incidents WHERE ref = ?");
  function removeAll(tx: Tx, rows: readonly Removed[], rowsMax: number): number {
    let removed = 0;
    for (const { ref, monitorIds } of rows) {
      if (removed >= rowsMax) return rowsMax;
      removed += removeUpdates(tx, ref) + removeAlerts(tx, ref) + remove(tx, ref);
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

function removeMonitorStatement(db: Database) {
  return db.change<[monitorId: string, ref: number]>(
    "DELETE FROM incident_monitors WHERE monitor_id = ? AND incident_ref = ?",
  );
}
