import { expect, test } from "bun:test";
import { FENCING_TOKENS_RESERVED } from "../../../src/areas/locks/store.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { acquire, lockFrom, queue, release } from "./support.ts";

const FREE = { locked: false, queue_depth: 0, ttl_remaining: null };

/** Runs a test on a separate server with a manual clock. */
async function onServer(run: (server: TestServer) => Promise<void>): Promise<void> {
  const server = await startTestServer({ manualClock: true });
  try {
    await run(server);
    expect(server.logs.filter(({ level }) => level !== "info")).toEqual([]);
  } finally {
    await server.stop();
  }
}

test("held locks survive a restart with holder, token and remaining time", () =>
  onServer(async (server) => {
    const held = await acquire(server.operator, "kept", { ttl: 10_000 });
    const refreshed = await acquire(server.operator, "kept", { ttl: 8_000, token: held.token });
    await server.clock.advance(3_000);
    await server.restart();
    const client = server.operator;
    expect((await client.get("/v1/latch/kept")).body).toEqual({
      locked: true,
      queue_depth: 0,
      ttl_remaining: 5_000,
      mode: "exclusive",
      holders: 1,
    });
    const waiter = await queue(client, "kept");
    expectError(await release(client, "kept", "another"), "forbidden");
    const again = await acquire(client, "kept", { ttl: 5_000, token: held.token });
    expect(again).toEqual({ ...refreshed, reentrant: true });
    await server.clock.advance(4_999);
    expect(waiter.settled()).toBe(null);
    await server.clock.advance(1);
    expect(lockFrom(await waiter.response).fencingToken).toBeGreaterThan(held.fencingToken);
  }));

test("a lock that expired while the server was down is free, and its row is removed", () =>
  onServer(async (server) => {
    const before = await acquire(server.operator, "late", { ttl: 2_000 });
    await acquire(server.operator, "later", { ttl: 2_001 });
    await server.server.stop();
    await server.clock.advance(2_000);
    await server.start();
    const client = server.operator;
    expect((await client.get("/v1/latch/late")).body).toEqual(FREE);
    expect((await client.get("/v1/latch/later")).body).toMatchObject({ locked: true, ttl_remaining: 1 });
    expect(rows(server)).toEqual([before.fencingToken + 1]);
    expectError(await release(client, "late", before.token), "not_found");
    await server.clock.advance(1);
    expect((await client.get("/v1/latch/later")).body).toEqual(FREE);
    expect(rows(server)).toEqual([]);
  }));

test("holders of a shared lock survive a restart, and an extension as well", () =>
  onServer(async (server) => {
    const shared = { mode: "shared", ttl: 60_000 };
    const one = await acquire(server.operator, "over", shared);
    const two = await acquire(server.operator, "over", { ...shared, ttl: 5_000 });
    await server.operator.post("/v1/latch/over/extend", { token: two.token, ttl: 90_000 });
    await server.restart();
    const client = server.operator;
    const state = { locked: true, queue_depth: 0, ttl_remaining: 90_000, mode: "shared", holders: 2 };
    expect((await client.get("/v1/latch/over")).body).toEqual(state);
    expectError(await client.post("/v1/latch/over/acquire", { timeout: 0 }), "timeout");
    const three = await acquire(client, "over", { ...shared, timeout: 0 });
    for (const { token } of [one, two, three]) {
      expect((await release(client, "over", token)).status).toBe(200);
    }
    expect((await client.get("/v1/latch/over")).body).toEqual(FREE);
  }));

test("a released lock stays free after a restart", () =>
  onServer(async (server) => {
    const held = await acquire(server.operator, "done");
    await release(server.operator, "done", held.token);
    expect(rows(server)).toEqual([]);
    await server.restart();
    expect((await server.operator.get("/v1/latch/done")).body).toEqual(FREE);
  }));

test("fencing tokens increase across restarts, also when the lock was free meanwhile", () =>
  onServer(async (server) => {
    let last = 0;
    for (let start = 0; start < 5; start += 1) {
      for (let grant = 0; grant < 3; grant += 1) {
        const held = await acquire(server.operator, "rising");
        expect(held.fencingToken).toBeGreaterThan(last);
        last = held.fencingToken;
        await release(server.operator, "rising", held.token);
      }
      await server.restart();
    }
    // The number of tokens that a start skips has a limit.
    expect(last).toBeLessThanOrEqual(4 * FENCING_TOKENS_RESERVED + 3);
  }));

test("waiters are rejected when the server stops; the lock stays held", () =>
  onServer(async (server) => {
    const held = await acquire(server.operator, "stop", { ttl: 900_000 });
    const waiting = [
      await queue(server.operator, "stop"),
      await queue(server.operator, "stop", { timeout: 900_000 }),
    ];
    await server.restart();
    // A request that is still in flight after ten seconds gets no response.
    for (const one of waiting) {
      const response = await one.response;
      expect(expectError(response, "service_unavailable").error.message).toContain("shutting down");
      expect(response.headers.get("retry-after")).toBe("1");
    }
    const state = await server.operator.get("/v1/latch/stop");
    expect(state.body).toEqual({
      locked: true,
      queue_depth: 0,
      ttl_remaining: 900_000,
      mode: "exclusive",
      holders: 1,
    });
    expect((await release(server.operator, "stop", held.token)).status).toBe(200);
  }));

/** Fencing tokens of the stored rows. */
function rows(server: TestServer): number[] {
  const { db } = server.server.kernel;
  const query = db.all<{ fencing_token: number }>("SELECT fencing_token FROM locks ORDER BY fencing_token");
  return query().map((row) => row.fencing_token);
}
