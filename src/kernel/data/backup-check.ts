import type { OfflineDatabase } from "../storage/offline.ts";

/** What an area can recalculate in a copy of the database. */
export interface BackupCheck {
  /** What is checked, such as `meters`. */
  readonly name: string;
  /**
   * Reads the copy, and adds what does not hold to `problems`. Returns what it looked at: `12 accounts, 340 ledger
   * entries`.
   */
  readonly run: (db: OfflineDatabase, problems: Problems, onRows: OnRows) => Promise<string>;
}

/**
 * What an area has to do when a copy becomes a server's database: changes in it what must not go back, and returns the
 * lines of the operator's report. Tolerates the schemas of earlier versions.
 */
export type RestoreStep = (db: OfflineDatabase, now: number) => readonly string[];

/** A resource that must be set again after its secrets were removed. */
export interface LostSecret {
  readonly id: string;
  readonly name: string | null;
  readonly email: string;
}

/** A heading and a line for each resource that must be set again: all of them, since each needs a decision. */
export function lostLines(kind: string, what: string, lost: readonly LostSecret[]): readonly string[] {
  if (lost.length === 0) return [];
  const lines = lost.map(
    ({ id, name, email }) => `          ${kind} ${id}${name === null ? "" : ` "${name}"`} of ${email}`,
  );
  return [`lost      ${what}`, ...lines];
}

/** Is given the number of rows that a check has looked at; may throw to end it. */
export type OnRows = (rows: number) => Promise<void>;

/** Rows between two calls of {@link OnRows}: some hundredths of a second. */
export const ROWS_PER_STEP = 5_000;

/** Problems listed before the rest is only counted: a broken file breaks everywhere. */
export const PROBLEMS_LISTED_MAX = 10;

/** Things of a kind that a restore names one by one; the rest is counted. */
const NAMED_MAX = 20;

/** Lines of the operator's report below the one that they belong to. */
export function below(lines: readonly string[]): readonly string[] {
  const more = lines.length - NAMED_MAX;
  const shown = [...lines.slice(0, NAMED_MAX), ...(more > 0 ? [`… and ${more} more`] : [])];
  return shown.map((line) => `          ${line}`);
}

/** Collects what does not hold. */
export class Problems {
  count = 0;
  readonly listed: string[] = [];

  add(problem: string): void {
    this.count += 1;
    if (this.listed.length < PROBLEMS_LISTED_MAX) this.listed.push(problem);
  }
}

/** `1 meter`, `2 meters`. */
export function counted(count: number, singular: string, plural = `${singular}s`): string {
  return `${count} ${count === 1 ? singular : plural}`;
}
