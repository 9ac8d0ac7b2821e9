import type { Database } from "../../kernel/storage/database.ts";
import type { FlagRow } from "./domain.ts";

/** What the server measured in a minute. */
export type MinuteRow = {
  /** Minutes since the Unix epoch. */
  readonly minute: number;
  readonly requests: number;
  readonly errors: number;
  readonly p99Ms: number | null;
  readonly commits: number;
  readonly commitFailures: number;
  readonly jobsDue: number;
  readonly jobsOverdueSeconds: number;
  readonly lagMs: number;
  readonly memoryBytes: number;
  readonly databaseBytes: number;
  readonly diskFreeBytes: number | null;
};

/** All SQL of what the server measures of itself. */
export function minuteStore(db: Database) {
  return {
    insert: db.change<[MinuteRow]>(
      `INSERT OR REPLACE INTO server_minutes (minute, requests, errors, p99_ms, commits, commit_failures, jobs_due,
         jobs_overdue_s, lag_ms, memory_bytes, database_bytes, disk_free_bytes)
       VALUES ($minute, $requests, $errors, $p99Ms, $commits, $commitFailures, $jobsDue, $jobsOverdueSeconds, $lagMs,
         $memoryBytes, $databaseBytes, $diskFreeBytes)`,
    ),
    /** Minutes before a time, and those of a clock that was ahead. */
    removeOutside: db.change<[from: number, to: number]>(
      "DELETE FROM server_minutes WHERE minute < ? OR minute > ?",
    ),
    /** Steps of several minutes, oldest first: sums, and the worst value of what is not counted. */
    steps: db.all<MinuteRow, [{ from: number; to: number; step: number }]>(
      `SELECT (minute / $step) * $step AS minute, sum(requests) AS requests, sum(errors) AS errors, max(p99_ms) AS p99Ms,
         sum(commits) AS commits, sum(commit_failures) AS commitFailures, max(jobs_due) AS jobsDue,
         max(jobs_overdue_s) AS jobsOverdueSeconds, max(lag_ms) AS lagMs, max(memory_bytes) AS memoryBytes,
         max(database_bytes) AS databaseBytes, min(disk_free_bytes) AS diskFreeBytes
       FROM server_minutes WHERE minute >= $from AND minute <= $to GROUP BY 1 ORDER BY 1`,
    ),
    /** The problems of each minute, oldest first: bits in the order of `FLAGS`. */
    flags: db.all<FlagRow, [from: number, to: number]>(
      `SELECT minute, (errors > 0 AND errors * 100 >= requests) + 2 * (commit_failures > 0) + 4 * (jobs_overdue_s > 60)
         + 8 * (lag_ms > 1000) + 16 * coalesce(disk_free_bytes < 1073741824, 0) AS flags
       FROM server_minutes WHERE minute >= ? AND minute <= ? ORDER BY minute`,
    ),
  };
}

/** A stored setting of the server. */
type SettingRow = {
  readonly name: string;
  /** JSON; null for a secret. */
  readonly value: string | null;
  /** JSON, sealed; null unless it is a secret. */
  readonly sealed: Uint8Array | null;
};

/** All SQL of the stored settings. */
export function settingStore(db: Database) {
  return {
    all: db.all<SettingRow>("SELECT name, value, sealed FROM server_settings ORDER BY name"),
    has: db.one<{ readonly name: string }, [name: string]>("SELECT name FROM server_settings WHERE name = ?"),
    set: db.change<[SettingRow]>(
      "INSERT OR REPLACE INTO server_settings (name, value, sealed) VALUES ($name, $value, $sealed)",
    ),
    remove: db.change<[name: string]>("DELETE FROM server_settings WHERE name = ?"),
  };
}

/** Whether a database has a stored archive, also before its migrations. */
export function hasStoredArchive(db: Database): boolean {
  const isThere = db.one("SELECT 1 FROM sqlite_master WHERE name = 'server_settings'")() !== null;
  return isThere && settingStore(db).has("archive") !== null;
}
