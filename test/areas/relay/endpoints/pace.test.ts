import { expect, test } from "bun:test";
import { PACE_AHEAD_MS, Pace } from "../../../../src/areas/relay/endpoints/breaker.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

const advance = (ms: number) => stage.server.clock.advance(ms);

/** Sends numbered messages to an endpoint, from 0. Returns the ids of their deliveries. */
async function sendMany(id: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) ids.push((await messaging.send({ n }))[id] ?? "");
  return ids;
}

test("tokens are reserved at most a second ahead", () => {
  const pace = new Pace();
  const waits = Array.from({ length: 14 }, () => pace.take(0, 5));
  expect(waits.slice(4, 11)).toEqual([0, 200, 400, 600, 800, 1_000, 1_200]);
  expect(waits.slice(11)).toEqual([1_200, 1_200, 1_200]);
  expect(pace.take(PACE_AHEAD_MS, 5)).toBe(200);
});

test("deliveries without a token wait, and are sent in order at the endpoint's rate", async () => {
  const id = await messaging.endpoint("/a", { max_per_second: 5, max_concurrency: 1 });
  await sendMany(id, 40);
  await messaging.settle();
  const taken = messaging.takenNumbers();
  expect(taken.length).toBeLessThanOrEqual(6);
  for (let second = 0; second < 10; second += 1) {
    await advance(1_000);
    const now = messaging.takenNumbers();
    // A second's worth, and one whose token was there just before.
    expect(now.length).toBeLessThanOrEqual(6);
    taken.push(...now);
  }
  expect(taken).toEqual(Array.from({ length: 40 }, (_, n) => n));
  expect((await messaging.read(id)).counts).toMatchObject({ waiting: 0, delivered_24h: 40 });
});

test("removing the rate applies to waiting deliveries", async () => {
  const id = await messaging.endpoint("/a", { max_per_second: 1 });
  await sendMany(id, 30);
  await advance(1_000);
  expect(messaging.takenNumbers().length).toBeLessThanOrEqual(3);
  await messaging.patch(id, { max_per_second: null });
  await advance(1_000);
  expect((await messaging.read(id)).counts).toMatchObject({ waiting: 0 });
});

test("a cancelled delivery uses no token", async () => {
  const id = await messaging.endpoint("/a", { max_per_second: 1 });
  const ids = await sendMany(id, 30);
  await messaging.settle();
  for (const relayId of ids) await stage.account.delete(`/v1/relay/${relayId}`);
  stage.sink.take();
  const [last] = Object.values(await messaging.send({ n: 99 }));
  await advance(3_000);
  expect((await stage.read(last ?? "")).status).toBe("delivered");
});

test("after a restart waiting deliveries are sent at the rate, not immediately", async () => {
  const id = await messaging.endpoint("/a", { max_per_second: 5 });
  await sendMany(id, 60);
  await messaging.settle();
  stage.sink.take();
  await stage.server.halt();
  await advance(15_000);
  await stage.restart();
  await messaging.settle();
  // A second's worth, twice: of those that had a token, and of the bucket that is full again.
  expect(stage.sink.take().length).toBeLessThanOrEqual(10);
  await advance(15_000);
  expect((await messaging.read(id)).counts).toMatchObject({ waiting: 0, delivered_24h: 60 });
});
