import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MIGRATIONS } from "../../../migrations/index.ts";
import { WAITERS_PER_ACCOUNT_MAX, WAITERS_PER_LOCK_MAX } from "../../../src/areas/locks/domain.ts";
import {
  EXPIRIES_PER_UNIT_MAX,
  EXPIRY_RETRY_MS,
  type Granted,
  Waiter,
} from "../../../src/areas/locks/lock.ts";
import { LockService } from "../../../src/areas/locks/service.ts";
import { FENCING_TOKENS_RESERVED, lockStore } from "../../../src/areas/locks/store.ts";
import { ApiError } from "../../../src/kernel/errors.ts";
import { type Kernel, openKernel } from "../../../src/kernel/kernel.ts";
import { ManualClock } from "../../../src/kernel/time/clock.ts";
import { TEST_START_MS } from "../../support/server.ts";

const PROJECT = 7;
const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** The service on a real file, on a manual clock, with commits that can be made to fail. */
class Bench {
  readonly clock = new ManualClock(TEST_START_MS);
  readonly folder = mkdtempSync(join(tmpdir(), "ninefold-locks-"));
  kernel!: Kernel;
  locks!: LockService;
  failing = false;

  open(): this {
    this.kernel = openKernel({
      databasePath: join(this.folder, "test.db"),
      masterKeyPath: join(this.folder, "master.key"),
      masterKey: null,
      durability: "normal",
      migrations: MIGRATIONS,
      clock: this.clock,
      log: QUIET,
    });
    const { db, writer, clock, ids, log, changes } = this.kernel;
    writer.beforeCommit(() => {
      if (this.failing) throw new ApiError("service_unavailable", "The disk is full, says this test.");
    });
    this.locks = new LockService({ store: lockStore(db), writer, clock, ids, log, changes });
    return this;
  }

  close(): void {
    this.locks.finish();
    this.kernel.writer.close();
    this.kernel.checkpointer.close();
    this.kernel.db.close();
  }

  request(
    more: { key?: string; ttlMs?: number; timeoutMs?: number; token?: string; signal?: AbortSignal } = {},
  ) {
    return {
      accountRef: 1,
      projectRef: PROJECT,
      key: "k",
      ttlMs: 10_000,
      timeoutMs: 900_000,
      token: null,
      signal: new AbortController().signal,
      ...more,
    };
  }

  /** Asks for a lock in a unit of work. */
  ask(more: Parameters<Bench["request"]>[0] = {}): Promise<Granted | Waiter> {
    return this.kernel.writer.submit((tx) => this.locks.acquire(tx, this.request(more)));
  }

  async granted(more: Parameters<Bench["request"]>[0] = {}): Promise<Granted> {
    const outcome = await this.ask(more);
    if (outcome instanceof Waiter) throw new Error("it has to wait");
    return outcome;
  }

  async waiting(more: Parameters<Bench["request"]>[0] = {}): Promise<Waiter> {
    const outcome = await this.ask(more);
    if (!(outcome instanceof Waiter)) throw new Error("it was granted");
    return outcome;
  }

  async release({ lock, lease }: Granted): Promise<void> {
    await this.kernel.writer.submit((tx) => {
      this.locks.release(tx, lock.projectRef, lock.key, lease.token);
    });
  }

  /** Runs work whose commit fails, and expects its refusal. */
  async failingly(work: () => Promise<unknown>): Promise<void> {
    this.failing = true;
    const error = await work().then(
      () => null,
      (thrown: unknown) => thrown,
    );
    this.failing = false;
    expect(error).toMatchObject({ code: "service_unavailable" });
  }

  rows(): { key: string; fencing_token: number; expires_at: number }[] {
    return this.kernel.db.all<{ key: string; fencing_token: number; expires_at: number }>(
      "SELECT key, fencing_token, expires_at FROM locks ORDER BY fencing_token",
    )();
  }

  depth(key = "k"): number {
    return this.locks.status(PROJECT, key).queue_depth;
  }
}

let bench: Bench;
beforeEach(() => {
  bench = new Bench().open();
});
afterEach(() => {
  bench.close();
  rmSync(bench.folder, { recursive: true, force: true });
});

describe("when a commit fails", () => {
  test("a grant was none", async () => {
    await bench.failingly(() => bench.ask());
    expect(bench.locks.status(PROJECT, "k")).toEqual({ locked: false, queue_depth: 0, ttl_remaining: null });
    expect(bench.locks.count(PROJECT)).toBe(0);
    await bench.clock.advance(20_000);
    expect((await bench.granted()).reentrant).toBe(false);
  });

  test("a refresh was none, and the lease ends at its first time", async () => {
    const held = await bench.granted();
    await bench.clock.advance(5_000);
    await bench.failingly(() => bench.ask({ token: held.lease.token }));
    expect(bench.locks.status(PROJECT, "k").ttl_remaining).toBe(5_000);
    await bench.clock.advance(5_000);
    expect(bench.locks.status(PROJECT, "k").locked).toBe(false);
  });

  test("a release was none, and the waiters stand as before", async () => {
    const held = await bench.granted();
    const first = await bench.waiting();
    const second = await bench.waiting();
    await bench.failingly(() => bench.release(held));
    expect(bench.locks.status(PROJECT, "k")).toMatchObject({ locked: true, queue_depth: 2 });
    await bench.release(held);
    const next = await bench.locks.wait(first);
    expect(bench.depth()).toBe(1);
    await bench.release(next);
    expect((await bench.locks.wait(second)).lease.fencing_token).toBeGreaterThan(next.lease.fencing_token);
  });

  test("a release of a lock that nobody waits for was none", async () => {
    const held = await bench.granted();
    await bench.failingly(() => bench.release(held));
    expect(bench.locks.status(PROJECT, "k")).toEqual({ locked: true, queue_depth: 0, ttl_remaining: 10_000 });
    await bench.clock.advance(10_000);
    expect(bench.locks.status(PROJECT, "k").locked).toBe(false);
  });

  test("a request does not stand in the queue", async () => {
    await bench.granted();
    await bench.failingly(() => bench.ask());
    expect(bench.depth()).toBe(0);
  });

  test("repeats of a token stand where they stood", async () => {
    const held = await bench.granted();
    const token = "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10";
    const first = await bench.waiting({ token });
    const between = await bench.waiting();
    const repeat = await bench.waiting({ token });
    await bench.failingly(() => bench.release(held));
    expect(bench.depth()).toBe(3);
    await bench.release(held);
    expect(await bench.locks.wait(first)).toMatchObject({ reentrant: false });
    const again = await bench.locks.wait(repeat);
    expect(again).toMatchObject({ reentrant: true });
    await bench.release(again);
    expect(await bench.locks.wait(between)).toMatchObject({ reentrant: false });
  });

  test("an expiry is tried again, and the waiter gets the lock then", async () => {
    await bench.granted();
    const waiter = await bench.waiting();
    bench.failing = true;
    await bench.clock.advance(10_000);
    expect(bench.locks.status(PROJECT, "k")).toEqual({ locked: true, queue_depth: 1, ttl_remaining: 0 });
    await bench.clock.advance(EXPIRY_RETRY_MS - 1);
    bench.failing = false;
    expect(bench.depth()).toBe(1);
    await bench.clock.advance(1);
    expect((await bench.locks.wait(waiter)).lease.expires_at).toBe(bench.clock.now() + 10_000);
  });

  test("a fencing token that was taken is not given again, nor is the reservation lost", async () => {
    const seen = new Set<number>();
    for (let round = 0; round < 3; round += 1) {
      await bench.failingly(async () => {
        await Promise.all(Array.from({ length: 700 }, (_, index) => bench.ask({ key: `fail-${index}` })));
      });
      const held = await bench.granted({ key: `good-${round}` });
      seen.add(held.lease.fencing_token);
      bench.close();
      bench.open();
      const after = await bench.granted({ key: `after-${round}` });
      expect(after.lease.fencing_token).toBeGreaterThan(held.lease.fencing_token);
      seen.add(after.lease.fencing_token);
    }
    expect([...seen]).toEqual([...seen].sort((a, b) => a - b));
    expect(seen.size).toBe(6);
  });
});

describe("within one batch of the writer", () => {
  test("acquire, refresh and release of the same lock leave nothing, not even a timer that acts", async () => {
    const token = "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10";
    const { writer } = bench.kernel;
    const outcomes = await Promise.all([
      bench.ask({ token }),
      bench.ask({ token, ttlMs: 5_000 }),
      writer.submit((tx) => bench.locks.release(tx, PROJECT, "k", token) as never),
      bench.ask({ key: "k", ttlMs: 20_000 }),
    ]);
    expect(outcomes.map((outcome) => (outcome as Granted | undefined)?.reentrant)).toEqual([
      false,
      true,
      undefined,
      false,
    ]);
    await bench.clock.advance(10_000);
    expect(bench.locks.status(PROJECT, "k")).toEqual({ locked: true, queue_depth: 0, ttl_remaining: 10_000 });
    expect(bench.rows().map(({ key }) => key)).toEqual(["k"]);
  });

  test("a release and a thousand requests: one is granted, the rest wait in order", async () => {
    const held = await bench.granted();
    const released = bench.release(held);
    const asked = await Promise.all(Array.from({ length: 1_000 }, () => bench.ask()));
    await released;
    expect(asked.filter((one) => !(one instanceof Waiter)).length).toBe(1);
    expect(asked[0]).not.toBeInstanceOf(Waiter);
    expect(bench.depth()).toBe(999);
  });

  test("the queue's bound holds, at it and past it", async () => {
    await bench.granted();
    const asked = await Promise.allSettled(
      Array.from({ length: WAITERS_PER_LOCK_MAX + 1 }, () => bench.ask()),
    );
    expect(asked.findIndex(({ status }) => status === "rejected")).toBe(WAITERS_PER_LOCK_MAX);
    expect(asked.at(-1)).toMatchObject({ reason: { code: "rate_limit_exceeded" } });
  });
});

describe("a client that is gone", () => {
  test("is not granted a free lock, nor does it wait", async () => {
    const signal = AbortSignal.abort();
    const refused = bench.ask({ signal });
    await expect(refused).rejects.toMatchObject({ code: "timeout" });
    await bench.granted();
    await expect(bench.ask({ signal })).rejects.toMatchObject({ code: "timeout" });
    expect(bench.depth()).toBe(0);
  });

  test("before the unit of work that would grant it is passed over, also if nothing has told so yet", async () => {
    const held = await bench.granted();
    const signal = { aborted: false, addEventListener: () => {}, removeEventListener: () => {} };
    await bench.waiting({ signal: signal as unknown as AbortSignal });
    const next = await bench.waiting();
    signal.aborted = true;
    await bench.release(held);
    expect((await bench.locks.wait(next)).lease.fencing_token).toBe(held.lease.fencing_token + 1);
  });

  test("after the grant was committed for it: the lock passes on to the next", async () => {
    const held = await bench.granted();
    const leaving = new AbortController();
    const gone = await bench.waiting({ signal: leaving.signal });
    const next = await bench.waiting();
    const answer = bench.locks.wait(gone);
    answer.catch(() => {});
    await bench.release(held);
    leaving.abort();
    await expect(answer).rejects.toMatchObject({ code: "timeout" });
    const got = await bench.locks.wait(next);
    expect(got.lease.fencing_token).toBe(held.lease.fencing_token + 2);
    expect(bench.rows().length).toBe(1);
  });

  test("but has sent its request again by then: the lock stays its own", async () => {
    const token = "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10";
    const held = await bench.granted();
    const leaving = new AbortController();
    const gone = await bench.waiting({ token, signal: leaving.signal });
    const next = await bench.waiting();
    const answer = bench.locks.wait(gone);
    answer.catch(() => {});
    await bench.release(held);
    leaving.abort();
    const again = await bench.granted({ token });
    expect(again.reentrant).toBe(true);
    await expect(answer).rejects.toMatchObject({ code: "timeout" });
    expect(bench.locks.status(PROJECT, "k")).toMatchObject({ locked: true, queue_depth: 1 });
    expect(next.alive).toBe(true);
  });
});

test("once the server stops, those who wait and those who would are refused; a free lock is still granted", async () => {
  await bench.granted();
  const waiter = await bench.waiting();
  bench.locks.refuseWaiters();
  await expect(bench.locks.wait(waiter)).rejects.toMatchObject({ code: "service_unavailable" });
  await expect(bench.ask()).rejects.toMatchObject({ code: "service_unavailable" });
  expect(bench.depth()).toBe(0);
  expect((await bench.granted({ key: "free" })).reentrant).toBe(false);
});

test("leases that end together end in slices, each at its turn", async () => {
  const many = EXPIRIES_PER_UNIT_MAX * 2 + 1;
  await Promise.all(Array.from({ length: many }, (_, index) => bench.ask({ key: `many-${index}` })));
  expect(bench.locks.count(PROJECT)).toBe(many);
  await bench.clock.advance(10_000);
  expect(bench.locks.count(PROJECT)).toBe(0);
  expect(bench.rows()).toEqual([]);
});

test("fencing tokens are reserved in ranges: one write for many grants, and none beyond the range", async () => {
  const reserved = (): number =>
    bench.kernel.db.one<{ value: number }>(
      "SELECT value FROM settings WHERE name = 'lock_fencing_reserved_through'",
    )()?.value ?? 0;
  expect(reserved()).toBe(0);
  for (let grant = 1; grant <= FENCING_TOKENS_RESERVED + 1; grant += 1) {
    const held = await bench.granted();
    expect(held.lease.fencing_token).toBe(grant);
    expect(reserved()).toBe(
      grant <= FENCING_TOKENS_RESERVED ? FENCING_TOKENS_RESERVED : 2 * FENCING_TOKENS_RESERVED,
    );
    await bench.release(held);
  }
});

describe("a deleted project", () => {
  test("turns its waiters away, counts its locks, and lets go of them in slices", async () => {
    for (let index = 0; index < 5; index += 1) await bench.granted({ key: `k-${index}` });
    const waiter = await bench.waiting({ key: "k-0" });
    expect([bench.locks.count(PROJECT), bench.locks.count(PROJECT + 1)]).toEqual([5, 0]);
    await bench.failingly(() =>
      bench.kernel.writer.submit((tx) => bench.locks.refuseProject(tx, PROJECT) as never),
    );
    expect(bench.depth("k-0")).toBe(1);
    await bench.kernel.writer.submit((tx) => bench.locks.refuseProject(tx, PROJECT) as never);
    await expect(bench.locks.wait(waiter)).rejects.toMatchObject({ code: "forbidden" });
    const removed: number[] = [];
    for (let round = 0; round < 3; round += 1)
      removed.push(await bench.kernel.writer.submit((tx) => bench.locks.removeLocks(tx, PROJECT, 2)));
    expect(removed).toEqual([2, 2, 1]);
    expect(bench.rows()).toEqual([]);
    expect(bench.locks.count(PROJECT)).toBe(0);
    await bench.clock.advance(20_000);
  });
});

describe("waiters of one account", () => {
  let limited: Bench;
  beforeEach(() => {
    limited = new Bench().open();
  });
  afterEach(() => {
    limited.close();
    rmSync(limited.folder, { recursive: true });
  });

  test("have a limit over all locks, and whose client hangs up counts no longer", async () => {
    const hangUp = new AbortController();
    const { signal } = hangUp;
    for (const key of ["a", "b", "c"]) await limited.granted({ key });
    const half = WAITERS_PER_ACCOUNT_MAX / 2;
    const waiters = await Promise.all(
      Array.from({ length: 2 * half }, (_, at) => limited.waiting({ key: at < half ? "a" : "b", signal })),
    );
    expect(waiters).toHaveLength(WAITERS_PER_ACCOUNT_MAX);
    await expect(limited.waiting({ key: "c" })).rejects.toMatchObject({ code: "rate_limit_exceeded" });
    hangUp.abort();
    const first = await Promise.race(waiters.map((waiter) => waiter.outcome.catch((error) => error.code)));
    expect(first).toBe("timeout");
    // They leave a few in a turn of the event loop, not all in one.
    const depth = () => limited.locks.status(PROJECT, "a").queue_depth;
    expect(depth()).toBeGreaterThan(0);
    while (limited.locks.figures(PROJECT).waiting > 0) await Bun.sleep(1);
    // A commit that fails leaves no count behind.
    await limited.failingly(() => limited.waiting({ key: "c" }));
    for (let at = 0; at < WAITERS_PER_ACCOUNT_MAX; at += 1)
      await limited.waiting({ key: at < half ? "a" : "b" });
  });
});
