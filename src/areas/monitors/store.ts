import type { ProbeState } from "../../kernel/data/probe-state.ts";
import { bytesToUuid, uuidToBytes } from "../../kernel/data/uuid.ts";
import type { Certificate } from "../../kernel/outbound/certificate.ts";
import type { ManagedBy } from "../../kernel/resources/managed.ts";
import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { HOUR_MS } from "../../kernel/time/units.ts";
import type { StoredCertificate } from "./certificate.ts";
import type { CheckResult, ConnectivitySign, HourCount, MonitorState, StandingCheck } from "./domain.ts";
import type { HeartbeatView } from "./heartbeat-fields.ts";
import { type IcmpResult, lossPercent } from "./icmp-result.ts";
import { type MonitorOptions, optionsOf, storedOptions } from "./options.ts";
import type { Registration } from "./registration.ts";
import type { Monitor, StatusFilter } from "./schema.ts";

/** Settings of a monitor, by the names of the API. */
export type MonitorSettings = Omit<
  Monitor,
  | ("id" | "name" | "headers" | "status" | "latency_ms" | "last_checked_at")
  | (
      | "degraded"
      | "degraded_reason"
      | "probe_states"
      | "overdue"
      | "failing"
      | "certificate"
      | "icmp"
      | "domain"
      | "error"
      | "created_at"
      | "updated_at"
      | "warning"
    )
  | ("channels" | "incident_id" | "depends_on" | "flapping" | "maintenance")
  | ("interval" | "has_name" | "managed_by" | "secret_digest" | keyof HeartbeatView)
> & {
  /** Milliseconds; 0 for types that do not check a target. */
  readonly interval: number;
  /** The given name; null for none. */
  readonly name: string | null;
  /** Sealed. */
  readonly headers: Uint8Array | null;
  /** Sealed. */
  readonly tls_client_key: Uint8Array | null;
};

/** A monitor and its state, with the counts of the current hour. */
export interface MonitorRow extends MonitorState, HourCount, StandingCheck {
  readonly ref: number;
  readonly monitorId: string;
  readonly accountRef: number;
  readonly projectRef: number;
  readonly settings: MonitorSettings;
  readonly managedBy: ManagedBy;
  /** Incremented by every change of the settings. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Sequence of the last check; 0: none. */
  readonly lastCheck: number;
  /** The last certificate of the target; null before one was presented. */
  readonly certificate: StoredCertificate | null;
  /** What became of the packets of the last check; null before one, and for other types than `icmp`. */
  readonly icmp: IcmpResult | null;
  /** The registration that the last check saw; null before one, and for other types than `domain`. */
  readonly domain: Registration | null;
}

/** Settings that are stored as 0 or 1. */
type Flags<Value> = Record<"email_alert" | "notify_recovery" | "active", Value>;
type StoredSettings = Omit<MonitorSettings, keyof Flags<number> | keyof MonitorOptions> & {
  readonly options: string | null;
};
type StoredMonitor = Omit<
  MonitorRow,
  | "monitorId"
  | "settings"
  | "degraded"
  | "isSplit"
  | "overdue"
  | "standsUp"
  | "certificate"
  | "icmp"
  | "domain"
> &
  StoredSettings &
  Flags<number> & {
    readonly monitorId: Uint8Array;
    readonly degraded: number;
    readonly overdue: number;
    readonly standsUp: number;
    readonly certificate: string | null;
    readonly icmp: string | null;
    readonly domain: string | null;
  };

const STATUS = "CASE status WHEN 1 THEN 'up' WHEN 2 THEN 'down' ELSE 'unknown' END";
const STATUS_NUMBER = "CASE $status WHEN 'up' THEN 1 WHEN 'down' THEN 2 ELSE 3 END";

/** The number that `degraded` has where probes disagree. */
const SPLIT = 2;

const SETTINGS = `ref, monitor_id AS monitorId, account_ref AS accountRef, monitors.project_ref AS projectRef, version,
  created_at AS createdAt, updated_at AS updatedAt, type, url, name, method, headers, tls_client_key, body, timeout_ms AS timeout,
  interval_ms AS interval, consecutive_threshold, cooldown_ms, webhook_url, email_alert, notify_recovery, active, options, managed_by AS managedBy`;
const STATE = `${STATUS} AS status, latency_ms AS latencyMs, last_checked_at AS lastCheckedAt,
  consecutive_failures AS consecutiveFailures, told_at AS alertedAt, last_check AS lastCheck,
  hour, hour_checks AS checks, hour_up AS up, hour_latency AS latencySum, hour_latencies AS latencies, hour_known_ms AS knownMs, hour_up_ms AS upMs,
  stands_since AS standsSince, stands_up AS standsUp, degraded, overdue, streak, certificate, icmp, domain`;
const SELECT = `SELECT ${SETTINGS}, ${STATE} FROM monitors JOIN monitor_states ON monitor_ref = ref`;

type NewSettings = MonitorSettings & { ref: number; now: number };
type SettingsParams = ReturnType<typeof storable<NewSettings>>;
/** The columns that a check changes. */
type StateParams = MonitorState & HourCount & StandingCheck & { ref: number; lastCheck: number };
/** What the last checks have found beyond the state. */
type Found = Pick<MonitorRow, "certificate" | "icmp" | "domain">;
type Identity = { monitorId: Uint8Array; accountRef: number; projectRef: number; managedBy: ManagedBy };
type PageParams = { projectRef: number; before: number; rowsMax: number };

/** Monitors searched for one page of active or paused ones, for which there is no index: some milliseconds. */
export const WALKED_MONITORS_MAX = 2_000;

/** Filters of a list of monitors. */
export type MonitorFilter = { readonly status: StatusFilter | null; readonly active: boolean };

export type MonitorRows = ReturnType<typeof monitorRows>;

/** Monitors as their rows have them, which may be behind what is in memory. */
export function monitorRows(db: Database) {
  // Two statements: the driver takes ten times as long for a join, and every check and every ping reads one row.
  const settingsOf = db.one<StoredMonitor, [ref: number]>(`SELECT ${SETTINGS} FROM monitors WHERE ref = ?`);
  const stateOf = db.one<object, [ref: number]>(`SELECT ${STATE} FROM monitor_states WHERE monitor_ref = ?`);
  const updateState = db.change<
    [Readonly<Omit<StateParams, "degraded"> & { degraded: number } & Record<keyof Found, string | null>>]
  >(
    `UPDATE monitor_states SET status = ${STATUS_NUMBER}, latency_ms = $latencyMs, last_checked_at = $lastCheckedAt, consecutive_failures = $consecutiveFailures, told_at = $alertedAt, last_check = $lastCheck, hour = $hour, hour_checks = $checks, hour_up = $up, hour_latency = $latencySum, hour_latencies = $latencies, hour_known_ms = $knownMs, hour_up_ms = $upMs, stands_since = $standsSince, stands_up = $standsUp, degraded = $degraded, overdue = $overdue, streak = $streak, certificate = $certificate, icmp = $icmp, domain = $domain WHERE monitor_ref = $ref`,
  );
  return {
    writeState(tx: Tx, { certificate, icmp, domain, ...state }: StateParams & Found): void {
      const degraded = state.isSplit ? SPLIT : Number(state.degraded);
      const found = {
        certificate: certificate && JSON.stringify(certificate),
        icmp: icmp && storedIcmp(icmp),
        domain: domain && JSON.stringify(domain),
      };
      updateState(tx, { ...state, degraded, ...found });
    },
    read(ref: number): MonitorRow | null {
      const [settings, state] = [settingsOf(ref), stateOf(ref)];
      return settings && state && rowOf(Object.assign(settings, state));
    },
  };
}

/** Monitors whose states are newer in memory than in their rows. */
export interface UnsavedMonitors {
  /** A monitor as it is in memory; undefined: its row is current. */
  monitor(ref: number): MonitorRow | undefined;
  /** Writes the rows of a monitor and drops its state from memory. Required before anything else writes these rows. */
  release(tx: Tx, ref: number): void;
}

export type MonitorStore = ReturnType<typeof monitorStore>;

/** All SQL of monitors and of where their targets stand. What is in memory comes before the rows. */
export function monitorStore(db: Database, unsaved?: UnsavedMonitors, rows: MonitorRows = monitorRows(db)) {
  const current = (stored: StoredMonitor): MonitorRow => unsaved?.monitor(stored.ref) ?? rowOf(stored);
  const columns =
    "type, url, name, method, headers, tls_client_key, body, timeout_ms, interval_ms, consecutive_threshold, cooldown_ms, webhook_url, email_alert, notify_recovery, active, options";
  const values =
    "$type, $url, $name, $method, $headers, $tls_client_key, $body, $timeout, $interval, $consecutive_threshold, $cooldown_ms, $webhook_url, $email_alert, $notify_recovery, $active, $options";
  const refOf = db.number<[monitorId: Uint8Array]>("SELECT ref AS n FROM monitors WHERE monitor_id = ?");
  const refNamed = db.number<[projectRef: number, name: string]>(
    "SELECT ref AS n FROM monitors WHERE project_ref = ? AND name = ?",
  );
  const monitor = (ref: number): MonitorRow | null => unsaved?.monitor(ref) ?? rows.read(ref);
  const insert = db.change<[SettingsParams & Identity]>(
    `INSERT INTO monitors (ref, monitor_id, account_ref, project_ref, ${columns}, version, created_at, updated_at, managed_by) VALUES ($ref, $monitorId, $accountRef, $projectRef, ${values}, 1, $now, $now, $managedBy)`,
  );
  const update = db.change<[SettingsParams]>(
    `UPDATE monitors SET (${columns}) = (${values}), version = version + 1, updated_at = $now WHERE ref = $ref`,
  );
  const forgetFound = db.change<[ref: number]>(
    "UPDATE monitor_states SET certificate = NULL, icmp = NULL, domain = NULL WHERE monitor_ref = ?",
  );
  const setOverdue = db.change<[overdue: number, ref: number]>(
    "UPDATE monitor_states SET overdue = ? WHERE monitor_ref = ?",
  );
  const setLastCheck = db.change<[sequence: number, ref: number]>(
    "UPDATE monitor_states SET last_check = ? WHERE monitor_ref = ?",
  );
  const remove = db.change<[ref: number]>("DELETE FROM monitors WHERE ref = ?");
  const removeState = db.change<[ref: number]>("DELETE FROM monitor_states WHERE monitor_ref = ?");
  return {
    ...listStore(db, current),
    /** The highest reference ever used; 0 for none. */
    highestRef: db.number("SELECT seq AS n FROM sqlite_sequence WHERE name = 'monitors'"),
    insert: (tx: Tx, monitor: NewSettings & Identity) => insert(tx, storable(monitor)),
    insertState: db.change<[ref: number, projectRef: number]>(
      "INSERT INTO monitor_states (monitor_ref, project_ref, status, consecutive_failures, last_check, hour, hour_checks, hour_up) VALUES (?, ?, 3, 0, 0, 0, 0, 0)",
    ),
    update(tx: Tx, monitor: NewSettings): void {
      unsaved?.release(tx, monitor.ref);
      update(tx, storable(monitor));
    },
    updateState(tx: Tx, monitor: StateParams & Found): void {
      unsaved?.release(tx, monitor.ref);
      rows.writeState(tx, monitor);
    },
    /** Used when the URL changes: another target has another certificate. */
    forgetFound(tx: Tx, ref: number): void {
      unsaved?.release(tx, ref);
      forgetFound(tx, ref);
    },
    setOverdue(tx: Tx, ref: number, isOverdue: boolean): void {
      unsaved?.release(tx, ref);
      setOverdue(tx, Number(isOverdue), ref);
    },
    remove(tx: Tx, ref: number): void {
      unsaved?.release(tx, ref);
      remove(tx, ref);
    },
    /** Its chain of checks now ends with this one. */
    setLastCheck(tx: Tx, ref: number, sequence: number): void {
      unsaved?.release(tx, ref);
      setLastCheck(tx, sequence, ref);
    },
    /** The checks of a single monitor are deleted when they expire, those of a project with the project. */
    removeState(tx: Tx, ref: number): void {
      unsaved?.release(tx, ref);
      removeState(tx, ref);
    },
    find: (monitorId: string): MonitorRow | null => monitor(refOf(uuidToBytes(monitorId))),
    monitor,
    /** The monitor of a project with this name; null for none. */
    named: (projectRef: number, name: string): MonitorRow | null => monitor(refNamed(projectRef, name)),
    ofProject: db.all<{ ref: number }, [projectRef: number, rowsMax: number]>(
      "SELECT ref FROM monitors WHERE project_ref = ? ORDER BY ref LIMIT ?",
    ),
    /** Number of monitors of a project with a status, counted up to a limit. */
    countOf: db.number<[projectRef: number, status: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM monitor_states WHERE project_ref = ? AND status = ? LIMIT ?)",
    ),
    /** Number of overdue heartbeats of a project, counted up to a limit. */
    countOverdue: db.number<[projectRef: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM monitor_states WHERE project_ref = ? AND overdue = 1 LIMIT ?)",
    ),
    count: db.number<[projectRef: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM monitors WHERE project_ref = ? LIMIT ?)",
    ),
  };
}

/** The statements of lists. */
function listStore(db: Database, current: (stored: StoredMonitor) => MonitorRow) {
  const page = db.all<StoredMonitor, [PageParams]>(
    `${SELECT} WHERE monitors.project_ref = $projectRef AND ref < $before ORDER BY ref DESC LIMIT $rowsMax`,
  );
  const pageWhere = <Params extends PageParams>(condition: string) =>
    db.all<StoredMonitor, [Params]>(
      `${SELECT} WHERE monitor_states.project_ref = $projectRef AND ${condition} AND monitor_ref < $before ORDER BY monitor_ref DESC LIMIT $rowsMax`,
    );
  const pageOfStatus = pageWhere<PageParams & { status: StatusFilter }>(`status = ${STATUS_NUMBER}`);
  const pageOfDegraded = pageWhere("degraded > 0");
  const pageOfOverdue = pageWhere("overdue = 1");
  const walkEnd = db.number<[projectRef: number, before: number, offset: number]>(
    "SELECT ref AS n FROM monitors WHERE project_ref = ? AND ref < ? ORDER BY ref DESC LIMIT 1 OFFSET ?",
  );
  const oldest = db.all<StoredMonitor, [rowsMax: number]>(`${SELECT} ORDER BY ref LIMIT ?`);
  const walked = db.all<StoredMonitor, [PageParams & MonitorFilter & { floor: number }]>(
    `${SELECT} WHERE monitors.project_ref = $projectRef AND ref < $before AND ref >= $floor AND active = $active AND ($status IS NULL OR CASE $status WHEN 'degraded' THEN degraded > 0 WHEN 'overdue' THEN overdue = 1 ELSE status = ${STATUS_NUMBER} END) ORDER BY ref DESC LIMIT $rowsMax`,
  );
  return {
    /** A project's monitors below a reference, newest first, optionally with one status. */
    page(params: PageParams, status?: StatusFilter): MonitorRow[] {
      if (status === "degraded") return pageOfDegraded(params).map(current);
      if (status === "overdue") return pageOfOverdue(params).map(current);
      return (status === undefined ? page(params) : pageOfStatus({ ...params, status })).map(current);
    },
    /** The oldest monitors of all projects. */
    oldest: (rowsMax: number): MonitorRow[] => oldest(rowsMax).map(current),
    /** Monitors of all accounts in the order of their references, after a reference. */
    after: db.all<
      { readonly ref: number; readonly accountRef: number; readonly type: string },
      [ref: number, rowsMax: number]
    >("SELECT ref, account_ref AS accountRef, type FROM monitors WHERE ref > ? ORDER BY ref LIMIT ?"),
    /** Number of monitors of the server, counted up to `countedMax`. */
    countAll: db.number<[countedMax: number]>("SELECT count(*) AS n FROM (SELECT 1 FROM monitors LIMIT ?)"),
    /** The same with filters. `floor`: the reference down to which monitors were searched; 0 for all. */
    walk(params: PageParams, filter: MonitorFilter): { rows: MonitorRow[]; floor: number } {
      const floor = walkEnd(params.projectRef, params.before, WALKED_MONITORS_MAX - 1);
      return { rows: walked({ ...params, ...filter, floor }).map(current), floor };
    },
  };
}

function storable<Row extends MonitorSettings>(row: Row) {
  const { accept_status, probes, record_values, keywords_all, keywords_any, ...others } = row;
  return { ...others, options: storedOptions(row) };
}

function rowOf(stored: StoredMonitor): MonitorRow {
  const { type, url, name, method, headers, tls_client_key, body, timeout, interval, ...later } = stored;
  const { consecutive_threshold, ...more } = later;
  const { cooldown_ms, webhook_url, email_alert, notify_recovery, active, options, ...others } = more;
  const { monitorId, degraded, overdue, standsUp, certificate, icmp, domain, ...row } = others;
  return {
    ...row,
    monitorId: bytesToUuid(monitorId),
    degraded: degraded !== 0,
    isSplit: degraded === SPLIT,
    overdue: overdue !== 0,
    standsUp: standsUp !== 0,
    certificate: certificate === null ? null : JSON.parse(certificate),
    icmp: icmpOf(icmp),
    domain: domain === null ? null : (JSON.parse(domain) as Registration),
    settings: {
      type,
      url,
      name,
      method,
      headers,
      tls_client_key,
      body,
      timeout,
      interval,
      consecutive_threshold,
      cooldown_ms,
      webhook_url,
      ...optionsOf(options),
      email_alert: email_alert !== 0,
      notify_recovery: notify_recovery !== 0,
      active: active !== 0,
    },
  };
}

/** The stored form of what became of packets: its numbers alone, since each check has them. */
export function storedIcmp({ sent, received, min_ms, avg_ms, max_ms }: IcmpResult): string {
  return JSON.stringify([sent, received, min_ms, avg_ms, max_ms]);
}

/** Restores what became of packets from its stored form. */
export function icmpOf(stored: string | null): IcmpResult | null {
  if (stored === null) return null;
  const [sent, received, min_ms, avg_ms, max_ms] = JSON.parse(stored);
  return { sent, received, loss_percent: lossPercent(sent, received), min_ms, avg_ms, max_ms };
}

/** A check before it is recorded. */
export interface CompletedCheck extends CheckResult {
  /** Whether one failure makes the target down, whatever the threshold: a missed ping is conclusive. */
  readonly ignoresThreshold?: boolean;
  /** Whether this repeats the alert of an earlier failure, which is not counted again. */
  readonly isRepeat?: boolean;
  readonly responseStatus: number | null;
  readonly error: string | null;
  /** The probe that made it; absent: the server. */
  readonly probe?: { readonly ref: number; readonly name: string };
  /** Whether it is so old that it belongs to the history only. */
  readonly isLate?: boolean;
  /** What each probe sees after it, for alerts. */
  readonly probeStates?: readonly ProbeState[];
  /** Body of the ping that failed, or of the last one before a missed ping, for the alert. */
  readonly pingBody?: string | null;
  /** What it shows about the server's connectivity; null or absent: nothing. */
  readonly connectivity?: ConnectivitySign | null;
  /** The scope in which the server is offline, so that the check says nothing about its target. */
  readonly offline?: "server" | "account";
  /** The certificate of the target, if it presented one. */
  readonly certificate?: Certificate;
  /** What became of the packets of an `icmp` check. */
  readonly icmp?: IcmpResult;
  /** When the registration of a `domain` ends, epoch milliseconds. */
  readonly expiresAt?: number;
}

/** Why a check is ignored. */
export type SuppressionReason = "observer_offline" | "maintenance";
/** The number that rows of checks have that came too late to count. */
export const LATE_MARK = 3;
/** The number that rows of checks have that could not be made. */
export const UNKNOWN_MARK = 4;
/** The numbers that rows of checks have for reasons. */
export const SUPPRESSION_REASONS: Readonly<Record<SuppressionReason, number>> = {
  observer_offline: 1,
  maintenance: 2,
};

type NewCheck = Readonly<
  Omit<
    CompletedCheck,
    | ("certificate" | "ignoresThreshold" | "isRepeat" | "isImmediate" | "isUnknown" | "pingBody")
    | ("icmp" | "expiresAt" | "probe" | "isLate" | "probeStates")
  > & {
    probe: string | null;
    icmp: string | null;
    sequence: number;
    ref: number;
    previous: number;
    mark: number;
  }
>;
export type StoredCheck = Omit<NewCheck, "up" | "manual" | "connectivity" | "offline"> & {
  up: number;
  manual: number;
};

/** Counts of a period that starts at a time, epoch milliseconds. */
export type Bucket = Pick<HourCount, "checks" | "up" | "latencySum" | "latencies"> & { readonly at: number };

/** The same from the checks themselves: the latencies of those that were up, milliseconds, with blanks between. */
export interface CheckBucket extends Omit<Bucket, "latencies"> {
  readonly durations: string | null;
}

/** The name that files have for the check after which states of heartbeats may be behind. */
const UNSAVED_SINCE = "heartbeats_unsaved_since";

type WalkedChecks = { ref: number; lastCheck: number; from: number; bucketMs: number; walkedMax: number };
/** Checks of a monitor back to a time. */
const WALK = `WITH RECURSIVE walk (previous, at, up, latency, counts, probe) AS (
    SELECT previous, checked_at, up, latency_ms, mark = 0, probe FROM monitor_checks
    WHERE sequence = $lastCheck AND monitor_ref = $ref AND checked_at >= $from
    UNION ALL SELECT one.previous, one.checked_at, one.up, one.latency_ms, one.mark = 0, one.probe
    FROM walk JOIN monitor_checks AS one ON one.sequence = walk.previous
    WHERE one.monitor_ref = $ref AND one.checked_at >= $from
    LIMIT $walkedMax
  )`;
const COUNTS = `sum(counts) AS checks, sum(up AND counts) AS up,
  sum(CASE WHEN up AND counts THEN latency ELSE 0 END) AS latencySum,
  group_concat(CASE WHEN up AND counts THEN latency END, ' ') AS durations`;

export type CheckStore = ReturnType<typeof checkStore>;

/** All SQL of checks and of their hourly counts. */
export function checkStore(db: Database) {
  return {
    highestSequence: db.number("SELECT max(sequence) AS n FROM monitor_checks"),
    insert: db.change<[NewCheck]>(
      "INSERT INTO monitor_checks (sequence, monitor_ref, previous, checked_at, up, manual, latency_ms, response_status, error, mark, probe, icmp) VALUES ($sequence, $ref, $previous, $at, $up, $manual, $latencyMs, $responseStatus, $error, $mark, $probe, $icmp)",
    ),
    /** The success of a heartbeat. Every ping runs it: positions are bound faster than names. */
    insertSuccess: db.change<[sequence: number, ref: number, previous: number, at: number]>(
      "INSERT INTO monitor_checks (sequence, monitor_ref, previous, checked_at, up, manual, latency_ms, response_status, error, mark) VALUES (?, ?, ?, ?, 1, 0, 0, NULL, NULL, 0)",
    ),
    /** Oldest first. */
    after: db.all<Pick<StoredCheck, "sequence" | "ref" | "at">, [sequence: number]>(
      "SELECT sequence, monitor_ref AS ref, checked_at AS at FROM monitor_checks WHERE sequence > ? ORDER BY sequence",
    ),
    /** The check after which states of heartbeats may be behind their checks; 0: all are current. */
    unsavedSince: db.number(`SELECT value AS n FROM settings WHERE name = '${UNSAVED_SINCE}'`),
    setUnsavedSince: db.change<[sequence: number]>(
      `INSERT OR REPLACE INTO settings (name, value) VALUES ('${UNSAVED_SINCE}', ?)`,
    ),
    check: db.one<StoredCheck, [sequence: number]>(
      "SELECT sequence, monitor_ref AS ref, previous, checked_at AS at, up, manual, latency_ms AS latencyMs, response_status AS responseStatus, error, mark, probe, icmp FROM monitor_checks WHERE sequence = ?",
    ),
    /** Puts an older check, which came late, before a newer one. */
    setPrevious: db.change<[previous: number, sequence: number]>(
      "UPDATE monitor_checks SET previous = ? WHERE sequence = ?",
    ),
    /** The last check up to a sequence. */
    lastUpTo: db.one<{ readonly sequence: number; readonly at: number }, [sequence: number]>(
      "SELECT sequence, checked_at AS at FROM monitor_checks WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1",
    ),
    /** The last check of each monitor in a range of sequences. */
    lastOfEach: db.all<{ readonly ref: number; readonly sequence: number }, [after: number, upTo: number]>(
      "SELECT monitor_ref AS ref, max(sequence) AS sequence FROM monitor_checks WHERE sequence > ? AND sequence <= ? GROUP BY monitor_ref",
    ),
    /**
     * Removes checks among the `rowsMax` oldest: those before a time, and those beyond the newest `storedMax`. They have the
     * lowest sequences, in one range. The newest check always stays: sequences continue from it.
     */
    removeOld: db.change<[rowsMax: number, before: number, storedMax: number]>(
      `DELETE FROM monitor_checks WHERE sequence IN (SELECT sequence FROM monitor_checks ORDER BY sequence LIMIT ?)
       AND (checked_at < ? OR sequence <= (SELECT max(sequence) FROM monitor_checks) - ?)
       AND sequence <> (SELECT max(sequence) FROM monitor_checks)`,
    ),
    removeCheck: db.change<[sequence: number]>(
      "DELETE FROM monitor_checks WHERE sequence = ? AND sequence <> (SELECT max(sequence) FROM monitor_checks)",
    ),
    /** Sequences continue from the newest check, so its row stays, without its content. */
    emptyCheck: db.change<[sequence: number]>(
      "UPDATE monitor_checks SET monitor_ref = 0, previous = 0, response_status = NULL, error = NULL, icmp = NULL WHERE sequence = ?",
    ),
    insertHour: db.change<[Readonly<HourCount & { ref: number }>]>(
      "INSERT OR REPLACE INTO monitor_hours (monitor_ref, hour, checks, up, latency, latencies, known_ms, up_ms) VALUES ($ref, $hour, $checks, $up, $latencySum, $latencies, $knownMs, $upMs)",
    ),
    removeHoursBefore: db.change<[ref: number, hour: number]>(
      "DELETE FROM monitor_hours WHERE monitor_ref = ? AND hour < ?",
    ),
    removeHours: db.change<[ref: number, rowsMax: number]>(
      "DELETE FROM monitor_hours WHERE (monitor_ref, hour) IN (SELECT monitor_ref, hour FROM monitor_hours WHERE monitor_ref = ? LIMIT ?)",
    ),
    hoursSince: db.all<HourCount, [ref: number, hour: number]>(
      `SELECT hour, checks, up, latency AS latencySum, latencies, coalesce(known_ms, ${HOUR_MS}) AS knownMs, coalesce(up_ms, up * ${HOUR_MS} / checks) AS upMs FROM monitor_hours WHERE monitor_ref = ? AND hour >= ?`,
    ),
    /** Walks the checks of a monitor back to a time and counts them by bucket. At most `walkedMax` checks are walked. */
    bucketsOfChecks: db.all<CheckBucket & { readonly walked: number }, [WalkedChecks]>(
      `${WALK} SELECT at - at % $bucketMs AS at, count(*) AS walked, ${COUNTS} FROM walk GROUP BY 1 ORDER BY 1`,
    ),
    /** The same for each probe; null: the server. */
    bucketsByProbe: db.all<CheckBucket & { readonly probe: string | null }, [WalkedChecks]>(
      `${WALK} SELECT probe, at - at % $bucketMs AS at, ${COUNTS} FROM walk GROUP BY 1, 2 ORDER BY 2`,
    ),
  };
}
