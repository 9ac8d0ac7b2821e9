import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { bytesToUuid, uuidToBytes } from "../../kernel/uuid.ts";
import type { Monitor } from "./schema.ts";

/** What users set about a monitor, by the names of the API. */
export type MonitorSettings = Omit<
  Monitor,
  "id" | "headers" | "status" | "latency_ms" | "last_checked_at" | "created_at" | "updated_at" | "warning"
> & {
  /** Sealed. */
  readonly headers: Uint8Array | null;
};

/** Whose a monitor is, and what it is called. */
interface MonitorIdentity {
  readonly ref: number;
  readonly monitorId: string;
  readonly accountRef: number;
  readonly projectRef: number;
}

/** A monitor as its row has it. */
export interface MonitorRow extends MonitorIdentity {
  readonly settings: MonitorSettings;
  /** Rises with every change. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

type BooleanSetting = "email_alert" | "notify_recovery" | "active";

type StoredMonitor = Omit<MonitorRow, "monitorId" | "settings"> &
  Omit<MonitorSettings, BooleanSetting> &
  Record<BooleanSetting, number> & { readonly monitorId: Uint8Array };

const SELECT = `SELECT ref, monitor_id AS monitorId, account_ref AS accountRef, project_ref AS projectRef, version,
  created_at AS createdAt, updated_at AS updatedAt, url, method, headers, body, timeout_ms AS timeout,
  interval_ms AS interval, consecutive_threshold, cooldown_ms, webhook_url, email_alert, notify_recovery, active
  FROM monitors`;

function statements(db: Database) {
  const columns =
    "url, method, headers, body, timeout_ms, interval_ms, consecutive_threshold, cooldown_ms, webhook_url, email_alert, notify_recovery, active";
  const values =
    "$url, $method, $headers, $body, $timeout, $interval, $consecutive_threshold, $cooldown_ms, $webhook_url, $email_alert, $notify_recovery, $active";
  type Given = MonitorSettings & { ref: number; now: number };
  return {
    insert: db.command<[Given & { id: Uint8Array; accountRef: number; projectRef: number }]>(
      `INSERT INTO monitors (ref, monitor_id, account_ref, project_ref, ${columns}, version, created_at, updated_at) VALUES ($ref, $id, $accountRef, $projectRef, ${values}, 1, $now, $now)`,
    ),
    update: db.command<[Given]>(
      `UPDATE monitors SET (${columns}) = (${values}), version = version + 1, updated_at = $now WHERE ref = $ref`,
    ),
    remove: db.command<[number]>("DELETE FROM monitors WHERE ref = ?"),
    byId: db.query<StoredMonitor, [Uint8Array]>(`${SELECT} WHERE monitor_id = ?`),
    byRef: db.query<StoredMonitor, [number]>(`${SELECT} WHERE ref = ?`),
    ofProject: db.query<{ ref: number }, [number, number]>(
      "SELECT ref FROM monitors WHERE project_ref = ? ORDER BY ref LIMIT ?",
    ),
    count: db.query<{ count: number }, [number]>(
      "SELECT count(*) AS count FROM monitors WHERE project_ref = ?",
    ),
    highest: db.query<{ ref: number }>("SELECT seq AS ref FROM sqlite_sequence WHERE name = 'monitors'"),
  };
}

/** SQL of monitors as their users set them. */
export class MonitorStore {
  private readonly sql;

  constructor(db: Database) {
    this.sql = statements(db);
  }

  /** The largest reference ever given; 0 when there is none. */
  highestRef(): number {
    return this.sql.highest.get()?.ref ?? 0;
  }

  insert(tx: Tx, { monitorId, ...owner }: MonitorIdentity, settings: MonitorSettings): void {
    this.sql.insert.run(tx, { ...settings, ...owner, id: uuidToBytes(monitorId), now: tx.now });
  }

  update(tx: Tx, ref: number, settings: MonitorSettings): void {
    this.sql.update.run(tx, { ...settings, ref, now: tx.now });
  }

  remove(tx: Tx, ref: number): void {
    this.sql.remove.run(tx, ref);
  }

  find(monitorId: string): MonitorRow | null {
    return rowOf(this.sql.byId.get(uuidToBytes(monitorId)));
  }

  monitor(ref: number): MonitorRow | null {
    return rowOf(this.sql.byRef.get(ref));
  }

  ofProject(projectRef: number, limit: number): number[] {
    return this.sql.ofProject.all(projectRef, limit).map(({ ref }) => ref);
  }

  count(projectRef: number): number {
    return this.sql.count.get(projectRef)?.count ?? 0;
  }
}

function rowOf(stored: StoredMonitor | null): MonitorRow | null {
  if (stored === null) return null;
  const { ref, accountRef, projectRef, version, createdAt, updatedAt, ...rest } = stored;
  const { monitorId, email_alert, notify_recovery, active, ...settings } = rest;
  return {
    ...{ ref, monitorId: bytesToUuid(monitorId), accountRef, projectRef, version, createdAt, updatedAt },
    settings: {
      ...settings,
      email_alert: email_alert !== 0,
      notify_recovery: notify_recovery !== 0,
      active: active !== 0,
    },
  };
}
