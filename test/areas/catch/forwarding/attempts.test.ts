import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { ATTEMPTS_STORED_MAX, RESPONSE_BYTES_STORED_MAX } from "../../../../src/areas/catch/domain.ts";
import type { EventAttempt } from "../../../../src/areas/catch/schema.ts";
import { expectError } from "../../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { accepted, eventOf, LOOPBACK_ALLOWED, newBucket, Receiver, setState } from "../support.ts";

let server: TestServer;
let receiver: Receiver;
let account: AccountClient;
let bucketId: string;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
});
afterAll(() => server.stop());
beforeEach(async () => {
  receiver = new Receiver();
  account = await server.account();
  bucketId = (await newBucket(account, { target_url: receiver.url })).id;
  await setState(account, bucketId, "live");
});
afterEach(() => receiver.stop());

async function logOf(eventId: string): Promise<EventAttempt[]> {
  return (await eventOf(account, bucketId, eventId)).attempt_log;
}

function rows(): number {
  return server.server.kernel.db.number("SELECT count(*) AS n FROM catch_attempts")();
}

function replay(eventId: string) {
  return account.post(`/v1/catch/${bucketId}/events/${eventId}/replay`);
}

describe("the attempts of an event", () => {
  test("record each forward with its response, then a replay, in order, also after a restart", async () => {
    receiver.respond = (_, number) =>
      number === 1 ? new Response("upstream is down", { status: 503 }) : new Response("thanks");
    const eventId = await accepted(server, bucketId, "{}");
    expect(await logOf(eventId)).toEqual([]);
    const first = server.clock.now();
    await server.clock.advance(1_000);
    const second = server.clock.now();
    await server.clock.advance(5_000);
    await replay(eventId);
    const of = (at: number, more: Partial<EventAttempt>) => ({
      at: new Date(at).toISOString(),
      kind: "forward",
      duration_ms: expect.any(Number),
      response_status: 200,
      error: null,
      response_body: "thanks",
      ...more,
    });
    const error = "the target responded with 503";
    const failed = { response_status: 503, error, response_body: "upstream is down" };
    const expected = [of(first, failed), of(second, {}), of(server.clock.now(), { kind: "replay" })];
    expect(await logOf(eventId)).toEqual(expected as EventAttempt[]);
    await server.restart();
    const kept = await server.client(account.key).get(`/v1/catch/${bucketId}/events/${eventId}`);
    expect(kept.body["attempt_log"]).toEqual(expected);
    await server.client(account.key).delete(`/v1/catch/buckets/${bucketId}`);
  });

  test("include a replay without a response, although it returns an error and is free of charge", async () => {
    const eventId = await accepted(server, bucketId, "{}");
    await receiver.stop();
    expectError(await replay(eventId), "catch.replay_failed");
    const [only, ...others] = await logOf(eventId);
    expect(only).toMatchObject({ kind: "replay", response_status: null, response_body: null });
    expect(only?.error).toContain("connection");
    expect(only?.error).not.toContain("127.0.0.1");
    expect(others).toEqual([]);
  });

  test("include a replay that the target rejected, which does not change the event", async () => {
    receiver.respond = () => new Response("no", { status: 418 });
    const eventId = await accepted(server, bucketId, "{}");
    await replay(eventId);
    const event = await eventOf(account, bucketId, eventId);
    expect(event).toMatchObject({ status: "pending", attempts: 0, error: null });
    expect(event.attempt_log).toMatchObject([{ kind: "replay", response_status: 418, response_body: "no" }]);
  });

  test.each([
    ["none", "", ""],
    ["as much as is stored", "x".repeat(RESPONSE_BYTES_STORED_MAX), "x".repeat(RESPONSE_BYTES_STORED_MAX)],
    ["a byte more", "x".repeat(RESPONSE_BYTES_STORED_MAX + 1), "x".repeat(RESPONSE_BYTES_STORED_MAX)],
    [
      "a character at the edge",
      `x${"é".repeat(RESPONSE_BYTES_STORED_MAX / 2)}`,
      `x${"é".repeat(RESPONSE_BYTES_STORED_MAX / 2 - 1)}`,
    ],
    ["no text", new Uint8Array([0xff, 0, 0x41]), "\ufffd\0A"],
  ])("store of a body: %s", async (_, sent, kept) => {
    receiver.respond = () => new Response(sent);
    const eventId = await accepted(server, bucketId, "{}");
    await server.clock.advance(0);
    expect((await logOf(eventId)).map(({ response_body }) => response_body)).toEqual([kept]);
  });

  test(`are limited to the last ${ATTEMPTS_STORED_MAX}`, async () => {
    receiver.respond = (_, number) => new Response(String(number));
    const eventId = await accepted(server, bucketId, "{}");
    const bodies = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, index) => String(from + index));
    for (let number = 1; number <= ATTEMPTS_STORED_MAX; number += 1) await replay(eventId);
    expect((await logOf(eventId)).map((one) => one.response_body)).toEqual(bodies(1, ATTEMPTS_STORED_MAX));
    await replay(eventId);
    expect((await logOf(eventId)).map((one) => one.response_body)).toEqual(
      bodies(2, ATTEMPTS_STORED_MAX + 1),
    );
  });

  test("include one that finishes after a replay delivered the event, without effect", async () => {
    const slow = Promise.withResolvers<number>();
    receiver.respond = (_, number) => (number === 1 ? slow.promise : 200);
    const eventId = await accepted(server, bucketId, "{}");
    const forwarded = server.clock.advance(0);
    while (receiver.hits.length < 1) await Bun.sleep(1);
    await replay(eventId);
    slow.resolve(500);
    await forwarded;
    const event = await eventOf(account, bucketId, eventId);
    expect(event).toMatchObject({ status: "delivered", attempts: 1 });
    expect(event.attempt_log.map(({ kind, response_status }) => [kind, response_status])).toEqual([
      ["replay", 200],
      ["forward", 500],
    ]);
  });

  test("are deleted with their event, and none is added afterwards", async () => {
    const before = rows();
    await accepted(server, bucketId, "{}");
    await server.clock.advance(0);
    const slow = Promise.withResolvers<number>();
    receiver.respond = () => slow.promise;
    await accepted(server, bucketId, "{}");
    const forwarded = server.clock.advance(0);
    while (receiver.hits.length < 2) await Bun.sleep(1);
    expect(rows()).toBe(before + 1);
    const gone = await account.delete(`/v1/catch/${bucketId}/events?before=2999-01-01T00:00:00Z`);
    expect(gone.body).toEqual({ deleted_count: 2 });
    slow.resolve(200);
    await forwarded;
    expect(rows()).toBe(before);
  });

  test("are deleted with their bucket", async () => {
    const before = rows();
    await accepted(server, bucketId, "{}");
    await server.clock.advance(0);
    expect(rows()).toBe(before + 1);
    await account.delete(`/v1/catch/buckets/${bucketId}`);
    await server.clock.advance(0);
    expect(rows()).toBe(before);
  });
});
