import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Job, Scheduler, START_MS_MAX } from "../../../src/kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../src/kernel/storage/tx.ts";
import { Writer } from "../../../src/kernel/storage/writer.ts";
import { createSystemClock, ManualClock, realDelay } from "../../../src/kernel/time/clock.ts";
import { TEST_START_MS } from "../../support/server.ts";
import { DAY, HOUR, SchedulerBench, SECOND } from "./bench.ts";

let bench: SchedulerBench;
beforeEach(() => {
  bench = new SchedulerBench();
});
afterEach(() => bench.close());

describe("due jobs", () => {
  test("run at their time with their payload and leave the table", async () => {
    const seen: Job[] = [];
    bench.register("send", (job) => {
      seen.push(job);
      return {};
    });
    await bench.scheduler.start();
    await bench.enqueue("send", "a", 10 * SECOND, { text: "naïve ✓", list: [1, null] });
    await bench.advance(10 * SECOND - 1);
    expect(seen).toEqual([]);
    await bench.advance(1);
    expect(seen).toEqual([
      {
        kind: "send",
        key: "a",
        dueAt: TEST_START_MS + 10 * SECOND,
        payload: { text: "naïve ✓", list: [1, null] },
        attempt: 0,
      },
    ]);
    expect(bench.jobs).toEqual([]);
    expect(bench.scheduler.running).toBe(0);
  });

  test("run in the order of their due times, regardless of the order of creation", async () => {
    bench.register("a");
    bench.register("b");
    await bench.scheduler.start();
    for (const [kind, key, after] of [
      ["a", "third", 3],
      ["b", "second", 2],
      ["a", "fourth", 4],
      ["a", "first", 1],
    ] as const) {
      await bench.enqueue(kind, key, after * SECOND);
    }
    await bench.advance(DAY);
    expect(bench.ran).toEqual([
      "a/first#0 at 1000",
      "b/second#0 at 2000",
      "a/third#0 at 3000",
      "a/fourth#0 at 4000",
    ]);
  });

  test("can be due beyond the range of setTimeout, or already overdue", async () => {
    bench.register("a");
    await bench.scheduler.start();
    await bench.enqueue("a", "far", 40 * DAY);
    await bench.enqueue("a", "past", -DAY);
    await bench.advance(0);
    expect(bench.ran).toEqual(["a/past#0 at 0"]);
    await bench.advance(40 * DAY);
    expect(bench.ran).toEqual(["a/past#0 at 0", `a/far#0 at ${40 * DAY}`]);
  });

  test("that were enqueued in a failed unit do not exist", async () => {
    bench.register("a");
    await bench.scheduler.start();
    const failing = bench.storage.writer.submit((tx) => {
      bench.scheduler.enqueue(tx, "a", "x", TEST_START_MS, null);
      throw new Error("failed");
    });
    await expect(failing).rejects.toThrow("failed");
    await bench.advance(DAY);
    expect(bench.ran).toEqual([]);
  });

  test.each([
    ["immediately", 0],
    ["only after more than a slice of the event loop", 5 * START_MS_MAX],
  ])("that cannot be read, which fails %s, are read again a second later", async (_, failedReadMs) => {
    bench.register("a");
    await bench.scheduler.start();
    await bench.enqueue("a", "x", SECOND);
    await bench.advance(0);
    Object.assign(bench.storage.db, { readsFail: true, failedReadMs });
    await bench.advance(SECOND);
    bench.storage.db.readsFail = false;
    expect(bench.ran).toEqual([]);
    expect(bench.storage.log.messages("error")).toEqual(["due jobs could not be read"]);
    await bench.advance(SECOND);
    expect(bench.ran).toEqual(["a/x#0 at 2000"]);
  });

  test("of a kind without a handler wait in the table", async () => {
    bench.register("a");
    await bench.scheduler.start();
    await bench.enqueue("nobody", "x", 0);
    await bench.advance(DAY);
    expect(bench.jobs).toEqual([{ kind: "nobody", key: "x", due: 0, attempt: 0 }]);
  });

  test("run on the system clock", async () => {
    const clock = createSystemClock();
    const writer = new Writer(bench.storage.db, clock, bench.storage.log);
    const real = new Scheduler(bench.storage.db, writer, clock, bench.storage.log);
    const done = new Promise<number>((resolve) => {
      real.register("a", {
        concurrency: 1,
        run: async ({ dueAt }) => {
          resolve(clock.now() - dueAt);
          return {};
        },
      });
    });
    await real.start();
    await writer.submit((tx) => real.enqueue(tx, "a", "x", clock.now() + 20, null));
    expect(await done).toBeGreaterThanOrEqual(0);
    await real.stop();
    expect(bench.jobs).toEqual([]);
  });

  test("a kind cannot be registered twice", () => {
    bench.register("a");
    expect(() => bench.register("a")).toThrow("job kind a is registered twice");
  });
});

describe("a restart", () => {
  test("runs overdue jobs immediately in due order, and the rest at their times", async () => {
    bench.register("a");
    await bench.scheduler.start();
    for (const [key, after] of [
      ["c", 30],
      ["a", 10],
      ["d", 90],
      ["b", 20],
    ] as const) {
      await bench.enqueue("a", key, after * SECOND);
    }
    await bench.scheduler.stop();
    await bench.advance(60 * SECOND);
    expect(bench.ran).toEqual([]);
    bench.renew(true);
    bench.register("a");
    await bench.scheduler.start();
    await bench.advance(0);
    expect(bench.ran).toEqual(["a/a#0 at 60000", "a/b#0 at 60000", "a/c#0 at 60000"]);
    await bench.advance(30 * SECOND);
    expect(bench.ran.at(-1)).toBe("a/d#0 at 90000");
    expect(bench.jobs).toEqual([]);
  });

  test("of the same scheduler works too", async () => {
    bench.register("a");
    await bench.scheduler.start();
    await bench.enqueue("a", "x", 10 * SECOND);
    await bench.scheduler.stop();
    await bench.advance(20 * SECOND);
    expect(bench.ran).toEqual([]);
    await bench.scheduler.start();
    await bench.advance(0);
    expect(bench.ran).toEqual(["a/x#0 at 20000"]);
  });

  test("repeats a job that was running at the crash", async () => {
    let release = () => {};
    bench.register(
      "a",
      () =>
        new Promise((resolve) => {
          release = () => resolve({});
        }),
    );
    await bench.scheduler.start();
    await bench.enqueue("a", "x", 0);
    const advance = bench.advance(0);
    while (bench.scheduler.running === 0) await realDelay(1);
    expect(bench.jobs).toEqual([{ kind: "a", key: "x", due: 0, attempt: 0 }]);
    // What another process would find in the same file after the first one was killed during its work.
    const clock = new ManualClock(TEST_START_MS + DAY);
    const second = new Scheduler(bench.storage.db, bench.storage.writer, clock, bench.storage.log);
    const seen: Job[] = [];
    second.register("a", {
      concurrency: 1,
      run: async (job) => {
        seen.push(job);
        return {};
      },
    });
    await second.start();
    await clock.advance(0);
    await second.stop();
    expect(seen).toEqual([{ kind: "a", key: "x", dueAt: TEST_START_MS, payload: null, attempt: 0 }]);
    expect(bench.jobs).toEqual([]);
    release();
    await advance;
  });
});

describe("outcomes", () => {
  test("a retry runs at its time, counts attempts and can have another payload", async () => {
    const payloads: unknown[] = [];
    bench.register("a", ({ attempt, payload }) => {
      payloads.push(payload);
      if (attempt === 0) return { retryAt: bench.storage.clock.now() + 5 * SECOND };
      if (attempt === 1) return { retryAt: bench.storage.clock.now() + 25 * SECOND, payload: { tried: 2 } };
      return {};
    });
    await bench.scheduler.start();
    await bench.enqueue("a", "x", SECOND, { tried: 0 });
    await bench.advance(6 * SECOND);
    expect(bench.jobs).toEqual([{ kind: "a", key: "x", due: 31 * SECOND, attempt: 2 }]);
    await bench.advance(DAY);
    expect(bench.ran).toEqual(["a/x#0 at 1000", "a/x#1 at 6000", "a/x#2 at 31000"]);
    expect(payloads).toEqual([{ tried: 0 }, { tried: 0 }, { tried: 2 }]);
    expect(bench.jobs).toEqual([]);
  });

  test("are recorded in the transaction that removes the job", async () => {
    bench.storage.db.execute("CREATE TABLE results (key TEXT)");
    const insert = bench.storage.db.change<[string]>("INSERT INTO results (key) VALUES (?)");
    let records = 0;
    bench.register("a", ({ key }) => ({
      record: (tx: Tx) => {
        records += 1;
        insert(tx, key);
      },
    }));
    await bench.scheduler.start();
    await bench.enqueue("a", "x", 0);
    bench.storage.db.fault = "stays-open";
    const advance = bench.advance(0);
    while (records === 0) await realDelay(1);
    await realDelay(5);
    expect(bench.storage.rows("SELECT key FROM results")).toEqual([]);
    expect(bench.jobs).toHaveLength(1);
    bench.storage.db.fault = "none";
    await advance;
    expect(records).toBe(2);
    expect(bench.ran).toEqual(["a/x#0 at 0"]);
    expect(bench.storage.rows("SELECT key FROM results")).toEqual([{ key: "x" }]);
    expect(bench.jobs).toEqual([]);
  });

  test("a handler that throws is logged and retried after 1 s, 2 s, 4 s … and at most an hour", async () => {
    bench.register("a", () => {
      throw new Error("broken handler");
    });
    await bench.scheduler.start();
    await bench.enqueue("a", "x", 0);
    await bench.advance(15 * SECOND);
    expect(bench.ran).toEqual([
      "a/x#0 at 0",
      "a/x#1 at 1000",
      "a/x#2 at 3000",
      "a/x#3 at 7000",
      "a/x#4 at 15000",
    ]);
    expect(bench.storage.log.lines.slice(0, 1)).toMatchObject([
      {
        level: "error",
        message: "a job failed",
        fields: { kind: "a", attempt: 0, error: "Error: broken handler" },
      },
    ]);
    await bench.advance(10 * HOUR);
    const [before, last] = bench.ran.slice(-2).map((line) => Number(line.split(" at ")[1]));
    expect(Number(last) - Number(before)).toBe(HOUR);
  });

  test("a recording that throws is rolled back, and the job is retried later", async () => {
    bench.storage.db.execute("CREATE TABLE results (key TEXT)");
    const insert = bench.storage.db.change<[string]>("INSERT INTO results (key) VALUES (?)");
    let broken = true;
    bench.register("a", ({ key }) => ({
      record: (tx: Tx) => {
        insert(tx, key);
        if (broken) throw new Error("broken recording");
      },
    }));
    await bench.scheduler.start();
    await bench.enqueue("a", "x", 0);
    await bench.advance(0);
    expect(bench.jobs).toEqual([{ kind: "a", key: "x", due: SECOND, attempt: 1 }]);
    expect(bench.storage.rows("SELECT key FROM results")).toEqual([]);
    expect(bench.storage.log.messages("error")).toEqual(["a job failed"]);
    broken = false;
    await bench.advance(SECOND);
    expect(bench.ran).toEqual(["a/x#0 at 0", "a/x#1 at 1000"]);
    expect(bench.storage.rows("SELECT key FROM results")).toEqual([{ key: "x" }]);
    expect(bench.jobs).toEqual([]);
  });
});

test("many jobs that are due at the same time start in slices of the event loop", async () => {
  let turn = 0;
  let counting = true;
  const count = (): void => {
    turn += 1;
    if (counting) setImmediate(count);
  };
  const startedIn = new Map<number, number>();
  bench.register(
    "long",
    () => {
      startedIn.set(turn, (startedIn.get(turn) ?? 0) + 1);
      const end = performance.now() + JOB_MS;
      while (performance.now() < end);
      return {};
    },
    JOBS,
  );
  for (let number = 0; number < JOBS; number += 1) await bench.enqueue("long", `${number}`, SECOND);
  await bench.scheduler.start();
  count();
  await bench.advance(SECOND);
  counting = false;
  expect(bench.jobs).toEqual([]);
  // The last one starts just before the slice is over, and a turn can touch two slices.
  expect(Math.max(...startedIn.values())).toBeLessThanOrEqual(2 * (START_MS_MAX / JOB_MS + 1));
});

test("the outcome of a job is recorded after the units of requests that came later", async () => {
  const { writer } = bench.storage;
  const order: string[] = [];
  const request = async (): Promise<void> => {
    while (writer.queued === 0) await Promise.resolve();
    await writer.submit(() => void order.push("request"));
  };
  bench.register("a", () => {
    void request();
    return { record: () => void order.push("job") };
  });
  await bench.enqueue("a", "x", SECOND);
  await bench.scheduler.start();
  await bench.advance(SECOND);
  expect(order).toEqual(["request", "job"]);
});

const JOBS = 40;
const JOB_MS = 2;
