import type { Database } from "../../kernel/storage/database.ts";
import { References } from "../../kernel/storage/references.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { bytesToUuid, uuidToBytes } from "../../kernel/uuid.ts";
import type { RelayKind, RelayStatus } from "./domain.ts";

/** What a new delivery's row holds. */
export interface NewRelay {
  readonly relayId: string;
  readonly accountRef: number;
  readonly projectRef: number;
  readonly kind: RelayKind;
  readonly event: string | null;
  readonly monitorId: string | null;
  readonly targetUrl: string;
  readonly method: string;
  readonly headers: Uint8Array | null;
  readonly body: string | null;
  readonly scheduledFor: number;
}

/** A delivery, as far as its lists show it. */
export interface RelayRow {
  readonly ref: number;
  readonly relayId: string;
  readonly projectRef: number;
  readonly kind: RelayKind;
  readonly status: RelayStatus;
  readonly event: string | null;
  readonly monitorId: string | null;
  readonly targetUrl: string;
  readonly method: string;
  readonly attempts: number;
  readonly responseStatus: number | null;
  readonly error: string | null;
  readonly scheduledFor: number;
  readonly finishedAt: number | null;
  readonly createdAt: number;
}

/** What an attempt at a delivery needs beyond its row. */
export interface RelayRequestRow extends RelayRow {
  readonly accountRef: number;
  readonly headers: Uint8Array | null;
  readonly body: string | null;
}

/** A row of `relay_attempts`. */
export interface AttemptRow {
  readonly number: number;
  readonly started_at: number;
  readonly duration_ms: number;
  readonly response_status: number | null;
  readonly error: string | null;
}

interface StoredRow {
  ref: number;
  relay_id: Uint8Array;
  project_ref: number;
  kind: number;
  status: number;
  event: string | null;
  monitor_id: Uint8Array | null;
  target_url: string;
  method: string;
  attempts: number;
  response_status: number | null;
  error: string | null;
  scheduled_for: number;
  finished_at: number | null;
  created_at: number;
}

const KINDS: readonly RelayKind[] = ["scheduled", "pulse"];
const STATUSES: readonly RelayStatus[] = ["scheduled", "delivering", "delivered", "failed", "cancelled"];
const COLUMNS =
  "ref, relay_id, project_ref, kind, status, event, monitor_id, target_url, method, attempts, response_status, error, scheduled_for, finished_at, created_at";

/** All SQL of deliveries. */
export class RelayStore {
  private readonly insertRelay;
  private readonly byRef;
  private readonly pageByStatus;
  private readonly pulsePageByStatus;
  private readonly attemptsOf;
  private readonly insertAttempt;
  private readonly postponeRelay;
  private readonly finishRelay;
  private readonly finishedBefore;
  private readonly refsOfProject;
  private readonly deleteRelay;
  private readonly deleteAttempts;
  private readonly countWaiting;
  private readonly references;

  constructor(db: Database) {
    this.insertRelay = db.command<
      [
        ...[number, Uint8Array, number, number, number, string | null, Uint8Array | null, string, string],
        ...[Uint8Array | null, string | null, number, number],
      ]
    >(
      "INSERT INTO relays (ref, relay_id, account_ref, project_ref, kind, status, event, monitor_id, target_url, method, headers, body, attempts, scheduled_for, created_at) VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
    );
    this.byRef = db.query<
      StoredRow & { account_ref: number; headers: Uint8Array | null; body: string | null },
      [number]
    >(`SELECT ${COLUMNS}, account_ref, headers, body FROM relays WHERE ref = ?`);
    const page = "project_ref = ? AND status = ? AND ref < ? ORDER BY ref DESC LIMIT ?";
    this.pageByStatus = db.query<StoredRow, [number, number, number, number]>(
      `SELECT ${COLUMNS} FROM relays WHERE ${page}`,
    );
    this.pulsePageByStatus = db.query<StoredRow, [number, number, number, number]>(
      `SELECT ${COLUMNS} FROM relays WHERE kind = 2 AND ${page}`,
    );
    this.attemptsOf = db.query<AttemptRow, [number]>(
      "SELECT number, started_at, duration_ms, response_status, error FROM relay_attempts WHERE relay_ref = ? ORDER BY number",
    );
    this.insertAttempt = db.command<[number, number, number, number, number | null, string | null]>(
      "INSERT OR REPLACE INTO relay_attempts (relay_ref, number, started_at, duration_ms, response_status, error) VALUES (?, ?, ?, ?, ?, ?)",
    );
    this.postponeRelay = db.command<[number, number | null, string, number]>(
      "UPDATE relays SET status = 2, attempts = ?, response_status = ?, error = ? WHERE ref = ?",
    );
    this.finishRelay = db.command<[number, number, number | null, string | null, number, number]>(
      "UPDATE relays SET status = ?, attempts = ?, response_status = ?, error = ?, finished_at = ?, headers = NULL, body = NULL WHERE ref = ?",
    );
    this.finishedBefore = db.query<{ ref: number }, [number, number]>(
      "SELECT ref FROM relays WHERE finished_at < ? ORDER BY finished_at LIMIT ?",
    );
    this.refsOfProject = db.query<{ ref: number }, [number, number]>(
      "SELECT ref FROM relays WHERE project_ref = ? LIMIT ?",
    );
    this.deleteRelay = db.command<[number]>("DELETE FROM relays WHERE ref = ?");
    this.deleteAttempts = db.command<[number]>("DELETE FROM relay_attempts WHERE relay_ref = ?");
    this.countWaiting = db.query<{ count: number }, [number]>(
      "SELECT count(*) AS count FROM relays WHERE project_ref = ? AND status IN (1, 2)",
    );
    this.references = new References(db, "relays", "relay_highest_removed");
  }

  /** The largest reference given so far, also to deliveries that are gone; 0 when there was none. */
  highestRef(): number {
    return this.references.highest();
  }

  insert(tx: Tx, relay: NewRelay, ref: number): void {
    this.insertRelay.run(
      tx,
      ref,
      uuidToBytes(relay.relayId),
      relay.accountRef,
      relay.projectRef,
      KINDS.indexOf(relay.kind) + 1,
      relay.event,
      relay.monitorId === null ? null : uuidToBytes(relay.monitorId),
      relay.targetUrl,
      relay.method,
      relay.headers,
      relay.body,
      relay.scheduledFor,
      tx.now,
    );
  }

  /** A delivery with what its attempts need. */
  request(ref: number): RelayRequestRow | null {
    const row = this.byRef.get(ref);
    if (row === null) return null;
    return { ...rowOf(row), accountRef: row.account_ref, headers: row.headers, body: row.body };
  }

  /** Deliveries of a project with this status, newest first, below a reference. */
  page(
    projectRef: number,
    onlyPulse: boolean,
    status: RelayStatus,
    before: number,
    limit: number,
  ): RelayRow[] {
    const query = onlyPulse ? this.pulsePageByStatus : this.pageByStatus;
    return query.all(projectRef, STATUSES.indexOf(status) + 1, before, limit).map(rowOf);
  }

  attempts(ref: number): AttemptRow[] {
    return this.attemptsOf.all(ref);
  }

  recordAttempt(tx: Tx, ref: number, attempt: AttemptRow): void {
    const { number, started_at, duration_ms, response_status, error } = attempt;
    this.insertAttempt.run(tx, ref, number, started_at, duration_ms, response_status, error);
  }

  /** Another attempt will follow. Returns whether the delivery is still there. */
  postpone(tx: Tx, ref: number, attempts: number, responseStatus: number | null, error: string): boolean {
    return this.postponeRelay.run(tx, attempts, responseStatus, error, ref) > 0;
  }

  /** Notes the end, and lets go of what was sent. Returns whether the delivery is still there. */
  finish(
    tx: Tx,
    ref: number,
    end: { status: RelayStatus; attempts: number; responseStatus: number | null; error: string | null },
  ): boolean {
    const status = STATUSES.indexOf(end.status) + 1;
    const { attempts, responseStatus, error } = end;
    return this.finishRelay.run(tx, status, attempts, responseStatus, error, tx.now, ref) > 0;
  }

  /** Deliveries that ended before a moment, the oldest first. */
  endedBefore(moment: number, limit: number): number[] {
    return this.finishedBefore.all(moment, limit).map(({ ref }) => ref);
  }

  ofProject(projectRef: number, limit: number): number[] {
    return this.refsOfProject.all(projectRef, limit).map(({ ref }) => ref);
  }

  /** Removes deliveries. Their references are not given again: a job of one that was cancelled may still wait. */
  remove(tx: Tx, refs: readonly number[]): void {
    for (const ref of refs) {
      this.deleteAttempts.run(tx, ref);
      this.deleteRelay.run(tx, ref);
    }
    if (refs.length > 0) this.references.removed(tx, Math.max(...refs));
  }

  /** Deliveries of a project that have not ended. */
  waiting(projectRef: number): number {
    return this.countWaiting.get(projectRef)?.count ?? 0;
  }
}

function rowOf(row: StoredRow): RelayRow {
  const kind = KINDS[row.kind - 1];
  const status = STATUSES[row.status - 1];
  if (kind === undefined || status === undefined)
    throw new Error(`relay ${row.ref} has an unknown kind or status`);
  return {
    ref: row.ref,
    relayId: bytesToUuid(row.relay_id),
    projectRef: row.project_ref,
    kind,
    status,
    event: row.event,
    monitorId: row.monitor_id === null ? null : bytesToUuid(row.monitor_id),
    targetUrl: row.target_url,
    method: row.method,
    attempts: row.attempts,
    responseStatus: row.response_status,
    error: row.error,
    scheduledFor: row.scheduled_for,
    finishedAt: row.finished_at,
    createdAt: row.created_at,
  };
}
