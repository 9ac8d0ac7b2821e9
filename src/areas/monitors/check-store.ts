import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { CheckResult, HourCount, MonitorState } from "./domain.ts";
import type { TargetStatus } from "./schema.ts";

/** A monitor's state as its row has it. */
export interface StateRow extends MonitorState {
  readonly ref: number;
  /** Sequence of the last check; 0: none. */
  readonly lastCheck: number;
  /** The hour that is being counted. */
  readonly current: HourCount;
}

type StoredState = Omit<StateRow, "status" | "current"> & HourCount & { readonly status: number };

/** A check as its row has it. */
export interface CheckRow {
  readonly sequence: number;
  readonly monitor_ref: number;
  readonly previous: number;
  readonly checked_at: number;
  readonly up: number;
  readonly manual: number;
  readonly latency_ms: number;
  readonly response_status: number | null;
  readonly error: string | null;
}

/** What a check's row holds beyond its result. */
export interface CheckDetails {
  readonly responseStatus: number | null;
  readonly error: string | null;
}

const STATUSES: readonly TargetStatus[] = ["up", "down", "unknown"];

type CheckParams = Readonly<CheckResult & CheckDetails & { sequence: number; ref: number; previous: number }>;
type StateParams = Readonly<
  Omit<MonitorState, "status"> & HourCount & { ref: number; statusNumber: number; lastCheck: number }
>;

function statements(db: Database) {
  return {
    insertState: db.command<[number, number]>(
      "INSERT INTO monitor_states (monitor_ref, project_ref, status, consecutive_failures, last_check, hour, hour_checks, hour_up) VALUES (?, ?, 3, 0, 0, 0, 0, 0)",
    ),
    updateState: db.command<[StateParams]>(
      "UPDATE monitor_states SET status = $statusNumber, latency_ms = $latencyMs, last_checked_at = $lastCheckedAt, consecutive_failures = $consecutiveFailures, told_at = $alertedAt, last_check = $lastCheck, hour = $hour, hour_checks = $checks, hour_up = $up WHERE monitor_ref = $ref",
    ),
    deleteState: db.command<[number]>("DELETE FROM monitor_states WHERE monitor_ref = ?"),
    state: db.query<StoredState, [number]>(
      "SELECT monitor_ref AS ref, status, latency_ms AS latencyMs, last_checked_at AS lastCheckedAt, consecutive_failures AS consecutiveFailures, told_at AS alertedAt, last_check AS lastCheck, hour, hour_checks AS checks, hour_up AS up FROM monitor_states WHERE monitor_ref = ?",
    ),
    pageOfAll: db.query<{ ref: number }, [number, number, number]>(
      "SELECT ref FROM monitors WHERE project_ref = ? AND ref < ? ORDER BY ref DESC LIMIT ?",
    ),
    pageOfStatus: db.query<{ ref: number }, [number, number, number, number]>(
      "SELECT monitor_ref AS ref FROM monitor_states WHERE project_ref = ? AND status = ? AND monitor_ref < ? ORDER BY monitor_ref DESC LIMIT ?",
    ),
    insertCheck: db.command<[CheckParams]>(
      "INSERT INTO monitor_checks (sequence, monitor_ref, previous, checked_at, up, manual, latency_ms, response_status, error) VALUES ($sequence, $ref, $previous, $at, $up, $manual, $latencyMs, $responseStatus, $error)",
    ),
    check: db.query<CheckRow, [number]>(
      "SELECT sequence, monitor_ref, previous, checked_at, up, manual, latency_ms, response_status, error FROM monitor_checks WHERE sequence = ?",
    ),
    // The oldest have the lowest sequences: what is to go lies in one stretch at the beginning.
    deleteOldChecks: db.command<[number, number, number, number]>(
      "DELETE FROM monitor_checks WHERE sequence IN (SELECT sequence FROM monitor_checks ORDER BY sequence LIMIT ?) AND (checked_at < ? OR sequence <= ?) AND sequence <> ?",
    ),
    insertHour: db.command<[number, number, number, number]>(
      "INSERT OR REPLACE INTO monitor_hours (monitor_ref, hour, checks, up) VALUES (?, ?, ?, ?)",
    ),
    deleteOldHours: db.command<[number, number]>(
      "DELETE FROM monitor_hours WHERE monitor_ref = ? AND hour < ?",
    ),
    deleteSomeHours: db.command<[number, number, number]>(
      "DELETE FROM monitor_hours WHERE monitor_ref = ? AND hour IN (SELECT hour FROM monitor_hours WHERE monitor_ref = ? LIMIT ?)",
    ),
    hoursSince: db.query<HourCount, [number, number]>(
      "SELECT hour, checks, up FROM monitor_hours WHERE monitor_ref = ? AND hour >= ?",
    ),
    highest: db.query<{ sequence: number | null }>("SELECT max(sequence) AS sequence FROM monitor_checks"),
  };
}

/** SQL of what the checks of monitors found. */
export class CheckStore {
  private readonly sql;
  private nextSequence: number;

  constructor(db: Database) {
    this.sql = statements(db);
    this.nextSequence = (this.sql.highest.get()?.sequence ?? 0) + 1;
  }

  /** The state of a new monitor. */
  insert(tx: Tx, ref: number, projectRef: number): void {
    this.sql.insertState.run(tx, ref, projectRef);
  }

  state(ref: number): StateRow | null {
    const row = this.sql.state.get(ref);
    if (row === null) return null;
    const { hour, checks, up, ...state } = row;
    const status = STATUSES[row.status - 1];
    if (status === undefined) throw new Error(`monitor ${ref} has an unknown status`);
    return { ...state, status, current: { hour, checks, up } };
  }

  /** Appends a check and writes the state that follows from it. */
  record(
    tx: Tx,
    before: StateRow,
    after: MonitorState,
    result: CheckResult,
    details: CheckDetails,
    current: HourCount,
  ): void {
    const { ref, lastCheck: previous } = before;
    const sequence = this.nextSequence++;
    this.sql.insertCheck.run(tx, { ...result, ...details, sequence, ref, previous });
    const statusNumber = STATUSES.indexOf(after.status) + 1;
    this.sql.updateState.run(tx, { ...after, ...current, ref, statusNumber, lastCheck: sequence });
  }

  /** Stores an hour that is over, and removes those before `keptSince`. */
  closeHour(tx: Tx, ref: number, { hour, checks, up }: HourCount, keptSince: number): void {
    this.sql.insertHour.run(tx, ref, hour, checks, up);
    this.sql.deleteOldHours.run(tx, ref, keptSince);
  }

  hours(ref: number, since: number): HourCount[] {
    return this.sql.hoursSince.all(ref, since);
  }

  /** References of a project's monitors, newest first, below one; of one status if asked. */
  page(projectRef: number, status: TargetStatus | undefined, before: number, limit: number): number[] {
    const rows =
      status === undefined
        ? this.sql.pageOfAll.all(projectRef, before, limit)
        : this.sql.pageOfStatus.all(projectRef, STATUSES.indexOf(status) + 1, before, limit);
    return rows.map(({ ref }) => ref);
  }

  check(sequence: number): CheckRow | null {
    return this.sql.check.get(sequence);
  }

  /** Removes old checks among the `limit` oldest: those before a moment, and those beyond the newest `keptMax`. */
  removeOld(tx: Tx, before: number, keptMax: number, limit: number): number {
    const newest = this.nextSequence - 1;
    // The newest always stays: sequences go on from it.
    return this.sql.deleteOldChecks.run(tx, limit, before, newest - keptMax, newest);
  }

  /** Removes a monitor's state. Its checks go when they are old: nothing leads to them any more. */
  remove(tx: Tx, ref: number): void {
    this.sql.deleteState.run(tx, ref);
  }

  /** Removes at most `limit` of a monitor's hours. */
  removeHours(tx: Tx, ref: number, limit: number): number {
    return this.sql.deleteSomeHours.run(tx, ref, ref, limit);
  }
}
