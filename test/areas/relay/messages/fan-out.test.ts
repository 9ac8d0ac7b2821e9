import { describe, expect, spyOn, test } from "bun:test";
import { FAN_OUT_UNIT, FanOut } from "../../../../src/areas/relay/messages/fan-out.ts";
import { expectError } from "../../../support/errors.ts";
import { Scrape } from "../../../support/metrics.ts";
import type { AccountClient } from "../../../support/server.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

/** Number of commits. */
async function committed(): Promise<number> {
  const { text } = await stage.server.operator.get("/metrics");
  return new Scrape(text).find("ninefold_commits_total") ?? 0;
}

async function endpoints(count: number, terms: object = {}): Promise<void> {
  for (let start = 0; start < count; start += 50)
    await Promise.all(
      Array.from({ length: Math.min(50, count - start) }, (_, at) =>
        messaging.endpoint(`/${start + at}`, { state: "paused", ...terms }),
      ),
    );
}

/** The deliveries that each unit of work stores while something runs. */
async function unitsOf(work: () => Promise<unknown>): Promise<number[]> {
  const spy = spyOn(FanOut.prototype, "storeNow");
  try {
    await work();
    return spy.mock.calls.map(([, , , endpointRefs]) => endpointRefs.length);
  } finally {
    spy.mockRestore();
  }
}

const sumOf = (units: readonly number[]): number => units.reduce((sum, unit) => sum + unit, 0);

const batchOf = (count: number, change: object = {}) => ({
  messages: Array.from({ length: count }, (_, n) => ({ event_type: "x", payload: { n }, ...change })),
});
const send = (body: object, account: AccountClient = stage.account) =>
  account.post("/v1/relay/messages/batch", body);

describe("a message to very many endpoints", () => {
  test("is stored in units with a commit each, and complete with the response", async () => {
    await endpoints(1_000);
    const commits = await committed();
    let sent: string[] = [];
    const units = await unitsOf(async () => {
      sent = Object.values(await messaging.send());
    });
    expect(Math.max(...units)).toBe(FAN_OUT_UNIT);
    expect(sumOf(units)).toBe(1_000);
    expect((await committed()) - commits).toBeGreaterThanOrEqual(1_000 / FAN_OUT_UNIT);
    expect(new Set(sent).size).toBe(1_000);
    for (const id of [sent[0], sent[FAN_OUT_UNIT], sent[999]])
      expect((await stage.account.get(`/v1/relay/${id}`)).status).toBe(200);
  }, 120_000);

  test("is complete after a stop in the middle, with each delivery once", async () => {
    await endpoints(450, { state: "live" });
    const id = "stopped-in-the-middle";
    const body = { event_type: "x", payload: { n: 1 }, message_id: id };
    const sending = stage.account.post("/v1/relay/messages", body).catch(() => null);
    while ((await stage.account.get(`/v1/relay/messages/${id}`)).status === 404);
    const seen = (await stage.account.get(`/v1/relay/messages/${id}`)).body["deliveries"] as unknown[];
    expect(seen).toHaveLength(450);
    await stage.server.halt();
    await sending;
    await stage.restart();
    const again = await stage.account.post("/v1/relay/messages", body);
    expect(again.body["deduplicated"]).toBe(true);
    expect(again.body["deliveries"]).toHaveLength(450);
    // Made while the others may still be pending: its reference is another one.
    const [other] = Object.values(await messaging.send({ n: 2 }));
    await messaging.settle();
    await stage.server.clock.advance(5_000);
    const taken = stage.sink.take().filter((one) => one.headers.get("webhook-id") === id);
    expect(taken.map(({ path }) => path).sort()).toHaveLength(450);
    expect(new Set(taken.map(({ path }) => path)).size).toBe(450);
    const ids = (again.body["deliveries"] as { relay_id: string }[]).map(({ relay_id }) => relay_id);
    expect(ids).not.toContain(other);
  }, 120_000);
});

describe("a batch", () => {
  test("is stored in units: few deliveries with the request, the rest after it", async () => {
    await endpoints(100);
    const units = await unitsOf(async () => {
      const answer = await send(batchOf(100));
      expect(answer.status, answer.text.slice(0, 200)).toBe(201);
    });
    expect(Math.max(...units)).toBeLessThanOrEqual(FAN_OUT_UNIT);
    expect(sumOf(units)).toBe(10_000);
  }, 120_000);

  test("that cannot be paid stores nothing", async () => {
    const poor = await stage.server.account({ balance: 5_000 });
    stage.account = poor;
    await endpoints(100);
    const units = await unitsOf(async () => {
      expectError(await send(batchOf(100), poor), "insufficient_balance");
    });
    expect(units).toEqual([]);
    expect((await poor.get("/v1/relay/messages")).body["messages"]).toEqual([]);
  }, 120_000);

  test("of repeats of one message sends it once", async () => {
    await endpoints(1_000);
    const repeats = batchOf(10, { message_id: "one" });
    const answer = await send(repeats);
    expect(answer.status, answer.text.slice(0, 200)).toBe(201);
    const all = answer.body["messages"] as { deliveries: unknown[]; deduplicated?: true }[];
    expect(all.slice(1).every(({ deduplicated }) => deduplicated === true)).toBe(true);
    expect(all.every(({ deliveries }) => Bun.deepEquals(deliveries, all[0]?.deliveries))).toBe(true);
    expectError(await send(batchOf(11, { message_id: "one" })), "validation_error");
    expectError(await send(batchOf(100, { message_id: "two" })), "validation_error");
  }, 120_000);

  test("of invalid messages returns only the first errors", async () => {
    const answer = await send(batchOf(100, { event_type: "", message_id: "." }));
    expectError(answer, "validation_error");
    expect(Object.keys(answer.body["fields"] as object).length).toBeLessThanOrEqual(20);
  });
});

test("a message with a megabyte of numbers is returned as it was sent", async () => {
  const payload = `{"a":[${Array(49_000).fill("12345678901234567.0").join(",")}]}`;
  const answer = await stage.account.send(
    "POST",
    "/v1/relay/messages",
    `{"event_type":"x","payload":${payload}}`,
  );
  expect(answer.status, answer.text.slice(0, 200)).toBe(201);
  const path = `/v1/relay/messages/${answer.body["message_id"]}`;
  expect((await stage.account.get(path)).text).toContain(`"payload":${payload}`);
}, 60_000);
