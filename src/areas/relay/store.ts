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

/** A delivery with what its attempts need. */
export interface RelayRequest extends RelayRow {
  readonly accountRef: number;
  /** Sealed. */
  readonly headers: Uint8Array | null;
  readonly body: string | null;
}
type RelayContent = Omit<RelayRequest, keyof RelayRow>;

/** A delivery to be stored. */
export type NewRelay = Omit<RelayRequest, "item"> &
  Pick<RelayItem, "relay_id" | "kind" | "event" | "monitor_id" | "target_url" | "method" | "scheduled_for">;

/** What an attempt makes of a delivery. */
export type RelayResult = Pick<RelayItem, "status" | "attempts" | "response_status" | "error">;

/** How what is no text or number in a row is kept there. */
type Stored<Item> = Omit<Item, "relay_id" | "kind" | "status" | "monitor_id"> & {
  readonly relay_id: Uint8Array;
  readonly kind: number;
  readonly monitor_id: Uint8Array | null;
};
type StoredRow = Stored<RelayItem> & Omit<RelayRow, "item"> & { readonly status: number };
type Outcome = Omit<RelayResult, "status"> & { readonly ref: number; readonly status: number };

type Referenced = { readonly ref: number };

const COLUMNS =
  "ref, project_ref AS projectRef, relay_id, kind, event, monitor_id, target_url, method, status, attempts, response_status, error, scheduled_for, finished_at, created_at";
const PAGE = "project_ref = ? AND status = ? AND ref < ? ORDER BY ref DESC LIMIT ?";
type Page = [projectRef: number, status: number, before: number, limit: number];

export type RelayStore = ReturnType<typeof relayStore>;

/** All SQL of deliveries. */
export function relayStore(db: Database) {
  const insert = db.change<[row: Stored<NewRelay> & { readonly created_at: number }]>(
    "INSERT INTO relays (ref, relay_id, account_ref, project_ref, kind, status, event, monitor_id, target_url, method, headers, body, attempts, scheduled_for, created_at) VALUES ($ref, $relay_id, $accountRef, $projectRef, $kind, 1, $event, $monitor_id, $target_url, $method, $headers, $body, 0, $scheduled_for, $created_at)",
  );
  const request = db.one<StoredRow & RelayContent, [ref: number]>(
    `SELECT ${COLUMNS}, account_ref AS accountRef, headers, body FROM relays WHERE ref = ?`,
  );
  const page = db.all<StoredRow, Page>(`SELECT ${COLUMNS} FROM relays WHERE ${PAGE}`);
  const pulsePage = db.all<StoredRow, Page>(`SELECT ${COLUMNS} FROM relays WHERE kind = 2 AND ${PAGE}`);
  const remove = db.change<[ref: number]>("DELETE FROM relays WHERE ref = ?");
  const { removeAttempts, ...attempts } = attemptStore(db);
  const references = new References(db, "relays", "relay_highest_removed");
  return {
    ...attempts,
    /** The largest reference given so far, also to deliveries that are gone; 0 when there was none. */
    highestRef: references.highest,
    insert(tx: Tx, relay: NewRelay): void {
      insert(tx, {
        ...relay,
        relay_id: uuidToBytes(relay.relay_id),
        kind: RELAY_KINDS.indexOf(relay.kind) + 1,
        monitor_id: relay.monitor_id === null ? null : uuidToBytes(relay.monitor_id),
        created_at: tx.now,
      });
    },
    /** A delivery with what its attempts need. */
    request(ref: number): RelayRequest | null {
      const row = request(ref);
      if (row === null) return null;
      const { accountRef, headers, body, ...stored } = row;
      return { ...rowOf(stored), accountRef, headers, body };
    },
    /** Deliveries of a project with a status, newest first, below a reference. */
    page(onlyPulse: boolean, projectRef: number, status: RelayStatus, before: number, limit: number) {
      const rows = onlyPulse ? pulsePage : page;
      return rows(projectRef, statusNumber(status), before, limit).map(rowOf);
    },
    /** How many of a project have not begun, counted to a figure. */
    scheduledTo: db.number<[projectRef: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM relays WHERE project_ref = ? AND status = 1 LIMIT ?)",
    ),
    /** How many of the newest that failed did so since a moment. */
    failedSince: db.number<[projectRef: number, countedMax: number, since: number]>(
      "SELECT count(*) AS n FROM (SELECT finished_at FROM relays WHERE project_ref = ? AND status = 4 ORDER BY ref DESC LIMIT ?) WHERE finished_at >= ?",
    ),
    /** The oldest first. */
    endedBefore: db.all<Referenced, [moment: number, limit: number]>(
      "SELECT ref FROM relays WHERE finished_at < ? ORDER BY finished_at LIMIT ?",
    ),
    someOfProject: db.all<Referenced, [projectRef: number, limit: number]>(
      "SELECT ref FROM relays WHERE project_ref = ? LIMIT ?",
    ),
    /**
     * Removes deliveries. Their references are not given again: a job of one that was cancelled may still wait.
     * @returns how many.
     */
    remove(tx: Tx, relays: readonly Referenced[]): number {
      for (const { ref } of relays) {
        removeAttempts(tx, ref);
        remove(tx, ref);
      }
      if (relays.length > 0) references.removed(tx, Math.max(...relays.map(({ ref }) => ref)));
      return relays.length;
    },
    /** How many deliveries of a project have not ended. */
    waiting: db.number<[projectRef: number]>(
      "SELECT count(*) AS n FROM relays WHERE project_ref = ? AND status IN (1, 2)",
    ),
  };
}

/** What attempts make of a delivery. */
function attemptStore(db: Database) {
  const postpone = db.change<[outcome: Outcome]>(
    "UPDATE relays SET status = $status, attempts = $attempts, response_status = $response_status, error = $error WHERE ref = $ref",
  );
  const finish = db.change<[outcome: Outcome & { readonly finished_at: number }]>(
    "UPDATE relays SET status = $status, attempts = $attempts, response_status = $response_status, error = $error, finished_at = $finished_at, headers = NULL, body = NULL WHERE ref = $ref",
  );
  return {
    attempts: db.all<RelayAttempt, [ref: number]>(
      "SELECT number AS attempt, started_at, duration_ms, response_status, error FROM relay_attempts WHERE relay_ref = ? ORDER BY number",
    ),
    recordAttempt: db.change<[made: RelayAttempt & Referenced]>(
      "INSERT OR REPLACE INTO relay_attempts (relay_ref, number, started_at, duration_ms, response_status, error) VALUES ($ref, $attempt, $started_at, $duration_ms, $response_status, $error)",
    ),
    /**
     * Notes what an attempt made of a delivery. With its end, what was sent is removed.
     * @returns whether the delivery is still there.
     */
    update(tx: Tx, ref: number, result: RelayResult): boolean {
      const outcome = { ...result, ref, status: statusNumber(result.status) };
      if (result.status === "delivering") return postpone(tx, outcome) > 0;
      return finish(tx, { ...outcome, finished_at: tx.now }) > 0;
    },
    removeAttempts: db.change<[ref: number]>("DELETE FROM relay_attempts WHERE relay_ref = ?"),
  };
}

function statusNumber(status: RelayStatus): number {
  return RELAY_STATUSES.indexOf(status) + 1;
}

function rowOf({ ref, projectRef, ...stored }: StoredRow): RelayRow {
  const kind = RELAY_KINDS[stored.kind - 1];
  const status = RELAY_STATUSES[stored.status - 1];
  if (kind === undefined || status === undefined)
    throw new Error(`relay ${ref} has an unknown kind or status`);
  const relay_id = bytesToUuid(stored.relay_id);
  const monitor_id = stored.monitor_id === null ? null : bytesToUuid(stored.monitor_id);
  return { ref, projectRef, item: { ...stored, relay_id, kind, status, monitor_id } };
}
