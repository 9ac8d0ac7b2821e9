import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { expectError } from "../../../support/errors.ts";
import { endpoint, type Scenario, type World } from "../../../support/scenario.ts";
import {
  accepted,
  balanceOf,
  bucketOf,
  eventOf,
  type Made,
  newBucket,
  scenario,
  setState,
} from "../support.ts";
import { receivingStage } from "./receiving-stage.ts";

const stage = receivingStage();

type Entry = { readonly amount: number };
const NOBODYS = "/v1/catch/brave-otter-314159/events/evt_00000000001/replay";
const created: Made = { bucketId: "", eventId: "" };
const path = ({ bucketId, eventId }: Made) => `/v1/catch/${bucketId}/events/${eventId}/replay`;
const request = (of: Made): Scenario["request"] => ["POST", path(of)];

/** A live bucket with an event before its first forward: the clock does not move. */
async function liveEvent({ account }: Pick<World, "account">, terms: object = {}): Promise<void> {
  created.bucketId = (await newBucket(account, { target_url: stage.receiver.url, ...terms })).id;
  await setState(account, created.bucketId, "live");
  created.eventId = await accepted(stage.server, created.bucketId, '{"a":1}');
}

describe("POST /v1/catch/{bucket_id}/events/{event_id}/replay", () => {
  endpoint(() => stage.server, "POST /v1/catch/{bucket_id}/events/{event_id}/replay", [
    scenario(created, {
      name: "replayed: the target accepted it; 1 credit",
      before: (world) => liveEvent(world),
      request,
      status: 200,
      body: () => ({ status: "replayed", response_status: 200 }),
      spent: 1,
      after: () => expect(stage.receiver.texts).toEqual(['{"a":1}']),
    }),
    scenario(created, {
      name: "a bucket with targets: queued for each endpoint; 1 credit each",
      before: async ({ account }) => {
        const ids: string[] = [];
        for (const path of ["a", "b"]) {
          const { body } = await account.post("/v1/relay/endpoints", {
            url: `${stage.receiver.url}&${path}`,
          });
          ids.push(String(body["endpoint_id"]));
        }
        const targets = ids.map((endpoint_id) => ({ endpoint_id }));
        await liveEvent({ account }, { target_url: null, targets });
      },
      request,
      status: 202,
      holds: () => ({ status: "queued", deliveries: [{}, {}] }),
      spent: 2,
      after: async () => {
        await stage.server.clock.advance(0);
        // The event was already sent to both.
        expect(stage.receiver.texts).toEqual(Array(4).fill('{"a":1}'));
      },
    }),
    ...[300, 302, 400, 404, 500, 503].map((status) =>
      scenario(created, {
        name: `failed: the target responded with ${status}; free of charge`,
        before: async (world) => {
          stage.receiver.respond = () => new Response(null, { status, headers: { location: "/elsewhere" } });
          await liveEvent(world);
        },
        request,
        status: 200,
        body: () => ({ status: "failed", response_status: status }),
        after: () => expect(stage.receiver.hits.length).toBe(1),
      }),
    ),
    scenario(created, {
      name: "by the delivery of an event",
      before: (world) => liveEvent(world),
      headers: { "x-ninefold-hops": "1", "x-svc-event-id": "evt_00000000001" },
      request,
      status: 508,
      code: "catch.loop_detected",
    }),
    scenario(created, {
      name: "a paused bucket",
      before: async (world) => {
        await liveEvent(world);
        await setState(world.account, created.bucketId, "paused");
      },
      request,
      status: 400,
      code: "bucket_paused",
      after: () => expect(stage.receiver.hits).toEqual([]),
    }),
    scenario(created, {
      name: "an event with an invalid signature",
      before: (world) => liveEvent(world, { provider: "github", signing_secret: "s" }),
      request,
      status: 400,
      code: "catch.signature_invalid",
      after: () => expect(stage.receiver.hits).toEqual([]),
    }),
    scenario(created, {
      name: "a too long id",
      before: (world) => liveEvent(world),
      request: ({ bucketId }) => ["POST", `/v1/catch/${bucketId}/events/${"x".repeat(65)}/replay`],
      status: 400,
      code: "validation_error",
    }),
    { name: "no key", as: "nobody", request: ["POST", NOBODYS], status: 401, code: "unauthorized" },
    scenario(created, {
      name: "no credits",
      account: { balance: 1 },
      before: (world) => liveEvent(world),
      request,
      status: 402,
      code: "insufficient_balance",
      after: () => expect(stage.receiver.hits).toEqual([]),
    }),
    {
      name: "a bucket that does not exist: the search is charged",
      request: ["POST", NOBODYS],
      status: 404,
      code: "catch.bucket_not_found",
      spent: 1,
    },
    scenario(created, {
      name: "an event that does not exist: the search is charged",
      before: (world) => liveEvent(world),
      request: ({ bucketId }) => ["POST", `/v1/catch/${bucketId}/events/evt_00000000001/replay`],
      status: 404,
      code: "catch.event_not_found",
      spent: 1,
    }),
    scenario(created, {
      name: "an Idempotency-Key of a request for another event",
      before: async (world) => {
        await liveEvent(world);
        await world.account.post(path(created), undefined, { headers: { "idempotency-key": "k" } });
        created.eventId = await accepted(stage.server, created.bucketId, "another");
      },
      headers: { "idempotency-key": "k" },
      request,
      status: 409,
      code: "conflict",
    }),
    scenario(created, {
      name: "no response: free of charge",
      before: async (world) => {
        await liveEvent(world);
        await stage.receiver.stop();
      },
      request,
      status: 500,
      code: "catch.replay_failed",
      after: (_, { body }) => {
        const { message } = body["error"] as { message: string };
        expect(message).toMatch(/^The target could not be reached: .*connection/);
        expect(message).not.toContain("127.0.0.1");
      },
    }),
  ]);
});

describe("a replay", () => {
  test("delivers a pending event, and cancels its forward", async () => {
    const account = await stage.server.account();
    await liveEvent({ account });
    await account.post(path(created));
    expect(await eventOf(account, created.bucketId, created.eventId)).toMatchObject({
      status: "delivered",
      attempts: 1,
      response_status: 200,
      error: null,
      delivered_at: new Date(stage.server.clock.now()).toISOString(),
    });
    await stage.server.clock.advance(60_000);
    expect(stage.receiver.hits.length).toBe(1);
    expect((await bucketOf(account, created.bucketId)).events).toEqual({
      pending: 0,
      delivered: 1,
      failed: 0,
    });
  });

  test("that fails does not refund above a balance that was refilled in the meantime", async () => {
    const account = await stage.server.account();
    const answer = Promise.withResolvers<number>();
    await liveEvent({ account });
    await stage.server.clock.advance(0);
    stage.receiver.respond = () => answer.promise;
    const replays = [1, 2, 3].map(() => account.post(path(created)));
    while (stage.receiver.hits.length < 4) await Bun.sleep(1);
    const amount = Number.MAX_SAFE_INTEGER - (await balanceOf(account));
    expect((await account.post("/v1/meter/refill", { amount })).status).toBe(200);
    answer.resolve(500);
    for (const replay of replays) expect((await replay).body).toMatchObject({ status: "failed" });
    expect(await balanceOf(account)).toBe(Number.MAX_SAFE_INTEGER);
    const { entries } = (await account.get("/v1/meter/history?limit=100")).body as { entries: Entry[] };
    expect(entries.reduce((sum, entry) => sum + BigInt(entry.amount), 0n)).toBe(2n ** 53n - 1n);
  });

  test("delivers a failed event; a failed replay leaves it failed", async () => {
    const account = await stage.server.account();
    stage.receiver.respond = () => 500;
    await liveEvent({ account });
    await stage.server.clock.advance(31_000);
    const failed = await eventOf(account, created.bucketId, created.eventId);
    expect(failed).toMatchObject({ status: "failed", attempts: 4 });
    await account.post(path(created));
    const { attempt_log: _, ...after } = await eventOf(account, created.bucketId, created.eventId);
    expect(failed).toMatchObject(after);
    stage.receiver.respond = () => 204;
    expect((await account.post(path(created))).body).toEqual({ status: "replayed", response_status: 204 });
    expect(await eventOf(account, created.bucketId, created.eventId)).toMatchObject({
      status: "delivered",
      attempts: 5,
      response_status: 204,
      error: null,
    });
    expect((await bucketOf(account, created.bucketId)).events).toEqual({
      pending: 0,
      delivered: 1,
      failed: 0,
    });
  });

  test("between two retries cancels them", async () => {
    const account = await stage.server.account();
    stage.receiver.respond = (_, number) => (number === 1 ? 500 : 200);
    await liveEvent({ account });
    await stage.server.clock.advance(0);
    await account.post(path(created));
    await stage.server.clock.advance(60_000);
    expect(stage.receiver.hits.length).toBe(2);
    expect((await eventOf(account, created.bucketId, created.eventId)).attempts).toBe(2);
  });

  test("of a delivered event sends it again, and keeps its first delivered_at", async () => {
    const account = await stage.server.account();
    await liveEvent({ account });
    await stage.server.clock.advance(0);
    const { delivered_at } = await eventOf(account, created.bucketId, created.eventId);
    await stage.server.clock.advance(5_000);
    stage.receiver.respond = () => 500;
    expect((await account.post(path(created))).body).toEqual({ status: "failed", response_status: 500 });
    stage.receiver.respond = () => 202;
    await account.post(path(created));
    expect(await eventOf(account, created.bucketId, created.eventId)).toMatchObject({
      status: "delivered",
      attempts: 2,
      response_status: 202,
      delivered_at,
    });
    expect((await bucketOf(account, created.bucketId)).events).toEqual({
      pending: 0,
      delivered: 1,
      failed: 0,
    });
  });

  test("has the time of receipt, and a signature with the current time", async () => {
    const account = await stage.server.account();
    await liveEvent({ account });
    const receivedAt = stage.server.clock.now();
    await stage.server.clock.advance(3_600_000);
    await account.post(path(created));
    const headers = stage.receiver.hits.at(-1)?.headers;
    expect(headers?.get("x-svc-event-id")).toBe(created.eventId);
    expect(headers?.get("x-svc-timestamp")).toBe(String(receivedAt));
    const seconds = Math.floor(stage.server.clock.now() / 1000);
    const hex = createHmac("sha256", account.key ?? "")
      .update(`${seconds}.{"a":1}`)
      .digest("hex");
    expect(headers?.get("x-svc-signature")).toBe(`t=${seconds},v1=${hex}`);
  });

  test("under an Idempotency-Key is made once", async () => {
    const account = await stage.server.account();
    await liveEvent({ account });
    const options = { headers: { "idempotency-key": "once" } };
    const balance = await balanceOf(account);
    const first = await account.post(path(created), undefined, options);
    const again = await account.post(path(created), undefined, options);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(stage.receiver.hits.length).toBe(1);
    expect(await balanceOf(account)).toBe(balance - 1);
  });

  test("returns its result even if bucket and event are deleted in the meantime", async () => {
    const account = await stage.server.account();
    stage.receiver.respond = async () => {
      await account.delete(`/v1/catch/buckets/${created.bucketId}`);
      return 200;
    };
    await liveEvent({ account });
    expect((await account.post(path(created))).body).toEqual({ status: "replayed", response_status: 200 });
    expectError(await account.get(`/v1/catch/buckets/${created.bucketId}`), "catch.bucket_not_found");
    await stage.server.clock.advance(60_000);
    expect(stage.server.logs.filter(({ level }) => level === "error")).toEqual([]);
  });
});
