import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { Database } from "../../../src/kernel/storage/database.ts";
import { isStorageFailure } from "../../../src/kernel/storage/storage-failures.ts";
import { ANYONE, type Tx } from "../../../src/kernel/storage/tx.ts";
import { realDelay } from "../../../src/kernel/time/clock.ts";
import { Scratch, storageFailure, thrown } from "../support.ts";

let scratch: Scratch;
beforeEach(() => {
  scratch = new Scratch();
});
afterEach(() => scratch.remove());

/** A unit that only counts how often a write was announced. */
function countingTx(): Tx & { writes: number } {
  return {
    now: 0,
    writes: 0,
    onRollback: () => {},
    afterCommit: () => {},
    savepoint: (work) => work(),
    storageFailed: () => {},
    audit: () => {},
    auditor: null,
    affects: ANYONE,
    willWrite() {
      this.writes += 1;
    },
  };
}

function pragma(db: Database, name: string): unknown {
  return Object.values(db.one<Record<string, unknown>>(`PRAGMA ${name}`)() ?? {})[0];
}

describe("database", () => {
  test("a statement takes the arguments that it declares, however many a callback gets", () => {
    const db = new Database(scratch.path("own.db"), "none");
    const twice = db.one<{ n: number }, [value: number]>("SELECT 2 * ? AS n");
    expect([1, 2].map(twice)).toEqual([{ n: 2 }, { n: 4 }]);
    const all = db.all<{ n: number }>("SELECT 1 AS n");
    expect(["a"].map(all)).toEqual([[{ n: 1 }]]);
    const count: (of: string) => number = db.number("SELECT 3 AS n");
    expect(count("a")).toBe(3);
    const named = db.one<{ n: number }, [{ value: number }]>("SELECT $value AS n");
    expect(named({ value: 5 })).toEqual({ n: 5 });
    db.close();
  });

  test.each([
    // The log is synced after a commit, not by it.
    ["full", process.platform === "darwin" ? 2 : 1],
    ["normal", 1],
    ["none", 0],
  ] as const)("durability %s sets the required pragmas", (durability, synchronous) => {
    const db = new Database(scratch.path("a.db"), durability);
    expect(pragma(db, "synchronous")).toBe(synchronous);
    expect(pragma(db, "journal_mode")).toBe("wal");
    expect(pragma(db, "wal_autocheckpoint")).toBe(0);
    expect(pragma(db, "busy_timeout")).toBe(5_000);
    // For macOS, where a plain fsync leaves the data in the disk's own cache.
    expect([pragma(db, "fullfsync"), pragma(db, "checkpoint_fullfsync")]).toEqual([1, 1]);
    expect(pragma(db, "page_size")).toBe(4_096);
    db.close();
  });

  test("queries return rows or null; commands count rows", () => {
    const db = new Database(scratch.path("a.db"), "normal");
    db.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, bytes BLOB)");
    const tx = countingTx();
    const insert = db.change<[number, string | null, Uint8Array]>("INSERT INTO things VALUES (?, ?, ?)");
    expect(insert(tx, 1, "one", new Uint8Array([1, 2]))).toBe(1);
    expect(insert(tx, 2 ** 53 - 1, null, new Uint8Array())).toBe(1);
    const select = "SELECT id, name, bytes FROM things WHERE id = ?";
    const byId = db.one<{ id: number; name: string | null; bytes: Uint8Array }, [number]>(select);
    expect(byId(1)).toEqual({ id: 1, name: "one", bytes: new Uint8Array([1, 2]) });
    expect(byId(2 ** 53 - 1)?.id).toBe(9007199254740991);
    expect(byId(3)).toBeNull();
    expect(db.all<object, [number]>(select)(3)).toEqual([]);
    expect(db.change("UPDATE things SET name = 'same'")(tx)).toBe(2);
    expect(tx.writes).toBe(3);
    db.close();
  });

  test("an object provides named parameters; additional members are ignored", () => {
    const db = new Database(scratch.path("a.db"), "normal");
    db.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, done INTEGER)");
    const insert = db.change<[{ id: number; name: string; done: boolean }]>(
      "INSERT INTO things VALUES ($id, $name, $done)",
    );
    insert(countingTx(), Object.assign({ more: 1 }, { id: 1, name: "one", done: true }));
    expect(db.all("SELECT * FROM things")()).toEqual([{ id: 1, name: "one", done: 1 }]);
    expect(thrown(() => insert(countingTx(), { id: 2 } as never))).toBeInstanceOf(Error);
    db.close();
  });

  describe("concurrent lookups", () => {
    const moment = () => realDelay(5);
    let db: Database;
    let nameOf: (id: number) => { name: string } | null;
    beforeEach(() => {
      db = new Database(scratch.path("a.db"), "normal");
      db.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)");
      db.execute("INSERT INTO things VALUES (1, 'one')");
      nameOf = db.lookUp<{ name: string }, [number]>("SELECT name FROM things WHERE id = ?");
    });
    afterEach(() => db.close());

    test("share a transaction that ends by itself", async () => {
      expect([nameOf(1), nameOf(2)]).toEqual([{ name: "one" }, null]);
      expect(db.inTransaction).toBe(true);
      await moment();
      expect(db.inTransaction).toBe(false);
      expect(nameOf(1)).toEqual({ name: "one" });
    });

    test.each<[string, () => void]>([
      ["a transaction of the writer's", () => db.control("BEGIN IMMEDIATE")()],
      ["a change", () => db.change("UPDATE things SET name = 'other'")(countingTx())],
      ["a statement", () => db.execute("UPDATE things SET name = 'other'")],
      ["a look at the log", () => expect(db.logPages().log).toBeGreaterThan(0)],
      [
        "a checkpoint, which nobody stands in the way of",
        () => {
          const restart = db.one<{ busy: number }>("PRAGMA wal_checkpoint(RESTART)");
          expect(db.withBusyTimeout(0, restart)?.busy).toBe(0);
        },
      ],
    ])("end before %s", async (_, next) => {
      nameOf(1);
      next();
      const isWriters = db.inTransaction;
      await moment();
      // What ended them may have begun a transaction of its own, which is left alone.
      expect(db.inTransaction).toBe(isWriters);
      if (isWriters) db.control("ROLLBACK")();
    });

    test("within the writer's transaction belong to it and see its writes", async () => {
      db.control("BEGIN IMMEDIATE")();
      db.change("UPDATE things SET name = 'other'")(countingTx());
      expect(nameOf(1)).toEqual({ name: "other" });
      await moment();
      expect(db.inTransaction).toBe(true);
      db.control("ROLLBACK")();
      expect(nameOf(1)).toEqual({ name: "one" });
    });

    test("do not outlive the connection", async () => {
      nameOf(1);
      db.close();
      await moment();
      expect(existsSync(scratch.path("a.db-wal"))).toBe(false);
      db = new Database(scratch.path("a.db"), "normal");
    });
  });

  test("closing moves the WAL into the file and removes its files", () => {
    const path = scratch.path("a.db");
    const db = new Database(path, "normal");
    db.execute("CREATE TABLE things (id INTEGER)");
    db.execute("INSERT INTO things VALUES (1)");
    const query = db.all("SELECT id FROM things");
    expect(query()).toEqual([{ id: 1 }]);
    expect(existsSync(`${path}-wal`)).toBe(true);
    db.close();
    expect(existsSync(`${path}-wal`)).toBe(false);
    expect(existsSync(`${path}-shm`)).toBe(false);
    expect(thrown(() => query())).toBeInstanceOf(Error);
    const again = new Database(path, "normal");
    expect(again.all("SELECT id FROM things")()).toEqual([{ id: 1 }]);
    again.close();
  });

  test("closing keeps the WAL for the next start if it cannot be moved", () => {
    const path = scratch.path("a.db");
    const db = new Database(path, "normal");
    db.execute("CREATE TABLE things (id INTEGER)");
    const reader = new Database(path, "normal");
    reader.execute("BEGIN");
    reader.all("SELECT id FROM things")();
    db.execute("INSERT INTO things VALUES (1)");
    db.execute("PRAGMA busy_timeout = 0");
    db.close();
    expect(existsSync(`${path}-wal`)).toBe(true);
    reader.execute("COMMIT");
    const again = new Database(path, "normal");
    expect(again.all("SELECT id FROM things")()).toEqual([{ id: 1 }]);
    reader.close();
    again.close();
  });
});

describe("storage failures", () => {
  test("include a full file", () => {
    const failure = storageFailure();
    expect(failure).toMatchObject({ code: "SQLITE_FULL" });
    expect(isStorageFailure(failure)).toBe(true);
  });

  test("include a lock of another connection", () => {
    const path = scratch.path("a.db");
    const holder = new Database(path, "normal");
    const other = new Database(path, "normal");
    other.execute("PRAGMA busy_timeout = 0");
    holder.execute("BEGIN IMMEDIATE");
    expect(isStorageFailure(thrown(() => other.execute("BEGIN IMMEDIATE")))).toBe(true);
    holder.execute("ROLLBACK");
    other.close();
    holder.close();
  });

  test("exclude invalid statements, constraints and other errors", () => {
    const db = new Database(scratch.path("a.db"), "normal");
    db.execute("CREATE TABLE things (id INTEGER PRIMARY KEY)");
    db.execute("INSERT INTO things VALUES (1)");
    expect(isStorageFailure(thrown(() => db.execute("SELECT nothing")))).toBe(false);
    expect(isStorageFailure(thrown(() => db.execute("INSERT INTO things VALUES (1)")))).toBe(false);
    expect(isStorageFailure(new Error("SQLITE_FULL"))).toBe(false);
    expect(isStorageFailure("SQLITE_FULL")).toBe(false);
    db.close();
  });
});
