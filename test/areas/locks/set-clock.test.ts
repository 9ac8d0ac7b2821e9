import { afterEach, beforeEach, expect, test } from "bun:test";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { acquire, lockFrom, queue } from "./support.ts";

const DAY = 24 * 60 * 60 * 1000;
/** Maximum TTL of a lock. */
const LONGEST = 900_000;

let server: TestServer;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
});
afterEach(() => server.stop());

async function remaining(key: string): Promise<unknown> {
  return (await server.operator.get(`/v1/latch/${key}`)).body["ttl_remaining"];
}

test("a lock acquired while the clock was ahead is held for at most the maximum TTL after a restart", async () => {
  server.clock.setWall(365 * DAY);
  await acquire(server.operator, "ahead", { ttl: 60_000 });
  await server.server.stop();
  server.clock.setWall(-365 * DAY);
  await server.start();
  expect(await remaining("ahead")).toBe(LONGEST);
  // Another start does not restart the time.
  await server.clock.advance(LONGEST / 2);
  await server.restart();
  expect(await remaining("ahead")).toBe(LONGEST / 2);
  const waiter = await queue(server.operator, "ahead", { timeout: LONGEST });
  await server.clock.advance(LONGEST / 2 - 1);
  expect(waiter.settled()).toBeNull();
  await server.clock.advance(1);
  expect(lockFrom(await waiter.response).expiresAt).toBe(TEST_START_MS + LONGEST + 10_000);
});

test("setting the clock back extends neither a lease nor the remaining time that is shown", async () => {
  const held = await acquire(server.operator, "back", { ttl: 10_000 });
  const waiter = await queue(server.operator, "back", { timeout: 60_000 });
  server.clock.setWall(-DAY);
  await server.clock.advance(4_000);
  expect(await remaining("back")).toBe(6_000);
  await server.clock.advance(5_999);
  expect(waiter.settled()).toBeNull();
  await server.clock.advance(1);
  expect(lockFrom(await waiter.response).fencingToken).toBeGreaterThan(held.fencingToken);
});

test("setting the clock forward shortens no lease, and the remaining time that is shown is correct", async () => {
  await acquire(server.operator, "forward", { ttl: 10_000 });
  server.clock.setWall(DAY);
  await server.clock.advance(9_999);
  expect((await server.operator.get("/v1/latch/forward")).body).toEqual({
    locked: true,
    queue_depth: 0,
    ttl_remaining: 1,
    mode: "exclusive",
    holders: 1,
  });
  await server.clock.advance(1);
  expect((await server.operator.get("/v1/latch/forward")).body).toMatchObject({ locked: false });
});
