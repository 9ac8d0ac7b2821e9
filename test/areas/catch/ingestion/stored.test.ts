import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BODY_BYTES_MAX } from "../../../../src/kernel/http/operation.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import {
  accepted,
  balanceOf,
  bucketOf,
  eventOf,
  eventsOf,
  ingest,
  LOOPBACK_ALLOWED,
  newBucket,
  Receiver,
  setState,
} from "../support.ts";

let server: TestServer;
let account: AccountClient;
let receiver: Receiver;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
  account = await server.account({ balance: 1_000 });
  receiver = new Receiver();
});
afterAll(async () => {
  await receiver.stop();
  await server.stop();
});

describe("a webhook that is too large", () => {
  const large = new Uint8Array(1.5 * 1024 * 1024);

  test("gets 413 whatever the bucket responds with, and leaves a trace in the bucket", async () => {
    const account = await server.account({ tier: "free" });
    const { id } = await newBucket(account, {
      overload_status: 503,
      invalid_status: 200,
      response: { status: 202, body: "thanks" },
    });
    const created = await bucketOf(account, id);
    expect([created.too_large, created.last_too_large_at]).toEqual([0, null]);
    const balance = await balanceOf(account);
    for (const body of [large, new Uint8Array(BODY_BYTES_MAX + 1)]) {
      const answer = await server.client(null).post(`/v1/in/${id}`, body);
      expect([answer.status, answer.body["status"]]).toEqual([413, "too_large"]);
    }
    const long = await server.client(null).post(`/v1/in/${id}?${"x".repeat(9_000)}`, "{}");
    expect([long.status, long.body["status"]]).toEqual([200, "too_large"]);
    const bucket = await bucketOf(account, id);
    expect([bucket.too_large, bucket.last_too_large_at]).toEqual([
      3,
      new Date(server.clock.now()).toISOString(),
    ]);
    expect(await eventsOf(account, id)).toEqual([]);
    // One for the list.
    expect(await balanceOf(account)).toBe(balance - 1);
  });
});

describe("a redelivery with the id of an event that failed for good", () => {
  const GITHUB = { provider: "github", deduplicate_hours: 24 };
  const DELIVERY = { "x-github-delivery": "d-1", "x-github-event": "push" };

  test("is stored and forwarded again; once it is delivered, it is a duplicate", async () => {
    const { id } = await newBucket(account, { ...GITHUB, target_url: receiver.url, retry_schedule: ["1s"] });
    await setState(account, id, "live");
    receiver.respond = () => 500;
    const first = await accepted(server, id, '{"n":1}', DELIVERY);
    await server.clock.advance(500);
    expect((await ingest(server, id, '{"n":1}', DELIVERY)).status).toBe("duplicate");
    await server.clock.advance(5_000);
    expect((await eventOf(account, id, first)).status).toBe("failed");

    receiver.respond = () => 200;
    const second = await accepted(server, id, '{"n":1}', DELIVERY);
    await server.clock.advance(1_000);
    expect((await eventOf(account, id, second)).status).toBe("delivered");
    expect(await ingest(server, id, '{"n":1}', DELIVERY)).toMatchObject({
      status: "duplicate",
      event_id: second,
    });
    expect(await eventOf(account, id, first)).toMatchObject({ status: "failed", duplicates: 1 });
  });

  test("is a duplicate while the event is pending, and after a replay has delivered it", async () => {
    const { id } = await newBucket(account, { ...GITHUB, target_url: receiver.url, retry_schedule: [] });
    const first = await accepted(server, id, "{}", DELIVERY);
    expect((await ingest(server, id, "{}", DELIVERY)).status).toBe("duplicate");
    receiver.respond = () => 500;
    await setState(account, id, "live");
    await server.clock.advance(1_000);
    receiver.respond = () => 200;
    expect((await account.post(`/v1/catch/${id}/events/${first}/replay`)).body["status"]).toBe("replayed");
    expect(await ingest(server, id, "{}", DELIVERY)).toMatchObject({ status: "duplicate", event_id: first });
  });

  test("is stored in buckets with endpoints and in those that clients fetch from, too", async () => {
    const endpoint = await account.post("/v1/relay/endpoints", { url: receiver.url, retry_schedule: [] });
    const { id } = await newBucket(account, {
      ...GITHUB,
      target_url: null,
      targets: [{ endpoint_id: endpoint.body["endpoint_id"] }],
    });
    await setState(account, id, "live");
    receiver.respond = () => 500;
    await accepted(server, id, "{}", DELIVERY);
    await server.clock.advance(1_000);
    receiver.respond = () => 200;
    const again = await accepted(server, id, "{}", DELIVERY);
    await server.clock.advance(1_000);
    expect((await eventOf(account, id, again)).status).toBe("delivered");

    const { id: pull } = await newBucket(account, { ...GITHUB, target_url: null, delivery: "pull" });
    const fetched = await accepted(server, pull, "{}", DELIVERY);
    await account.post(`/v1/catch/${pull}/events/${fetched}/ack`, { result: "failed" });
    expect(await accepted(server, pull, "{}", DELIVERY)).not.toBe(fetched);
  });
});

test("a redelivery of an event that was removed before it was delivered is stored; of one that was delivered not", async () => {
  const { id } = await newBucket(account, {
    provider: "github",
    deduplicate_hours: 24,
    target_url: receiver.url,
  });
  receiver.respond = () => 200;
  const send = async (delivery: string) =>
    (await ingest(server, id, "{}", { "x-github-delivery": delivery })).status;
  await setState(account, id, "live");
  await send("delivered");
  await server.clock.advance(1_000);
  await setState(account, id, "paused");
  await send("pending");
  await server.clock.advance(1_000);
  const before = new Date(server.clock.now()).toISOString();
  const removed = await account.send("DELETE", `/v1/catch/${id}/events?before=${before}`);
  expect(removed.body["deleted_count"]).toBe(2);
  expect([await send("pending"), await send("delivered")]).toEqual(["accepted", "duplicate"]);
});

test("a 2xx without an event is a documented state of the bucket", async () => {
  const free = await server.account({ tier: "free", balance: 1_000 });
  const { id } = await newBucket(free);
  const statuses: string[] = [];
  for (let count = 0; count < 61; count += 1) statuses.push((await ingest(server, id)).status);
  expect(statuses.slice(-2)).toEqual(["accepted", "rate_limited"]);
  expect((await ingest(server, "no-such-000000")).status).toBe("ignored");
});

test("the number of webhooks that were too large is the same after a restart", async () => {
  const account = await server.account({ tier: "free" });
  const { id } = await newBucket(account);
  await server.client(null).post(`/v1/in/${id}`, new Uint8Array(BODY_BYTES_MAX + 1));
  const { too_large, last_too_large_at } = await bucketOf(account, id);
  expect(too_large).toBe(1);
  await server.restart();
  expect(await bucketOf(server.client(account.key), id)).toMatchObject({ too_large, last_too_large_at });
});
