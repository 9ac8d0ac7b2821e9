import type { Database } from "./database.ts";
import type { Tx } from "./tx.ts";

/** The largest reference that a table has ever used, so that references of removed rows are not used again. */
export class References {
  /** The largest reference so far, including removed rows; 0 without one. */
  readonly highest: () => number;
  /** Records that the row with this reference is removed in this unit of work. */
  readonly removed: (tx: Tx, ref: number) => void;

  /** `setting` stores the largest removed reference. `column`: the integer primary key of the table. */
  constructor(
    db: Database,
    table: "accounts" | "platform_keys" | "projects" | "relays" | "relay_endpoints",
    setting: string,
    column: "id" | "ref" = "ref",
  ) {
    this.highest = db.number(
      `SELECT max(coalesce((SELECT max(${column}) FROM ${table}), 0), coalesce((SELECT value FROM settings WHERE name = '${setting}'), 0)) AS n`,
    );
    this.removed = db.change<[ref: number]>(
      `INSERT INTO settings (name, value) VALUES ('${setting}', ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)`,
    );
  }
}
