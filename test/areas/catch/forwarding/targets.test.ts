import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { TARGETS_MAX } from "../../../../src/areas/catch/domain.ts";
import type { CaughtEvent } from "../../../../src/areas/catch/schema.ts";
import { verifyDelivery } from "../../../../src/client/delivery.ts";
import { JSON_LEVELS_MAX, JSON_VALUES_MAX } from "../../../../src/json-text.ts";
import { expectError } from "../../../support/errors.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import { balanceOf, bucketOf, eventsOf, ingest, newBucket, setState } from "../support.ts";
import { targetStage } from "./targets-support.ts";

const stage = targetStage();
const { advance, at, bucket, endpoint, event, patch, send } = stage;

const HOUR_MS = 3_600_000;
const counts = async () => (await bucketOf(stage.account, stage.bucketId)).events;
const statuses = ({ deliveries }: CaughtEvent) => deliveries.map(({ status }) => status);
const read = async (relayId: string | undefined) =>
  (await stage.account.get(`/v1/relay/${relayId ?? ""}`)).body;

describe("an event of a bucket with targets", () => {
  test("has one delivery to each endpoint, stored with it, and is delivered when all are", async () => {
    const ids = [await endpoint("a"), await endpoint("b")];
    await bucket(ids);
    const id = await send('{"n":1}');
    const stored = await event(id);
    expect(stored).toMatchObject({ status: "pending", attempts: 0, next_attempt_at: null });
    expect(stored.deliveries.map(({ endpoint_id }) => endpoint_id)).toEqual(ids);
    expect(statuses(stored)).toEqual(["scheduled", "scheduled"]);
    await advance(0);
    expect([at("a"), at("b")]).toEqual([['{"n":1}'], ['{"n":1}']]);
    const done = await event(id);
    expect(done).toMatchObject({ status: "delivered", attempts: 2, response_status: 200, error: null });
    expect(statuses(done)).toEqual(["delivered", "delivered"]);
    expect(done.attempt_log.map(({ endpoint_id, kind }) => [endpoint_id, kind]).sort()).toEqual(
      ids.map((one) => [one, "forward"]).sort(),
    );
    expect(done.attempt_log[0]).toMatchObject({ response_status: 200, error: null, response_body: "answer" });
    expect(await counts()).toEqual({ pending: 0, delivered: 1, failed: 0 });
    const delivery = await read(done.deliveries[0]?.relay_id);
    expect(delivery).toMatchObject({
      kind: "endpoint",
      bucket_id: stage.bucketId,
      event_id: id,
      message_id: null,
    });
  });

  test("costs a credit for each delivery, and one without any", async () => {
    const ids = [await endpoint("a"), await endpoint("b"), await endpoint("c")];
    await bucket(ids);
    const before = await balanceOf(stage.account);
    await send("{}");
    expect(await balanceOf(stage.account)).toBe(before - 3);
    await patch({ targets: [{ endpoint_id: ids[0], filter: { a: 1 } }] });
    await send("{}");
    expect(await balanceOf(stage.account)).toBe(before - 4);
  });

  test("of a bucket with delivery pull costs one credit, and is not delivered until it is push", async () => {
    await bucket([await endpoint("a"), await endpoint("b")], { delivery: "pull" });
    const before = await balanceOf(stage.account);
    await send("x");
    expect(await balanceOf(stage.account)).toBe(before - 1);
    await advance(HOUR_MS);
    expect(stage.receiver.hits).toEqual([]);
    await patch({ delivery: "push" });
    await advance(0);
    expect([at("a"), at("b")]).toEqual([["x"], ["x"]]);
  });

  test("is not stored without the credits for all its deliveries", async () => {
    stage.account = await stage.server.account({ balance: 2 });
    await bucket([await endpoint("a"), await endpoint("b"), await endpoint("c")]);
    const { status } = await ingest(stage.server, stage.bucketId, "{}");
    expect(status).toBe("insufficient_balance");
    expect(await balanceOf(stage.account)).toBe(2);
    await advance(0);
    expect(stage.receiver.hits).toEqual([]);
  });

  test("is retried by the schedule of its endpoint, and shows the next attempt", async () => {
    const endpointId = await endpoint("a", { retry_schedule: ["1h"] });
    const second = await endpoint("b", { retry_schedule: ["2h"] });
    await bucket([endpointId, second]);
    stage.receiver.respond = () => 503;
    const id = await send("{}");
    await advance(0);
    const waiting = await event(id);
    expect(waiting).toMatchObject({ status: "pending", attempts: 2, response_status: 503 });
    const waitMs = Date.parse(waiting.next_attempt_at ?? "") - stage.server.clock.now();
    expect(waitMs).toBeGreaterThanOrEqual(0.9 * HOUR_MS);
    expect(waitMs).toBeLessThanOrEqual(1.1 * HOUR_MS);
    stage.receiver.respond = ({ path }) => (path === "/a" ? 200 : 503);
    await advance(4 * HOUR_MS);
    const failed = await event(id);
    expect(failed).toMatchObject({
      status: "failed",
      attempts: 4,
      error: "the target responded with 503",
      next_attempt_at: null,
    });
    expect(statuses(failed)).toEqual(["delivered", "failed"]);
    expect(await counts()).toEqual({ pending: 0, delivered: 0, failed: 1 });
  });

  test("that failed is delivered by a resend of its delivery", async () => {
    await bucket([await endpoint("a", { retry_schedule: [] })]);
    stage.receiver.respond = () => 500;
    const id = await send("{}");
    await advance(0);
    const [delivery] = (await event(id)).deliveries;
    stage.receiver.respond = () => 200;
    expect((await stage.account.post(`/v1/relay/${delivery?.relay_id}/resend`)).status).toBe(202);
    expect((await event(id)).status).toBe("pending");
    await advance(0);
    expect(await event(id)).toMatchObject({ status: "delivered", attempts: 2, error: null });
    expect(await counts()).toEqual({ pending: 0, delivered: 1, failed: 0 });
  });

  test("whose only delivery is cancelled has failed", async () => {
    const endpointId = await endpoint("a", { state: "paused" });
    await bucket([endpointId]);
    const id = await send("{}");
    await advance(0);
    const [delivery] = (await event(id)).deliveries;
    expect((await stage.account.delete(`/v1/relay/${delivery?.relay_id}`)).status).toBe(200);
    expect(await event(id)).toMatchObject({ status: "failed", error: "cancelled" });
    await stage.account.patch(`/v1/relay/endpoints/${endpointId}`, { state: "live" });
    await advance(HOUR_MS);
    expect(stage.receiver.hits).toEqual([]);
  });

  test("fails at a disabled endpoint, and can be resent once it is enabled", async () => {
    const endpointId = await endpoint("a");
    await bucket([endpointId]);
    stage.receiver.respond = () => 410;
    await send("first");
    await advance(0);
    expect((await stage.account.get(`/v1/relay/endpoints/${endpointId}`)).body["state"]).toBe("disabled");
    stage.receiver.respond = () => 200;
    stage.receiver.hits.length = 0;
    const id = await send("second");
    await advance(0);
    const failed = await event(id);
    expect(failed).toMatchObject({ status: "failed", error: "endpoint disabled", attempts: 0 });
    expect(stage.receiver.hits).toEqual([]);
    await stage.account.patch(`/v1/relay/endpoints/${endpointId}`, { state: "live" });
    await stage.account.post(`/v1/relay/${failed.deliveries[0]?.relay_id}/resend`);
    await advance(0);
    expect(at("a")).toEqual(["second"]);
    expect((await event(id)).status).toBe("delivered");
  });

  test("with an invalid signature is never delivered", async () => {
    await bucket([await endpoint("a")], { provider: "github", signing_secret: "s" });
    const id = await send("{}");
    await advance(HOUR_MS);
    expect(await event(id)).toMatchObject({ status: "failed", deliveries: [] });
    expect(stage.receiver.hits).toEqual([]);
  });

  test("a repeat is detected: it has no further deliveries", async () => {
    const signature = { header: "x", algorithm: "hmac-sha256", template: "{body}", event_id: "/id" };
    await bucket([await endpoint("a")], { provider: "custom", signature, deduplicate_hours: 1 });
    const id = await send('{"id":"one"}');
    const again = await ingest(stage.server, stage.bucketId, '{"id":"one"}');
    expect(again).toMatchObject({ status: "duplicate", event_id: id });
    await advance(0);
    expect(at("a").length).toBe(1);
  });
});

describe("filters", () => {
  const TYPED = { "x-github-event": "push" };

  test("of the target and of the endpoint both decide", async () => {
    const [small, large, other] = [
      await endpoint("small", { filter: { amount: { $lt: 100 } } }),
      await endpoint("large"),
      await endpoint("other", { event_types: ["release"] }),
    ];
    await bucket([], { target_url: "https://hooks.example.com/", provider: "github" });
    await patch({
      target_url: null,
      targets: [
        { endpoint_id: small, filter: { currency: "EUR" } },
        { endpoint_id: large, filter: { amount: { $gte: 100 } } },
        { endpoint_id: other },
      ],
    });
    await send('{"amount":5,"currency":"EUR"}', TYPED);
    await send('{"amount":5,"currency":"USD"}', TYPED);
    await send('{"amount":500,"currency":"EUR"}', TYPED);
    await send('{"amount":1}', { "x-github-event": "release" });
    await advance(0);
    expect(at("small")).toEqual(['{"amount":5,"currency":"EUR"}']);
    expect(at("large")).toEqual(['{"amount":500,"currency":"EUR"}']);
    expect(at("other")).toEqual(['{"amount":1}']);
  });

  test("an event that no target accepts is delivered, without deliveries and attempts", async () => {
    const endpointId = await endpoint("a");
    await bucket([endpointId]);
    await patch({ targets: [{ endpoint_id: endpointId, filter: { a: 1 } }] });
    const id = await send("not JSON");
    expect(await event(id)).toMatchObject({
      status: "delivered",
      delivered_at: null,
      attempts: 0,
      deliveries: [],
    });
    expect(await counts()).toEqual({ pending: 0, delivered: 1, failed: 0 });
    const replay = await stage.account.post(`/v1/catch/${stage.bucketId}/events/${id}/replay`);
    expectError(replay, "conflict");
  });

  test("a type that is reserved for notices counts as missing", async () => {
    const notices = await endpoint("notices", { event_types: ["ninefold.*"] });
    await bucket([notices, await endpoint("all")], { provider: "github" });
    const id = await send("{}", { "x-github-event": "ninefold.endpoint.disabled" });
    await advance(0);
    expect([at("notices").length, at("all").length]).toEqual([0, 1]);
    expect((await read((await event(id)).deliveries[0]?.relay_id))["event"]).toBeNull();
  });

  const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
  const values = (count: number): string => `[${Array(count).fill("1").join()}]`;

  test.each([
    ["499 more levels", nested(JSON_LEVELS_MAX - 1), 1],
    ["500 more levels", nested(JSON_LEVELS_MAX), 0],
    ["as many values as allowed", values(JSON_VALUES_MAX - 3), 1],
    ["a value more", values(JSON_VALUES_MAX - 2), 0],
  ])("the members of a body are compared unless it is too large: %s", async (_, part, deliveries) => {
    const endpointId = await endpoint("a");
    await bucket([endpointId]);
    await patch({ targets: [{ endpoint_id: endpointId, filter: { a: 1 } }] });
    const id = await send(`{"a":1,"b":${part}}`);
    expect((await event(id)).deliveries.length).toBe(deliveries);
  });

  test("of all targets on large bodies hold no other request up", async () => {
    const targets: object[] = [];
    const filter = { $or: Array.from({ length: 50 }, (_, n) => ({ a: { $nin: [`${n}`] } })) };
    for (let n = 0; n < TARGETS_MAX; n += 1)
      targets.push({ endpoint_id: await endpoint(`e${n}`, { filter }), filter });
    await bucket([], { target_url: "https://hooks.example.com/" });
    await patch({ target_url: null, targets });
    const list = Array.from({ length: JSON_VALUES_MAX - 100 }, (_, n) => `value ${n}`);
    const [body, empty] = [JSON.stringify({ a: list }), `[${"[],".repeat(349_000)}[]]`];
    for (const text of [body, empty]) {
      const turn = await leastMs(TURN_MS_MAX, () => longestTurnMs(() => send(text)));
      expect(turn).toBeLessThanOrEqual(TURN_MS_MAX);
    }
  });
});

describe("the request to an endpoint", () => {
  test("has the exact bytes, the sender's headers, and the endpoint's headers and signature", async () => {
    const secret = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
    const endpointId = await endpoint("a", { secret, headers: { "X-Own": "own" }, format: "envelope" });
    await bucket([endpointId], { provider: "stripe" });
    const body = Buffer.from([0, 255, 128, 10, 13, 0]);
    const id = (
      await ingest(stage.server, stage.bucketId, body, {
        "content-type": "application/x-odd",
        "stripe-signature": "t=1,v1=ab",
        cookie: "session=1",
        "x-svc-delivery-id": "forged",
      })
    ).event_id;
    await advance(0);
    const [hit] = stage.receiver.hits;
    expect([hit?.method, hit?.body]).toEqual(["POST", body]);
    const { headers } = hit ?? { headers: new Headers() };
    const [delivery] = (await event(id ?? "")).deliveries;
    const seconds = String(Math.floor(stage.server.clock.now() / 1000));
    const key = Buffer.alloc(24, 7);
    const signature = createHmac("sha256", key).update(`${id}.${seconds}.`).update(body).digest("base64");
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": "application/x-odd",
      "stripe-signature": "t=1,v1=ab",
      "x-own": "own",
      "x-svc-event-id": String(id),
      "x-svc-delivery-id": String(delivery?.relay_id),
      "x-svc-timestamp": String(Date.parse((await event(String(id))).received_at)),
      "webhook-id": String(id),
      "webhook-timestamp": seconds,
      "webhook-signature": `v1,${signature}`,
    });
    expect(headers.get("cookie")).toBeNull();
    const { attempt_log } = await read(delivery?.relay_id);
    const [attempt] = attempt_log as { request_headers: Record<string, string> }[];
    expect(attempt?.request_headers["stripe-signature"]).toBe("[secret]");
  });

  test("of an event without a content type is application/octet-stream", async () => {
    await bucket([await endpoint("a")]);
    await stage.server.client(null).send("POST", `/v1/catch/${stage.bucketId}`);
    await advance(0);
    expect(stage.receiver.hits[0]?.headers.get("content-type")).toBe("application/octet-stream");
    expect(stage.receiver.hits[0]?.body.length).toBe(0);
  });

  test("has the signature of a Standard Webhooks sender under names of its own: its id is not signed", async () => {
    const secret = `whsec_${Buffer.alloc(24, 9).toString("base64")}`;
    await bucket([await endpoint("a", { secret })], { provider: "standard" });
    const sender = { "webhook-id": "msg_1", "webhook-timestamp": "1", "webhook-signature": "v1,sender" };
    const id = await send("{}", sender);
    await advance(0);
    const { headers } = stage.receiver.hits[0] ?? { headers: new Headers() };
    for (const [name, value] of Object.entries(sender))
      expect(headers.get(`x-svc-sender-${name}`)).toBe(value);
    expect(headers.get("webhook-id")).toBe(id);
    const now = stage.server.clock.now();
    expect(await verifyDelivery(headers, "{}", secret, { now })).toMatchObject({ kind: "event", id });
  });
});

describe("order", () => {
  test("by order_by of the endpoint: an event waits for an earlier one with the same value alone", async () => {
    const id = await endpoint("a", { order_by: "/customer", retry_schedule: ["10s"] });
    await bucket([id]);
    stage.receiver.respond = ({ body }) => (body.toString("utf8").includes('"n":1') ? 500 : 200);
    const json = { "content-type": "application/json" };
    const events = [await send('{"n":1,"customer":"x"}', json), await send('{"n":2,"customer":"x"}', json)];
    await send('{"n":3,"customer":"y"}', json);
    await send("not json");
    await advance(0);
    await advance(0);
    const sent = ['{"n":1,"customer":"x"}', '{"n":3,"customer":"y"}', "not json"];
    expect(at("a").toSorted()).toEqual(sent.toSorted());
    const [first, second] = await Promise.all(events.map(async (one) => (await event(one)).deliveries[0]));
    expect(await read(second?.relay_id)).toMatchObject({ attempts: 0, waiting_for: first?.relay_id });
    stage.receiver.respond = () => 200;
    await advance(11_000);
    await advance(0);
    expect(at("a").slice(3)).toEqual(['{"n":1,"customer":"x"}', '{"n":2,"customer":"x"}']);
  });

  test("a backlog is delivered in order, before newer events, once", async () => {
    const endpointId = await endpoint("a", { max_concurrency: 1 });
    await bucket([endpointId]);
    await setState(stage.account, stage.bucketId, "paused");
    const texts = Array.from({ length: 35 }, (_, n) => `e${n}`);
    for (const text of texts.slice(0, 33)) await send(text);
    await advance(HOUR_MS);
    expect(at("a")).toEqual([]);
    await setState(stage.account, stage.bucketId, "live");
    for (const text of texts.slice(33)) await send(text);
    await advance(0);
    expect(at("a")).toEqual(texts);
    await advance(HOUR_MS);
    expect(at("a").length).toBe(35);
    expect(await counts()).toEqual({ pending: 0, delivered: 35, failed: 0 });
  });

  test("an endpoint with max_concurrency 1 receives an event only after the retry of an earlier one", async () => {
    await bucket([await endpoint("a", { max_concurrency: 1, retry_schedule: ["1m"] })]);
    stage.receiver.respond = (_, number) => (number === 1 ? 503 : 200);
    for (const text of ["one", "two", "three"]) await send(text);
    await advance(0);
    expect(at("a")).toEqual(["one"]);
    await advance(70_000);
    expect(at("a")).toEqual(["one", "one", "two", "three"]);
  });

  test("a backlog that is interrupted by a restart continues, once and in order", async () => {
    await bucket([await endpoint("a", { max_concurrency: 1 })]);
    await setState(stage.account, stage.bucketId, "paused");
    const texts = Array.from({ length: 25 }, (_, n) => `e${n}`);
    for (const text of texts) await send(text);
    await setState(stage.account, stage.bucketId, "live");
    await stage.restart();
    await advance(0);
    expect(at("a")).toEqual(texts);
    await stage.restart();
    await advance(HOUR_MS);
    expect(at("a").length).toBe(texts.length);
  });
});

describe("an update of the targets", () => {
  test("from target_url: pending events go to the endpoint, in order, and none to both", async () => {
    const { url } = stage.receiver;
    stage.bucketId = (await newBucket(stage.account, { target_url: url, retry_schedule: ["1h"] })).id;
    await setState(stage.account, stage.bucketId, "live");
    stage.receiver.respond = ({ path }) => (path === "/a" ? 200 : 503);
    const retried = await send("retried");
    await advance(0);
    for (const text of ["one", "two"]) await send(text);
    stage.receiver.hits.length = 0;
    await patch({
      target_url: null,
      targets: [{ endpoint_id: await endpoint("a", { max_concurrency: 1 }) }],
    });
    await send("three");
    await advance(0);
    expect(at("a")).toEqual(["one", "two", "three"]);
    // An event that is pending for its retry is sent at that time.
    await advance(2 * HOUR_MS);
    expect(stage.receiver.hits.map(({ path }) => path)).toEqual(Array(4).fill("/a"));
    expect(await event(retried)).toMatchObject({ status: "delivered", attempts: 2 });
    expect(await counts()).toEqual({ pending: 0, delivered: 4, failed: 0 });
  });

  test("to target_url: events that are queued stay with the endpoint", async () => {
    const endpointId = await endpoint("a", { retry_schedule: ["1h"] });
    await bucket([endpointId]);
    stage.receiver.respond = (hit, number) => (hit.path === "/a" && number === 1 ? 503 : 200);
    const id = await send("queued");
    await advance(0);
    await patch({ targets: [], target_url: stage.receiver.url });
    await send("later");
    await advance(2 * HOUR_MS);
    expect(at("a")).toEqual(["queued", "queued"]);
    expect(stage.receiver.texts.filter((text) => text === "later").length).toBe(1);
    expect((await event(id)).status).toBe("delivered");
    expect(await counts()).toEqual({ pending: 0, delivered: 2, failed: 0 });
  });

  test("applies to the backlog of a paused bucket", async () => {
    const [first, second] = [await endpoint("a"), await endpoint("b")];
    await bucket([first]);
    await setState(stage.account, stage.bucketId, "paused");
    await send("x");
    await patch({ targets: [{ endpoint_id: second }] });
    await setState(stage.account, stage.bucketId, "live");
    await advance(0);
    expect([at("a"), at("b")]).toEqual([[], ["x"]]);
  });
});

describe("a pause of the bucket", () => {
  test("stores events, and does not hold back deliveries that are queued", async () => {
    await bucket([await endpoint("a", { retry_schedule: ["1h"] })]);
    stage.receiver.respond = (_, number) => (number === 1 ? 503 : 200);
    await send("queued");
    await advance(0);
    await setState(stage.account, stage.bucketId, "paused");
    await send("waits");
    await advance(2 * HOUR_MS);
    expect(at("a")).toEqual(["queued", "queued"]);
    expect(await counts()).toEqual({ pending: 1, delivered: 1, failed: 0 });
  });
});

describe("deletion", () => {
  test.each(["events", "bucket"])("of the %s cancels pending deliveries", async (what) => {
    const endpointId = await endpoint("a", { max_concurrency: 1, retry_schedule: ["1h"] });
    await bucket([endpointId]);
    stage.receiver.respond = () => 503;
    const id = await send("gone");
    await advance(0);
    const [delivery] = (await event(id)).deliveries;
    const path =
      what === "bucket"
        ? `buckets/${stage.bucketId}`
        : `${stage.bucketId}/events?before=2030-01-01T00:00:00Z`;
    expect((await stage.account.delete(`/v1/catch/${path}`)).status).toBeLessThan(300);
    stage.receiver.respond = () => 200;
    await advance(2 * HOUR_MS);
    expect(at("a").length).toBe(1);
    expect(await read(delivery?.relay_id)).toMatchObject({ status: "cancelled", error: "event deleted" });
    // The endpoint keeps an order: the deleted event does not block the next one.
    if (what === "bucket") await bucket([endpointId]);
    await send("next");
    await advance(0);
    expect(at("a").at(-1)).toBe("next");
  });

  test("of the events of a failed delivery: it cannot be resent", async () => {
    await bucket([await endpoint("a", { retry_schedule: [] })]);
    stage.receiver.respond = () => 500;
    const id = await send("gone");
    await advance(0);
    const [delivery] = (await event(id)).deliveries;
    await stage.account.delete(`/v1/catch/${stage.bucketId}/events?before=2030-01-01T00:00:00Z`);
    expectError(await stage.account.post(`/v1/relay/${delivery?.relay_id}/resend`), "conflict");
  });
});

describe("a replay", () => {
  const replay = (id: string) => stage.account.post(`/v1/catch/${stage.bucketId}/events/${id}/replay`);

  test("makes new deliveries, to the current targets; one that fails does not change a delivered event", async () => {
    const [first, second] = [await endpoint("a"), await endpoint("b", { retry_schedule: [] })];
    await bucket([first]);
    const id = await send("x");
    await advance(0);
    await patch({ targets: [{ endpoint_id: first }, { endpoint_id: second }] });
    stage.receiver.respond = ({ path }) => (path === "/b" ? 500 : 200);
    const { status, body } = await replay(id);
    expect([status, body["status"]]).toEqual([202, "queued"]);
    await advance(0);
    const replayed = await event(id);
    const made = replayed.deliveries.slice(1).map(({ relay_id, endpoint_id }) => ({ relay_id, endpoint_id }));
    expect(body["deliveries"]).toEqual(made);
    expect(replayed).toMatchObject({ status: "delivered", attempts: 3, response_status: 200, error: null });
    expect(statuses(replayed)).toEqual(["delivered", "delivered", "failed"]);
  });

  test("of a failed event delivers it", async () => {
    await bucket([await endpoint("a", { retry_schedule: [] })]);
    stage.receiver.respond = () => 500;
    const id = await send("x");
    await advance(0);
    stage.receiver.respond = () => 200;
    await replay(id);
    expect(await counts()).toEqual({ pending: 1, delivered: 0, failed: 0 });
    await advance(0);
    expect(statuses(await event(id))).toEqual(["failed", "delivered"]);
    expect(await counts()).toEqual({ pending: 0, delivered: 1, failed: 0 });
  });

  test("repeated with its Idempotency-Key makes no further deliveries", async () => {
    await bucket([await endpoint("a")]);
    const id = await send("x");
    await advance(0);
    const again = () =>
      stage.account.post(`/v1/catch/${stage.bucketId}/events/${id}/replay`, undefined, {
        headers: { "idempotency-key": "k" },
      });
    expect((await again()).body).toEqual((await again()).body);
    await advance(0);
    expect(at("a").length).toBe(2);
  });

  test("without the credits for every delivery makes none", async () => {
    stage.account = await stage.server.account({ balance: 3 });
    await bucket([await endpoint("a"), await endpoint("b")]);
    const id = await send("x");
    await advance(0);
    expectError(await replay(id), "insufficient_balance");
    expect((await event(id)).deliveries.length).toBe(2);
  });

  test("of many events queues them in order, for a credit per delivery", async () => {
    const ids = [await endpoint("a", { max_concurrency: 1 }), await endpoint("b")];
    await bucket(ids);
    await patch({ targets: [{ endpoint_id: ids[0] }, { endpoint_id: ids[1], filter: { n: { $gt: 1 } } }] });
    for (const n of [1, 2, 3]) await send(`{"n":${n}}`);
    await advance(0);
    stage.receiver.hits.length = 0;
    const before = await balanceOf(stage.account);
    const started = await stage.account.post(`/v1/catch/${stage.bucketId}/replays`, {});
    await advance(10_000);
    expect(at("a")).toEqual(['{"n":1}', '{"n":2}', '{"n":3}']);
    expect(at("b").length).toBe(2);
    const { body } = await stage.account.get(
      `/v1/catch/${stage.bucketId}/replays/${started.body["replay_id"]}`,
    );
    expect(body).toMatchObject({
      status: "done",
      matched: 3,
      queued: 3,
      delivered: 0,
      failed: 0,
      skipped: 0,
    });
    expect(await balanceOf(stage.account)).toBe(before - 5);
  });

  test("of many events that no target accepts has failed, free of charge", async () => {
    const endpointId = await endpoint("a");
    await bucket([endpointId]);
    await send("x");
    await advance(0);
    await patch({ targets: [{ endpoint_id: endpointId, filter: { a: 1 } }] });
    const before = await balanceOf(stage.account);
    const started = await stage.account.post(`/v1/catch/${stage.bucketId}/replays`, {});
    await advance(10_000);
    const { body } = await stage.account.get(
      `/v1/catch/${stage.bucketId}/replays/${started.body["replay_id"]}`,
    );
    expect(body).toMatchObject({ status: "done", queued: 0, failed: 1 });
    expect(await balanceOf(stage.account)).toBe(before);
  });
});

test("across a restart, deliveries keep their retries, and events their order", async () => {
  await bucket([await endpoint("a", { max_concurrency: 1, retry_schedule: ["1m", "1m"] })]);
  stage.receiver.respond = (_, number) => (number === 1 ? 503 : 200);
  for (const text of ["one", "two"]) await send(text);
  await advance(0);
  await stage.restart();
  await send("three");
  await advance(0);
  expect(at("a")).toEqual(["one"]);
  await advance(70_000);
  expect(at("a")).toEqual(["one", "one", "two", "three"]);
  expect((await eventsOf(stage.account, stage.bucketId)).map(({ status }) => status)).toEqual(
    Array(3).fill("delivered"),
  );
});

test("the subscribers of catch.failed are notified once the retries of an event end", async () => {
  const notices = await endpoint("notices", { event_types: ["ninefold.catch.failed"] });
  await bucket([await endpoint("a", { retry_schedule: [] })]);
  stage.receiver.respond = ({ path }) => (path === "/a" ? 500 : 200);
  const id = await send("x");
  await advance(0);
  const [notice] = at("notices").map((text) => JSON.parse(text) as { type: string; data: object });
  expect(notice).toMatchObject({
    type: "ninefold.catch.failed",
    data: { bucket_id: stage.bucketId, event_id: id, attempts: 1, response_status: 500 },
  });
  expect(notices).toStartWith("ep_");
});
