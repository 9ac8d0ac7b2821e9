import type { Database } from "../database.ts";
import type { OfflineDatabase } from "../offline.ts";
import type { Tx } from "../tx.ts";

/** The place of an entry in an archive or a commit log. */
export interface Position {
  /** The term of one leader: entries of different epochs with the same sequence number are different. */
  readonly epoch: number;
  /** Number of the entry, from 1, without gaps. */
  readonly seq: number;
}

/** A place in a commit log. */
export interface LogPosition extends Position {
  /**
   * Random id of the log, 32 hex digits: positions of different logs say nothing about each other. Null: of an archive alone,
   * or of a commit log before logs had an identity.
   */
  readonly log: string | null;
}

/** The position that a file stores, with the time of its batch. */
export interface StoredPosition extends LogPosition {
  /** Epoch milliseconds. */
  readonly at: number;
}

/**
 * A new epoch: higher than an earlier one, and from the time (epoch milliseconds), so that terms that know nothing of each
 * other differ. Seconds since 1970 fit into 32 bits until 2106.
 */
export function epochAbove(epoch: number, now: number): number {
  return Math.max(Math.floor(now / 1_000), epoch + 1);
}

const SET =
  "INSERT OR REPLACE INTO replica_position (one, epoch, seq, at, log) VALUES (1, $epoch, $seq, $at, $log)";
const READ = "SELECT epoch, seq, at, log FROM replica_position";
/** A file before the migration that adds the id of the log. */
const READ_WITHOUT_LOG = "SELECT epoch, seq, at, NULL AS log FROM replica_position";
const HAS_LOG = "SELECT 1 FROM pragma_table_info('replica_position') WHERE name = 'log'";

/** The row that stores a file's position: every copy of the file has it too, so every backup is a base. */
export class PositionRow {
  private readonly change;
  private readonly row;
  private readonly rowWithoutLog;

  constructor(private readonly db: Database) {
    this.change = db.change<[StoredPosition & Record<string, number | string | null>]>(SET);
    this.row = db.one<StoredPosition>(READ);
    this.rowWithoutLog = db.one<StoredPosition>(READ_WITHOUT_LOG);
  }

  /** The stored position; null without one, or before the migration that creates the table. */
  read(): StoredPosition | null {
    if (!this.exists()) return null;
    return this.hasLog() ? this.row() : this.rowWithoutLog();
  }

  /** Sets the position in a unit of work. */
  set(tx: Tx, { epoch, seq, at, log }: StoredPosition): void {
    this.change(tx, { epoch, seq, at, log });
  }

  /** Sets the position in the transaction of a start, which has no unit of work. The values are integers, and hex digits. */
  setAtStart({ epoch, seq, at, log }: StoredPosition): void {
    const quoted = log === null ? "NULL" : `'${log}'`;
    this.db.execute(
      `INSERT OR REPLACE INTO replica_position (one, epoch, seq, at, log) VALUES (1, ${epoch}, ${seq}, ${at}, ${quoted})`,
    );
  }

  /** Removes a stored position: what follows is in no archive and no log. Writes nothing without one. */
  clear(): void {
    if (this.read() !== null) this.db.execute("DELETE FROM replica_position");
  }

  private exists(): boolean {
    const found = this.db.one("SELECT 1 FROM sqlite_master WHERE name = 'replica_position'");
    return found() !== null;
  }

  private hasLog(): boolean {
    return this.db.one(HAS_LOG)() !== null;
  }
}

/** Removes the position from a copy that was changed by other means than entries. */
export function forgetPosition(db: OfflineDatabase): void {
  if (db.hasTable("replica_position")) db.execute("DELETE FROM replica_position");
}

/** The position in a copy of the file; null without one. */
export function positionIn(db: OfflineDatabase): StoredPosition | null {
  if (!db.hasTable("replica_position")) return null;
  return db.get<StoredPosition>(db.get(HAS_LOG) === null ? READ_WITHOUT_LOG : READ);
}
