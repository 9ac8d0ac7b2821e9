import { closeSync, copyFileSync, openSync, readFileSync } from "node:fs";
import { MIGRATIONS } from "../../../../migrations/index.ts";
import { Database } from "../../../../src/kernel/storage/database.ts";
import { migrate } from "../../../../src/kernel/storage/migrate.ts";
import { applyEntry, type Entry } from "../../../../src/kernel/storage/replication/entry.ts";
import { EntrySource } from "../../../../src/kernel/storage/replication/entry-source.ts";
import { Writer } from "../../../../src/kernel/storage/writer.ts";
import { ManualClock } from "../../../../src/kernel/time/clock.ts";
import { TEST_START_MS } from "../../../support/server.ts";
import { FaultyDatabase, KeptLog, Scratch } from "../../support.ts";

export const KEY = new Uint8Array(32).fill(7);

/** A database whose batches become entries, and a copy that only the entries change. */
export class Captured {
  readonly scratch = new Scratch();
  readonly log = new KeptLog();
  readonly clock = new ManualClock(TEST_START_MS);
  readonly entries: Entry[] = [];
  readonly failures: string[] = [];
  readonly db: FaultyDatabase;
  readonly source: EntrySource;
  readonly writer: Writer;
  readonly copy: string;
  private applied = 0;

  constructor() {
    this.db = new FaultyDatabase(this.path, "normal");
    this.db.execute("PRAGMA synchronous = OFF");
    migrate(this.db, MIGRATIONS);
    this.db.execute("CREATE TABLE filled (id INTEGER PRIMARY KEY, filler TEXT)");
    this.db.execute("CREATE TABLE other (id INTEGER PRIMARY KEY, filler TEXT UNIQUE)");
    this.source = new EntrySource(this.db, this.clock);
    this.writer = new Writer(this.db, this.clock, this.log);
    this.writer.follow(this.source);
    this.source.onEntry((entry) => this.entries.push({ ...entry, payload: new Uint8Array(entry.payload) }));
    this.source.onFailure = (reason) => this.failures.push(reason);
    this.copy = this.scratch.path("copy.db");
    this.checkpoint("TRUNCATE");
    copyFileSync(this.path, this.copy);
  }

  get path(): string {
    return this.scratch.path("test.db");
  }

  checkpoint(mode: "PASSIVE" | "RESTART" | "TRUNCATE"): void {
    this.db.one(`PRAGMA wal_checkpoint(${mode})`)();
  }

  /** Writes in one unit of work. */
  write(sql: string, ...values: (string | number)[]): Promise<unknown> {
    return this.writer.submit((tx) => {
      this.db.change<(string | number)[]>(sql)(tx, ...values);
    });
  }

  /** Applies the entries since the last call to the copy. */
  replay(): void {
    const file = openSync(this.copy, "r+");
    for (const entry of this.entries.slice(this.applied)) applyEntry(file, entry);
    this.applied = this.entries.length;
    closeSync(file);
  }

  /** Whether the copy has the bytes of the file. */
  isSame(): boolean {
    this.replay();
    this.checkpoint("TRUNCATE");
    return readFileSync(this.path).equals(readFileSync(this.copy));
  }

  close(): void {
    this.writer.close();
    this.source.close();
    this.db.close();
    this.scratch.remove();
  }
}

/** Every row of every table, as one text. */
export function rowsOf(path: string): string {
  const db = new Database(path, "normal");
  try {
    const tables = db.all<{ name: string }>(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    )();
    return JSON.stringify(tables.map(({ name }) => [name, db.all(`SELECT * FROM "${name}"`)()]));
  } finally {
    db.close();
  }
}
