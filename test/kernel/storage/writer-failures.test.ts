import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ApiError } from "../../../src/kernel/errors.ts";
import type { Change } from "../../../src/kernel/storage/database.ts";
import type { Tx } from "../../../src/kernel/storage/tx.ts";
import { type CommitFault, rejection, TestStorage } from "../support.ts";

let storage: TestStorage;
let insert: Change<[number]>;
let memory: number;

beforeEach(() => {
  storage = new TestStorage();
  memory = 0;
  storage.db.execute("CREATE TABLE numbers (value INTEGER PRIMARY KEY, bytes BLOB)");
  insert = storage.db.change<[number]>("INSERT INTO numbers (value) VALUES (?)");
});
afterEach(() => storage.close());

function numbers(): number[] {
  return storage
    .rows<{ value: number }>("SELECT value FROM numbers ORDER BY value")
    .map(({ value }) => value);
}

function remember(tx: Tx, amount: number): void {
  const before = memory;
  memory += amount;
  tx.onRollback(() => {
    memory = before;
  });
}

function write(value: number): Promise<number> {
  return storage.writer.submit((tx) => {
    remember(tx, value);
    insert(tx, value);
    return value;
  });
}

describe("a COMMIT that fails", () => {
  test.each<CommitFault>(["stays-open", "rolled-back"])(
    "rejects the whole batch, leaves nothing, and recovers by itself (transaction %s)",
    async (fault) => {
      await write(1);
      storage.db.fault = fault;
      let after = 0;
      const batch = [
        write(2),
        write(3),
        storage.writer.submit((tx) => {
          tx.afterCommit(() => {
            after += 1;
          });
          throw new ApiError("conflict", "rejected by itself");
        }),
        storage.writer.submit((tx) => {
          tx.afterCommit(() => {
            after += 1;
          });
        }),
      ];
      for (const unit of batch) {
        const error = (await rejection(unit)) as ApiError;
        expect(error.code).toBe("read_only");
        expect(error.status).toBe(503);
        expect(error.details.retryAfterSeconds).toBe(1);
      }
      expect(storage.db.inTransaction).toBe(false);
      expect(numbers()).toEqual([1]);
      expect(memory).toBe(1);
      expect(after).toBe(0);
      expect(storage.writer.stats).toEqual({
        commits: 1,
        units: 1,
        failures: 1,
        failing: "SQLiteError: database or disk is full",
      });

      storage.db.fault = "none";
      expect(await write(2)).toBe(2);
      expect(numbers()).toEqual([1, 2]);
      expect(memory).toBe(3);
      expect(storage.writer.stats.failing).toBeNull();
    },
  );

  test("is logged once, and so is its end", async () => {
    storage.db.fault = "stays-open";
    for (let round = 0; round < 5; round += 1) await rejection(write(round));
    storage.db.fault = "none";
    await write(9);
    await write(10);
    expect(storage.log.lines.map(({ level, message }) => `${level}: ${message}`)).toEqual([
      "error: the database cannot be written",
      "info: the database can be written again",
    ]);
    expect(storage.writer.stats.failures).toBe(5);
  });

  test("rolls back changes of hooks first", async () => {
    const undone: string[] = [];
    storage.writer.beforeCommit((tx) => tx.onRollback(() => undone.push("hook")));
    storage.db.fault = "stays-open";
    const units = [1, 2].map((value) =>
      storage.writer.submit((tx) => {
        insert(tx, value);
        tx.onRollback(() => undone.push(`unit ${value}`));
      }),
    );
    await Promise.allSettled(units);
    expect(undone).toEqual(["hook", "unit 2", "unit 1"]);
    storage.db.fault = "none";
  });

  test("leaves nothing of a batch with savepoints", async () => {
    storage.db.fault = "stays-open";
    const failing = storage.writer.submit((tx) => {
      remember(tx, 50);
      insert(tx, 50);
      throw new Error("failed after writing");
    });
    const settled = await Promise.allSettled([write(1), failing, write(2)]);
    expect(settled.map((result) => result.status === "rejected" && (result.reason as ApiError).code)).toEqual(
      ["read_only", "read_only", "read_only"],
    );
    storage.db.fault = "none";
    expect(numbers()).toEqual([]);
    expect(memory).toBe(0);
  });

  test("for another reason than storage is logged, rolled back, and rejects with the error", async () => {
    storage.db.execute("PRAGMA foreign_keys = ON");
    storage.db.execute(
      "CREATE TABLE children (parent INTEGER REFERENCES numbers (value) DEFERRABLE INITIALLY DEFERRED)",
    );
    const child = storage.db.change<[number]>("INSERT INTO children (parent) VALUES (?)");
    const settled = await Promise.allSettled([write(1), storage.writer.submit((tx) => child(tx, 999))]);
    expect(settled.map((result) => result.status === "rejected" && String(result.reason))).toEqual([
      "SQLiteError: FOREIGN KEY constraint failed",
      "SQLiteError: FOREIGN KEY constraint failed",
    ]);
    expect(numbers()).toEqual([]);
    expect(memory).toBe(0);
    expect(storage.log.messages("error")).toEqual(["defect in a batch"]);
    await write(2);
    expect(numbers()).toEqual([2]);
  });

  test("a hook that throws rejects the batch and leaves nothing", async () => {
    let broken = true;
    storage.writer.beforeCommit(() => {
      if (broken) throw new Error("broken hook");
    });
    expect(await rejection(write(1))).toEqual(new Error("broken hook"));
    expect(numbers()).toEqual([]);
    expect(memory).toBe(0);
    broken = false;
    await write(1);
    expect(numbers()).toEqual([1]);
  });
});

describe("a statement that finds the disk full", () => {
  /** Prevents the file from growing; 0 permits it again. */
  function limitPages(limited: boolean): void {
    storage.db.execute(`PRAGMA max_page_count = ${limited ? 1 : 1_073_741_823}`);
  }

  function bulky(value: number): (tx: Tx) => void {
    const command = storage.db.change<[number]>(
      "INSERT INTO numbers (value, bytes) VALUES (?, zeroblob(20000))",
    );
    return (tx) => {
      remember(tx, value);
      command(tx, value);
    };
  }

  const units: [string, (tx: Tx, work: (tx: Tx) => void) => void][] = [
    ["in the open", (tx, work) => work(tx)],
    ["in a part of the unit", (tx, work) => tx.savepoint(() => work(tx))],
    ["in a part of a part", (tx, work) => tx.savepoint(() => tx.savepoint(() => work(tx)))],
    [
      "in a part whose failure the unit swallows to write something smaller",
      (tx, work) => {
        try {
          tx.savepoint(() => work(tx));
        } catch {
          insert(tx, 77);
        }
      },
    ],
    [
      "in a part whose failure the unit swallows, with nothing written after it",
      (tx, work) => {
        try {
          tx.savepoint(() => work(tx));
        } catch {
          // The unit ignores the error; the units after it must not write outside of a transaction.
        }
      },
    ],
    [
      "in the open, swallowed, with something smaller written after it",
      (tx, work) => {
        try {
          work(tx);
        } catch {
          insert(tx, 77);
        }
      },
    ],
  ];

  test.each(units)(
    "%s: the batch is rejected with 503 and rolled back, and writing resumes",
    async (_, shape) => {
      await write(1);
      limitPages(true);
      const work = bulky(2);
      const settled = await Promise.allSettled([
        write(3),
        storage.writer.submit((tx) => shape(tx, work)),
        write(4),
      ]);
      expect(
        settled.map((result) =>
          result.status === "rejected" && result.reason instanceof ApiError ? result.reason.code : result,
        ),
      ).toEqual(["read_only", "read_only", "read_only"]);
      expect(storage.db.inTransaction).toBe(false);
      expect(numbers()).toEqual([1]);
      expect(memory).toBe(1);
      limitPages(false);
      await storage.writer.submit((tx) => shape(tx, work));
      await write(3);
      expect(numbers()).toEqual([1, 2, 3]);
      expect(memory).toBe(6);
    },
  );
});
