import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MIGRATIONS } from "../../migrations/index.ts";
import type { LogFields, Logger } from "../../src/kernel/log.ts";
import { Database, type SqlParams, type SqlValue } from "../../src/kernel/storage/database.ts";
import { migrate } from "../../src/kernel/storage/migrate.ts";
import { SLOW_DISK, Writer } from "../../src/kernel/storage/writer.ts";
import { ManualClock, realPause } from "../../src/kernel/time/clock.ts";
import { TEST_START_MS } from "../support/server.ts";

/** A temporary folder, removed by {@link Scratch.remove}. */
export class Scratch {
  readonly folder = mkdtempSync(join(tmpdir(), "ninefold-kernel-"));

  path(name: string): string {
    return join(this.folder, name);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A logger that records its lines, without one that only says how busy the machine is. */
export class KeptLog implements Logger {
  readonly lines: { level: string; message: string; fields: LogFields }[] = [];
  debug = this.at("debug");
  info = this.at("info");
  warn = this.at("warn");
  error = this.at("error");

  /** The messages of one level, in order. */
  messages(level: string): string[] {
    return this.lines.filter((line) => line.level === level).map((line) => line.message);
  }

  private at(level: string) {
    return (message: string, fields: LogFields = {}): void => {
      if (message !== SLOW_DISK) this.lines.push({ level, message, fields });
    };
  }
}

let knownFailure: unknown;

/** A real SQLITE_FULL, caused by a table that may not grow. */
export function storageFailure(): unknown {
  knownFailure ??= makeFailure();
  return knownFailure;
}

function makeFailure(): unknown {
  const scratch = new Scratch();
  const db = new Database(scratch.path("full.db"), "normal");
  try {
    db.execute("CREATE TABLE filler (bytes BLOB)");
    db.execute("PRAGMA max_page_count = 2");
    db.execute("INSERT INTO filler VALUES (zeroblob(100000))");
  } catch (error) {
    return error;
  } finally {
    db.execute("PRAGMA max_page_count = 1000000");
    db.close();
    scratch.remove();
  }
  throw new Error("the table grew past its limit");
}

/** How a COMMIT fails. */
export type CommitFault = "none" | "stays-open" | "rolled-back";

/** A database whose COMMIT or reading can be made to fail, as with a full disk or an I/O error. */
export class FaultyDatabase extends Database {
  fault: CommitFault = "none";
  readsFail = false;
  /** How long a read takes that fails, in milliseconds: a disk with errors is slow. */
  failedReadMs = 0;
  /** What a failing COMMIT throws. */
  readonly failure: unknown = storageFailure();

  override one<Row, Params extends SqlParams = []>(sql: string): (...params: Params) => Row | null {
    return this.guarded(super.one<Row, Params>(sql));
  }

  override all<Row, Params extends SqlParams = []>(sql: string): (...params: Params) => Row[] {
    return this.guarded(super.all<Row, Params>(sql));
  }

  private guarded<Params extends SqlParams, Result>(read: (...params: Params) => Result) {
    return (...params: Params): Result => {
      if (this.readsFail) {
        realPause(this.failedReadMs);
        throw this.failure;
      }
      return read(...params);
    };
  }

  override control(sql: string): () => void {
    const run = super.control(sql);
    if (sql !== "COMMIT") return run;
    return () => {
      if (this.fault === "rolled-back") this.execute("ROLLBACK");
      if (this.fault !== "none") throw this.failure;
      run();
    };
  }
}

/** A database with the kernel's tables, a writer on a manual clock, and a log. */
export class TestStorage {
  readonly scratch = new Scratch();
  readonly clock: ManualClock;
  readonly log = new KeptLog();
  db: FaultyDatabase;
  writer: Writer;

  constructor(clock: ManualClock = new ManualClock(TEST_START_MS)) {
    this.clock = clock;
    this.db = this.open();
    migrate(this.db, MIGRATIONS.slice(0, 1));
    this.writer = new Writer(this.db, this.clock, this.log);
  }

  private open(): FaultyDatabase {
    const db = new FaultyDatabase(this.scratch.path("test.db"), "normal");
    // This test does not cut the power, so nothing waits for the disk.
    db.execute("PRAGMA synchronous = OFF");
    return db;
  }

  /** Closes the file and opens it again, with a new writer. */
  reopen(): void {
    this.writer.close();
    this.db.close();
    this.db = this.open();
    this.writer = new Writer(this.db, this.clock, this.log);
  }

  /** All rows of a query. */
  rows<Row>(sql: string, ...params: SqlValue[]): Row[] {
    return this.db.all<Row, SqlValue[]>(sql)(...params);
  }

  close(): void {
    this.writer.close();
    this.db.close();
    this.scratch.remove();
  }
}

/** The error of a rejected promise; fails if it was not rejected. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("expected a rejection");
}

/** The error that a call threw; fails if it did not throw. */
export function thrown(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("expected an exception");
}
