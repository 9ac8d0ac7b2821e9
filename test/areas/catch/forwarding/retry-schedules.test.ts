import { describe, expect, spyOn, test } from "bun:test";
import { FAILURE_NOTICE_MS } from "../../../../src/areas/catch/forwarding/failure-notices.ts";
import { RETRIES_MAX } from "../../../../src/kernel/data/schema.ts";
import { LOCAL_RETRY_MS } from "../../../../src/kernel/outbound/attempt.ts";
import { OutboundClient } from "../../../../src/kernel/outbound/client.ts";
import { OutboundFailure } from "../../../../src/kernel/outbound/outcome.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";
import { eventOf } from "../support.ts";
import { forwardingStage } from "./forwarding-stage.ts";

const stage = forwardingStage();
const { advance, live, send } = stage;

const DAY_MS = 86_400_000;
const patch = (body: object) => stage.account.patch(`/v1/catch/buckets/${stage.bucket.id}`, body);

describe("the retry schedule of a bucket", () => {
  test("is null by default, is shown as it was set, and null restores the default", async () => {
    expect(stage.bucket.retry_schedule).toBeNull();
    const retry_schedule = ["5s", "5m", "2h"];
    expect((await patch({ retry_schedule })).body).toMatchObject({ retry_schedule });
    const created = await stage.account.post("/v1/catch/buckets", {
      target_url: stage.receiver.url,
      retry_schedule: [],
    });
    expect(created.body["retry_schedule"]).toEqual([]);
    expect((await patch({ retry_schedule: null })).body["retry_schedule"]).toBeNull();
  });

  test.each([
    ["a text", "5s"],
    ["an invalid delay", ["5x"]],
    ["a delay over a day", ["25h"]],
    ["more than seven days in total", Array(8).fill("24h")],
    ["too many delays", Array(RETRIES_MAX + 1).fill("1s")],
  ])("%s is rejected with 400, which names the field", async (_, retry_schedule) => {
    const { status, body } = await patch({ retry_schedule });
    expect([status, Object.keys(body["fields"] as object)]).toEqual([400, ["retry_schedule"]]);
  });

  test(`${RETRIES_MAX} delays are accepted`, async () => {
    expect((await patch({ retry_schedule: Array(RETRIES_MAX).fill("1s") })).status).toBe(200);
  });

  test("replaces the default delays, and the event shows its next attempt", async () => {
    stage.receiver.respond = () => 503;
    await patch({ retry_schedule: ["1h"] });
    await live();
    const id = await send("one");
    await advance(0);
    const waiting = await eventOf(stage.account, stage.bucket.id, id);
    expect(waiting).toMatchObject({ status: "pending", attempts: 1 });
    const waitMs = Date.parse(waiting.next_attempt_at ?? "") - stage.server.clock.now();
    expect(waitMs).toBeGreaterThanOrEqual(0.9 * 3_600_000);
    expect(waitMs).toBeLessThanOrEqual(1.1 * 3_600_000);
    await advance(waitMs);
    expect(await eventOf(stage.account, stage.bucket.id, id)).toMatchObject({
      status: "failed",
      attempts: 2,
      error: "the target responded with 503",
      next_attempt_at: null,
    });
  });

  test.each([
    [[], 500, 1],
    [["1s", "1s"], 410, 1],
    [["1s", "1s"], 404, 3],
  ])("%j: with %d responses, %d attempts are made", async (retry_schedule, status, attempts) => {
    stage.receiver.respond = () => status;
    await patch({ retry_schedule });
    await live();
    const id = await send("one");
    await advance(10_000);
    expect(await eventOf(stage.account, stage.bucket.id, id)).toMatchObject({ status: "failed", attempts });
  });

  test("Retry-After extends a delay", async () => {
    stage.receiver.respond = (_, number) =>
      number === 1 ? new Response(null, { status: 429, headers: { "Retry-After": "600" } }) : 200;
    await patch({ retry_schedule: ["1s"] });
    await live();
    await send("one");
    await advance(599_000);
    expect(stage.receiver.hits.length).toBe(1);
    await advance(1_000);
    expect(stage.receiver.hits.length).toBe(2);
  });
});

describe("the notice of an event whose retries ended", () => {
  test("goes to channels and endpoints that subscribe to it, once per interval and bucket", async () => {
    using sink = new DisposableSink();
    const { account } = stage;
    const channel = { name: "c", kind: "webhook", config: { url: sink.url("/channel") } };
    await account.post("/v1/pulse/channels", { ...channel, events: ["catch.failed"] });
    await account.post("/v1/pulse/channels", {
      ...channel,
      name: "d",
      config: { url: sink.url("/default") },
    });
    await account.post("/v1/relay/endpoints", {
      url: sink.url("/endpoint"),
      event_types: ["ninefold.catch.failed"],
    });
    await account.post("/v1/relay/endpoints", { url: sink.url("/all") });
    stage.receiver.respond = () => 500;
    await patch({ retry_schedule: ["1s"], name: "shop" });
    await live();
    const id = await send("one");
    await advance(5_000);
    await send("two");
    await advance(60_000);
    const facts = {
      bucket_id: stage.bucket.id,
      event_id: id,
      attempts: 2,
      response_status: 500,
      error: "the target responded with 500",
    };
    const received = new Map(sink.take().map(({ path, body }) => [path, JSON.parse(body)]));
    expect([...received.keys()].sort()).toEqual(["/channel", "/endpoint"]);
    expect(received.get("/channel")).toMatchObject({
      event: "catch.failed",
      name: "shop",
      text: `The event ${id} failed after 2 attempts: the target responded with 500`,
      ...facts,
    });
    expect(received.get("/endpoint")).toMatchObject({ type: "ninefold.catch.failed", data: facts });
    await advance(FAILURE_NOTICE_MS);
    await send("three");
    await advance(60_000);
    expect(
      sink
        .take()
        .map(({ path }) => path)
        .sort(),
    ).toEqual(["/channel", "/endpoint"]);
  });

  test("is not sent for a delivered event, nor for one with an invalid signature", async () => {
    using sink = new DisposableSink();
    await stage.account.post("/v1/pulse/channels", {
      name: "c",
      kind: "webhook",
      config: { url: sink.url() },
      events: ["catch.failed"],
    });
    stage.receiver.respond = (_, number) => (number === 1 ? 500 : 200);
    await live();
    await send("one");
    await advance(DAY_MS);
    expect(sink.take()).toEqual([]);
  });
});

test("an attempt for which the server has no capacity is repeated a second later, and does not count", async () => {
  const failure = new OutboundFailure("local", "this server has no capacity for another connection");
  const sending = spyOn(OutboundClient.prototype, "send");
  sending.mockResolvedValueOnce({ answered: false, failure, addresses: [], latencyMs: 0, stalledMs: 0 });
  try {
    await patch({ retry_schedule: [] });
    await live();
    const id = await send("one");
    await advance(0);
    expect(await eventOf(stage.account, stage.bucket.id, id)).toMatchObject({
      status: "pending",
      attempts: 0,
    });
    await advance(LOCAL_RETRY_MS);
    expect(await eventOf(stage.account, stage.bucket.id, id)).toMatchObject({
      status: "delivered",
      attempts: 1,
    });
  } finally {
    sending.mockRestore();
  }
});

class DisposableSink extends WebhookSink {
  [Symbol.dispose](): void {
    this.stop();
  }
}

test("a request of another method to the path of POST names the path that accepts it", async () => {
  const { id, ingest_url } = stage.bucket;
  expect(ingest_url).toBe(`${stage.server.url}/v1/in/${id}`);
  for (const method of ["GET", "PUT"]) {
    const { status, body } = await stage.server.client(null).send(method, `/v1/catch/${id}`, undefined);
    expect(status).toBe(401);
    expect(body["error"]).toMatchObject({
      message: expect.stringContaining("This path takes POST. /v1/in/{bucket_id} takes every method."),
    });
  }
});
