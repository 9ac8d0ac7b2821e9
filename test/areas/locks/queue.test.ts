import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { WAITERS_PER_LOCK_MAX } from "../../../src/areas/locks/domain.ts";
import { realDelay } from "../../../src/kernel/time/clock.ts";
import { Connection } from "../../harness/processes/connection.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import {
  type AcquiredLock,
  acquire,
  depth,
  lockFrom,
  type PendingAcquire,
  queue,
  release,
  waitForDepth,
} from "./support.ts";

const TOKEN = "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10";

/** Far above the duration of the longest test. */
const TIMEOUT_MS = 60_000;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

/** Releases the lock and expects only this waiter to be granted it. */
async function passes(
  from: AcquiredLock,
  to: PendingAcquire,
  others: readonly PendingAcquire[] = [],
): Promise<AcquiredLock> {
  expect((await release(server.operator, from.key, from.token)).status).toBe(200);
  const next = lockFrom(await to.response);
  expect(next.fencingToken).toBeGreaterThan(from.fencingToken);
  expect(others.map((other) => other.settled())).toEqual(others.map(() => null));
  return next;
}

describe("waiters", () => {
  test("get the lock in the order of their requests, one at a time", async () => {
    const client = server.operator;
    let held = await acquire(client, "order");
    const waiting: PendingAcquire[] = [];
    for (let index = 0; index < 20; index += 1) waiting.push(await queue(client, "order"));
    for (const [index, next] of waiting.entries()) {
      held = await passes(held, next, waiting.slice(index + 1));
      expect(await depth(client, "order")).toBe(19 - index);
    }
    await release(client, "order", held.token);
    expect((await client.get("/v1/latch/order")).body).toEqual({
      locked: false,
      queue_depth: 0,
      ttl_remaining: null,
    });
  });

  test("get the lock when it expires, for their full ttl", async () => {
    const client = server.operator;
    await acquire(client, "expiry", { ttl: 2_000 });
    const first = await queue(client, "expiry", { ttl: 3_000 });
    const second = await queue(client, "expiry", { ttl: 4_000 });
    await server.clock.advance(1_999);
    expect([first.settled(), second.settled()]).toEqual([null, null]);
    await server.clock.advance(1);
    expect(lockFrom(await first.response).expiresAt).toBe(server.clock.now() + 3_000);
    await server.clock.advance(3_000);
    expect(lockFrom(await second.response).expiresAt).toBe(server.clock.now() + 4_000);
    await server.clock.advance(4_000);
    expect((await client.get("/v1/latch/expiry")).body["locked"]).toBe(false);
  });

  test("time out at their own deadlines, and the others move up", async () => {
    const client = server.operator;
    const held = await acquire(client, "deadlines", { ttl: 60_000 });
    const short = await queue(client, "deadlines", { timeout: 1_000 });
    const long = await queue(client, "deadlines", { timeout: 30_000 });
    await server.clock.advance(999);
    expect(short.settled()).toBe(null);
    await server.clock.advance(1);
    const late = expectError(await short.response, "timeout");
    expect(late.error.message).toContain("within 1000 ms");
    expect(await depth(client, "deadlines")).toBe(1);
    await passes(held, long);
  });

  test("leave the queue when their connection is closed, and are skipped", async () => {
    const client = server.operator;
    const held = await acquire(client, "dead");
    const third = await queue(client, "dead");
    const others = [await queue(client, "dead"), await queue(client, "dead")];
    for (const other of others) other.disconnect();
    // The manual clock stands still: no time-out of the server does it.
    await waitForDepth(client, "dead", 1);
    await passes(held, third);
  });

  test("are rejected above a thousand and accepted again when one leaves", async () => {
    const client = server.operator;
    expect(WAITERS_PER_LOCK_MAX).toBe(1_000);
    const held = await acquire(client, "full", { ttl: 900_000 });
    const waiting = await crowd("full", WAITERS_PER_LOCK_MAX);
    const rejected = await client.post("/v1/latch/full/acquire");
    expect(expectError(rejected, "rate_limit_exceeded").error.message).toMatch(
      /^Queue full: 1000 requests already wait/,
    );
    expect(rejected.headers.get("retry-after")).toBe("1");
    // The holder is not queued.
    expect(await acquire(client, "full", { token: held.token, ttl: 900_000 })).toMatchObject({
      reentrant: true,
    });
    waiting[500]?.close();
    await waitForDepth(client, "full", WAITERS_PER_LOCK_MAX - 1);
    const last = await queue(client, "full", { timeout: 900_000 });
    expectError(await client.post("/v1/latch/full/acquire"), "rate_limit_exceeded");
    for (const one of waiting) one.close();
    await waitForDepth(client, "full", 1);
    await passes(held, last);
  });
});

/** Opens waiters of a lock, each on its own connection; fetch limits concurrent connections. */
async function crowd(key: string, size: number): Promise<Connection[]> {
  const connections: Connection[] = [];
  const headers = { authorization: `Bearer ${server.key}` };
  for (let index = 0; index < size; index += 1) {
    const connection = await Connection.open(server.url);
    const path = `/v1/latch/${key}/acquire`;
    connection.request({ method: "POST", path, headers, body: '{"timeout":900000}' }).catch(() => {});
    connections.push(connection);
  }
  await waitForDepth(server.operator, key, size);
  return connections;
}

describe("a token sent by the client", () => {
  test("becomes the lock's token when a waiter is granted it, and makes the next acquire reentrant", async () => {
    const client = server.operator;
    const held = await acquire(client, "sent", { ttl: 60_000 });
    const waiter = await queue(client, "sent", { token: TOKEN, ttl: 5_000 });
    const next = await passes(held, waiter);
    expect(next).toMatchObject({ token: TOKEN, reentrant: false });
    await server.clock.advance(1_000);
    const again = await acquire(client, "sent", { token: TOKEN, ttl: 5_000 });
    expect(again).toEqual({ ...next, reentrant: true, expiresAt: next.expiresAt + 1_000 });
    // The refreshed lease outlasts its original expiry and ends at the new one.
    await server.clock.advance(4_999);
    expect((await client.get("/v1/latch/sent")).body).toMatchObject({ locked: true, ttl_remaining: 1 });
    await server.clock.advance(1);
    expect((await client.get("/v1/latch/sent")).body).toMatchObject({ locked: false });
  });

  test("grants the holder ahead of the queue", async () => {
    const client = server.operator;
    await acquire(client, "self", { token: TOKEN });
    const waiter = await queue(client, "self");
    expect(await acquire(client, "self", { token: TOKEN })).toMatchObject({ reentrant: true });
    waiter.disconnect();
    await waitForDepth(client, "self", 0);
  });

  test("sent twice while waiting: both responses have the same lock, granted once", async () => {
    const client = server.operator;
    const held = await acquire(client, "repeat");
    const first = await queue(client, "repeat", { token: TOKEN });
    const stranger = await queue(client, "repeat");
    const repeated = await queue(client, "repeat", { token: TOKEN, ttl: 20_000 });
    const granted = await passes(held, first, [stranger]);
    const again = lockFrom(await repeated.response);
    expect(again).toMatchObject({ token: TOKEN, fencingToken: granted.fencingToken, reentrant: true });
    expect(again.expiresAt).toBe(server.clock.now() + 20_000);
    await passes(granted, stranger);
  });
});

test("the end of a wait of 900 s: granted a millisecond before its deadline, or timed out at it", async () => {
  const client = server.operator;
  for (const [key, early] of [
    ["wait-won", 1],
    ["wait-lost", 0],
  ] as const) {
    const held = await acquire(client, key, { ttl: 900_000 });
    await server.clock.advance(1_000);
    // The holder refreshes its lease so that it outlasts the wait.
    await acquire(client, key, { token: held.token, ttl: 900_000 });
    const waiter = await queue(client, key, { timeout: 900_000 });
    await server.clock.advance(400_000);
    await acquire(client, key, { token: held.token, ttl: 900_000 });
    await server.clock.advance(500_000 - early);
    if (early > 0) await passes(held, waiter);
    else expectError(await waiter.response, "timeout");
  }
});

test(
  "a wait outlasts the server's idle time-out, and ends when the lock is free",
  async () => {
    // Bun rounds idle timeouts up to four seconds.
    const quick = await startTestServer({ deps: { idleTimeoutSeconds: 1 } });
    try {
      const client = quick.operator;
      const held = await acquire(client, "idle", { ttl: 60_000 });
      // Not with fetch, which would repeat the request on another connection. Bun closes only idle requests without a body.
      const connection = await Connection.open(quick.url);
      const headers = { authorization: `Bearer ${quick.key}` };
      const waiting = connection.request({ method: "POST", path: "/v1/latch/idle/acquire", headers });
      await waitForDepth(client, "idle", 1);
      await realDelay(5_000);
      await release(client, "idle", held.token);
      const response = await waiting;
      expect(JSON.parse(response.text)).toMatchObject({
        status: "acquired",
        fencing_token: held.fencingToken + 1,
      });
      connection.close();
    } finally {
      await quick.stop();
    }
  },
  TIMEOUT_MS,
);
