import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { expectError } from "../../../support/errors.ts";
import { startTestServer } from "../../../support/server.ts";
import { accepted, eventOf, type Hit, Receiver } from "../support.ts";
import { forwardingStage } from "./forwarding-stage.ts";

const stage = forwardingStage();
const { advance, live, send } = stage;

describe("the target of a forward", () => {
  test("is the bucket's target at the time of the attempt", async () => {
    const other = new Receiver();
    try {
      await send("one");
      await stage.account.patch(`/v1/catch/buckets/${stage.bucket.id}`, {
        target_url: other.url,
        state: "live",
      });
      await advance(0);
      expect(stage.receiver.texts).toEqual([]);
      expect(other.texts).toEqual(["one"]);
    } finally {
      await other.stop();
    }
  });

  test("is never an address that is no longer permitted", async () => {
    await live();
    const event = await send("one");
    const strict = await startTestServer({ manualClock: true });
    try {
      // The same data under an operator who permits no private addresses.
      await Promise.all([stage.server.server.stop(), strict.server.stop()]);
      for (const file of ["ninefold.db", "master.key"]) {
        copyFileSync(join(stage.server.folder, file), join(strict.folder, file));
      }
      await Promise.all([stage.server.start(), strict.start()]);
      const owner = strict.client(stage.account.key);
      const replay = await owner.post(`/v1/catch/${stage.bucket.id}/events/${event}/replay`);
      expect(expectError(replay, "catch.replay_failed").error.message).toContain(
        "must have a public address",
      );
      await strict.clock.advance(31_000);
      expect(await eventOf(owner, stage.bucket.id, event)).toMatchObject({
        status: "failed",
        attempts: 4,
        response_status: null,
        error:
          "blocked: the URL must have a public address. To allow loopback addresses, start the server with --allow-private-targets loopback",
      });
      expect(stage.receiver.hits).toEqual([]);
    } finally {
      await strict.stop();
    }
  });
});

describe("a forwarded request", () => {
  const signatureOf = (hit: Hit | undefined) => hit?.headers.get("x-svc-signature") ?? "";

  test("is a POST with the exact bytes, the content type, and a valid signature", async () => {
    await live();
    const bytes = new Uint8Array([0, 255, 10, 13, 34, 128]);
    await advance(123);
    const receivedAt = stage.server.clock.now();
    const id = await accepted(stage.server, stage.bucket.id, bytes, {
      "content-type": "application/x-anything; a=1",
    });
    await advance(2_345);
    const [hit] = stage.receiver.hits;
    expect(hit?.method).toBe("POST");
    expect(hit?.body.equals(Buffer.from(bytes))).toBe(true);
    expect(hit?.headers.get("content-type")).toBe("application/x-anything; a=1");
    expect(hit?.headers.get("user-agent")).toBe("Svc-Relay/1.0");
    expect(hit?.headers.get("x-svc-event-id")).toBe(id);
    expect(hit?.headers.get("x-svc-timestamp")).toBe(String(receivedAt));
    const [, seconds, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signatureOf(hit)) ?? [];
    expect(Number(seconds)).toBe(Math.floor(receivedAt / 1000));
    const expected = createHmac("sha256", stage.account.key ?? "")
      .update(`${seconds}.`)
      .update(bytes)
      .digest("hex");
    expect(hex).toBe(expected);
  });

  test("has an empty body, and no content type, if the event has none", async () => {
    await live();
    await stage.server.client(null).send("POST", `/v1/catch/${stage.bucket.id}`);
    await advance(0);
    expect(stage.receiver.hits[0]?.body.length).toBe(0);
    expect(stage.receiver.hits[0]?.headers.has("content-type")).toBe(false);
  });

  test("has the provider's headers and no others", async () => {
    await stage.account.patch(`/v1/catch/buckets/${stage.bucket.id}`, { state: "live" });
    await accepted(stage.server, stage.bucket.id, "{}", {
      "x-hub-signature-256": "sha256=00",
      "x-github-event": "push",
      "x-github-delivery": "d-1",
      "stripe-signature-not": "x",
      authorization: "Bearer theirs",
      cookie: "a=b",
      "x-svc-event-id": "forged",
      "x-svc-signature": "forged",
      "user-agent": "GitHub-Hookshot/1",
      "x-custom": "1",
    });
    await advance(0);
    const names = [...(stage.receiver.hits[0]?.headers.keys() ?? [])].filter(
      (name) => !name.startsWith("x-svc-"),
    );
    expect(names.toSorted()).toEqual([
      ...["accept-encoding", "connection", "content-length", "content-type", "host", "user-agent"],
      ...["webhook-id", "webhook-signature", "webhook-timestamp"],
      ...["x-github-delivery", "x-github-event", "x-hub-signature-256", "x-ninefold-hops"],
    ]);
    expect(stage.receiver.hits[0]?.headers.get("x-svc-event-id")).toMatch(/^evt_/);
    expect(signatureOf(stage.receiver.hits[0])).toMatch(/^t=\d+,v1=[0-9a-f]{64}$/);
  });

  test("has the signature headers of Stripe, Shopify and Svix", async () => {
    await live();
    const sets: Record<string, string>[] = [
      { "stripe-signature": "t=1,v1=0" },
      { "x-shopify-hmac-sha256": "AAAA", "x-shopify-topic": "orders/create" },
      { "svix-id": "msg_1", "svix-timestamp": "1", "svix-signature": "v1,AAAA" },
    ];
    for (const headers of sets) await accepted(stage.server, stage.bucket.id, "{}", headers);
    await advance(0);
    for (const [index, headers] of sets.entries()) {
      for (const [name, value] of Object.entries(headers)) {
        expect(stage.receiver.hits[index]?.headers.get(name)).toBe(value);
      }
    }
  });

  test("omits invalid headers", async () => {
    await live();
    const headers = { "stripe-signature": "x".repeat(5_000), "content-type": "text/\u00e9" };
    await accepted(stage.server, stage.bucket.id, "one", headers);
    await advance(0);
    expect(stage.receiver.texts).toEqual(["one"]);
    expect(stage.receiver.hits[0]?.headers.has("stripe-signature")).toBe(false);
    expect(stage.receiver.hits[0]?.headers.has("content-type")).toBe(false);
  });

  test("is signed with the account's newest key", async () => {
    await live();
    const rotated = await stage.account.post("/v1/keys/rotate");
    await send("one");
    await advance(0);
    const seconds = /^t=(\d+)/.exec(signatureOf(stage.receiver.hits[0]))?.[1];
    const expected = createHmac("sha256", String(rotated.body["key"])).update(`${seconds}.one`).digest("hex");
    expect(signatureOf(stage.receiver.hits[0])).toBe(`t=${seconds},v1=${expected}`);
  });
});
