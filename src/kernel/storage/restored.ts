import type { Database } from "./database.ts";
import type { OfflineDatabase } from "./offline.ts";
import type { Tx } from "./tx.ts";

/** What a restore leaves in the database, since the log of changes may be of an earlier schema: the next start notes it there. */
export interface RestoreMark {
  /** The backup's name, without its folder. */
  readonly file: string;
  /** RFC 3339, as the other; null for a database that was copied by other means. */
  readonly backup_created_at: string | null;
  readonly restored_at: string;
}

const NAME = "restored";

/** Leaves the mark in a copy that is about to become a server's database. */
export function leaveRestoreMark(db: OfflineDatabase, mark: RestoreMark): void {
  const text = JSON.stringify(mark);
  db.execute("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", NAME, text);
}

/** Takes the mark that a restore has left, if one has, in the unit of work that notes it. */
export function takeRestoreMark(db: Database, tx: Tx): RestoreMark | null {
  const found = db.one<{ readonly value: string }>(`SELECT value FROM settings WHERE name = '${NAME}'`)();
  if (found === null) return null;
  db.change(`DELETE FROM settings WHERE name = '${NAME}'`)(tx);
  return JSON.parse(found.value) as RestoreMark;
}
