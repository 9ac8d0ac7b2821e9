import { constants, SQLiteError, Database as SqliteDatabase } from "bun:sqlite";
import type { Tx } from "./tx.ts";

/** A value that a statement takes or a column gives. Integers beyond 2^53 are kept out by the schemas. */
export type SqlValue = string | number | null | Uint8Array;

/** A prepared question. Rows are plain objects, typed by the store that wrote the SQL. */
export interface Query<Row, Params extends SqlValue[]> {
  /** The first row, or null. */
  get(...params: Params): Row | null;
  /** All rows: the SQL itself carries the LIMIT. */
  all(...params: Params): Row[];
}

/** A prepared change. It takes the unit of work that it belongs to: nothing is written outside one. */
export interface Command<Params extends SqlValue[]> {
  /** Runs the change and returns how many rows it touched. */
  run(tx: Tx, ...params: Params): number;
}

/** fsync at every commit (`full`), or at checkpoints only (`normal`: a power cut may take the last moments). */
export type Durability = "full" | "normal";

/** How long a connection waits for a lock of the checkpointer's or a backup's connection. */
const BUSY_TIMEOUT_MS = 5_000;
/** Pages kept in memory: enough for the inner pages of every index, little beside the process itself. */
const PAGE_CACHE_KIB = 16 * 1024;

/** One connection to the database file, with the pragmas that the whole design rests on. */
export class Database {
  private readonly connection: SqliteDatabase;
  private readonly statements: { finalize(): void }[] = [];
  readonly path: string;
  private readonly durability: Durability;

  constructor(path: string, durability: Durability) {
    this.path = path;
    this.durability = durability;
    this.connection = new SqliteDatabase(path, { create: true, readwrite: true, strict: true });
    // First of all: switching to WAL takes a lock, and without a time-out it fails at once when a checkpoint runs.
    this.connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    this.connection.run("PRAGMA journal_mode = WAL");
    this.setSynchronous(durability);
    // Checkpoints are the checkpointer's: the automatic one would run on the event loop, inside a commit.
    this.connection.run("PRAGMA wal_autocheckpoint = 0");
    this.connection.run(`PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
    this.connection.run("PRAGMA temp_store = MEMORY");
  }

  /** Prepares a question once, for the life of the connection. */
  query<Row, Params extends SqlValue[] = []>(sql: string): Query<Row, Params> {
    const statement = this.prepare<Row>(sql);
    return {
      get: (...params) => statement.get(...params),
      all: (...params) => statement.all(...params),
    };
  }

  /** Prepares a change once, for the life of the connection. */
  command<Params extends SqlValue[] = []>(sql: string): Command<Params> {
    const statement = this.prepare(sql);
    return {
      run: (tx, ...params) => {
        tx.willWrite();
        try {
          return statement.run(...params).changes;
        } catch (error) {
          if (isStorageFailure(error)) tx.storageFailed(error);
          throw error;
        }
      },
    };
  }

  /** Runs statements that return nothing, outside any unit of work: start-up, migrations and the writer's own. */
  execute(sql: string): void {
    this.connection.run(sql);
  }

  /** A statement without parameters, prepared: the writer's BEGIN, COMMIT and savepoints. */
  control(sql: string): () => void {
    const statement = this.prepare(sql);
    return () => {
      statement.run();
    };
  }

  /** Runs `work` with another wait for locks than the usual one. */
  withBusyTimeout<T>(timeoutMs: number, work: () => T): T {
    this.connection.run(`PRAGMA busy_timeout = ${timeoutMs}`);
    try {
      return work();
    } finally {
      this.connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    }
  }

  /**
   * Runs `work` without an fsync for each of its commits, outside any unit of work. A power cut may take the last of them,
   * in their order; the next commit after it makes them all durable.
   */
  withoutSync<T>(work: () => T): T {
    this.setSynchronous("normal");
    try {
      return work();
    } finally {
      this.setSynchronous(this.durability);
    }
  }

  /** Whether a transaction is open: after some errors SQLite has already rolled it back by itself. */
  get inTransaction(): boolean {
    return this.connection.inTransaction;
  }

  /** Moves the whole WAL into the file, where there is room for it, and closes the connection. */
  close(): void {
    try {
      this.connection.run("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch (error) {
      // On a full disk the WAL stays: what it holds is durable, and the next start reads it.
      if (!isStorageFailure(error)) throw error;
    }
    // A connection with statements outlives its closing, and so would the -wal and -shm files.
    for (const statement of this.statements) statement.finalize();
    // Without this, they stay behind on some systems.
    this.connection.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 0);
    this.connection.close(false);
  }

  private setSynchronous(durability: Durability): void {
    this.connection.run(`PRAGMA synchronous = ${durability === "full" ? "FULL" : "NORMAL"}`);
  }

  private prepare<Row>(sql: string) {
    const statement = this.connection.prepare<Row, SqlValue[]>(sql);
    this.statements.push(statement);
    return statement;
  }
}

const STORAGE_FAILURES = ["SQLITE_FULL", "SQLITE_IOERR", "SQLITE_BUSY", "SQLITE_READONLY", "SQLITE_CORRUPT"];
const MORE_STORAGE_FAILURES = ["SQLITE_NOMEM", "SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_PROTOCOL"];

/** Whether an error says that the file cannot be written or read now, rather than that a statement was wrong. */
export function isStorageFailure(error: unknown): boolean {
  if (!(error instanceof SQLiteError)) return false;
  const code = error.code ?? "";
  return [...STORAGE_FAILURES, ...MORE_STORAGE_FAILURES].some((failure) => code.startsWith(failure));
}
