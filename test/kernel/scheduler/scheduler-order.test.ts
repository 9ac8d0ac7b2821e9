import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { realDelay } from "../../../src/kernel/time/clock.ts";
import { TEST_START_MS } from "../../support/server.ts";
import { DAY, HOUR, SchedulerBench, SECOND } from "./bench.ts";

let bench: SchedulerBench;
beforeEach(() => {
  bench = new SchedulerBench();
});
afterEach(() => bench.close());

describe("cancelling and replacing", () => {
  test("a cancelled job does not run; cancelling returns whether it existed", async () => {
    bench.register("a");
    await bench.scheduler.start();
    await bench.enqueue("a", "x", SECOND);
    const cancel = (key: string) => bench.storage.writer.submit((tx) => bench.scheduler.cancel(tx, "a", key));
    expect(await cancel("x")).toBe(true);
    expect(await cancel("x")).toBe(false);
    expect(await cancel("never was")).toBe(false);
    await bench.advance(DAY);
    expect(bench.ran).toEqual([]);
  });

  test("a cancellation that is rolled back leaves the job", async () => {
    bench.register("a");
    await bench.scheduler.start();
    await bench.enqueue("a", "x", SECOND);
    const failing = bench.storage.writer.submit((tx) => {
      bench.scheduler.cancel(tx, "a", "x");
      throw new Error("failed");
    });
    await expect(failing).rejects.toThrow("failed");
    await bench.advance(SECOND);
    expect(bench.ran).toEqual(["a/x#0 at 1000"]);
  });

  test("a job of the same kind and key replaces the previous one: new time, new payload", async () => {
    const payloads: unknown[] = [];
    bench.register("a", ({ payload }) => {
      payloads.push(payload);
      return {};
    });
    await bench.scheduler.start();
    await bench.enqueue("a", "x", SECOND, "first");
    await bench.enqueue("a", "x", 3 * SECOND, "second");
    await bench.enqueue("a", "y", 2 * SECOND, "other key");
    await bench.advance(DAY);
    expect(bench.ran).toEqual(["a/y#0 at 2000", "a/x#0 at 3000"]);
    expect(payloads).toEqual(["other key", "second"]);
  });

  test.each([
    ["finishes", {}],
    ["requests a retry", { retryAt: TEST_START_MS + 2 * SECOND }],
  ] as const)(
    "replaced while it runs: the outcome of the one that %s does not affect the new one",
    async (_, outcome) => {
      bench.register("a", async ({ payload }) => {
        if (payload !== "old") return {};
        await bench.enqueue("a", "x", 5 * SECOND, "new");
        return outcome;
      });
      await bench.scheduler.start();
      await bench.enqueue("a", "x", SECOND, "old");
      await bench.advance(SECOND);
      expect(bench.jobs).toEqual([{ kind: "a", key: "x", due: 5 * SECOND, attempt: 0 }]);
      await bench.advance(DAY);
      expect(bench.ran).toEqual(["a/x#0 at 1000", "a/x#0 at 5000"]);
      expect(bench.jobs).toEqual([]);
    },
  );

  test("cancelled while it runs: its retry does not restore it", async () => {
    bench.register("a", async () => {
      await bench.storage.writer.submit((tx) => bench.scheduler.cancel(tx, "a", "x"));
      return { retryAt: TEST_START_MS + 2 * SECOND };
    });
    await bench.scheduler.start();
    await bench.enqueue("a", "x", SECOND);
    await bench.advance(DAY);
    expect(bench.ran).toEqual(["a/x#0 at 1000"]);
    expect(bench.jobs).toEqual([]);
  });
});

describe("concurrency", () => {
  test("a kind runs up to its limit concurrently; the next job starts in due order", async () => {
    let running = 0;
    let most = 0;
    const other = Promise.withResolvers<void>();
    bench.register(
      "slow",
      async () => {
        running += 1;
        most = Math.max(most, running);
        // A kind at its limit does not block others.
        await other.promise;
        await realDelay(3);
        running -= 1;
        return {};
      },
      3,
    );
    bench.register("other", () => {
      other.resolve();
      return {};
    });
    await bench.scheduler.start();
    await bench.storage.writer.submit((tx) => {
      for (let index = 0; index < 20; index += 1) {
        bench.scheduler.enqueue(tx, "slow", String(index), TEST_START_MS + SECOND, null);
      }
      bench.scheduler.enqueue(tx, "other", "x", TEST_START_MS + SECOND, null);
    });
    await bench.advance(SECOND);
    expect(most).toBe(3);
    expect(bench.ran.filter((line) => line.startsWith("slow"))).toEqual(
      Array.from({ length: 20 }, (_, index) => `slow/${index}#0 at 1000`),
    );
    expect(bench.ran).toContain("other/x#0 at 1000");
    expect(bench.jobs).toEqual([]);
  });

  test("a slow job blocks only its own place", async () => {
    let finish = () => {};
    bench.register(
      "a",
      ({ key }) =>
        key === "long"
          ? new Promise((resolve) => {
              finish = () => resolve({});
            })
          : {},
      2,
    );
    await bench.scheduler.start();
    await bench.enqueue("a", "long", 0);
    for (let index = 1; index <= 5; index += 1) await bench.enqueue("a", `short ${index}`, 0);
    const advance = bench.advance(0);
    while (bench.jobs.length > 1) await realDelay(1);
    expect(bench.jobs).toMatchObject([{ key: "long" }]);
    expect(bench.scheduler.running).toBe(1);
    finish();
    await advance;
    expect(bench.jobs).toEqual([]);
  });

  test("stop waits for running jobs, starts none, and gives up after its grace period", async () => {
    let finish = () => {};
    bench.register(
      "a",
      () =>
        new Promise((resolve) => {
          finish = () => resolve({});
        }),
    );
    await bench.scheduler.start();
    await bench.enqueue("a", "x", 0);
    await bench.enqueue("a", "y", 0);
    const advance = bench.advance(0);
    while (bench.scheduler.running === 0) await realDelay(1);
    const began = performance.now();
    await bench.scheduler.stop(30);
    expect(performance.now() - began).toBeGreaterThanOrEqual(29);
    const stopped = bench.scheduler.stop();
    finish();
    await stopped;
    await advance;
    expect(bench.ran).toEqual(["a/x#0 at 0"]);
    expect(bench.jobs).toMatchObject([{ key: "y" }]);
  });
});

describe("recurring work", () => {
  test("planned while the clock was years ahead is planned again at the start", async () => {
    bench.scheduler.recurring("hourly", EVERY_HOUR, async (job) => bench.note(job));
    const ahead = TEST_START_MS + 12 * 365 * DAY;
    await bench.storage.writer.submit((tx) => {
      bench.scheduler.enqueue(tx, "hourly", "", ahead, { expression: EVERY_HOUR });
    });
    await bench.scheduler.start();
    expect(bench.jobs).toMatchObject([{ kind: "hourly", due: HOUR }]);
  });

  const EVERY_HOUR = "0 * * * *";

  test("runs at the times of its expression, without overlapping attempts", async () => {
    bench.scheduler.recurring("hourly", EVERY_HOUR, async (job) => bench.note(job));
    await bench.scheduler.start();
    await bench.advance(3 * HOUR);
    expect(bench.ran).toEqual([1, 2, 3].map((hour) => `hourly/#0 at ${hour * HOUR}`));
    expect(bench.jobs).toEqual([{ kind: "hourly", key: "", due: 4 * HOUR, attempt: 0 }]);
  });

  test("runs once for all missed times after a downtime, then by the calendar", async () => {
    bench.scheduler.recurring("hourly", EVERY_HOUR, async (job) => bench.note(job));
    await bench.scheduler.start();
    await bench.scheduler.stop();
    await bench.advance(5 * HOUR + 1);
    bench.renew(true);
    bench.scheduler.recurring("hourly", EVERY_HOUR, async (job) => bench.note(job));
    await bench.scheduler.start();
    await bench.advance(0);
    expect(bench.ran).toEqual([`hourly/#0 at ${5 * HOUR + 1}`]);
    await bench.advance(HOUR);
    expect(bench.ran).toEqual([`hourly/#0 at ${5 * HOUR + 1}`, `hourly/#0 at ${6 * HOUR}`]);
  });

  test("an expression that changed takes effect at the next start", async () => {
    bench.scheduler.recurring("job", "0 0 1 * *", async (job) => bench.note(job));
    await bench.scheduler.start();
    await bench.scheduler.stop();
    bench.renew();
    bench.scheduler.recurring("job", EVERY_HOUR, async (job) => bench.note(job));
    await bench.scheduler.start();
    await bench.advance(HOUR);
    expect(bench.ran).toEqual([`job/#0 at ${HOUR}`]);
  });

  test("that fails is retried soon, regardless of earlier successes", async () => {
    let broken = false;
    bench.scheduler.recurring("hourly", EVERY_HOUR, async (job) => {
      bench.note(job);
      if (broken) throw new Error("broken");
    });
    await bench.scheduler.start();
    await bench.advance(20 * HOUR);
    bench.ran = [];
    broken = true;
    await bench.advance(HOUR);
    broken = false;
    await bench.advance(SECOND);
    expect(bench.ran).toEqual([`hourly/#0 at ${21 * HOUR}`, `hourly/#1 at ${21 * HOUR + SECOND}`]);
    expect(bench.jobs).toEqual([{ kind: "hourly", key: "", due: 22 * HOUR, attempt: 0 }]);
  });
});
