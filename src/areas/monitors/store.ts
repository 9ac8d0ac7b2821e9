import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { bytesToUuid, uuidToBytes } from "../../kernel/uuid.ts";

/** What users set about a monitor. */
export interface MonitorSettings {
  readonly url: string;
  readonly method: string;
  /** Sealed. */
  readonly headers: Uint8Array | null;
  readonly body: string | null;
  readonly timeoutMs: number;
  readonly intervalMs: number;
  readonly threshold: number;
  readonly cooldownMs: number;
  readonly webhookUrl: string | null;
  readonly emailAlert: boolean;
  readonly notifyRecovery: boolean;
  readonly active: boolean;
}

/** A monitor as its row has it. */
export interface MonitorRow extends MonitorSettings {
  readonly ref: number;
  readonly monitorId: string;
  readonly accountRef: number;
  readonly projectRef: number;
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What a new monitor's row holds. */
export type NewMonitor = Omit<MonitorRow, "version" | "createdAt" | "updatedAt">;

interface StoredMonitor {
  ref: number;
  monitor_id: Uint8Array;
  account_ref: number;
  project_ref: number;
  url: string;
  method: string;
  headers: Uint8Array | null;
  body: string | null;
  timeout_ms: number;
  interval_ms: number;
  consecutive_threshold: number;
  cooldown_ms: number;
  webhook_url: string | null;
  email_alert: number;
  notify_recovery: number;
  active: number;
  version: number;
  created_at: number;
  updated_at: number;
}

type SettingsParams = [
  ...[string, string, Uint8Array | null, string | null, number, number],
  ...[number, number, string | null, number, number, number],
];

const SETTINGS =
  "url, method, headers, body, timeout_ms, interval_ms, consecutive_threshold, cooldown_ms, webhook_url, email_alert, notify_recovery, active";

/** SQL of monitors as their users set them. */
export class MonitorStore {
  private readonly insertMonitor;
  private readonly updateMonitor;
  private readonly deleteMonitor;
  private readonly byId;
  private readonly byRef;
  private readonly refsOfProject;
  private readonly countOfProject;
  private readonly highest;

  constructor(db: Database) {
    this.insertMonitor = db.command<[number, Uint8Array, number, number, ...SettingsParams, number, number]>(
      `INSERT INTO monitors (ref, monitor_id, account_ref, project_ref, ${SETTINGS}, version, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?)`,
    );
    this.updateMonitor = db.command<[...SettingsParams, number, number]>(
      `UPDATE monitors SET (${SETTINGS}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?), version = version + 1, updated_at = ? WHERE ref = ?`,
    );
    this.deleteMonitor = db.command<[number]>("DELETE FROM monitors WHERE ref = ?");
    const columns = `ref, monitor_id, account_ref, project_ref, ${SETTINGS}, version, created_at, updated_at`;
    this.byId = db.query<StoredMonitor, [Uint8Array]>(`SELECT ${columns} FROM monitors WHERE monitor_id = ?`);
    this.byRef = db.query<StoredMonitor, [number]>(`SELECT ${columns} FROM monitors WHERE ref = ?`);
    this.refsOfProject = db.query<{ ref: number }, [number, number]>(
      "SELECT ref FROM monitors WHERE project_ref = ? ORDER BY ref LIMIT ?",
    );
    this.countOfProject = db.query<{ count: number }, [number]>(
      "SELECT count(*) AS count FROM monitors WHERE project_ref = ?",
    );
    this.highest = db.query<{ ref: number }>(
      "SELECT seq AS ref FROM sqlite_sequence WHERE name = 'monitors'",
    );
  }

  /** The largest reference ever given; 0 when there is none. */
  highestRef(): number {
    return this.highest.get()?.ref ?? 0;
  }

  insert(tx: Tx, monitor: NewMonitor): void {
    const id = uuidToBytes(monitor.monitorId);
    const { ref, accountRef, projectRef } = monitor;
    this.insertMonitor.run(tx, ref, id, accountRef, projectRef, ...settingsParams(monitor), tx.now, tx.now);
  }

  update(tx: Tx, ref: number, settings: MonitorSettings): void {
    this.updateMonitor.run(tx, ...settingsParams(settings), tx.now, ref);
  }

  remove(tx: Tx, ref: number): void {
    this.deleteMonitor.run(tx, ref);
  }

  find(monitorId: string): MonitorRow | null {
    const row = this.byId.get(uuidToBytes(monitorId));
    return row === null ? null : rowOf(row);
  }

  monitor(ref: number): MonitorRow | null {
    const row = this.byRef.get(ref);
    return row === null ? null : rowOf(row);
  }

  ofProject(projectRef: number, limit: number): number[] {
    return this.refsOfProject.all(projectRef, limit).map(({ ref }) => ref);
  }

  count(projectRef: number): number {
    return this.countOfProject.get(projectRef)?.count ?? 0;
  }
}

function settingsParams(settings: MonitorSettings): SettingsParams {
  return [
    settings.url,
    settings.method,
    settings.headers,
    settings.body,
    settings.timeoutMs,
    settings.intervalMs,
    settings.threshold,
    settings.cooldownMs,
    settings.webhookUrl,
    settings.emailAlert ? 1 : 0,
    settings.notifyRecovery ? 1 : 0,
    settings.active ? 1 : 0,
  ];
}

function rowOf(row: StoredMonitor): MonitorRow {
  return {
    ref: row.ref,
    monitorId: bytesToUuid(row.monitor_id),
    accountRef: row.account_ref,
    projectRef: row.project_ref,
    url: row.url,
    method: row.method,
    headers: row.headers,
    body: row.body,
    timeoutMs: row.timeout_ms,
    intervalMs: row.interval_ms,
    threshold: row.consecutive_threshold,
    cooldownMs: row.cooldown_ms,
    webhookUrl: row.webhook_url,
    emailAlert: row.email_alert !== 0,
    notifyRecovery: row.notify_recovery !== 0,
    active: row.active !== 0,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
