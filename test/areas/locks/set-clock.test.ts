import { afterEach, beforeEach, expect, test } from "bun:test";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { acquire, heldFrom, queue } from "./support.ts";

const DAY = 24 * 60 * 60 * 1000;
/** The longest that a lock can be taken for. */
const LONGEST = 900_000;

let server: TestServer;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
});
afterEach(() => server.stop());

async function remaining(key: string): Promise<unknown> {
  return (await server.operator.get(`/v1/latch/${key}`)).body["ttl_remaining"];
}

test("taken while the clock was ahead, a lock is held after a restart for the longest time to live at most", async () => {
  server.clock.setWall(365 * DAY);
  await acquire(server.operator, "ahead", { ttl: 60_000 });
  await server.server.stop();
  server.clock.setWall(-365 * DAY);
  await server.start();
  expect(await remaining("ahead")).toBe(LONGEST);
  // Another start does not begin the time anew.
  await server.clock.advance(LONGEST / 2);
  await server.restart();
  expect(await remaining("ahead")).toBe(LONGEST / 2);
  const waiter = await queue(server.operator, "ahead", { timeout: LONGEST });
  await server.clock.advance(LONGEST / 2 - 1);
  expect(waiter.settled()).toBeNull();
  await server.clock.advance(1);
  expect(heldFrom(await waiter.answer).expiresAt).toBe(TEST_START_MS + LONGEST + 10_000);
});

test("a clock that is set back while a lock is held lengthens neither its time nor what is told of it", async () => {
  const held = await acquire(server.operator, "back", { ttl: 10_000 });
  const waiter = await queue(server.operator, "back", { timeout: 60_000 });
  server.clock.setWall(-DAY);
  await server.clock.advance(4_000);
  expect(await remaining("back")).toBe(6_000);
  await server.clock.advance(5_999);
  expect(waiter.settled()).toBeNull();
  await server.clock.advance(1);
  expect(heldFrom(await waiter.answer).fencingToken).toBeGreaterThan(held.fencingToken);
});

test("a clock that is set forward shortens nobody's lock, and the time told is the time that it has", async () => {
  await acquire(server.operator, "forward", { ttl: 10_000 });
  server.clock.setWall(DAY);
  await server.clock.advance(9_999);
  expect((await server.operator.get("/v1/latch/forward")).body).toEqual({
    locked: true,
    queue_depth: 0,
    ttl_remaining: 1,
  });
  await server.clock.advance(1);
  expect((await server.operator.get("/v1/latch/forward")).body).toMatchObject({ locked: false });
});
