import type { Database } from "../../kernel/storage/database.ts";
import { References } from "../../kernel/storage/references.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { bytesToUuid, uuidToBytes } from "../../kernel/uuid.ts";
import {
  RELAY_KINDS,
  RELAY_STATUSES,
  type RelayAttempt,
  type RelayItem,
  type RelayStatus,
} from "./schema.ts";

/** A delivery, as far as its lists show it. */
export interface RelayRow {
  readonly ref: number;
  readonly projectRef: number;
  /** As it is stored: a first attempt that is under way shows nowhere in it. */
  readonly item: RelayItem;
}

/** What an attempt sends, and for whom. */
interface RelayContent {
  readonly accountRef: number;
  /** Sealed. */
  readonly headers: Uint8Array | null;
  readonly body: string | null;
}

/** A delivery with what its attempts need. */
export type RelayRequest = RelayRow & RelayContent;

/** A delivery to be stored. */
export type NewRelay = RelayContent &
  Pick<RelayRow, "ref" | "projectRef"> &
  Pick<RelayItem, "relay_id" | "kind" | "event" | "monitor_id" | "target_url" | "method" | "scheduled_for">;

/** What an attempt makes of a delivery. */
export type RelayResult = Pick<RelayItem, "status" | "attempts" | "response_status" | "error">;

type StoredItem = Omit<RelayItem, "relay_id" | "kind" | "status" | "monitor_id"> & {
  readonly ref: number;
  readonly projectRef: number;
  readonly relay_id: Uint8Array;
  readonly kind: number;
  readonly status: number;
  readonly monitor_id: Uint8Array | null;
};

function statements(db: Database) {
  const columns =
    "ref, project_ref AS projectRef, relay_id, kind, event, monitor_id, target_url, method, status, attempts, response_status, error, scheduled_for, finished_at, created_at";
  const page = "project_ref = ? AND status = ? AND ref < ? ORDER BY ref DESC LIMIT ?";
  return {
    insert: db.command<
      [
        ...[number, Uint8Array, number, number, number, string | null, Uint8Array | null, string, string],
        ...[Uint8Array | null, string | null, number, number],
      ]
    >(
      "INSERT INTO relays (ref, relay_id, account_ref, project_ref, kind, status, event, monitor_id, target_url, method, headers, body, attempts, scheduled_for, created_at) VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
    ),
    byRef: db.query<StoredItem & RelayContent, [number]>(
      `SELECT ${columns}, account_ref AS accountRef, headers, body FROM relays WHERE ref = ?`,
    ),
    page: db.query<StoredItem, [number, number, number, number]>(
      `SELECT ${columns} FROM relays WHERE ${page}`,
    ),
    pulsePage: db.query<StoredItem, [number, number, number, number]>(
      `SELECT ${columns} FROM relays WHERE kind = 2 AND ${page}`,
    ),
    attempts: db.query<RelayAttempt, [number]>(
      "SELECT number AS attempt, started_at, duration_ms, response_status, error FROM relay_attempts WHERE relay_ref = ? ORDER BY number",
    ),
    insertAttempt: db.command<[number, number, number, number, number | null, string | null]>(
      "INSERT OR REPLACE INTO relay_attempts (relay_ref, number, started_at, duration_ms, response_status, error) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    postpone: db.command<[number, number, number | null, string | null, number]>(
      "UPDATE relays SET status = ?, attempts = ?, response_status = ?, error = ? WHERE ref = ?",
    ),
    finish: db.command<[number, number, number | null, string | null, number, number]>(
      "UPDATE relays SET status = ?, attempts = ?, response_status = ?, error = ?, finished_at = ?, headers = NULL, body = NULL WHERE ref = ?",
    ),
    finishedBefore: db.query<{ ref: number }, [number, number]>(
      "SELECT ref FROM relays WHERE finished_at < ? ORDER BY finished_at LIMIT ?",
    ),
    ofProject: db.query<{ ref: number }, [number, number]>(
      "SELECT ref FROM relays WHERE project_ref = ? LIMIT ?",
    ),
    remove: db.command<[number]>("DELETE FROM relays WHERE ref = ?"),
    removeAttempts: db.command<[number]>("DELETE FROM relay_attempts WHERE relay_ref = ?"),
    countWaiting: db.query<{ count: number }, [number]>(
      "SELECT count(*) AS count FROM relays WHERE project_ref = ? AND status IN (1, 2)",
    ),
  };
}

/** All SQL of deliveries. */
export class RelayStore {
  private readonly sql;
  private readonly references;

  constructor(db: Database) {
    this.sql = statements(db);
    this.references = new References(db, "relays", "relay_highest_removed");
  }

  /** The largest reference given so far, also to deliveries that are gone; 0 when there was none. */
  highestRef(): number {
    return this.references.highest();
  }

  insert(tx: Tx, relay: NewRelay): void {
    this.sql.insert.run(
      tx,
      relay.ref,
      uuidToBytes(relay.relay_id),
      relay.accountRef,
      relay.projectRef,
      RELAY_KINDS.indexOf(relay.kind) + 1,
      relay.event,
      relay.monitor_id === null ? null : uuidToBytes(relay.monitor_id),
      relay.target_url,
      relay.method,
      relay.headers,
      relay.body,
      relay.scheduled_for,
      tx.now,
    );
  }

  /** A delivery with what its attempts need. */
  request(ref: number): RelayRequest | null {
    const row = this.sql.byRef.get(ref);
    if (row === null) return null;
    const { accountRef, headers, body, ...stored } = row;
    return { ...rowOf(stored), accountRef, headers, body };
  }

  /** Deliveries of a project with this status, newest first, below a reference. */
  page(
    projectRef: number,
    onlyPulse: boolean,
    status: RelayStatus,
    before: number,
    limit: number,
  ): RelayRow[] {
    const query = onlyPulse ? this.sql.pulsePage : this.sql.page;
    return query.all(projectRef, statusNumber(status), before, limit).map(rowOf);
  }

  attempts(ref: number): RelayAttempt[] {
    return this.sql.attempts.all(ref);
  }

  recordAttempt(tx: Tx, ref: number, made: RelayAttempt): void {
    const { attempt, started_at, duration_ms, response_status, error } = made;
    this.sql.insertAttempt.run(tx, ref, attempt, started_at, duration_ms, response_status, error);
  }

  /**
   * Notes what an attempt made of a delivery. With its end, what was sent is removed.
   * @returns whether the delivery is still there.
   */
  update(tx: Tx, ref: number, result: RelayResult): boolean {
    const { attempts, response_status: responseStatus, error } = result;
    const status = statusNumber(result.status);
    const changed =
      result.status === "delivering"
        ? this.sql.postpone.run(tx, status, attempts, responseStatus, error, ref)
        : this.sql.finish.run(tx, status, attempts, responseStatus, error, tx.now, ref);
    return changed > 0;
  }

  /** Deliveries that ended before a moment, the oldest first. */
  endedBefore(moment: number, limit: number): number[] {
    return this.sql.finishedBefore.all(moment, limit).map(({ ref }) => ref);
  }

  ofProject(projectRef: number, limit: number): number[] {
    return this.sql.ofProject.all(projectRef, limit).map(({ ref }) => ref);
  }

  /** Removes deliveries. Their references are not given again: a job of one that was cancelled may still wait. */
  remove(tx: Tx, refs: readonly number[]): void {
    for (const ref of refs) {
      this.sql.removeAttempts.run(tx, ref);
      this.sql.remove.run(tx, ref);
    }
    if (refs.length > 0) this.references.removed(tx, Math.max(...refs));
  }

  /** How many deliveries of a project have not ended. */
  waiting(projectRef: number): number {
    return this.sql.countWaiting.get(projectRef)?.count ?? 0;
  }
}

function statusNumber(status: RelayStatus): number {
  return RELAY_STATUSES.indexOf(status) + 1;
}

function rowOf({ ref, projectRef, ...stored }: StoredItem): RelayRow {
  const kind = RELAY_KINDS[stored.kind - 1];
  const status = RELAY_STATUSES[stored.status - 1];
  if (kind === undefined || status === undefined)
    throw new Error(`relay ${ref} has an unknown kind or status`);
  const relayId = bytesToUuid(stored.relay_id);
  const monitorId = stored.monitor_id === null ? null : bytesToUuid(stored.monitor_id);
  return { ref, projectRef, item: { ...stored, relay_id: relayId, kind, status, monitor_id: monitorId } };
}
