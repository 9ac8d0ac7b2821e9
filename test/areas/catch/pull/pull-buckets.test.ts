import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { expectError } from "../../../support/errors.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";
import { accepted, bucketOf, ingest, LOOPBACK_ALLOWED, newBucket, Receiver, setState } from "../support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
});
afterAll(() => server.stop());

const PULL = { target_url: null, delivery: "pull" };

describe("a pull bucket", () => {
  test("needs no target and forwards nothing; after a change to push it needs one, and sends pending events", async () => {
    const account = await server.account();
    const receiver = new Receiver();
    try {
      const bucket = await newBucket(account, PULL);
      expect(bucket).toMatchObject({ target_url: null, delivery: "pull", state: "paused" });
      expect(bucket.hint).toBeUndefined();
      await setState(account, bucket.id, "live");
      await accepted(server, bucket.id, "1");
      await server.clock.advance(60_000);
      expect((await bucketOf(account, bucket.id)).events.pending).toBe(1);
      const path = `/v1/catch/buckets/${bucket.id}`;
      expectError(await account.patch(path, { delivery: "push" }), "validation_error");
      const pushed = await account.patch(path, { delivery: "push", target_url: receiver.url });
      expect(pushed.body).toMatchObject({ delivery: "push", target_url: receiver.url });
      await server.clock.advance(0);
      expect(receiver.texts).toEqual(["1"]);
      expectError(await account.patch(path, { target_url: null }), "validation_error");
      await account.patch(path, { delivery: "pull" });
      await accepted(server, bucket.id, "2");
      await server.clock.advance(60_000);
      expect(receiver.texts).toEqual(["1"]);
      expect((await bucketOf(account, bucket.id)).events).toEqual({ pending: 1, delivered: 1, failed: 0 });
    } finally {
      await receiver.stop();
    }
  });

  test("ends retries after a change to pull, and keeps pending events over a restart", async () => {
    const account = await server.account();
    const receiver = new Receiver();
    try {
      receiver.respond = () => 500;
      const { id } = await newBucket(account, { target_url: receiver.url });
      await setState(account, id, "live");
      await accepted(server, id, "1");
      await server.clock.advance(0);
      await account.patch(`/v1/catch/buckets/${id}`, { delivery: "pull" });
      await server.restart();
      await server.clock.advance(60_000);
      expect(receiver.hits.length).toBe(1);
      const after = await bucketOf(server.client(account.key), id);
      expect(after).toMatchObject({ delivery: "pull", events: { pending: 1 } });
    } finally {
      await receiver.stop();
    }
  });

  test("replays nothing without a target", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, PULL);
    await setState(account, id, "live");
    const event = await accepted(server, id, "1");
    expectError(await account.post(`/v1/catch/${id}/events/${event}/replay`), "conflict");
    expectError(await account.post("/v1/catch/buckets", { delivery: "push" }), "validation_error");
    expectError(await account.post("/v1/catch/buckets", { delivery: "both" }), "validation_error");
    expect((await ingest(server, id, "2")).status).toBe("accepted");
  });
});
