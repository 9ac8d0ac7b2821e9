import type { Change, Database } from "../storage/database.ts";
import { identityOf } from "../storage/log-file.ts";
import type { Writer } from "../storage/writer.ts";

/** The row that a probe overwrites. */
const PROBE_ROW = "write_probe";
/** What it writes there: more than most changes, so that a disk which is about to be full counts as full. */
export const PROBE_BYTES = 64 * 1024;

/** Says to callers that a commit has failed, and why. What is no trouble of the disk is for the log alone. */
export function unwritable(failing: string): string {
  const why = /^SQLiteError: (.+)$/.exec(failing)?.[1] ?? "the log says why";
  return `The database cannot be written now: ${why}.`;
}

/** Finds out whether the database can be written, by writing to it. */
export class WriteProbe {
  private readonly write: Change<[string, number]>;
  /** The files that were opened. Should others stand in their place, nobody will find what is written. */
  private readonly opened: string;
  private openedLog: string | null;

  constructor(
    private readonly db: Database,
    private readonly writer: Writer,
  ) {
    // Random: SQLite leaves pages alone that would not change.
    this.write = db.change("INSERT OR REPLACE INTO settings (name, value) VALUES (?, randomblob(?))");
    this.opened = identityOf(db.path) ?? "";
    this.openedLog = identityOf(logOf(db));
  }

  /** Commits a change, in the writer's next batch. Resolves to null, or to why that is not possible now. */
  async run(): Promise<string | null> {
    try {
      await this.writer.submit((tx) => this.write(tx, PROBE_ROW, PROBE_BYTES));
    } catch (error) {
      const { failing } = this.writer.stats;
      if (failing !== null) return unwritable(failing);
      return error instanceof Error ? error.message : String(error);
    }
    return this.isInPlace() ? null : "The database's files are no longer in the data folder.";
  }

  /** Files that were removed or replaced can be written still, and are gone at the end of the process. */
  private isInPlace(): boolean {
    const log = identityOf(logOf(this.db));
    // The log comes into being with the first change at the latest, and stays.
    this.openedLog ??= log;
    return log !== null && log === this.openedLog && identityOf(this.db.path) === this.opened;
  }
}

function logOf({ path }: Database): string {
  return `${path}-wal`;
}
