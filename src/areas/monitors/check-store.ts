import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { CheckResult, HourCount, MonitorState, MonitorStatus } from "./domain.ts";

/** A monitor's state as its row has it. */
export interface StateRow extends MonitorState {
  readonly ref: number;
  /** Sequence of the last check; 0: none. */
  readonly lastCheck: number;
  /** The hour that is being counted. */
  readonly current: HourCount;
}

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

interface StoredState {
  monitor_ref: number;
  status: number;
  latency_ms: number | null;
  last_checked_at: number | null;
  consecutive_failures: number;
  told_at: number | null;
  last_check: number;
  hour: number;
  hour_checks: number;
  hour_up: number;
}

const STATUSES: readonly MonitorStatus[] = ["up", "down", "unknown"];
const COLUMNS =
  "monitor_ref, status, latency_ms, last_checked_at, consecutive_failures, told_at, last_check, hour, hour_checks, hour_up";

/** SQL of what the checks of monitors found. */
export class CheckStore {
  private readonly insertState;
  private readonly updateState;
  private readonly deleteState;
  private readonly byRef;
  private readonly pageOfAll;
  private readonly pageOfStatus;
  private readonly insertCheck;
  private readonly checkBySequence;
  private readonly deleteOldChecks;
  private readonly insertHour;
  private readonly deleteOldHours;
  private readonly deleteSomeHours;
  private readonly hoursSince;
  private readonly highest;
  private nextSequence: number;

  constructor(db: Database) {
    this.insertState = db.command<[number, number]>(
      "INSERT INTO monitor_states (monitor_ref, project_ref, status, consecutive_failures, last_check, hour, hour_checks, hour_up) VALUES (?, ?, 3, 0, 0, 0, 0, 0)",
    );
    this.updateState = db.command<
      [number, number | null, number | null, number, number | null, number, number, number, number, number]
    >(
      "UPDATE monitor_states SET status = ?, latency_ms = ?, last_checked_at = ?, consecutive_failures = ?, told_at = ?, last_check = ?, hour = ?, hour_checks = ?, hour_up = ? WHERE monitor_ref = ?",
    );
    this.deleteState = db.command<[number]>("DELETE FROM monitor_states WHERE monitor_ref = ?");
    this.byRef = db.query<StoredState, [number]>(
      `SELECT ${COLUMNS} FROM monitor_states WHERE monitor_ref = ?`,
    );
    this.pageOfAll = db.query<{ ref: number }, [number, number, number]>(
      "SELECT ref FROM monitors WHERE project_ref = ? AND ref < ? ORDER BY ref DESC LIMIT ?",
    );
    this.pageOfStatus = db.query<{ ref: number }, [number, number, number, number]>(
      "SELECT monitor_ref AS ref FROM monitor_states WHERE project_ref = ? AND status = ? AND monitor_ref < ? ORDER BY monitor_ref DESC LIMIT ?",
    );
    this.insertCheck = db.command<
      [number, number, number, number, number, number, number, number | null, string | null]
    >(
      "INSERT INTO monitor_checks (sequence, monitor_ref, previous, checked_at, up, manual, latency_ms, response_status, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    );
    this.checkBySequence = db.query<CheckRow, [number]>(
      "SELECT sequence, monitor_ref, previous, checked_at, up, manual, latency_ms, response_status, error FROM monitor_checks WHERE sequence = ?",
    );
    // The oldest have the lowest sequences: what is to go lies in one stretch at the beginning.
    this.deleteOldChecks = db.command<[number, number, number, number]>(
      "DELETE FROM monitor_checks WHERE sequence IN (SELECT sequence FROM monitor_checks ORDER BY sequence LIMIT ?) AND (checked_at < ? OR sequence <= ?) AND sequence <> ?",
    );
    this.insertHour = db.command<[number, number, number, number]>(
      "INSERT OR REPLACE INTO monitor_hours (monitor_ref, hour, checks, up) VALUES (?, ?, ?, ?)",
    );
    this.deleteOldHours = db.command<[number, number]>(
      "DELETE FROM monitor_hours WHERE monitor_ref = ? AND hour < ?",
    );
    this.deleteSomeHours = db.command<[number, number, number]>(
      "DELETE FROM monitor_hours WHERE monitor_ref = ? AND hour IN (SELECT hour FROM monitor_hours WHERE monitor_ref = ? LIMIT ?)",
    );
    this.hoursSince = db.query<HourCount, [number, number]>(
      "SELECT hour, checks, up FROM monitor_hours WHERE monitor_ref = ? AND hour >= ?",
    );
    this.highest = db.query<{ sequence: number | null }>(
      "SELECT max(sequence) AS sequence FROM monitor_checks",
    );
    this.nextSequence = (this.highest.get()?.sequence ?? 0) + 1;
  }

  /** The state of a new monitor. */
  insert(tx: Tx, ref: number, projectRef: number): void {
    this.insertState.run(tx, ref, projectRef);
  }

  state(ref: number): StateRow | null {
    const row = this.byRef.get(ref);
    if (row === null) return null;
    const status = STATUSES[row.status - 1];
    if (status === undefined) throw new Error(`monitor ${ref} has an unknown status`);
    return {
      ref,
      status,
      latencyMs: row.latency_ms,
      lastCheckedAt: row.last_checked_at,
      consecutiveFailures: row.consecutive_failures,
      toldAt: row.told_at,
      lastCheck: row.last_check,
      current: { hour: row.hour, checks: row.hour_checks, up: row.hour_up },
    };
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
    const sequence = this.nextSequence++;
    const { ref } = before;
    const { responseStatus, error } = details;
    this.insertCheck.run(
      tx,
      sequence,
      ref,
      before.lastCheck,
      result.at,
      result.up ? 1 : 0,
      result.manual ? 1 : 0,
      result.latencyMs,
      responseStatus,
      error,
    );
    this.updateState.run(
      tx,
      STATUSES.indexOf(after.status) + 1,
      after.latencyMs,
      after.lastCheckedAt,
      after.consecutiveFailures,
      after.toldAt,
      sequence,
      current.hour,
      current.checks,
      current.up,
      ref,
    );
  }

  /** Puts an hour that is over with the others, and forgets those before `keptSince`. */
  closeHour(tx: Tx, ref: number, { hour, checks, up }: HourCount, keptSince: number): void {
    this.insertHour.run(tx, ref, hour, checks, up);
    this.deleteOldHours.run(tx, ref, keptSince);
  }

  hours(ref: number, since: number): HourCount[] {
    return this.hoursSince.all(ref, since);
  }

  /** References of a project's monitors, newest first, below one; of one status if asked. */
  page(projectRef: number, status: MonitorStatus | undefined, before: number, limit: number): number[] {
    const rows =
      status === undefined
        ? this.pageOfAll.all(projectRef, before, limit)
        : this.pageOfStatus.all(projectRef, STATUSES.indexOf(status) + 1, before, limit);
    return rows.map(({ ref }) => ref);
  }

  check(sequence: number): CheckRow | null {
    return this.checkBySequence.get(sequence);
  }

  /** Removes old checks among the `limit` oldest: those before a moment, and those beyond the newest `keptMax`. */
  removeOld(tx: Tx, before: number, keptMax: number, limit: number): number {
    const newest = this.nextSequence - 1;
    // The newest stays in any case: sequences go on from it.
    return this.deleteOldChecks.run(tx, limit, before, newest - keptMax, newest);
  }

  /** Removes a monitor's state. Its checks go when they are old: nothing leads to them any more. */
  remove(tx: Tx, ref: number): void {
    this.deleteState.run(tx, ref);
  }

  /** Removes at most `limit` of a monitor's hours. */
  removeHours(tx: Tx, ref: number, limit: number): number {
    return this.deleteSomeHours.run(tx, ref, ref, limit);
  }
}
