import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  Dispatcher,
  DUE_IN_MEMORY_MAX,
  DUE_OF_OWNER_IN_MEMORY_MAX,
  laneName,
  SLOW_LANES_REMEMBERED_MAX,
} from "../../../src/kernel/scheduler/dispatcher.ts";
import { POSITIONS_PER_STEP } from "../../../src/kernel/scheduler/due-jobs.ts";
import { type Job, Scheduler } from "../../../src/kernel/scheduler/scheduler.ts";
import { realDelay } from "../../../src/kernel/time/clock.ts";
import { until } from "../../support/eventually.ts";
import { TEST_START_MS } from "../../support/server.ts";
import { TestStorage } from "../support.ts";

const LIMITS = { perLane: 2, perSlowLane: 1, slowTotal: 3 };

let storage: TestStorage;
let scheduler: Scheduler;
beforeEach(() => {
  storage = new TestStorage();
  scheduler = newScheduler();
});
afterEach(async () => {
  await scheduler.stop(0);
  storage.close();
});

function newScheduler(): Scheduler {
  return new Scheduler(storage.db, storage.writer, storage.clock, storage.log);
}

/** Enqueues jobs named `lane/number`, in units of a few hundred. */
async function enqueue(lane: string, count: number, afterMs: number, first = 0): Promise<void> {
  for (let from = first; from < first + count; from += 500) {
    const to = Math.min(first + count, from + 500);
    await storage.writer.submit((tx) => {
      for (let number = from; number < to; number += 1) {
        scheduler.enqueue(tx, "call", `${lane}/${number}`, TEST_START_MS + afterMs, null, lane);
      }
    });
  }
}

/** Enqueues jobs of one owner, each to a host of its own. */
async function enqueueOnNewHosts(owner: number, count: number, afterMs: number): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    await storage.writer.submit((tx) => {
      for (let host = from; host < Math.min(count, from + 500); host += 1) {
        const lane = laneName(owner, `host ${String(host).padStart(6, "0")}`);
        scheduler.enqueue(tx, "call", `${owner}/${host}`, TEST_START_MS + afterMs, null, lane);
      }
    });
  }
}

/** Jobs that end when the test ends them. */
class HeldJobs {
  readonly started: string[] = [];
  private readonly held = new Map<string, () => void>();

  readonly run = (job: Job): Promise<object> => {
    this.started.push(job.key);
    return new Promise((resolve) => this.held.set(job.key, () => resolve({})));
  };

  async end(...keys: string[]): Promise<void> {
    for (const key of keys) {
      const end = this.held.get(key);
      if (end === undefined) throw new Error(`${key} does not run`);
      this.held.delete(key);
      end();
    }
    await turns();
  }
}

/** Lets batches commit and due timers run; the manual clock cannot wait for jobs that a test holds. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) {
    // A timer of the kind that the scheduler's slices wait for: each of these turns has one.
    await realDelay(0);
    for (const due of [...wakes.splice(0)]) due();
  }
}

/** Waits until `count` jobs have started, and then for jobs that must not start. */
async function untilStarted(jobs: HeldJobs, count: number): Promise<void> {
  await until(async () => {
    await turns();
    return jobs.started.length >= count;
  });
  await turns();
}

const wakes: (() => void)[] = [];

/** Replaces the scheduler's timers, so that the manual clock does not run them. */
function wakeByHand(): void {
  storage.clock.at = (_, run) => {
    wakes.push(run);
    return () => {
      const at = wakes.indexOf(run);
      if (at >= 0) wakes.splice(at, 1);
    };
  };
}

describe("lanes", () => {
  test("a lane runs up to its limit in order, and the others continue", async () => {
    wakeByHand();
    const jobs = new HeldJobs();
    scheduler.register("call", { concurrency: 10, lanes: LIMITS, run: jobs.run });
    await enqueue("dead", 100, -2_000);
    await enqueue("good", 3, -1_000);
    await scheduler.start();
    await untilStarted(jobs, 4);
    expect(jobs.started).toEqual(["dead/0", "good/0", "dead/1", "good/1"]);
    await jobs.end("good/0");
    await untilStarted(jobs, 5);
    expect(jobs.started.slice(4)).toEqual(["good/2"]);
    await jobs.end("dead/0");
    await untilStarted(jobs, 6);
    expect(jobs.started.slice(5)).toEqual(["dead/2"]);
  });

  test("a lane with thousands of overdue jobs has a few in memory and delays no other", async () => {
    wakeByHand();
    const jobs = new HeldJobs();
    scheduler.register("call", { concurrency: 10, lanes: LIMITS, run: jobs.run });
    await enqueue("dead", 3 * POSITIONS_PER_STEP, -2_000);
    await enqueue("good", 1, -1_000);
    await scheduler.start();
    await untilStarted(jobs, 3);
    // A slow machine starts the lane's second job in a later slice.
    expect(jobs.started.toSorted()).toEqual(["dead/0", "dead/1", "good/0"]);
  });

  test("every job of every lane runs once, in order within its lane, also those left in the table", async () => {
    const ran: string[] = [];
    scheduler.register("call", {
      concurrency: 3,
      lanes: { perLane: 1, perSlowLane: 1, slowTotal: 3 },
      run: async ({ key }) => {
        ran.push(key);
        return {};
      },
    });
    await enqueue("a", 700, -3_000);
    await enqueue("b", 30, -2_000);
    await enqueue("a", 50, -1_000, 700);
    await enqueue("c", 5, 1_000);
    await scheduler.start();
    await storage.clock.advance(2_000);
    for (const [lane, count] of [
      ["a", 750],
      ["b", 30],
      ["c", 5],
    ] as const) {
      const keys = Array.from({ length: count }, (_, number) => `${lane}/${number}`);
      expect(ran.filter((key) => key.startsWith(`${lane}/`))).toEqual(keys);
    }
    expect(storage.rows("SELECT id FROM jobs")).toEqual([]);
  });

  test("a late job of a lane with jobs left in the table runs", async () => {
    const ran: string[] = [];
    scheduler.register("call", {
      concurrency: 2,
      lanes: { perLane: 1, perSlowLane: 1, slowTotal: 2 },
      run: async ({ key }) => {
        ran.push(key);
        // After everything that was skipped.
        if (key === "a/3") await enqueue("a", 1, -60_000, 1_000);
        if (key === "a/20") await enqueue("b", 1, -60_000, 1_000);
        return {};
      },
    });
    await enqueue("a", 50, -1_000);
    await scheduler.start();
    await storage.clock.advance(0);
    expect(ran.length).toBe(52);
    expect(new Set(ran).size).toBe(52);
  });

  test("random lanes, due times, retries and late arrivals: every job runs as often as it requests", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            lane: fc.constantFrom("a", "1/a", "1/b", "2/a", ""),
            after: fc.integer({ min: -5, max: 5 }),
            retries: fc.integer({ min: 0, max: 2 }),
            spawns: fc.option(fc.integer({ min: -10, max: 3 }), { nil: null }),
          }),
          { minLength: 1, maxLength: 60 },
        ),
        async (plans) => {
          const runs = new Map<string, number>();
          const expected = new Map<string, number>();
          scheduler = newScheduler();
          scheduler.register("call", {
            concurrency: 2,
            lanes: { perLane: 1, perSlowLane: 1, slowTotal: 1, ownerShare: 1 / 2 },
            run: async ({ key, attempt, dueAt }) => {
              runs.set(key, (runs.get(key) ?? 0) + 1);
              const plan = plans[Number(key.split(" ")[0])];
              if (plan === undefined) return {};
              if (attempt < plan.retries) return { retryAt: dueAt + 1 };
              if (plan.spawns === null || key.endsWith("spawned")) return {};
              const { spawns, lane } = plan;
              return {
                record: (tx) => {
                  scheduler.enqueue(tx, "call", `${key} spawned`, tx.now + spawns, null, lane);
                },
              };
            },
          });
          const now = storage.clock.now();
          await storage.writer.submit((tx) => {
            plans.forEach(({ lane, after }, index) => {
              scheduler.enqueue(tx, "call", String(index), now + after, null, lane);
            });
          });
          plans.forEach(({ retries, spawns }, index) => {
            expected.set(String(index), retries + 1);
            if (spawns !== null) expected.set(`${index} spawned`, retries + 1);
          });
          await scheduler.start();
          await storage.clock.advance(100);
          await scheduler.stop();
          expect([...runs].sort()).toEqual([...expected].sort());
          expect(storage.rows("SELECT id FROM jobs WHERE kind = 'call'")).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe("owners", () => {
  test("an owner with a new host for every job uses only its share, and the others continue", async () => {
    wakeByHand();
    const jobs = new HeldJobs();
    scheduler.register("call", { concurrency: 8, lanes: { ...LIMITS, ownerShare: 1 / 4 }, run: jobs.run });
    for (let host = 0; host < 50; host += 1) await enqueue(laneName(1, `host ${host}`), 1, -2_000);
    for (let host = 0; host < 3; host += 1) await enqueue(laneName(2, `host ${host}`), 1, -1_000);
    await scheduler.start();
    await untilStarted(jobs, 4);
    expect(jobs.started).toEqual(["1/host 0/0", "2/host 0/0", "1/host 1/0", "2/host 1/0"]);
    await jobs.end("1/host 1/0");
    await untilStarted(jobs, 5);
    expect(jobs.started.slice(4)).toEqual(["1/host 10/0"]);
    await jobs.end("2/host 1/0");
    await untilStarted(jobs, 6);
    expect(jobs.started.slice(5)).toEqual(["2/host 2/0"]);
  });

  test(`an owner has at most ${DUE_OF_OWNER_IN_MEMORY_MAX} due jobs in memory, and later ones of others run immediately`, async () => {
    wakeByHand();
    const jobs = new HeldJobs();
    scheduler.register("call", { concurrency: 4, lanes: { ...LIMITS, ownerShare: 1 / 4 }, run: jobs.run });
    await enqueueOnNewHosts(1, DUE_OF_OWNER_IN_MEMORY_MAX + 1_000, -2_000);
    await enqueue(laneName(2, "host"), 1, -1_000);
    await scheduler.start();
    await untilStarted(jobs, 2);
    expect(jobs.started).toEqual(["1/0", "2/host/0"]);
  });

  test("an owner's jobs left in the table run once, also next to lanes with such jobs", async () => {
    const ran: string[] = [];
    scheduler.register("call", {
      concurrency: 50,
      lanes: { ...LIMITS, ownerShare: 1 / 2 },
      run: async ({ key }) => {
        ran.push(key);
        return {};
      },
    });
    const many = DUE_OF_OWNER_IN_MEMORY_MAX + 1_500;
    await enqueue(laneName(1, "one"), 300, -3_000);
    await enqueueOnNewHosts(1, many, -2_000);
    await enqueue(laneName(1, "one"), 300, -1_000, 300);
    await enqueue(laneName(2, "one"), 300, -1_000);
    await scheduler.start();
    await storage.clock.advance(1);
    expect(ran.length).toBe(many + 900);
    expect(new Set(ran).size).toBe(many + 900);
    const ofOne = ran.filter((key) => key.startsWith("1/one/"));
    expect(ofOne).toEqual(Array.from({ length: 600 }, (_, number) => `1/one/${number}`));
    expect(storage.rows("SELECT id FROM jobs")).toEqual([]);
  }, 60_000);

  test("an owner uses its share of the slow capacity, which alternates between owners", () => {
    const places = new Dispatcher(20, { perLane: 2, perSlowLane: 1, slowTotal: 4, ownerShare: 1 / 2 });
    const job = (id: number, lane: string) => ({ id, dueAt: id, lane });
    const slow = (owner: number, from: number) => {
      for (let host = 0; host < 5; host += 1) places.offer(job(from + host, laneName(owner, `slow ${host}`)));
    };
    slow(1, 0);
    slow(2, 100);
    slow(3, 200);
    for (let placed = places.place(); placed !== null; placed = places.place()) places.release(placed, true);
    slow(1, 1_000);
    slow(2, 2_000);
    slow(3, 3_000);
    const taken = Array.from({ length: 5 }, () => places.place());
    expect(taken.map((job) => job?.lane)).toEqual([
      "1/slow 0",
      "2/slow 0",
      "3/slow 0",
      "1/slow 1",
      undefined,
    ]);
    const next = (at: number) => {
      const one = taken[at];
      if (one !== null && one !== undefined) places.release(one, true);
      return places.place()?.lane;
    };
    expect([next(0), next(2), next(1), next(3)]).toEqual(["2/slow 1", "3/slow 1", "1/slow 2", "2/slow 2"]);
  });
});

describe("capacity", () => {
  const job = (id: number, lane: string) => ({ id, dueAt: id, lane });

  test("slow lanes share a part of the capacity; the rest is for lanes that respond", () => {
    const places = new Dispatcher(5, LIMITS);
    // Five lanes turn out to be slow.
    for (let lane = 0; lane < 5; lane += 1) places.offer(job(lane, `slow ${lane}`));
    const first = Array.from({ length: 5 }, () => places.place());
    for (const placed of first) if (placed !== null) places.release(placed, true);
    for (let id = 10; id < 20; id += 1) places.offer(job(id, `slow ${id % 5}`));
    const placed = [places.place(), places.place(), places.place()];
    expect(placed.map((job) => job?.lane)).toEqual(["slow 0", "slow 1", "slow 2"]);
    expect(places.place()).toBe(null);
    places.offer(job(30, "quick"));
    places.offer(job(31, "quick"));
    expect(places.place()?.lane).toBe("quick");
    expect(places.place()?.lane).toBe("quick");
    // A free slow place goes to the lane that has waited longest for one.
    const [one] = placed;
    if (one !== null && one !== undefined) places.release(one, true);
    expect(places.place()?.lane).toBe("slow 3");
  });

  test("a slow lane that responds in time is fast again", () => {
    const places = new Dispatcher(10, LIMITS);
    places.offer(job(1, "a"));
    const slow = places.place();
    if (slow === null) throw new Error("no place");
    places.release(slow, true);
    places.offer(job(2, "a"));
    places.offer(job(3, "a"));
    const second = places.place();
    expect(places.place()).toBe(null);
    if (second === null) throw new Error("no place");
    places.release(second, false);
    places.offer(job(4, "a"));
    expect([places.place()?.id, places.place()?.id]).toEqual([3, 4]);
  });

  test(`at most ${DUE_IN_MEMORY_MAX} due jobs are in memory`, () => {
    const places = new Dispatcher(1, LIMITS);
    for (let id = 0; id < DUE_IN_MEMORY_MAX; id += 1) {
      expect(places.hasCapacity).toBe(true);
      places.offer(job(id, laneName(id % 100, `host ${id}`)));
    }
    expect(places.hasCapacity).toBe(false);
  });

  test(`${SLOW_LANES_REMEMBERED_MAX} slow lanes are remembered, and the oldest is dropped`, () => {
    const places = new Dispatcher(2, { perLane: 2, perSlowLane: 1, slowTotal: 2 });
    for (let id = 0; id <= SLOW_LANES_REMEMBERED_MAX; id += 1) {
      places.offer(job(id, `lane ${id}`));
      const placed = places.place();
      if (placed === null) throw new Error("no place");
      places.release(placed, true);
    }
    const atOnce = (lane: string): number => {
      const next = 100_000 + lane.length * 10;
      places.offer(job(next, lane));
      places.offer(job(next + 1, lane));
      const placed = [places.place(), places.place()].filter((one) => one !== null);
      for (const one of placed) places.release(one, null);
      return placed.length;
    };
    expect(atOnce("lane 0")).toBe(2);
    expect(atOnce(`lane ${SLOW_LANES_REMEMBERED_MAX}`)).toBe(1);
  });
});
