import { Database } from "bun:sqlite";
import { closeSync, openSync, readSync } from "node:fs";
import { StartupError } from "../errors.ts";

/** The first bytes of every database of SQLite. */
const HEADER = "SQLite format 3\0";

/** A row of another program's database. */
export type ForeignRow = Readonly<Record<string, unknown>>;

/** How much of it is read. */
export interface ForeignLimits {
  /** Rows of a table. */
  readonly rowsMax: number;
  /** Bytes of all rows. */
  readonly bytesMax: number;
}

/** Whether a file is a database of SQLite. A file that cannot be read is none. */
export function isSqlite(path: string): boolean {
  const bytes = Buffer.alloc(HEADER.length);
  try {
    const file = openSync(path, "r");
    try {
      readSync(file, bytes);
    } finally {
      closeSync(file);
    }
  } catch {
    return false;
  }
  return bytes.toString("latin1") === HEADER;
}

/** The database of another program, opened read-only. */
export class ForeignDatabase {
  private readonly database: Database;
  private readonly tables: ReadonlySet<string>;
  private bytes = 0;

  /** @throws Error if it cannot be read. */
  constructor(
    private readonly path: string,
    private readonly limits: ForeignLimits,
  ) {
    this.database = new Database(path, { readonly: true });
    try {
      const names = this.database.query<{ name: string }, []>(
        "SELECT name FROM sqlite_master WHERE type = 'table'",
      );
      this.tables = new Set(names.all().map(({ name }) => name));
    } catch (error) {
      this.database.close();
      throw error;
    }
  }

  /** Whether it has a table. A view is none. */
  has(table: string): boolean {
    return this.tables.has(table);
  }

  /** All rows of a table by their `id`; empty if there is no such table. @throws StartupError above the limits */
  rows(table: string): readonly ForeignRow[] {
    if (!this.has(table)) return [];
    const { rowsMax, bytesMax } = this.limits;
    const rows: ForeignRow[] = [];
    for (const row of this.database.query<ForeignRow, []>(`SELECT * FROM "${table}" ORDER BY id`).iterate()) {
      rows.push(row);
      for (const value of Object.values(row)) this.bytes += typeof value === "string" ? value.length : 8;
      if (rows.length > rowsMax || this.bytes > bytesMax)
        throw new StartupError(
          `${this.path} has more than ${rowsMax} rows in a table, or more than ${bytesMax} bytes.`,
        );
    }
    return rows;
  }

  [Symbol.dispose](): void {
    this.database.close();
  }
}
