import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MIGRATIONS } from "../../../migrations/index.ts";
import { Disconnects } from "../../../src/areas/locks/disconnects.ts";
import { WAITERS_PER_ACCOUNT_MAX, WAITERS_PER_LOCK_MAX } from "../../../src/areas/locks/domain.ts";
import { EXPIRIES_PER_UNIT_MAX, EXPIRY_RETRY_MS } from "../../../src/areas/locks/expiry.ts";
import { type Grant, Waiter } from "../../../src/areas/locks/lock.ts";
import { LockService } from "../../../src/areas/locks/service.ts";
import { FENCING_TOKENS_RESERVED, lockStore } from "../../../src/areas/locks/store.ts";
import { ApiError } from "../../../src/kernel/errors.ts";
import { type Kernel, openKernel } from "../../../src/kernel/kernel.ts";
import { ManualClock } from "../../../src/kernel/time/clock.ts";
import { TEST_START_MS } from "../../support/server.ts";

const PROJECT = 7;
const SILENT_LOG = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** The service on a real database file and a manual clock, with commits that can fail on demand. */
class Fixture {
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
      log: SILENT_LOG,
    });
    const { db, writer, clock, ids, log, changes } = this.kernel;
    writer.beforeCommit(() => {
      if (this.failing) throw new ApiError("service_unavailable", "The disk is full (simulated).");
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
      mode: "exclusive" as const,
      token: null,
      signal: new AbortController().signal,
      ...more,
    };
  }

  /** Acquires a lock in a unit of work. */
  acquire(more: Parameters<Fixture["request"]>[0] = {}): Promise<Grant | Waiter> {
    return this.kernel.writer.submit((tx) => this.locks.acquire(tx, this.request(more)));
  }

  async granted(more: Parameters<Fixture["request"]>[0] = {}): Promise<Grant> {
    const outcome = await this.acquire(more);
    if (outcome instanceof Waiter) throw new Error("it has to wait");
    return outcome;
  }

  async waiting(more: Parameters<Fixture["request"]>[0] = {}): Promise<Waiter> {
    const outcome = await this.acquire(more);
    if (!(outcome instanceof Waiter)) throw new Error("it was granted");
    return outcome;
  }

  async release({ holder: { lock }, lease }: Grant): Promise<void> {
    await this.kernel.writer.submit((tx) => {
      this.locks.release(tx, lock.projectRef, lock.key, lease.token);
    });
  }

  /** Runs work with a failing commit and expects its error. */
  async withFailedCommit(work: () => Promise<unknown>): Promise<void> {
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

let fixture: Fixture;
beforeEach(() => {
  fixture = new Fixture().open();
});
afterEach(() => {
  fixture.close();
  rmSync(fixture.folder, { recursive: true, force: true });
});

describe("when a commit fails", () => {
  test("a grant is rolled back", async () => {
    await fixture.withFailedCommit(() => fixture.acquire());
    expect(fixture.locks.status(PROJECT, "k")).toEqual({
      locked: false,
      queue_depth: 0,
      ttl_remaining: null,
    });
    expect(fixture.locks.count(PROJECT)).toBe(0);
    await fixture.clock.advance(20_000);
    expect((await fixture.granted()).reentrant).toBe(false);
  });

  test("a refresh is rolled back, and the lease expires at its original time", async () => {
    const held = await fixture.granted();
    await fixture.clock.advance(5_000);
    await fixture.withFailedCommit(() => fixture.acquire({ token: held.lease.token }));
    expect(fixture.locks.status(PROJECT, "k").ttl_remaining).toBe(5_000);
    await fixture.clock.advance(5_000);
    expect(fixture.locks.status(PROJECT, "k").locked).toBe(false);
  });

  test("a release is rolled back, and the queue is unchanged", async () => {
    const held = await fixture.granted();
    const first = await fixture.waiting();
    const second = await fixture.waiting();
    await fixture.withFailedCommit(() => fixture.release(held));
    expect(fixture.locks.status(PROJECT, "k")).toMatchObject({ locked: true, queue_depth: 2 });
    await fixture.release(held);
    const next = await fixture.locks.wait(first);
    expect(fixture.depth()).toBe(1);
    await fixture.release(next);
    expect((await fixture.locks.wait(second)).lease.fencing_token).toBeGreaterThan(next.lease.fencing_token);
  });

  test("a release without waiters is rolled back", async () => {
    const held = await fixture.granted();
    await fixture.withFailedCommit(() => fixture.release(held));
    expect(fixture.locks.status(PROJECT, "k")).toEqual({
      locked: true,
      queue_depth: 0,
      ttl_remaining: 10_000,
      mode: "exclusive",
      holders: 1,
    });
    await fixture.clock.advance(10_000);
    expect(fixture.locks.status(PROJECT, "k").locked).toBe(false);
  });

  test("a request is not in the queue", async () => {
    await fixture.granted();
    await fixture.withFailedCommit(() => fixture.acquire());
    expect(fixture.depth()).toBe(0);
  });

  test("repeated requests with a token keep their positions", async () => {
    const held = await fixture.granted();
    const token = "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10";
    const first = await fixture.waiting({ token });
    const between = await fixture.waiting();
    const repeat = await fixture.waiting({ token });
    await fixture.withFailedCommit(() => fixture.release(held));
    expect(fixture.depth()).toBe(3);
    await fixture.release(held);
    expect(await fixture.locks.wait(first)).toMatchObject({ reentrant: false });
    const again = await fixture.locks.wait(repeat);
    expect(again).toMatchObject({ reentrant: true });
    await fixture.release(again);
    expect(await fixture.locks.wait(between)).toMatchObject({ reentrant: false });
  });

  test("an expiry is retried, and then the waiter gets the lock", async () => {
    await fixture.granted();
    const waiter = await fixture.waiting();
    fixture.failing = true;
    await fixture.clock.advance(10_000);
    expect(fixture.locks.status(PROJECT, "k")).toEqual({
      locked: true,
      queue_depth: 1,
      ttl_remaining: 0,
      mode: "exclusive",
      holders: 1,
    });
    await fixture.clock.advance(EXPIRY_RETRY_MS - 1);
    fixture.failing = false;
    expect(fixture.depth()).toBe(1);
    await fixture.clock.advance(1);
    expect((await fixture.locks.wait(waiter)).lease.expires_at).toBe(fixture.clock.now() + 10_000);
  });

  test("an issued fencing token is not reused, and the reservation is not lost", async () => {
    const seen = new Set<number>();
    for (let round = 0; round < 3; round += 1) {
      await fixture.withFailedCommit(async () => {
        await Promise.all(
          Array.from({ length: 700 }, (_, index) => fixture.acquire({ key: `fail-${index}` })),
        );
      });
      const held = await fixture.granted({ key: `good-${round}` });
      seen.add(held.lease.fencing_token);
      fixture.close();
      fixture.open();
      const after = await fixture.granted({ key: `after-${round}` });
      expect(after.lease.fencing_token).toBeGreaterThan(held.lease.fencing_token);
      seen.add(after.lease.fencing_token);
    }
    expect([...seen]).toEqual([...seen].sort((a, b) => a - b));
    expect(seen.size).toBe(6);
  });
});

describe("within one batch of the writer", () => {
  test("acquire, refresh and release of the same lock leave no row and no active timer", async () => {
    const token = "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10";
    const { writer } = fixture.kernel;
    const outcomes = await Promise.all([
      fixture.acquire({ token }),
      fixture.acquire({ token, ttlMs: 5_000 }),
      writer.submit((tx) => fixture.locks.release(tx, PROJECT, "k", token) as never),
      fixture.acquire({ key: "k", ttlMs: 20_000 }),
    ]);
    expect(outcomes.map((outcome) => (outcome as Grant | undefined)?.reentrant)).toEqual([
      false,
      true,
      undefined,
      false,
    ]);
    await fixture.clock.advance(10_000);
    expect(fixture.locks.status(PROJECT, "k")).toEqual({
      locked: true,
      queue_depth: 0,
      ttl_remaining: 10_000,
      mode: "exclusive",
      holders: 1,
    });
    expect(fixture.rows().map(({ key }) => key)).toEqual(["k"]);
  });

  test("a release and a thousand requests: one is granted, the others wait in order", async () => {
    const held = await fixture.granted();
    const released = fixture.release(held);
    const outcomes = await Promise.all(Array.from({ length: 1_000 }, () => fixture.acquire()));
    await released;
    expect(outcomes.filter((outcome) => !(outcome instanceof Waiter)).length).toBe(1);
    expect(outcomes[0]).not.toBeInstanceOf(Waiter);
    expect(fixture.depth()).toBe(999);
  });

  test("the queue has its limit, at it and past it", async () => {
    await fixture.granted();
    const outcomes = await Promise.allSettled(
      Array.from({ length: WAITERS_PER_LOCK_MAX + 1 }, () => fixture.acquire()),
    );
    expect(outcomes.findIndex(({ status }) => status === "rejected")).toBe(WAITERS_PER_LOCK_MAX);
    expect(outcomes.at(-1)).toMatchObject({ reason: { code: "rate_limit_exceeded" } });
  });
});

describe("a disconnected client", () => {
  test("is not granted a free lock and does not wait", async () => {
    const signal = AbortSignal.abort();
    const rejected = fixture.acquire({ signal });
    await expect(rejected).rejects.toMatchObject({ code: "timeout" });
    await fixture.granted();
    await expect(fixture.acquire({ signal })).rejects.toMatchObject({ code: "timeout" });
    expect(fixture.depth()).toBe(0);
  });

  test("before the granting unit of work: skipped, even if its waiter has not been removed yet", async () => {
    const held = await fixture.granted();
    const signal = { aborted: false, addEventListener: () => {}, removeEventListener: () => {} };
    await fixture.waiting({ signal: signal as unknown as AbortSignal });
    const next = await fixture.waiting();
    signal.aborted = true;
    await fixture.release(held);
    expect((await fixture.locks.wait(next)).lease.fencing_token).toBe(held.lease.fencing_token + 1);
  });

  test("after the commit of its grant: the lock passes to the next waiter", async () => {
    const held = await fixture.granted();
    const leaving = new AbortController();
    const gone = await fixture.waiting({ signal: leaving.signal });
    const next = await fixture.waiting();
    const response = fixture.locks.wait(gone);
    response.catch(() => {});
    await fixture.release(held);
    leaving.abort();
    await expect(response).rejects.toMatchObject({ code: "timeout" });
    const got = await fixture.locks.wait(next);
    expect(got.lease.fencing_token).toBe(held.lease.fencing_token + 2);
    expect(fixture.rows().length).toBe(1);
  });

  test("that has repeated its request: the lock stays with it", async () => {
    const token = "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10";
    const held = await fixture.granted();
    const leaving = new AbortController();
    const gone = await fixture.waiting({ token, signal: leaving.signal });
    const next = await fixture.waiting();
    const response = fixture.locks.wait(gone);
    response.catch(() => {});
    await fixture.release(held);
    leaving.abort();
    const again = await fixture.granted({ token });
    expect(again.reentrant).toBe(true);
    await expect(response).rejects.toMatchObject({ code: "timeout" });
    expect(fixture.locks.status(PROJECT, "k")).toMatchObject({ locked: true, queue_depth: 1 });
    expect(next.isActive).toBe(true);
  });
});

test("a stopping server rejects waiting and new waiters; a free lock is still granted", async () => {
  await fixture.granted();
  const waiter = await fixture.waiting();
  fixture.locks.rejectWaiters();
  await expect(fixture.locks.wait(waiter)).rejects.toMatchObject({ code: "service_unavailable" });
  await expect(fixture.acquire()).rejects.toMatchObject({ code: "service_unavailable" });
  expect(fixture.depth()).toBe(0);
  expect((await fixture.granted({ key: "free" })).reentrant).toBe(false);
});

test("leases that expire together are released in slices", async () => {
  const many = EXPIRIES_PER_UNIT_MAX * 2 + 1;
  await Promise.all(Array.from({ length: many }, (_, index) => fixture.acquire({ key: `many-${index}` })));
  expect(fixture.locks.count(PROJECT)).toBe(many);
  await fixture.clock.advance(10_000);
  expect(fixture.locks.count(PROJECT)).toBe(0);
  expect(fixture.rows()).toEqual([]);
});

test("fencing tokens are reserved in ranges: one write for many grants, and no token above the range", async () => {
  const reserved = (): number =>
    fixture.kernel.db.one<{ value: number }>(
      "SELECT value FROM settings WHERE name = 'lock_fencing_reserved_through'",
    )()?.value ?? 0;
  expect(reserved()).toBe(0);
  for (let grant = 1; grant <= FENCING_TOKENS_RESERVED + 1; grant += 1) {
    const held = await fixture.granted();
    expect(held.lease.fencing_token).toBe(grant);
    expect(reserved()).toBe(
      grant <= FENCING_TOKENS_RESERVED ? FENCING_TOKENS_RESERVED : 2 * FENCING_TOKENS_RESERVED,
    );
    await fixture.release(held);
  }
});

describe("a deleted project", () => {
  test("rejects its waiters, counts its locks, and removes them in slices", async () => {
    for (let index = 0; index < 5; index += 1) await fixture.granted({ key: `k-${index}` });
    const waiter = await fixture.waiting({ key: "k-0" });
    expect([fixture.locks.count(PROJECT), fixture.locks.count(PROJECT + 1)]).toEqual([5, 0]);
    await fixture.withFailedCommit(() =>
      fixture.kernel.writer.submit((tx) => fixture.locks.rejectProjectWaiters(tx, PROJECT) as never),
    );
    expect(fixture.depth("k-0")).toBe(1);
    await fixture.kernel.writer.submit((tx) => fixture.locks.rejectProjectWaiters(tx, PROJECT) as never);
    await expect(fixture.locks.wait(waiter)).rejects.toMatchObject({ code: "forbidden" });
    const removed: number[] = [];
    for (let round = 0; round < 3; round += 1)
      removed.push(await fixture.kernel.writer.submit((tx) => fixture.locks.removeLocks(tx, PROJECT, 2)));
    expect(removed).toEqual([2, 2, 1]);
    expect(fixture.rows()).toEqual([]);
    expect(fixture.locks.count(PROJECT)).toBe(0);
    await fixture.clock.advance(20_000);
  });
});

describe("waiters of one account", () => {
  let limited: Fixture;
  beforeEach(() => {
    limited = new Fixture().open();
  });
  afterEach(() => {
    limited.close();
    rmSync(limited.folder, { recursive: true });
  });

  test("have a limit over all locks, and disconnected clients are not counted", async () => {
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
    // They are removed in slices of the event loop.
    const depth = () => limited.locks.status(PROJECT, "a").queue_depth;
    expect(depth()).toBeGreaterThan(0);
    while (limited.locks.counts(PROJECT).waiting > 0) await Bun.sleep(1);
    // A failed commit does not change the count.
    await limited.withFailedCommit(() => limited.waiting({ key: "c" }));
    for (let at = 0; at < WAITERS_PER_ACCOUNT_MAX; at += 1)
      await limited.waiting({ key: at < half ? "a" : "b" });
  });
});

test("a waiter that settles leaves no deadline behind: it would keep the request in memory for up to 15 minutes", () => {
  const deadlines = new Set<number>();
  class Observed extends ManualClock {
    override after(delayMs: number, run: () => void): () => void {
      const cancel = super.after(delayMs, run);
      deadlines.add(delayMs);
      return () => {
        deadlines.delete(delayMs);
        cancel();
      };
    }
  }
  const waiter = new Waiter(fixture.request({ timeoutMs: 900_000 }));
  waiter.watch(new Observed(TEST_START_MS), new Disconnects(), () => {});
  expect([...deadlines]).toEqual([900_000]);
  waiter.reject(new ApiError("conflict", "rejected by the test"));
  expect([...deadlines]).toEqual([]);
});
