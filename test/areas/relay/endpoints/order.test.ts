import { describe, expect, spyOn, test } from "bun:test";
import { LOCAL_RETRY_MS } from "../../../../src/kernel/outbound/attempt.ts";
import { OutboundClient } from "../../../../src/kernel/outbound/client.ts";
import { OutboundFailure } from "../../../../src/kernel/outbound/outcome.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

const TERMS = { max_concurrency: 1, retry_schedule: ["10s", "10s"] };
const advance = (ms: number) => stage.server.clock.advance(ms);

/** Rejects a payload's number this number of times. */
function failing(number: number, times: number): void {
  let left = times;
  stage.sink.answersBy(({ body }) => {
    if (!body.includes(`"n":${number}}`) || left === 0) return 200;
    left -= 1;
    return 500;
  });
}

async function sendMany(id: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) ids.push((await messaging.send({ n }))[id] ?? "");
  return ids;
}

describe("an endpoint with one concurrent attempt receives its deliveries in order", () => {
  test("while one is retried, including new ones, also over a restart", async () => {
    const id = await messaging.endpoint("/a", TERMS);
    failing(1, 2);
    await sendMany(id, 4);
    await messaging.settle();
    expect(messaging.takenNumbers()).toEqual([0, 1]);
    await messaging.send({ n: 4 });
    await messaging.settle();
    expect(messaging.takenNumbers()).toEqual([]);
    await stage.restart();
    await advance(11_000);
    expect(messaging.takenNumbers()).toEqual([1]);
    await advance(11_000);
    await messaging.settle();
    expect(messaging.takenNumbers()).toEqual([1, 2, 3, 4]);
    expect((await messaging.read(id)).counts).toMatchObject({
      waiting: 0,
      delivered_24h: 5,
    });
  });

  test("while one waits because the server had no capacity, which counts as no attempt", async () => {
    const id = await messaging.endpoint("/a", TERMS);
    const failure = new OutboundFailure("local", "this server has no capacity for another connection");
    const sending = spyOn(OutboundClient.prototype, "send");
    sending.mockResolvedValueOnce({ answered: false, failure, addresses: [], latencyMs: 0, stalledMs: 0 });
    try {
      const [first] = await sendMany(id, 3);
      await advance(0);
      expect(messaging.takenNumbers()).toEqual([]);
      expect(await stage.read(first ?? "")).toMatchObject({ status: "scheduled", attempts: 0 });
      await advance(LOCAL_RETRY_MS);
      await messaging.settle();
      expect(messaging.takenNumbers()).toEqual([0, 1, 2]);
      expect(await stage.read(first ?? "")).toMatchObject({ status: "delivered", attempts: 1 });
    } finally {
      sending.mockRestore();
    }
  });

  test("after one without retries left", async () => {
    const id = await messaging.endpoint("/a", TERMS);
    failing(0, 3);
    const [first] = await sendMany(id, 3);
    await advance(11_000);
    await advance(11_000);
    await messaging.settle();
    expect(messaging.takenNumbers()).toEqual([0, 0, 0, 1, 2]);
    expect((await stage.read(first ?? "")).status).toBe("failed");
  });

  test("after its breaker opened and closed", async () => {
    const id = await messaging.endpoint("/a", TERMS);
    stage.sink.answersBy(() => 500);
    await messaging.patch(id, { retry_schedule: Array(10).fill("1s") });
    await sendMany(id, 3);
    for (let second = 0; second < 12; second += 1) await advance(1_200);
    expect((await messaging.read(id)).health["breaker"]).toBe("open");
    expect(new Set(messaging.takenNumbers())).toEqual(new Set([0]));
    stage.sink.answersBy(() => 200);
    await advance(120_000);
    await messaging.settle();
    expect(messaging.takenNumbers()).toEqual([0, 1, 2]);
  });

  test("without delaying other endpoints", async () => {
    const id = await messaging.endpoint("/a", TERMS);
    await messaging.endpoint("/b");
    stage.sink.answersBy(({ path }) => (path === "/a" ? 500 : 200));
    await sendMany(id, 3);
    await messaging.settle();
    expect(messaging.takenPaths()).toEqual(["/a", "/b", "/b", "/b"]);
  });
});

test("not with more concurrency, also when it is raised later", async () => {
  const plain = await messaging.endpoint("/more", {
    ...TERMS,
    max_concurrency: 2,
  });
  failing(0, 1);
  await sendMany(plain, 3);
  await messaging.settle();
  expect(messaging.takenNumbers("/more").sort()).toEqual([0, 1, 2]);
  await advance(11_000);
  expect(messaging.takenNumbers("/more")).toEqual([0]);
  await messaging.patch(plain, { max_concurrency: 1 });
  failing(0, 1);
  await sendMany(plain, 3);
  await messaging.settle();
  expect(messaging.takenNumbers("/more")).toEqual([0]);
  await messaging.patch(plain, { max_concurrency: 2 });
  await messaging.settle();
  expect(messaging.takenNumbers("/more").sort()).toEqual([1, 2]);
  await advance(11_000);
  expect(messaging.takenNumbers("/more")).toEqual([0]);
});

test("deliveries of a deleted endpoint are cancelled, including the one that is retried", async () => {
  const id = await messaging.endpoint("/a", TERMS);
  stage.sink.answersBy(() => 500);
  const ids = await sendMany(id, 3);
  await messaging.settle();
  await stage.account.delete(`/v1/relay/endpoints/${id}`);
  await messaging.settle();
  for (const one of ids) expect((await stage.read(one)).status).toBe("cancelled");
});
