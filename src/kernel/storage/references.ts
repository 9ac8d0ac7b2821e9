import type { Command, Database, Query } from "./database.ts";
import type { Tx } from "./tx.ts";

/** The largest reference that a table's rows have had. With it, one that was removed is not given again. */
export class References {
  private readonly select: Query<{ ref: number }, []>;
  private readonly save: Command<[number]>;

  /** `table` has a column `ref`; `setting` is where the largest of the removed ones stands. */
  constructor(db: Database, table: "projects" | "relays", setting: string) {
    this.select = db.query(
      `SELECT max(coalesce((SELECT max(ref) FROM ${table}), 0), coalesce((SELECT value FROM settings WHERE name = '${setting}'), 0)) AS ref`,
    );
    this.save = db.command(
      `INSERT INTO settings (name, value) VALUES ('${setting}', ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)`,
    );
  }

  /** The largest reference given so far, also to rows that are gone; 0 when there was none. */
  highest(): number {
    return this.select.get()?.ref ?? 0;
  }

  /** Notes that the row of this reference is removed in this unit of work. */
  removed(tx: Tx, ref: number): void {
    this.save.run(tx, ref);
  }
}
