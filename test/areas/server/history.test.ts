import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ProblemFinder } from "../../../src/areas/server/domain.ts";
import { MINUTES_STORED } from "../../../src/areas/server/minutes.ts";
import type { MinuteRow } from "../../../src/areas/server/store.ts";
import { minuteStore } from "../../../src/areas/server/store.ts";
import { MinuteLoad } from "../../../src/kernel/metrics/minute-load.ts";
import { DAY_MS, MINUTE_MS } from "../../../src/kernel/time/units.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const START = TEST_START_MS / MINUTE_MS;
const HEALTHY: Omit<MinuteRow, "minute"> = {
  requests: 100,
  errors: 0,
  p99Ms: 4,
  commits: 10,
  commitFailures: 0,
  jobsDue: 0,
  jobsOverdueSeconds: 0,
  lagMs: 2,
  memoryBytes: 50_000_000,
  databaseBytes: 1_000_000,
  diskFreeBytes: 10 ** 12,
};

async function history(query = ""): Promise<Record<string, unknown>> {
  const { status, body } = await server.operator.get(`/v1/admin/history${query}`);
  expect(status).toBe(200);
  return body;
}

const at = (minute: number): string => new Date(minute * MINUTE_MS).toISOString();

/** Replaces what is stored by rows of these minutes. */
async function store(rows: readonly (Partial<MinuteRow> & { readonly minute: number })[]): Promise<void> {
  const { db, writer } = server.server.kernel;
  const { insert, removeOutside } = minuteStore(db);
  await writer.submit((tx) => {
    removeOutside(tx, 1, 0);
    for (const row of rows) insert(tx, { ...HEALTHY, ...row });
  });
}

describe("GET /v1/admin/history", () => {
  test("has a row for each minute that the server ran", async () => {
    for (let count = 0; count < 7; count += 1) await server.client(null).get("/v1/ping");
    await server.clock.advance(MINUTE_MS);
    await server.clock.advance(MINUTE_MS);
    const { points, healthy, step_seconds } = await history("?hours=1");
    const [first, second] = points as Record<string, unknown>[];
    expect((points as unknown[]).length).toBe(2);
    expect(first).toMatchObject({ at: at(START + 1), errors: 0, commit_failures: 0 });
    expect(first?.["requests"]).toBeGreaterThanOrEqual(7);
    expect(first?.["p99_ms"]).toBeGreaterThan(0);
    expect(first?.["memory_bytes"]).toBeGreaterThan(1_000_000);
    expect(first?.["disk_free_bytes"]).toBeGreaterThan(0);
    expect(second).toMatchObject({ requests: 0, p99_ms: null });
    expect([healthy, step_seconds]).toEqual([expect.any(Boolean), 60]);
  });

  test("keeps seven days, and writes one row for a long advance of a test's clock", async () => {
    const { db } = server.server.kernel;
    const count = db.number("SELECT count(*) AS n FROM server_minutes");
    const now = Math.floor(server.clock.now() / MINUTE_MS);
    const minutes = Array.from({ length: MINUTES_STORED + 20 }, (_, index) => ({ minute: now - index }));
    await store(minutes);
    expect(count()).toBe(MINUTES_STORED + 20);
    await server.clock.advance(MINUTE_MS);
    // Of the stored ones the minute after is the newest, and the oldest is a week before it.
    expect(count()).toBe(MINUTES_STORED);
    await server.clock.advance(DAY_MS);
    expect(count()).toBeLessThanOrEqual(MINUTES_STORED - 24 * 60 + 2);
  });

  test("merges minutes to steps: sums and the worst of what is not counted", async () => {
    const now = Math.floor(server.clock.now() / MINUTE_MS);
    const first = now - (now % 28);
    await store([
      { minute: first - 28, p99Ms: null },
      { minute: first - 27, p99Ms: 9, memoryBytes: 60_000_000, diskFreeBytes: 10 ** 10 },
      { minute: first - 26, errors: 1, lagMs: 7, jobsDue: 3 },
    ]);
    const { points, step_seconds } = await history("?hours=168");
    expect(step_seconds).toBe(28 * 60);
    expect(points).toEqual([
      {
        at: at(first - 28),
        requests: 300,
        errors: 1,
        p99_ms: 9,
        commits: 30,
        commit_failures: 0,
        jobs_due: 3,
        jobs_overdue_seconds: 0,
        event_loop_lag_p99_ms: 7,
        memory_bytes: 60_000_000,
        database_bytes: 1_000_000,
        disk_free_bytes: 10 ** 10,
      },
    ]);
  });

  test("says since when the server is not healthy, and when it was not", async () => {
    const now = Math.floor(server.clock.now() / MINUTE_MS);
    const rows = Array.from({ length: 60 }, (_, index) => ({ minute: now - 60 + index }));
    const changed = new Map<number, Partial<MinuteRow>>([
      [10, { errors: 1 }],
      [13, { errors: 50 }],
      [20, { requests: 1_000, errors: 9 }],
      [30, { commitFailures: 1 }],
      [57, { diskFreeBytes: 1 }],
      [58, { diskFreeBytes: 1 }],
      [59, { diskFreeBytes: 1 }],
    ]);
    const isOffline = (index: number) => index > 40 && index < 46;
    await store(rows.flatMap((row, index) => (isOffline(index) ? [] : [{ ...row, ...changed.get(index) }])));
    const { healthy, problems } = await history();
    expect(healthy).toBe(false);
    expect(problems).toEqual([
      { kind: "disk", since: at(now - 3), until: null },
      { kind: "offline", since: at(now - 19), until: at(now - 14) },
      { kind: "commits", since: at(now - 30), until: at(now - 29) },
      { kind: "errors", since: at(now - 50), until: at(now - 46) },
    ]);
    await store(rows);
    expect(await history()).toMatchObject({ healthy: true, problems: [] });
  });

  test("rejects what is not 1 to 168 hours, and everyone but the operator", async () => {
    for (const hours of ["0", "169", "x", "1.5"])
      expect((await server.operator.get(`/v1/admin/history?hours=${hours}`)).status, hours).toBe(400);
    const account = await server.account();
    expect((await account.get("/v1/admin/history")).status).toBe(403);
    expect((await server.client(null).get("/v1/admin/history")).status).toBe(401);
  });
});

test("of each kind of problem, the 20 newest are found", () => {
  const finder = new ProblemFinder();
  // Six minutes apart they are times of their own; a missing minute in between is none.
  for (let minute = 0; minute < 25 * 6; minute += 2) finder.add({ minute, flags: minute % 6 === 0 ? 1 : 0 });
  expect(finder.problems).toHaveLength(20);
  expect(finder.problems[0]).toEqual({ kind: "errors", first: 144, last: 144 });
  expect(finder.problems.at(-1)).toEqual({ kind: "errors", first: 30, last: 30 });
});

test("percentiles of a minute are at most a quarter too high, and are computed again for each minute", () => {
  const load = new MinuteLoad();
  for (let ms = 1; ms <= 1_000; ms += 1) load.count(ms > 998 ? 503 : 200, ms);
  const { p99Ms, ...counts } = load.take();
  expect(counts).toEqual({ requests: 1_000, errors: 2 });
  expect(p99Ms).toBeGreaterThanOrEqual(990);
  expect(p99Ms).toBeLessThanOrEqual(990 * 1.25);
  expect(load.take()).toEqual({ requests: 0, errors: 0, p99Ms: null });
  load.count(200, 10_000_000);
  expect(load.take().p99Ms).toBeGreaterThan(50_000);
});
