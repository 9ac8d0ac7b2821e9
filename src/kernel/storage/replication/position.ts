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

/** The position that a file stores, with the time of its batch. */
export interface StoredPosition extends Position {
  /** Epoch milliseconds. */
  readonly at: number;
}

const SET = "INSERT OR REPLACE INTO replica_position (one, epoch, seq, at) VALUES (1, $epoch, $seq, $at)";
const READ = "SELECT epoch, seq, at FROM replica_position";

/** The row that stores a file's position: every copy of the file has it too, so every backup is a base. */
export class PositionRow {
  private readonly change;
  private readonly row;

  constructor(private readonly db: Database) {
    this.change = db.change<[StoredPosition & Record<string, number>]>(SET);
    this.row = db.one<StoredPosition>(READ);
  }

  /** The stored position; null without one, or before the migration that creates the table. */
  read(): StoredPosition | null {
    return this.exists() ? this.row() : null;
  }

  /** Sets the position in a unit of work. */
  set(tx: Tx, { epoch, seq, at }: StoredPosition): void {
    this.change(tx, { epoch, seq, at });
  }

  /** Sets the position in the transaction of a start, which has no unit of work. All values are integers. */
  setAtStart({ epoch, seq, at }: StoredPosition): void {
    this.db.execute(
      `INSERT OR REPLACE INTO replica_position (one, epoch, seq, at) VALUES (1, ${epoch}, ${seq}, ${at})`,
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
}

/** Removes the position from a copy that was changed by other means than entries. */
export function forgetPosition(db: OfflineDatabase): void {
  if (db.hasTable("replica_position")) db.execute("DELETE FROM replica_position");
}

/** The position in a copy of the file; null without one. */
export function positionIn(db: OfflineDatabase): StoredPosition | null {
  return db.hasTable("replica_position") ? db.get<StoredPosition>(READ) : null;
}
