import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { SET_BACK_SLICE } from "../../../src/kernel/scheduler/clock-set-back.ts";
import { ERAS_MAX } from "../../../src/kernel/scheduler/job-store.ts";
import { TEST_START_MS } from "../../support/server.ts";
import { DAY, HOUR, SchedulerBench, SECOND } from "./bench.ts";

let bench: SchedulerBench;
/** Runs and the time before each, independent of the wall clock. */
let ran: [string, number][];
beforeEach(() => {
  bench = new SchedulerBench();
  ran = [];
});
afterEach(() => bench.close());

const elapsed = (): number => bench.storage.clock.monotonic() - TEST_START_MS;

function register(kind: string, again: readonly number[] = []): void {
  const waits = [...again];
  bench.register(kind, ({ key }) => {
    ran.push([key, elapsed()]);
    const wait = waits.shift();
    return wait === undefined ? {} : { retryAt: bench.storage.clock.now() + wait };
  });
}

/** Enqueues a job with a due time relative to the wall clock. */
function enqueue(kind: string, key: string, afterMs: number): Promise<void> {
  return bench.enqueue(kind, key, bench.storage.clock.now() - TEST_START_MS + afterMs);
}

/** Sets the wall clock and lets all work finish without any time passing. */
async function set(byMs: number): Promise<void> {
  bench.storage.clock.setWall(byMs);
  await bench.advance(0);
}

describe("a wall clock that is set forward", () => {
  test("counts as time that has passed: due work runs immediately, the rest at its time", async () => {
    register("a");
    await bench.scheduler.start();
    await enqueue("a", "hour", HOUR);
    await enqueue("a", "day", DAY);
    await set(2 * HOUR);
    expect(ran).toEqual([["hour", 0]]);
    await bench.advance(22 * HOUR);
    expect(ran.at(-1)).toEqual(["day", 22 * HOUR]);
  });
});

describe("a wall clock that was ahead at the last stop", () => {
  test("makes no job wait longer", async () => {
    register("a");
    await bench.scheduler.start();
    await set(400 * DAY);
    await enqueue("a", "hour", HOUR);
    await bench.scheduler.stop();
    bench.storage.clock.setWall(-400 * DAY);
    bench.renew();
    register("a");
    await bench.scheduler.start();
    await bench.advance(HOUR - 1);
    expect(ran).toEqual([]);
    await bench.advance(1);
    expect(ran).toEqual([["hour", HOUR]]);
  });
});

describe("a wall clock that is set back", () => {
  test("makes no job wait longer", async () => {
    register("a");
    await bench.scheduler.start();
    await enqueue("a", "10 s", 10 * SECOND);
    await enqueue("a", "1 h", HOUR);
    await set(-DAY);
    await bench.advance(10 * SECOND);
    expect(ran).toEqual([["10 s", 10 * SECOND]]);
    await bench.advance(HOUR);
    expect(ran.at(-1)).toEqual(["1 h", HOUR]);
    expect(bench.jobs).toEqual([]);
  });

  test("makes no later job and no repeated one early", async () => {
    register("a", [20 * SECOND]);
    await bench.scheduler.start();
    await enqueue("a", "before", SECOND);
    await bench.advance(0);
    await set(-HOUR);
    await enqueue("a", "after", 10 * SECOND);
    await bench.advance(HOUR);
    expect(ran).toEqual([
      ["before", SECOND],
      ["after", 10 * SECOND],
      ["before", 21 * SECOND],
    ]);
  });

  test("set back repeatedly, adds up", async () => {
    register("a");
    await bench.scheduler.start();
    await enqueue("a", "first", 30 * SECOND);
    await set(-HOUR);
    await enqueue("a", "second", 30 * SECOND);
    await bench.advance(10 * SECOND);
    await set(-HOUR);
    await bench.advance(HOUR);
    expect(ran).toEqual([
      ["first", 30 * SECOND],
      ["second", 30 * SECOND],
    ]);
  });

  test("after it was set forward by mistake: earlier, intermediate and later jobs are on time", async () => {
    register("a", [5 * SECOND]);
    await bench.scheduler.start();
    await enqueue("a", "again", 0);
    await enqueue("a", "before", 3 * DAY);
    await set(DAY);
    await enqueue("a", "meanwhile", 30 * SECOND);
    await bench.advance(SECOND);
    await set(-DAY);
    await enqueue("a", "after", 30 * SECOND);
    await bench.advance(4 * DAY);
    expect(ran).toEqual([
      ["again", 0],
      ["again", 5 * SECOND],
      ["meanwhile", 30 * SECOND],
      ["after", 31 * SECOND],
      ["before", 3 * DAY],
    ]);
  });

  test("set back more often than is recorded, makes no job late", async () => {
    register("a");
    await bench.scheduler.start();
    await enqueue("a", "x", 10 * SECOND);
    for (let time = 0; time <= ERAS_MAX; time += 1) await set(-HOUR);
    await enqueue("a", "y", 20 * SECOND);
    await bench.advance(20 * SECOND);
    expect(ran).toEqual([
      ["x", 10 * SECOND],
      ["y", 20 * SECOND],
    ]);
  });

  test("moves all jobs, also more than one unit of work can", async () => {
    const jobs = 2 * SET_BACK_SLICE + 1;
    bench.scheduler.register("many", {
      concurrency: 50,
      run: async ({ key }) => {
        ran.push([key, elapsed()]);
        return {};
      },
    });
    await bench.scheduler.start();
    await bench.storage.writer.submit((tx) => {
      for (let job = 0; job < jobs; job += 1) {
        bench.scheduler.enqueue(tx, "many", String(job), TEST_START_MS + 10 * SECOND + job, null);
      }
    });
    await set(-HOUR);
    await bench.advance(9 * SECOND);
    expect(ran).toEqual([]);
    await bench.advance(SECOND + jobs);
    expect(ran).toEqual(Array.from({ length: jobs }, (_, job) => [String(job), 10 * SECOND + job]));
  });

  test("is applied later if the table cannot be written", async () => {
    register("a");
    await bench.scheduler.start();
    await enqueue("a", "x", 10 * SECOND);
    bench.storage.db.fault = "stays-open";
    bench.storage.clock.setWall(-HOUR);
    const waited = bench.advance(0);
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    bench.storage.db.fault = "none";
    await waited;
    await bench.advance(10 * SECOND);
    expect(ran).toEqual([["x", 10 * SECOND]]);
    expect(bench.storage.log.messages("error")).toContain(
      "jobs wait as much longer as the clock was set back",
    );
  });

  test("restores recurring work to its calendar", async () => {
    bench.scheduler.recurring("hourly", "17 * * * *", async () => {
      ran.push(["hourly", bench.storage.clock.now() - TEST_START_MS]);
    });
    await bench.scheduler.start();
    await set(-365 * DAY);
    await bench.advance(HOUR);
    expect(ran).toEqual([["hourly", -365 * DAY + (17 * HOUR) / 60]]);
  });
});

test("a scheduler that is stopped or not started ignores the clock", async () => {
  register("a");
  await set(2 * HOUR);
  await bench.scheduler.start();
  await enqueue("a", "x", 10 * SECOND);
  await bench.scheduler.stop(0);
  await set(-HOUR);
  expect(bench.jobs).toMatchObject([{ key: "x", due: 2 * HOUR + 10 * SECOND }]);
  bench.renew();
  register("a");
  await bench.scheduler.start();
  await set(-HOUR);
  // One of the two hours was found by the comparison with the last stop.
  await bench.advance(HOUR + 10 * SECOND);
  expect(ran).toEqual([["x", 10 * SECOND]]);
});
