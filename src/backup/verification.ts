import { type BackupCheck, counted, PROBLEMS_LISTED_MAX, Problems } from "../kernel/data/backup-check.ts";
import { OfflineDatabase } from "../kernel/storage/offline.ts";

/** The result of a check of a copy. */
export interface CheckResult {
  readonly name: string;
  /** What was checked: `12 accounts, 340 ledger entries`. */
  readonly extent: string;
  readonly problems: Problems;
}

/** Called with the subject of the check and the number of rows checked; may throw to stop. */
export type OnChecked = (what: string, rows: number) => Promise<void>;

/** SQLite's check of the whole file: pages, tables, indexes, constraints. */
const INTEGRITY: BackupCheck = {
  name: "integrity",
  async run(db, problems, onRows) {
    await onRows(0);
    for (const text of integrityProblems(db)) problems.add(text);
    return counted(db.get<{ page_count: number }>("PRAGMA page_count")?.page_count ?? 0, "page");
  },
};

/** Opens a copy and runs all checks on it. A file that SQLite finds damaged is not read further. */
export async function verifyCopy(
  path: string,
  checks: readonly BackupCheck[],
  onChecked: OnChecked,
): Promise<CheckResult[]> {
  using db = OfflineDatabase.read(path);
  const results: CheckResult[] = [];
  for (const { name, run } of [INTEGRITY, ...checks]) {
    const problems = new Problems();
    const extent = await run(db, problems, (rows) => onChecked(name, rows));
    results.push({ name, extent, problems });
    if (name === INTEGRITY.name && problems.count > 0) break;
  }
  return results;
}

/** The problems that `PRAGMA integrity_check` finds. A file that cannot be read is one problem. */
export function integrityProblems(db: OfflineDatabase): string[] {
  try {
    return db
      .all<{ integrity_check: string }>(`PRAGMA integrity_check(${PROBLEMS_LISTED_MAX})`)
      .flatMap((row) => row.integrity_check.split("\n"))
      .filter((text) => text !== "ok");
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}
