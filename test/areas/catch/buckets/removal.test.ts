import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  REMOVAL_SLICE_BYTES,
  REMOVAL_SLICE_ROWS,
  TRIM_ROWS_MAX,
} from "../../../../src/areas/catch/buckets/removal.ts";
import { DEFAULT_TIERS, type TierLimits, type Tiers } from "../../../../src/kernel/limits/tiers.ts";
import { expectError } from "../../../support/errors.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { accepted, bucketOf, eventsOf, ingest, newBucket, setState } from "../support.ts";

const HOUR_MS = 3_600_000;

function tiersWith(figures: Partial<TierLimits>): Tiers {
  const scale = { ...DEFAULT_TIERS.scale, catchPerMinute: 1e6, requestsPerMinute: 1e6, ...figures };
  return { ...DEFAULT_TIERS, scale };
}

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, config: { tiers: tiersWith({}) } });
});
afterAll(() => server.stop());

/** Sends many events, some concurrently. Returns their ids in the order of receipt. */
async function sendMany(to: TestServer, bucketId: string, count: number, bytes = 10): Promise<string[]> {
  const body = "x".repeat(bytes);
  const ids: string[] = [];
  while (ids.length < count) {
    const size = Math.min(50, count - ids.length);
    ids.push(...(await Promise.all(Array.from({ length: size }, () => accepted(to, bucketId, body)))));
  }
  return ids.toSorted();
}

/** Stored rows of events and payloads. */
function rowsIn(of: TestServer): { events: number; payloads: number; buckets: number } {
  const count = (table: string) =>
    of.server.kernel.db.one<{ rows: number }>(`SELECT count(*) AS rows FROM ${table}`)()?.rows ?? -1;
  return {
    events: count("catch_events"),
    payloads: count("catch_payloads"),
    buckets: count("catch_buckets"),
  };
}

describe("the number of events in a bucket", () => {
  test("has the documented limits", () => {
    const { free, starter, pro, scale } = DEFAULT_TIERS;
    const figures = [free, starter, pro, scale].map(({ eventsPerBucket }) => eventsPerBucket);
    expect(figures).toEqual([100, 1_000, 10_000, 100_000]);
    const hours = [free, starter, pro, scale].map(({ eventRetentionHours }) => eventRetentionHours);
    expect(hours).toEqual([24, 72, 720, 2_160]);
  });

  test("tier free: the 101st event deletes the oldest, whatever its status", async () => {
    const account = await server.account({ tier: "free", balance: 1_000 });
    const { id } = await newBucket(account);
    const first = await sendMany(server, id, 60);
    await server.clock.advance(60_000);
    const second = await sendMany(server, id, 40);
    expect((await eventsOf(account, id)).map((event) => event.id)).toEqual([...first, ...second]);
    const late = await accepted(server, id, "late");
    const expected = [...first.slice(1), ...second, late];
    expect((await eventsOf(account, id)).map((event) => event.id)).toEqual(expected);
    expect((await bucketOf(account, id)).events).toEqual({ pending: 100, delivered: 0, failed: 0 });
    expectError(await account.get(`/v1/catch/${id}/events/${first[0]}`), "catch.event_not_found");
  });

  test("shrinks with new events after a change to a smaller tier, and completely within the hour", async () => {
    const account = await server.account({ tier: "starter", balance: 1_000 });
    const { id } = await newBucket(account);
    const ids = await sendMany(server, id, 150);
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { tier: "free" });
    expect((await bucketOf(account, id)).events.pending).toBe(150);
    await server.clock.advance(60_000);
    await accepted(server, id, "next");
    expect((await bucketOf(account, id)).events.pending).toBe(151 - TRIM_ROWS_MAX);
    await server.clock.advance(HOUR_MS);
    expect((await bucketOf(account, id)).events.pending).toBe(100);
    const left = (await eventsOf(account, id)).map((event) => event.id);
    expect(left.slice(0, -1)).toEqual(ids.slice(51));
  });
});

describe("retention", () => {
  test("deletes an event within an hour after its retention, and not before", async () => {
    const account = await server.account({ tier: "free", balance: 1_000 });
    const { id } = await newBucket(account);
    await accepted(server, id, "old");
    await server.clock.advance(HOUR_MS);
    const young = await accepted(server, id, "young");
    await server.clock.advance(23 * HOUR_MS - 1);
    expect((await eventsOf(account, id)).length).toBe(2);
    await server.clock.advance(HOUR_MS);
    expect((await eventsOf(account, id)).map((event) => event.id)).toEqual([young]);
    expect((await bucketOf(account, id)).events).toEqual({ pending: 1, delivered: 0, failed: 0 });
  });

  test("deletes many events of many buckets in slices, paused or live, and no others", async () => {
    const many = await startTestServer({
      manualClock: true,
      config: { tiers: tiersWith({ eventRetentionHours: 24 }) },
    });
    try {
      const [account, keeper] = [await many.account(), await many.account({ tier: "unlimited" })];
      const buckets = [];
      for (let index = 0; index < 3; index += 1) buckets.push((await newBucket(account)).id);
      const kept = (await newBucket(keeper)).id;
      for (const id of [...buckets, kept]) await sendMany(many, id, 2 * REMOVAL_SLICE_ROWS + 7);
      await many.clock.advance(26 * HOUR_MS);
      for (const id of buckets) expect(await eventsOf(account, id)).toEqual([]);
      expect((await eventsOf(keeper, kept)).length).toBe(2 * REMOVAL_SLICE_ROWS + 7);
      const left = 2 * REMOVAL_SLICE_ROWS + 7;
      expect(rowsIn(many)).toMatchObject({ events: left, payloads: left });
    } finally {
      await many.stop();
    }
  });

  test("deletes events that expired while the server was down for more than a day an hour after the start", async () => {
    const account = await server.account({ tier: "free", balance: 1_000 });
    const { id } = await newBucket(account);
    await accepted(server, id, "old");
    await server.server.stop();
    await server.clock.advance(30 * HOUR_MS);
    await server.start();
    // A clock that is more than a day ahead of the stop is not trusted for an hour.
    await server.clock.advance(HOUR_MS - 1_000);
    expect(await eventsOf(server.client(account.key), id)).toHaveLength(1);
    await server.clock.advance(HOUR_MS);
    expect(await eventsOf(server.client(account.key), id)).toEqual([]);
  });
});

describe("a deleted bucket", () => {
  test("leaves no rows, with large payloads, also over a restart", async () => {
    const before = rowsIn(server);
    const account = await server.account();
    const { id } = await newBucket(account);
    await sendMany(server, id, REMOVAL_SLICE_ROWS + 5);
    await sendMany(server, id, 6, REMOVAL_SLICE_BYTES / 4);
    const client = server.client(account.key);
    expect((await client.delete(`/v1/catch/buckets/${id}`)).status).toBe(204);
    expect(await ingest(server, id)).toEqual({ status: "ignored", verification: "none" });
    expect(rowsIn(server).events).toBe(before.events + REMOVAL_SLICE_ROWS + 11);
    await server.restart();
    expect(await ingest(server, id)).toEqual({ status: "ignored", verification: "none" });
    await server.clock.advance(0);
    expect(rowsIn(server)).toEqual(before);
  });
});

describe("a deleted project", () => {
  /** A key of a new project. */
  async function inNewProject(account: AccountClient): Promise<{ projectId: string; key: string }> {
    const { body } = await account.post("/v1/projects", { name: "Second" });
    const projectId = String(body["id"]);
    const created = await account.post(`/v1/projects/${projectId}/keys`, {
      prefix: "sm",
      name: "its key",
      scopes: ["catch:*", "projects:read"],
    });
    return { projectId, key: String(created.body["secret"]) };
  }

  test("has separate, counted buckets, which ignore requests immediately and are removed", async () => {
    const before = rowsIn(server);
    const account = await server.account();
    const { projectId, key } = await inNewProject(account);
    const inside = server.client(key);
    const [first, second] = [await newBucket(inside), await newBucket(inside)];
    const elsewhere = await newBucket(server.client(account.key));
    await sendMany(server, first.id, REMOVAL_SLICE_ROWS + 20);
    await setState(inside, second.id, "live");
    expectError(
      await server.client(account.key).get(`/v1/catch/buckets/${first.id}`),
      "catch.bucket_not_found",
    );
    expectError(await inside.get(`/v1/catch/buckets/${elsewhere.id}`), "catch.bucket_not_found");
    const overview = await inside.get(`/v1/projects/${projectId}/overview`);
    expect(overview.body["resources"]).toMatchObject({ buckets: 2 });
    expect((await server.client(account.key).delete(`/v1/projects/${projectId}`)).status).toBe(200);
    for (const id of [first.id, second.id]) {
      expect(await ingest(server, id)).toEqual({ status: "ignored", verification: "none" });
    }
    expect((await ingest(server, elsewhere.id)).status).toBe("accepted");
    await server.clock.advance(0);
    const after = rowsIn(server);
    expect(after).toEqual({
      events: before.events + 1,
      payloads: before.payloads + 1,
      buckets: before.buckets + 1,
    });
  });

  test("counts its buckets in the limit of the account, over all projects", async () => {
    const account = await server.account({ tier: "free" });
    const { key } = await inNewProject(account);
    await newBucket(server.client(key));
    const answer = await server
      .client(account.key)
      .post("/v1/catch/buckets", { target_url: "https://e.com/" });
    expectError(answer, "bucket_limit_exceeded");
  });

  test("ingestion counts as activity of the bucket's project", async () => {
    const account = await server.account();
    const { projectId, key } = await inNewProject(account);
    const inside = server.client(key);
    const { id } = await newBucket(inside);
    await server.clock.advance(10 * 60_000);
    await accepted(server, id, "one");
    const { body } = await inside.get(`/v1/projects/${projectId}/overview`);
    expect((body["usage"] as { last_activity: string }).last_activity).toBe(
      new Date(server.clock.now()).toISOString(),
    );
  });
});

describe("concurrent work", () => {
  /** The most commits for which another unit of work had to wait while some work ran. */
  async function mostCommits(work: Promise<unknown>): Promise<number> {
    const { writer } = server.server.kernel;
    let most = 0;
    let running = true;
    void work.finally(() => {
      running = false;
    });
    while (running) {
      const before = writer.stats.commits;
      await writer.submit(() => 0);
      most = Math.max(most, writer.stats.commits - before);
    }
    return most;
  }

  test("is not held up by the removal of thousands of events", async () => {
    const account = await server.account();
    const { id } = await newBucket(server.client(account.key));
    const client = server.client(account.key);
    let commits = 0;
    const removing = async (): Promise<number> => {
      await sendMany(server, id, 3_000, 1_000);
      return longestTurnMs(async () => {
        const work = client.delete(`/v1/catch/${id}/events?before=2999-01-01T00:00:00Z`);
        commits = Math.max(commits, await mostCommits(work));
        expect((await work).body).toEqual({ deleted_count: 3_000 });
      });
    };
    // A slice takes one or two milliseconds, all together more than a hundred.
    expect(await leastMs(TURN_MS_MAX, removing)).toBeLessThanOrEqual(TURN_MS_MAX);
    expect(commits).toBeLessThanOrEqual(2);
  });
});
