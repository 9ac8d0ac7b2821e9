import type { Database } from "./database.ts";
import type { Tx } from "./tx.ts";

/** The largest reference that a table's rows have had. With it, one that was removed is not given again. */
export class References {
  /** The largest reference given so far, also to rows that are gone; 0 when there was none. */
  readonly highest: () => number;
  /** Notes that the row of this reference is removed in this unit of work. */
  readonly removed: (tx: Tx, ref: number) => void;

  /** `table` has a column `ref`; `setting` is where the largest of the removed ones stands. */
  constructor(db: Database, table: "projects" | "relays", setting: string) {
    this.highest = db.number(
      `SELECT max(coalesce((SELECT max(ref) FROM ${table}), 0), coalesce((SELECT value FROM settings WHERE name = '${setting}'), 0)) AS n`,
    );
    this.removed = db.change<[ref: number]>(
      `INSERT INTO settings (name, value) VALUES ('${setting}', ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)`,
    );
  }
}
