import { constants, Database as SqliteDatabase, type Statement } from "bun:sqlite";
import { errorText } from "../errors.ts";
import { realTimeout } from "../time/clock.ts";
import { LogFile, openLog } from "./log-file.ts";
import { LogIndex, type LogPages } from "./log-index.ts";
import { LogSync } from "./log-sync.ts";
import { isDamage, isDiskFull, isStorageFailure, StorageFailure, SyncFailure } from "./storage-failures.ts";
import type { Tx } from "./tx.ts";

/** A parameter of a statement or a value of a column. The schemas exclude integers beyond 2^53. */
export type SqlValue = string | number | null | Uint8Array;

/** Parameters of a statement: a value for each `?`, or one object with the names after `$`; other members are ignored. */
export type SqlParams = SqlValue[] | [Readonly<Record<string, SqlValue | boolean>>];

/** A prepared change. Takes its unit of work, and returns the number of changed rows. */
export type Change<Params extends SqlParams> = (tx: Tx, ...params: Params) => number;

/**
 * The log is synced after every commit (`full`), at checkpoints only (`normal`: a power cut may take the last commits), or
 * never (`none`: of databases that are deleted when their process ends).
 */
export type Durability = "full" | "normal" | "none";

/** On macOS a sync leaves data in the disk's cache, unless SQLite makes it: there each COMMIT does. */
const SYNCS_AFTER_COMMIT = process.platform !== "darwin";

const SYNCHRONOUS: Readonly<Record<Durability, string>> = {
  full: SYNCS_AFTER_COMMIT ? "NORMAL" : "FULL",
  normal: "NORMAL",
  none: "OFF",
};

/** How long a connection waits for a lock of the checkpointer's or a backup's connection. */
const BUSY_TIMEOUT_MS = 5_000;
/** Longest time that lookups share a transaction: everything but a query ends it earlier. */
const LOOKING_MS = 1;
/** Pages in memory: enough for the inner pages of every index, and small compared to the process. */
const PAGE_CACHE_KIB = 16 * 1024;

interface CheckpointRow {
  readonly busy: number;
  readonly log: number;
  readonly checkpointed: number;
}

/** A connection to the database file, with the pragmas that durability depends on. */
export class Database {
  private readonly connection: SqliteDatabase;
  private readonly statements: { finalize(): void }[] = [];
  /** Called with the error of a statement that finds the file damaged. */
  onDamage: (error: unknown) => void = () => undefined;
  private readonly look = this.one<CheckpointRow>("PRAGMA wal_checkpoint(NOOP)");
  private logIndex: LogIndex | null = null;
  private readonly begin = this.prepare("BEGIN");
  private readonly end = this.prepare("COMMIT");
  /** Whether lookups have a transaction open. */
  private looking = false;
  private logFile: LogFile | null = null;
  private sync: LogSync | null = null;
  /** Whether the log lacks what SQLite expects in it. */
  private isAbandoned = false;

  constructor(
    readonly path: string,
    readonly durability: Durability,
  ) {
    this.connection = new SqliteDatabase(path, { create: true, readwrite: true, strict: true });
    // The timeout comes first: switching to WAL takes a lock, and would fail immediately during a checkpoint.
    this.connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    this.connection.run("PRAGMA journal_mode = WAL");
    this.connection.run(`PRAGMA synchronous = ${SYNCHRONOUS[durability]}`);
    // On macOS a plain fsync leaves data in the cache of the disk. On other systems these change nothing.
    this.connection.run("PRAGMA fullfsync = ON");
    this.connection.run("PRAGMA checkpoint_fullfsync = ON");
    // The checkpointer makes checkpoints: an automatic one would run on the event loop, inside a commit.
    this.connection.run("PRAGMA wal_autocheckpoint = 0");
    this.connection.run(`PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
    this.connection.run("PRAGMA temp_store = MEMORY");
  }

  /** A query for the first row, or null. Like every statement, it is compiled at its first use. */
  one<Row, Params extends SqlParams = []>(sql: string): (...params: Params) => Row | null {
    const statement = this.prepare<Row>(sql);
    return (...params) => {
      try {
        const query = statement();
        return query.get(...exactParams(params, query));
      } catch (error) {
        throw this.noted(error);
      }
    };
  }

  /**
   * The same for rows that are read very often, one at a time: beginning and ending a read transaction, with locks on the
   * file, is a third of a lookup's time, so lookups within a millisecond share one.
   */
  lookUp<Row, Params extends SqlParams = []>(sql: string): (...params: Params) => Row | null {
    const row = this.one<Row, Params>(sql);
    return (...params) => {
      if (!this.connection.inTransaction) this.beginLooking();
      return row(...params);
    };
  }

  /** A query for all rows: the SQL contains the LIMIT. */
  all<Row, Params extends SqlParams = []>(sql: string): (...params: Params) => Row[] {
    const statement = this.prepare<Row>(sql);
    return (...params) => {
      try {
        const query = statement();
        return query.all(...exactParams(params, query));
      } catch (error) {
        throw this.noted(error);
      }
    };
  }

  /** A query for one number, named `n` in its SQL: 0 without a row, or for NULL (the maximum of no rows). */
  number<Params extends SqlParams = []>(sql: string): (...params: Params) => number {
    const row = this.one<{ readonly n: number | null }, Params>(sql);
    return (...params) => row(...params)?.n ?? 0;
  }

  /** A change, which can only run in a unit of work. */
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

  /**
   * A change whose removed bytes are overwritten with zeros. Without this, SQLite leaves them in free pages of the file until they
   * are used again.
   */
  erasure<Params extends SqlParams = []>(sql: string): Change<Params> {
    const change = this.change<Params>(sql);
    return (tx, ...params) => {
      // The setting is read when a page is freed: it need not be on for other removals, which would write every freed page.
      this.connection.run("PRAGMA secure_delete = ON");
      try {
        return change(tx, ...params);
      } finally {
        this.connection.run("PRAGMA secure_delete = OFF");
      }
    };
  }

  /** Runs statements without results outside units of work: for the start, migrations and the writer. */
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

  /** Runs `work` with a different timeout for locks. */
  withBusyTimeout<T>(timeoutMs: number, work: () => T): T {
    this.endLooking();
    this.connection.run(`PRAGMA busy_timeout = ${timeoutMs}`);
    try {
      return work();
    } finally {
      this.connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    }
  }

  /** Whether a transaction is open: after some errors SQLite has already rolled it back. */
  get inTransaction(): boolean {
    return this.connection.inTransaction;
  }

  /** The present size of the log. */
  logPages(): LogPages {
    return (this.logIndex ?? this.openLogIndex()).read();
  }

  /** Syncs the log after commits; null where a commit needs no sync, or SQLite makes it. */
  get logSync(): LogSync | null {
    if (this.durability !== "full" || !SYNCS_AFTER_COMMIT) return null;
    this.sync ??= new LogSync(this.log);
    return this.sync;
  }

  /**
   * Moves the log of an earlier process into the file. It was made durable before: see `rewriteLog`.
   *
   * Returns why it was not moved; null if nothing is left in it. Bytes after its last valid frame are removed: with new
   * frames before them, they would look like damage.
   *
   * @throws SQLiteError, StorageFailure when the disk does not confirm it.
   */
  settleLog(): "read" | "full" | null {
    const { log } = this.logPages();
    // From here on, the file of the log is known.
    const file = this.log;
    if (log === 0 && file.isEmpty) return null;
    try {
      const row = this.withBusyTimeout(0, () =>
        this.connection.query<CheckpointRow, []>("PRAGMA wal_checkpoint(TRUNCATE)").get(),
      );
      if (row?.busy === 0) return null;
    } catch (error) {
      // Any other error may be that of a sync, which cannot be retried: see SyncFailure.
      if (!isDiskFull(error)) throw error;
      this.cutLog();
      return "full";
    }
    this.cutLog();
    return "read";
  }

  /** Removes from the log what a failed COMMIT has left. @throws StorageFailure, SyncFailure if the disk does not confirm it. */
  cutLog(): void {
    try {
      this.log.cut(this.logPages().log);
    } catch (error) {
      throw error instanceof SyncFailure ? error : new StorageFailure(errorText(error));
    }
  }

  /**
   * Removes from the log what was committed since it had these pages. Only before the connection is closed or the process
   * ends, both of which would move it into the file: SQLite is not told.
   */
  abandonSince({ log, salt }: LogPages): void {
    this.log.cut(this.logPages().salt === salt ? log : 0);
    this.isAbandoned = true;
  }

  /** Moves the whole log into the file, if there is space, and closes the connection. */
  close(): void {
    this.endLooking();
    this.sync?.close();
    let isKept = this.isAbandoned;
    try {
      if (!isKept) this.connection.run("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch (error) {
      // The log stays: the next start reads it.
      if (!isStorageFailure(error)) throw error;
      isKept = true;
    }
    // A connection with statements stays open after close(), and with it the -wal and -shm files.
    for (const statement of this.statements) statement.finalize();
    // Without this, they remain on some systems. After a failed checkpoint they must remain: that of a closing connection
    // could consider pages moved that are not, and delete the log. The next start moves all of it.
    this.connection.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, isKept ? 1 : 0);
    this.connection.close(false);
    this.logIndex?.close();
  }

  /** Path of the log. */
  get logPath(): string {
    return this.log.path;
  }

  /**
   * Opens the log once more, to sync it. The system reports what it could not write once to each descriptor that was open
   * then, so whoever relies on a sync has one of its own, opened before anything is written.
   */
  openLog(): ReturnType<typeof openLog> {
    return openLog(this.log);
  }

  private get log(): LogFile {
    return this.logFile ?? this.openLogFile();
  }

  private openLogFile(): LogFile {
    const pageBytes = this.number("SELECT page_size AS n FROM pragma_page_size")();
    this.logFile = new LogFile(this.path, pageBytes);
    return this.logFile;
  }

  private openLogIndex(): LogIndex {
    this.endLooking();
    // The first access of a process builds the index.
    this.look();
    this.logIndex = new LogIndex(this.path);
    return this.logIndex;
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

  /** Called before everything but a query: transactions do not nest, and a checkpoint waits for readers. */
  private endLooking(): void {
    if (!this.looking) return;
    this.looking = false;
    // After some errors SQLite has already ended it.
    if (this.connection.inTransaction) this.end().run();
  }

  /** Compiled at first use: compiling every statement of every area would take milliseconds of a start. */
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

/**
 * The arguments that a statement has. A function may be called with more than it declares, as a callback of `map` is, and
 * SQLite rejects those. `params` is the caller's own list.
 */
function exactParams<Params extends unknown[]>(
  params: Params,
  { paramsCount }: { readonly paramsCount: number },
): Params {
  if (params.length > paramsCount) params.splice(paramsCount);
  return params;
}
