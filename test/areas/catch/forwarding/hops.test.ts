import { describe, expect, test } from "bun:test";
import { bucketIdIn } from "../../../../src/areas/catch/buckets/own-path.ts";
import { HOPS_MAX } from "../../../../src/kernel/outbound/hops.ts";
import { expectError } from "../../../support/errors.ts";
import { bucketOf, eventsOf, newBucket, setState } from "../support.ts";
import { targetStage } from "./targets-support.ts";

const stage = targetStage();
const { advance, endpoint, bucket, send } = stage;

const MINUTE = 60_000;
const hops = (value: number | string) => ({ "x-ninefold-hops": String(value) });
/** The hops of the requests that a path of the receiver got. */
const hopsAt = (path: string) =>
  stage.receiver.hits
    .filter((hit) => hit.path === `/${path}`)
    .map(({ headers }) => headers.get("x-ninefold-hops"));
const pathOf = (bucketId: string) => `${stage.server.url}/v1/in/${bucketId}`;

/** A live bucket without endpoints. */
async function plainBucket(target_url: string): Promise<string> {
  const { id } = await newBucket(stage.account, { target_url });
  await setState(stage.account, id, "live");
  return id;
}

/** An endpoint that sends what it gets to a bucket. */
const leadingTo = async (bucketId: string): Promise<string> => {
  const { body } = await stage.account.post("/v1/relay/endpoints", { url: pathOf(bucketId) });
  return String(body["endpoint_id"]);
};

/** Creates a delivery that is due now. */
async function deliver(headers: object, retry_schedule: readonly string[] = []): Promise<void> {
  const target_url = `${new URL(stage.receiver.url).origin}/delivery`;
  const body = { target_url, method: "POST", delay: "0s", headers, retry_schedule };
  expect((await stage.account.post("/v1/relay", body)).status).toBe(201);
}

const countOf = async (bucketId: string) => (await bucketOf(stage.account, bucketId)).events;

describe("a webhook in a loop", () => {
  test("through two buckets ends after 8 hops", async () => {
    const first = await plainBucket(stage.receiver.url);
    const second = await plainBucket(pathOf(first));
    await stage.account.patch(`/v1/catch/buckets/${first}`, { target_url: pathOf(second) });
    stage.bucketId = first;
    await send("round");
    for (let turn = 0; turn <= HOPS_MAX; turn += 1) await advance(1_000);
    await advance(MINUTE);
    expect(await countOf(first)).toEqual({ pending: 0, delivered: HOPS_MAX / 2, failed: 0 });
    expect(await countOf(second)).toEqual({ pending: 0, delivered: HOPS_MAX / 2 - 1, failed: 1 });
    const last = (await eventsOf(stage.account, second)).at(-1);
    expect(last).toMatchObject({ status: "failed", attempts: 1, response_status: 508 });
  });

  test("through endpoints, twice each time, ends too", async () => {
    const first = await bucket([await endpoint("before")]);
    const back = [await leadingTo(first), await leadingTo(first)];
    const second = await bucket(back);
    const there = [await leadingTo(second), await leadingTo(second)];
    stage.bucketId = first;
    await stage.patch({ targets: there.map((endpoint_id) => ({ endpoint_id })) });
    // Six hops of the eight are over.
    await stage.server.client(null).post(`/v1/in/${first}`, "round", { headers: hops(HOPS_MAX - 2) });
    for (let turn = 0; turn < 3; turn += 1) await advance(1_000);
    await advance(MINUTE);
    expect(await countOf(first)).toEqual({ pending: 0, delivered: 1, failed: 0 });
    expect(await countOf(second)).toEqual({ pending: 0, delivered: 0, failed: 2 });
  });
});

test("a delivery of an event that replays it through the API ends", async () => {
  const headers = { authorization: `Bearer ${stage.account.key}` };
  const endpoint_id = await endpoint("before", { headers });
  const id = await bucket([endpoint_id]);
  // Also the body of a bulk replay.
  const event = await send("{}");
  await advance(1_000);
  for (const url of [
    `${stage.server.url}/v1/catch/${id}/events/${event}/replay`,
    `${stage.server.url}/v1/catch/${id}/replays`,
  ]) {
    const moved = await stage.account.patch(`/v1/relay/endpoints/${endpoint_id}`, { url, headers });
    expect(moved.status, moved.text).toBe(200);
    expect((await stage.account.post(`/v1/catch/${id}/events/${event}/replay`)).status).toBe(202);
    for (let turn = 0; turn < 3; turn += 1) await advance(MINUTE);
  }
  const { body } = await stage.account.get(`/v1/catch/${id}/events/${event}`);
  const deliveries = body["deliveries"] as { status: string; attempts: number }[];
  expect(deliveries.map(({ status, attempts }) => [status, attempts])).toEqual([
    ["delivered", 1],
    ["failed", 1],
    ["failed", 1],
  ]);
});

describe("the hops of an event", () => {
  test.each([
    ["7", 200],
    ["8", 508],
    ["9", 508],
    ["999999999", 508],
    ["1, 8", 508],
    ["-8", 200],
    ["many", 200],
    ["8.5", 200],
  ])("%p in the request: %d", async (value, status) => {
    const id = await bucket([await endpoint("a")]);
    for (const path of [`/v1/in/${id}`, `/v1/catch/${id}`, `/v1/in/${id}/below`]) {
      const answer = await stage.server.client(null).post(path, "{}", { headers: hops(value) });
      expect([answer.status, answer.body["status"]]).toEqual([
        status,
        status === 200 ? "accepted" : "loop_detected",
      ]);
    }
  });

  test("are counted up by forwards, retries, replays and bulk replays, also after a restart", async () => {
    const id = await plainBucket(`${new URL(stage.receiver.url).origin}/forward`);
    stage.bucketId = id;
    await setState(stage.account, id, "paused");
    const event = await send("one", hops(5));
    await stage.restart();
    stage.receiver.respond = () => 503;
    await setState(stage.account, id, "live");
    await advance(1_000);
    stage.receiver.respond = () => 200;
    await advance(1_000);
    await stage.account.post(`/v1/catch/${id}/events/${event}/replay`);
    await stage.account.post(`/v1/catch/${id}/replays`, { event_ids: [event] });
    await advance(1_000);
    expect(hopsAt("forward")).toEqual(["6", "6", "6", "6"]);
  });

  test("are counted up by deliveries to endpoints, and replays of them", async () => {
    const id = await bucket([await endpoint("a")]);
    const event = await send("one", hops(3));
    await advance(1_000);
    await stage.account.post(`/v1/catch/${id}/events/${event}/replay`);
    await advance(1_000);
    expect(hopsAt("a")).toEqual(["4", "4"]);
  });

  test("begin with 1 for deliveries and messages, whatever headers are given", async () => {
    const headers = { "X-NINEFOLD-HOPS": "0", x_ninefold_hops: "0" };
    await endpoint("message", { headers, event_types: ["order"] });
    await stage.account.post("/v1/relay/messages", { event_type: "order", payload: {} });
    await deliver(headers);
    await advance(1_000);
    expect([hopsAt("message"), hopsAt("delivery")]).toEqual([["1"], ["1"]]);
  });
});

describe("a 508", () => {
  test.each([
    [508, 1],
    [507, 2],
  ])("%d: a delivery has %d attempts within a minute", async (status, attempts) => {
    stage.receiver.respond = () => status;
    const { origin } = new URL(stage.receiver.url);
    const retry_schedule = ["50s"];
    stage.bucketId = await plainBucket(`${origin}/forward`);
    await stage.patch({ retry_schedule });
    await send("one");
    await bucket([await endpoint("event", { retry_schedule })]);
    await send("two");
    await deliver({}, retry_schedule);
    await advance(1_000);
    await advance(MINUTE);
    for (const path of ["forward", "event", "delivery"]) expect(hopsAt(path)).toHaveLength(attempts);
  });
});

test.each([
  ["https://hooks.example.com/v1/in/b", "b"],
  ["http://hooks.example.com/v1/in/b", "b"],
  ["https://HOOKS.example.com:443/v1/catch/b", "b"],
  ["https://hooks.example.com/v1/catch/b/events", null],
  ["https://hooks.example.com/v1/in/b/below", "b"],
  ["https://example.com/ninefold/v1/in/b?x=1", "b"],
  ["https://example.com/v1/in/b", null],
  ["https://example.com/ninefold/v1/in/", null],
  ["https://other.example.com/v1/in/b", null],
  ["https://hooks.example.com:8443/v1/in/b", null],
  ["http://localhost:9909/v1/in/b", "b"],
  ["http://[::1]:9909/v1/in/b", "b"],
  ["http://localhost:9910/v1/in/b", null],
  ["https://hooks.example.com/v1/out/b", null],
])("%s leads to the bucket %p", (url, id) => {
  const own = ["https://hooks.example.com", "https://example.com/ninefold", "http://0.0.0.0:9909"];
  expect(bucketIdIn(url, own)).toBe(id);
});

describe("a target in this bucket's own path is rejected", () => {
  const forms = (id: string): string[] => {
    const { port } = new URL(stage.server.url);
    return [
      `${stage.server.url}/v1/in/${id}`,
      `${stage.server.url}/v1/in/${id}/below?x=1`,
      `${stage.server.url}/v1/catch/${id}`,
      `http://127.0.0.2:${port}/v1/in/${id}`,
    ];
  };

  test("as target_url", async () => {
    stage.bucketId = await bucket([await endpoint("a")]);
    for (const target_url of forms(stage.bucketId)) {
      expect(
        expectError(await stage.patch({ targets: [], target_url }), "validation_error").fields,
      ).toHaveProperty(["target_url"]);
    }
    const other = `${stage.server.url}/v1/in/${stage.bucketId}x`;
    expect((await stage.patch({ targets: [], target_url: other })).status).toBe(200);
  });

  test("as the URL of an endpoint, by a change of either", async () => {
    const endpoint_id = await endpoint("a");
    const id = await bucket([await endpoint("b")]);
    for (const url of forms(id)) {
      expect((await stage.account.patch(`/v1/relay/endpoints/${endpoint_id}`, { url })).status).toBe(200);
      expect(
        expectError(await stage.patch({ targets: [{ endpoint_id }] }), "validation_error").fields,
      ).toHaveProperty(["targets.0.endpoint_id"]);
    }
    const { origin } = new URL(stage.receiver.url);
    await stage.account.patch(`/v1/relay/endpoints/${endpoint_id}`, { url: `${origin}/a` });
    expect((await stage.patch({ targets: [{ endpoint_id }] })).status).toBe(200);
    for (const url of forms(id))
      expect(
        expectError(
          await stage.account.patch(`/v1/relay/endpoints/${endpoint_id}`, { url }),
          "validation_error",
        ).fields,
      ).toHaveProperty(["url"]);
  });
});
