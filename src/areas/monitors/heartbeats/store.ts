import { bytesToUuid, uuidToBytes } from "../../../kernel/data/uuid.ts";
import type { Database } from "../../../kernel/storage/database.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { PINGS_STORED, type PingKind } from "./schema.ts";
import type { HeartbeatState, PingRequest, RunPing, Timing } from "./state.ts";

/** The settings of a heartbeat. */
export interface HeartbeatSettings extends Timing {
  readonly slug: string | null;
}

/** A heartbeat with its settings and state. */
export interface HeartbeatRow extends HeartbeatSettings, HeartbeatState {
  readonly ref: number;
  readonly projectRef: number;
  readonly pingId: Uint8Array;
  /** Token of a push monitor of Uptime Kuma; null without one. */
  readonly pushToken: string | null;
}

/** A stored ping. */
export interface StoredPing extends Pick<PingRequest, "kind" | "exit" | "rid"> {
  readonly at: number;
  readonly durationMs: number | null;
  readonly ip: string | null;
  readonly body: string | null;
}

/** A ping with its number among those of its heartbeat. */
export type NumberedPing = StoredPing & { readonly number: number };

export interface PingKeyRow {
  readonly projectRef: number;
  readonly accountRef: number;
  readonly digest: Uint8Array;
  readonly sealed: Uint8Array;
}

type Bytes = { readonly startedRid: Uint8Array | null };
type StoredSettings = Omit<HeartbeatRow, keyof HeartbeatState>;
type StoredState = Omit<HeartbeatState, "startedRid"> & Bytes;
type PingRow = Omit<StoredPing, "rid"> & { readonly rid: Uint8Array | null };

const STATE = `pings, last_ping_at AS lastPingAt, started_at AS startedAt, started_rid AS startedRid,
  last_duration_ms AS lastDurationMs, waits_since AS waitsSince, expected_at AS expectedAt, missed_at AS missedAt,
  overran_at AS overranAt, repeat_at AS repeatAt, runs, runs_until AS runsUntil,
  looked_at AS jobAt`;

export type HeartbeatRows = ReturnType<typeof heartbeatRows>;

/** Heartbeats as their rows have them, which may be behind what is in memory. */
export function heartbeatRows(db: Database) {
  // Two statements: a join takes the driver ten times as long.
  const settingsOf = db.one<StoredSettings, [ref: number]>(
    "SELECT monitor_ref AS ref, project_ref AS projectRef, ping_id AS pingId, push_token AS pushToken, slug, period_ms, schedule, tz, grace_ms, start_grace_ms, max_runs_per_period FROM heartbeats WHERE monitor_ref = ?",
  );
  const stateOf = db.one<StoredState, [ref: number]>(
    `SELECT ${STATE} FROM heartbeat_states WHERE monitor_ref = ?`,
  );
  const saved = db.change<[Readonly<StoredState & { ref: number }>]>(
    "UPDATE heartbeat_states SET pings = $pings, last_ping_at = $lastPingAt, started_at = $startedAt, started_rid = $startedRid, last_duration_ms = $lastDurationMs, waits_since = $waitsSince, expected_at = $expectedAt, missed_at = $missedAt, overran_at = $overranAt, repeat_at = $repeatAt, runs = $runs, runs_until = $runsUntil, looked_at = $jobAt WHERE monitor_ref = $ref",
  );
  return {
    writeState(tx: Tx, ref: number, state: HeartbeatState): void {
      const { pings, lastPingAt, startedAt, startedRid, lastDurationMs } = state;
      const { waitsSince, expectedAt, missedAt, overranAt, repeatAt, runs, runsUntil, jobAt } = state;
      saved(tx, {
        ref,
        pings,
        lastPingAt,
        startedAt,
        startedRid: bytesOf(startedRid),
        lastDurationMs,
        waitsSince,
        expectedAt,
        missedAt,
        overranAt,
        repeatAt,
        runs,
        runsUntil,
        jobAt,
      });
    },
    read(ref: number): HeartbeatRow | null {
      const [settings, state] = [settingsOf(ref), stateOf(ref)];
      return settings && state && Object.assign(settings, state, { startedRid: textOf(state.startedRid) });
    },
  };
}

/** Heartbeats whose states are newer in memory than in their rows. */
export interface UnsavedHeartbeats {
  /** A heartbeat as it is in memory; undefined: its row is current. */
  heartbeat(ref: number): HeartbeatRow | undefined;
  /** The monitor with a ping id, if its heartbeat is in memory. */
  refOf(pingId: string): number | undefined;
  /** Writes the rows of a heartbeat and drops its state from memory. Required before anything else writes these rows. */
  release(tx: Tx, ref: number): void;
}

export type HeartbeatStore = ReturnType<typeof heartbeatStore>;

/** All SQL of heartbeats, their pings and the keys that these are sent with. What is in memory comes before the rows. */
export function heartbeatStore(
  db: Database,
  unsaved?: UnsavedHeartbeats,
  rows: HeartbeatRows = heartbeatRows(db),
  pings: PingStore = pingStore(db),
) {
  const withPingId = db.lookUp<{ ref: number }, [pingId: Uint8Array]>(
    "SELECT monitor_ref AS ref FROM heartbeats WHERE ping_id = ?",
  );
  const withToken = db.lookUp<{ ref: number }, [pushToken: string]>(
    "SELECT monitor_ref AS ref FROM heartbeats WHERE push_token = ?",
  );
  const update = db.change<[Readonly<HeartbeatSettings & { ref: number }>]>(
    "UPDATE heartbeats SET slug = $slug, period_ms = $period_ms, schedule = $schedule, tz = $tz, grace_ms = $grace_ms, start_grace_ms = $start_grace_ms, max_runs_per_period = $max_runs_per_period WHERE monitor_ref = $ref",
  );
  const remove = db.change<[ref: number]>("DELETE FROM heartbeats WHERE monitor_ref = ?");
  const removeState = db.change<[ref: number]>("DELETE FROM heartbeat_states WHERE monitor_ref = ?");
  return {
    ...pings,
    ...keyStore(db),
    insert: db.change<
      [Readonly<HeartbeatSettings & Pick<HeartbeatRow, "ref" | "projectRef" | "pingId" | "pushToken">>]
    >(
      "INSERT INTO heartbeats (monitor_ref, project_ref, ping_id, push_token, slug, period_ms, schedule, tz, grace_ms, start_grace_ms, max_runs_per_period) VALUES ($ref, $projectRef, $pingId, $pushToken, $slug, $period_ms, $schedule, $tz, $grace_ms, $start_grace_ms, $max_runs_per_period)",
    ),
    insertState: db.change<[ref: number]>("INSERT INTO heartbeat_states (monitor_ref, pings) VALUES (?, 0)"),
    update(tx: Tx, settings: Readonly<HeartbeatSettings & { ref: number }>): void {
      unsaved?.release(tx, settings.ref);
      update(tx, settings);
    },
    save(tx: Tx, ref: number, state: HeartbeatState): void {
      unsaved?.release(tx, ref);
      rows.writeState(tx, ref, state);
    },
    find: (ref: number): HeartbeatRow | null => unsaved?.heartbeat(ref) ?? rows.read(ref),
    refOf: (pingId: string): number | null =>
      unsaved?.refOf(pingId) ?? withPingId(uuidToBytes(pingId))?.ref ?? null,
    /** The heartbeat with a push token. */
    refOfToken: (pushToken: string): number | null => withToken(pushToken)?.ref ?? null,
    withSlug: db.one<{ ref: number }, [projectRef: number, slug: string]>(
      "SELECT monitor_ref AS ref FROM heartbeats WHERE project_ref = ? AND slug = ?",
    ),
    remove(tx: Tx, ref: number): void {
      unsaved?.release(tx, ref);
      remove(tx, ref);
    },
    removeState(tx: Tx, ref: number): void {
      unsaved?.release(tx, ref);
      removeState(tx, ref);
    },
  };
}

export type PingStore = ReturnType<typeof pingStore>;

/** The last pings of heartbeats, without those that are in memory alone. */
export function pingStore(db: Database) {
  // Every ping runs it: positional parameters are faster than named ones.
  const inserted = db.change<
    [
      id: number,
      number: number,
      at: number,
      kind: PingKind,
      exit: number | null,
      durationMs: number | null,
      rid: Uint8Array | null,
      ip: string | null,
      body: string | null,
    ]
  >(
    "INSERT OR REPLACE INTO heartbeat_pings (id, number, at, kind, exit, duration_ms, rid, ip, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const pingAt = db.one<{ ip: string | null; body: string | null }, [id: number]>(
    "SELECT ip, body FROM heartbeat_pings WHERE id = ?",
  );
  const stored = db.all<PingRow & { number: number }, [first: number, end: number]>(
    "SELECT number, at, kind, exit, duration_ms AS durationMs, rid, ip, body FROM heartbeat_pings WHERE id >= ? AND id < ? ORDER BY number DESC LIMIT 100",
  );
  const runPings = db.all<Pick<PingRow, "at" | "kind" | "rid">, [first: number, end: number]>(
    "SELECT at, kind, rid FROM heartbeat_pings WHERE id >= ? AND id < ? ORDER BY number",
  );
  const startOf = db.one<{ at: number }, [first: number, end: number, rid: Uint8Array]>(
    "SELECT at FROM heartbeat_pings WHERE id >= ? AND id < ? AND kind = 'start' AND rid = ? ORDER BY number DESC LIMIT 1",
  );
  const removed = db.change<[first: number, end: number]>(
    "DELETE FROM heartbeat_pings WHERE id >= ? AND id < ?",
  );
  return {
    /** Stores a ping in place of the one {@link PINGS_STORED} before it. */
    insertPing(tx: Tx, ref: number, number: number, ping: StoredPing): void {
      const id = placeOf(ref, number);
      const { at, kind, exit, durationMs, rid, ip, body } = ping;
      inserted(tx, id, number, at, kind, exit, durationMs, bytesOf(rid), ip, body);
    },
    /** A heartbeat's last pings, newest first. */
    lastPings: (ref: number): NumberedPing[] =>
      stored(...placesOf(ref)).map((ping) => ({ ...ping, rid: textOf(ping.rid) })),
    /** Where a ping came from, one of the last. */
    ipOf: (ref: number, number: number) => pingAt(placeOf(ref, number))?.ip ?? null,
    /** Body of a ping, one of the last. */
    bodyOf: (ref: number, number: number) => pingAt(placeOf(ref, number))?.body ?? null,
    /** Which runs a heartbeat's last pings belong to, oldest first. */
    runPings: (ref: number): RunPing[] =>
      runPings(...placesOf(ref)).map((ping) => ({ ...ping, rid: textOf(ping.rid) })),
    /** Start of a run, if it is among the stored pings. */
    startOf: (ref: number, rid: string) => startOf(...placesOf(ref), uuidToBytes(rid))?.at ?? null,
    removePings: (tx: Tx, ref: number) => removed(tx, ...placesOf(ref)),
  };
}

function keyStore(db: Database) {
  return {
    setKey: db.change<[Readonly<PingKeyRow>]>(
      "INSERT OR REPLACE INTO heartbeat_ping_keys (project_ref, account_ref, digest, sealed) VALUES ($projectRef, $accountRef, $digest, $sealed)",
    ),
    keyOf: db.one<{ sealed: Uint8Array }, [projectRef: number]>(
      "SELECT sealed FROM heartbeat_ping_keys WHERE project_ref = ?",
    ),
    ownerOf: db.lookUp<Pick<PingKeyRow, "projectRef" | "accountRef">, [digest: Uint8Array]>(
      "SELECT project_ref AS projectRef, account_ref AS accountRef FROM heartbeat_ping_keys WHERE digest = ?",
    ),
    removeKey: db.change<[projectRef: number]>("DELETE FROM heartbeat_ping_keys WHERE project_ref = ?"),
  };
}

function placeOf(ref: number, number: number): number {
  return ref * PINGS_STORED + (number % PINGS_STORED);
}

function placesOf(ref: number): [first: number, end: number] {
  return [ref * PINGS_STORED, (ref + 1) * PINGS_STORED];
}

function bytesOf(uuid: string | null): Uint8Array | null {
  return uuid === null ? null : uuidToBytes(uuid);
}

function textOf(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : bytesToUuid(bytes);
}
