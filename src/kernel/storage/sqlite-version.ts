import { Database as SqliteDatabase } from "bun:sqlite";
import { StartupError } from "../errors.ts";

/**
 * The first release without the race between a checkpoint and a commit that begins the log anew (every release from
 * 3.7.0 to 3.51.2 has it): pages are then never moved into the file, and lost. It takes two connections, and here
 * there are two.
 */
const SQLITE_VERSION_MIN = [3, 51, 3] as const;

/** The version of SQLite that this process runs on: on some systems it is the system's own. */
export function sqliteVersion(): string {
  const db = new SqliteDatabase(":memory:");
  try {
    return db.query<{ version: string }, []>("SELECT sqlite_version() AS version").get()?.version ?? "";
  } finally {
    db.close();
  }
}

/** What is wrong with a version of SQLite; null when it will do. */
export function sqliteTrouble(version: string): string | null {
  if (isAtLeast(version, SQLITE_VERSION_MIN)) return null;
  return `${version} is too old: ${SQLITE_VERSION_MIN.join(".")} or later is needed, since older ones can lose commits`;
}

/** @throws StartupError when a server must not run on this version. */
export function assertSqlite(version: string): void {
  const trouble = sqliteTrouble(version);
  if (trouble !== null) throw new StartupError(`SQLite ${trouble}. Update the system, or its SQLite.`);
}

/** Whether a dotted version is this one or a later one. */
function isAtLeast(version: string, least: readonly number[]): boolean {
  const parts = version.split(".").map(Number);
  for (const [index, part] of least.entries()) {
    const own = parts[index] ?? 0;
    if (own !== part) return own > part;
  }
  return true;
}
