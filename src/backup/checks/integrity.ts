import type { OfflineDatabase } from "../../kernel/storage/offline.ts";
import { type CheckResult, counted, PROBLEMS_LISTED_MAX, Problems } from "./report.ts";

/** SQLite's own check of the whole file: pages, tables, indexes, constraints. */
export function checkIntegrity(db: OfflineDatabase): CheckResult {
  const problems = new Problems();
  const pages = db.get<{ page_count: number }>("PRAGMA page_count")?.page_count ?? 0;
  for (const text of integrityProblems(db)) problems.add(text);
  return problems.result("integrity", counted(pages, "page"));
}

/** What `PRAGMA integrity_check` finds; empty when all is well. A file that cannot be read at all is one finding. */
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
