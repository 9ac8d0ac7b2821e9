import { constants, SQLiteError, Database as SqliteDatabase, type Statement } from "bun:sqlite";
import { realpathSync } from "node:fs";
import { errorCode, errorText } from "../errors.ts";
import { realTimeout } from "../time/clock.ts";
import { LogFile } from "./log-file.ts";
import type { Tx } from "./tx.ts";

/** A value that a statement takes or a column gives. Integers beyond 2^53 are excluded by the schemas. */
export type SqlValue = string | number | null | Uint8Array;

/** What a statement takes: a value for each `?`, or one object by the names behind its `$`, what else is in it omitted. */
export type SqlParams = SqlValue[] | [Readonly<Record<string, SqlValue | boolean>>];

/** A prepared change. It takes the unit of work that it belongs to, and returns how many rows it touched. */
export type Change<Params extends SqlParams> = (tx: Tx, ...params: Params) => number;

/** fsync at every commit (`full`), or at checkpoints only (`normal`: a power cut may take the last commits). */
export type Durability = "full" | "normal";

/** Pages in the write-ahead log, and how many of them have been moved into the file. */
export interface LogPages {
  readonly log: number;
  readonly moved: number;
}

/** How long a connection waits for a lock of the checkpointer's or a backup's connection. */
const BUSY_TIMEOUT_MS = 5_000;
/** How long lookups share a transaction at the most: whatever is no question ends it sooner. */
const LOOKING_MS = 1;
/** Pages kept in memory: enough for the inner pages of every index, little next to the process itself. */
const PAGE_CACHE_KIB = 16 * 1024;

interface CheckpointRow {
  readonly busy: number;
  readonly log: number;
  readonly checkpointed: number;
}

/** One connection to the database file, with the pragmas that the whole design rests on. */
export class Database {
  private readonly connection: SqliteDatabase;
  private readonly statements: { finalize(): void }[] = [];
  /** Called with what a statement throws that finds the file damaged. */
  onDamage: (error: unknown) => void = () => undefined;
  private readonly look = this.one<CheckpointRow>("PRAGMA wal_checkpoint(NOOP)");
  private readonly begin = this.prepare("BEGIN");
  private readonly end = this.prepare("COMMIT");
  /** Whether lookups have a transaction open. */
  private looking = false;
  private logFile: LogFile | null = null;
  /** Whether the log must outlive the connection: its pages may be missing in the file. */
  private keepsLog = false;

  constructor(
    readonly path: string,
    readonly durability: Durability,
  ) {
    this.connection = new SqliteDatabase(path, { create: true, readwrite: true, strict: true });
    // First of all: switching to WAL takes a lock, and without a time-out it fails immediately while a checkpoint runs.
    this.connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    this.connection.run("PRAGMA journal_mode = WAL");
    this.connection.run(`PRAGMA synchronous = ${durability === "full" ? "FULL" : "NORMAL"}`);
    // On macOS a plain fsync leaves the data in the disk's own cache; elsewhere these change nothing.
    this.connection.run("PRAGMA fullfsync = ON");
    this.connection.run("PRAGMA checkpoint_fullfsync = ON");
    // Checkpoints are the checkpointer's: the automatic one would run on the event loop, inside a commit.
    this.connection.run("PRAGMA wal_autocheckpoint = 0");
    this.connection.run(`PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
    this.connection.run("PRAGMA temp_store = MEMORY");
  }

  /** A question for the first row, or null. Like every statement it is compiled at its first use, once. */
  one<Row, Params extends SqlParams = []>(sql: string): (...params: Params) => Row | null {
    const statement = this.prepare<Row>(sql);
    return (...params) => {
      try {
        return statement().get(...params);
      } catch (error) {
        throw this.noted(error);
      }
    };
  }

  /**
   * The same for rows of which very many are requested, one by one: to begin reading and to end it, with locks on the file
   * each time, costs a third of a lookup, so what is looked up within a millisecond shares a transaction.
   */
  lookUp<Row, Params extends SqlParams = []>(sql: string): (...params: Params) => Row | null {
    const row = this.one<Row, Params>(sql);
    return (...params) => {
      if (!this.connection.inTransaction) this.beginLooking();
      return row(...params);
    };
  }

  /** A question for all rows: the SQL itself carries the LIMIT. */
  all<Row, Params extends SqlParams = []>(sql: string): (...params: Params) => Row[] {
    const statement = this.prepare<Row>(sql);
    return (...params) => {
      try {
        return statement().all(...params);
      } catch (error) {
        throw this.noted(error);
      }
    };
  }

  /** A question for one number, which its SQL names `n`: 0 where there is no row, or NULL (the largest of nothing). */
  number<Params extends SqlParams = []>(sql: string): (...params: Params) => number {
    const row = this.one<{ readonly n: number | null }, Params>(sql);
    return (...params) => row(...params)?.n ?? 0;
  }

  /** A change. Nothing is written outside a unit of work. */
  change<Params extends SqlParams = []>(sql: string): Change<Params> {
    const statement = this.prepare(sql);
    return (tx, ...params) => {
      tx.willWrite();
      this.endLooking();
      try {
        return statement().run(...params).changes;
      } catch (error) {
        if (isStorageFailure(error)) tx.storageFailed(error);
        throw this.noted(error);
      }
    };
  }

  /** Runs statements that return nothing, outside any unit of work: start-up, migrations and the writer's own. */
  execute(sql: string): void {
    this.endLooking();
    this.connection.run(sql);
  }

  /** A statement without parameters, prepared: the writer's BEGIN, COMMIT and savepoints. */
  control(sql: string): () => void {
    const statement = this.prepare(sql);
    return () => {
      this.endLooking();
      statement().run();
    };
  }

  /** Runs `work` with another wait for locks than the usual one. */
  withBusyTimeout<T>(timeoutMs: number, work: () => T): T {
    this.endLooking();
    this.connection.run(`PRAGMA busy_timeout = ${timeoutMs}`);
    try {
      return work();
    } finally {
      this.connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    }
  }

  /** Whether a transaction is open: after some errors SQLite has already rolled it back by itself. */
  get inTransaction(): boolean {
    return this.connection.inTransaction;
  }

  /** What the log holds now. */
  logPages(): LogPages {
    this.endLooking();
    const row = this.look();
    return { log: Math.max(0, row?.log ?? 0), moved: Math.max(0, row?.checkpointed ?? 0) };
  }

  /**
   * Makes durable what an earlier process has left in the log, which SQLite takes up although it may stand in the
   * system's memory alone. Whatever is read after this outlasts a power cut.
   *
   * Returns why the log could only be synced where it is, and not be moved into the file; null where nothing is left.
   * What stands behind it, SQLite has dropped: left there it would look like a damaged place once others stand before it.
   *
   * @throws SQLiteError, Error when the disk does not confirm it.
   */
  settleLog(): "read" | "full" | null {
    const { log } = this.logPages();
    // From here on it is known which file is the log.
    const file = this.file();
    if (log === 0 && file.isEmpty) return null;
    try {
      const row = this.withBusyTimeout(0, () =>
        this.connection.query<CheckpointRow, []>("PRAGMA wal_checkpoint(TRUNCATE)").get(),
      );
      if (row?.busy === 0) return null;
    } catch (error) {
      // Any other failure may be that of a sync, which cannot be retried: see LogFile.
      if (!isDiskFull(error)) throw error;
      file.cut(log);
      return "full";
    }
    file.cut(log);
    return "read";
  }

  /** Takes away what a COMMIT that failed has left in the log. @throws StorageFailure when the disk does not confirm it. */
  cutLog(): void {
    try {
      this.file().cut(this.logPages().log);
    } catch (error) {
      throw new StorageFailure(errorText(error));
    }
  }

  /** Writes again what a checkpoint's failed sync may have lost. @throws Error when the disk does not confirm it. */
  rewriteLog(): void {
    const { log, moved } = this.logPages();
    this.keepsLog = true;
    this.file().rewrite(log, moved);
    this.keepsLog = false;
  }

  /** Moves the whole WAL into the file, where there is space for it, and closes the connection. */
  close(): void {
    this.endLooking();
    try {
      if (!this.keepsLog) this.connection.run("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch (error) {
      // On a full disk the WAL stays: what it holds is durable, and the next start reads it.
      if (!isStorageFailure(error)) throw error;
      this.keepsLog = isSyncFailure(error);
    }
    // A connection with statements outlives its closing, and so would the -wal and -shm files.
    for (const statement of this.statements) statement.finalize();
    // Without this, they stay behind on some systems. After a failed sync they must: SQLite's own last checkpoint would
    // take for moved what is not, and remove the log. The next start moves all of it.
    this.connection.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, this.keepsLog ? 1 : 0);
    this.connection.close(false);
    this.logFile?.close();
  }

  /** Path of the log: next to the file itself, if the path is a symbolic link. */
  get logPath(): string {
    return this.file().path;
  }

  private file(): LogFile {
    return this.logFile ?? this.openLogFile();
  }

  private openLogFile(): LogFile {
    const pageBytes = this.number("SELECT page_size AS n FROM pragma_page_size")();
    this.logFile = new LogFile(realpathSync(this.path), pageBytes);
    return this.logFile;
  }

  private noted(error: unknown): unknown {
    if (isDamage(error)) this.onDamage(error);
    return error;
  }

  private beginLooking(): void {
    this.begin().run();
    this.looking = true;
    realTimeout(LOOKING_MS, () => this.endLooking());
  }

  /** Before anything but a question: transactions do not nest, and a checkpoint waits for those who read. */
  private endLooking(): void {
    if (!this.looking) return;
    this.looking = false;
    // After some errors SQLite has ended it by itself.
    if (this.connection.inTransaction) this.end().run();
  }

  /** Compiling every statement of every area at the start would cost it milliseconds. */
  private prepare<Row>(sql: string) {
    let prepared: Statement<Row, SqlParams> | undefined;
    return () => {
      if (prepared === undefined) {
        prepared = this.connection.prepare<Row, SqlParams>(sql);
        this.statements.push(prepared);
      }
      return prepared;
    };
  }
}

const STORAGE_FAILURES = [
  ...["SQLITE_FULL", "SQLITE_IOERR", "SQLITE_BUSY", "SQLITE_READONLY", "SQLITE_CORRUPT"],
  ...["SQLITE_NOMEM", "SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_PROTOCOL"],
];

/** The disk failed at something that was not SQLite's to do. */
export class StorageFailure extends Error {}

/** Whether an error says that the file cannot be written or read now, rather than that a statement was wrong. */
export function isStorageFailure(error: unknown): boolean {
  if (error instanceof StorageFailure) return true;
  const code = errorCode(error);
  return STORAGE_FAILURES.some((failure) => code.startsWith(failure));
}

/** What went wrong, for a line that an operator reads: SQLite's own words, without the name of a class before them. */
export function plainReason(error: unknown): string {
  return error instanceof SQLiteError ? error.message : errorText(error);
}

/** Whether an error says that the content of the file is not what SQLite has written. */
export function isDamage(error: unknown): boolean {
  const code = errorCode(error);
  return code.startsWith("SQLITE_CORRUPT") || code.startsWith("SQLITE_NOTADB");
}

/** Whether an error says that there is no space. */
export function isDiskFull(error: unknown): boolean {
  return errorCode(error).startsWith("SQLITE_FULL");
}

/** Whether a write or a sync failed, so that nobody knows what the disk holds. */
export function isSyncFailure(error: unknown): boolean {
  return errorCode(error).startsWith("SQLITE_IOERR");
}
