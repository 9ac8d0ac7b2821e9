import type { Database } from "./database.ts";
import type { OfflineDatabase } from "./offline.ts";
import type { Tx } from "./tx.ts";

/** Stored by a restore, for the audit entry that the next start writes: the audit table may be of an earlier schema. */
export interface RestoreMark {
  /** File name of the backup, without its folder. */
  readonly file: string;
  /** RFC 3339; null for a database that was copied by other means. */
  readonly backup_created_at: string | null;
  readonly restored_at: string;
}

const NAME = "restored";

/** Stores the mark in a restored copy. */
export function leaveRestoreMark(db: OfflineDatabase, mark: RestoreMark): void {
  const text = JSON.stringify(mark);
  db.execute("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", NAME, text);
}

/** Reads and removes the mark of a restore; null without one. */
export function takeRestoreMark(db: Database, tx: Tx): RestoreMark | null {
  const found = db.one<{ readonly value: string }>(`SELECT value FROM settings WHERE name = '${NAME}'`)();
  if (found === null) return null;
  db.change(`DELETE FROM settings WHERE name = '${NAME}'`)(tx);
  return JSON.parse(found.value) as RestoreMark;
}
