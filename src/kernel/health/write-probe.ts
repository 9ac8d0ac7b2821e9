import { existsSync, type Stats, statSync } from "node:fs";
import type { Command, Database } from "../storage/database.ts";
import type { Writer } from "../storage/writer.ts";

/** The row that a probe overwrites. */
const PROBE_ROW = "write_probe";

/** Finds out whether the database can be written, by writing to it. */
export class WriteProbe {
  private readonly db: Database;
  private readonly writer: Writer;
  private readonly write: Command<[string, number]>;
  /** The file that was opened. Should another one stand in its place, nobody will find what is written. */
  private readonly opened: Stats;

  constructor(db: Database, writer: Writer) {
    this.db = db;
    this.writer = writer;
    this.write = db.command("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)");
    this.opened = statSync(db.path);
  }

  /** Commits a small change, in the writer's next batch. Resolves to null, or to why that is not possible now. */
  async run(): Promise<string | null> {
    try {
      await this.writer.submit((tx) => this.write.run(tx, PROBE_ROW, tx.now));
    } catch (error) {
      const { failing } = this.writer.stats;
      if (failing !== null) return `The database cannot be written (${failing}).`;
      return error instanceof Error ? error.message : String(error);
    }
    return this.isInPlace() ? null : "The database's files are no longer in the data folder.";
  }

  /** Files that were removed or replaced can be written still, and are gone at the end of the process. */
  private isInPlace(): boolean {
    const { path } = this.db;
    const found = statSync(path, { throwIfNoEntry: false });
    return found?.ino === this.opened.ino && found.dev === this.opened.dev && existsSync(`${path}-wal`);
  }
}
