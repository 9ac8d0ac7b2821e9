import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BODY_BYTES_MAX } from "../../../../src/kernel/http/operation.ts";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { UUID_V7 } from "../../../support/errors.ts";
import { sendRaw } from "../../../support/raw-http.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import {
  accepted,
  balanceOf,
  bucketOf,
  eventOf,
  eventsOf,
  ingest,
  newBucket,
  stripeSignature,
} from "../support.ts";

let server: TestServer;
beforeAll(async () => {
  // Many hostile requests: the bucket's limit is tested elsewhere.
  const scale = { ...DEFAULT_TIERS.scale, catchPerMinute: 1e6, requestsPerMinute: 1e6 };
  server = await startTestServer({ manualClock: true, config: { tiers: { ...DEFAULT_TIERS, scale } } });
});
afterAll(() => server.stop());

const EVENT_ID = /^evt_[0-9a-v]{11}$/;

/** The event with its payload. */
async function wholeEvent(account: AccountClient, bucketId: string, eventId: string) {
  const { body } = await account.get(`/v1/catch/${bucketId}/events/${eventId}`);
  return {
    ...body,
    headers: body["headers"] as Record<string, string>,
    bytes: Buffer.from(String(body["payload_base64"]), "base64"),
  };
}

describe("the result of a request", () => {
  test("accepted: stored, charged, and returned with the event's id", async () => {
    const account = await server.account({ balance: 10 });
    const { id } = await newBucket(account);
    const answer = await server.client(null).post(`/v1/catch/${id}`, { hello: "there" });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-request-id")).toMatch(UUID_V7);
    expect(answer.body).toEqual({
      status: "accepted",
      verification: "none",
      event_id: expect.stringMatching(EVENT_ID),
    });
    expect(await balanceOf(account)).toBe(9);
    const event = await eventOf(account, id, String(answer.body["event_id"]));
    expect(event).toMatchObject({ status: "pending", verification: "none", provider: null });
  });

  test("ignored: a bucket that does not exist, in any spelling, free of charge", async () => {
    const long = "x".repeat(5_000);
    for (const id of [
      "brave-otter-314159",
      "x",
      "%20",
      "a%2Fb",
      "a%00",
      "%f0%9f%92%a9",
      "%",
      "%zz",
      "%ff",
      long,
    ]) {
      const head = `POST /v1/catch/${id} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`;
      const answer = await sendRaw(server.url, [head]);
      expect(answer?.status, id).toBe(200);
      expect(answer?.body, id).toEqual({ status: "ignored", verification: "none" });
    }
  });

  test("ignored: the bucket of an account while it is suspended", async () => {
    const account = await server.account({ balance: 10 });
    const { id } = await newBucket(account);
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: true });
    expect(await ingest(server, id)).toEqual({ status: "ignored", verification: "none" });
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: false });
    expect((await ingest(server, id)).status).toBe("accepted");
    expect((await eventsOf(account, id)).length).toBe(1);
  });

  test("insufficient_balance: nothing is stored until a refill", async () => {
    const account = await server.account({ balance: 1 });
    const { id } = await newBucket(account);
    expect((await ingest(server, id)).status).toBe("accepted");
    expect(await ingest(server, id)).toEqual({ status: "insufficient_balance", verification: "none" });
    expect((await bucketOf(account, id)).events).toEqual({ pending: 1, delivered: 0, failed: 0 });
    await account.post("/v1/meter/refill", { amount: 1 });
    expect((await ingest(server, id)).status).toBe("accepted");
    expect(await balanceOf(account)).toBe(0);
    expect((await bucketOf(account, id)).events.pending).toBe(2);
  });

  test("concurrent requests with a small balance: as many are accepted as are charged", async () => {
    const account = await server.account({ balance: 7 });
    const { id } = await newBucket(account);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => ingest(server, id, `${index}`)),
    );
    expect(answers.filter(({ status }) => status === "accepted").length).toBe(7);
    expect(answers.filter(({ status }) => status === "insufficient_balance").length).toBe(13);
    expect((await bucketOf(account, id)).events.pending).toBe(7);
    expect(await balanceOf(account)).toBe(0);
  });

  test("too_large: one byte above the tier's 1 MiB; exactly 1 MiB is accepted", async () => {
    const account = await server.account({ balance: 10, tier: "free" });
    const { id } = await newBucket(account);
    const most = new Uint8Array(BODY_BYTES_MAX).fill(7);
    const event = await accepted(server, id, most);
    const { bytes } = await wholeEvent(account, id, event);
    expect(bytes.equals(Buffer.from(most))).toBe(true);
    const answer = await server.client(null).post(`/v1/catch/${id}`, new Uint8Array(BODY_BYTES_MAX + 1));
    expect(answer.status).toBe(413);
    expect(answer.body).toEqual({ status: "too_large", verification: "none" });
    const bucket = await bucketOf(account, id);
    expect(bucket.events.pending).toBe(1);
    expect([bucket.too_large, bucket.last_too_large_at]).toEqual([1, expect.any(String)]);
    // One for the event, one for reading it.
    expect(await balanceOf(account)).toBe(8);
  });

  test("too_large: also without a Content-Length", async () => {
    const account = await server.account({ balance: 10, tier: "free" });
    const { id } = await newBucket(account);
    const piece = "x".repeat(64 * 1024);
    const chunks = Array.from({ length: 17 }, () => `${piece.length.toString(16)}\r\n${piece}\r\n`);
    const head = `POST /v1/catch/${id} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const answer = await sendRaw(server.url, [head, ...chunks, "0\r\n\r\n"]);
    expect(answer?.status).toBe(413);
    expect(answer?.body).toEqual({ status: "too_large", verification: "none" });
    expect((await bucketOf(account, id)).events.pending).toBe(0);
  });

  test("the operator's buckets are free of charge and unlimited", async () => {
    const { id } = await newBucket(server.operator);
    for (let count = 0; count < 50; count += 1) expect((await ingest(server, id)).status).toBe("accepted");
    expect(await balanceOf(server.operator)).toBe(0);
  });
});

describe("the bucket's limit", () => {
  test("is the documented one", () => {
    const { free, starter, pro, scale } = DEFAULT_TIERS;
    const figures = [free, starter, pro, scale].map(({ catchPerMinute }) => catchPerMinute);
    expect(figures).toEqual([60, 300, 600, 1_800]);
  });

  test.each(["free", "starter"] as const)(
    "tier %s: its number per minute, then panic mode at five times that",
    async (tier) => {
      const limited = await startTestServer({ manualClock: true });
      try {
        const figure = DEFAULT_TIERS[tier].catchPerMinute;
        const account = await limited.account({ tier });
        const { id } = await newBucket(account);
        const counts = new Map<string, number>();
        for (let sent = 0; sent < 5 * figure + 10; sent += 100) {
          const burst = Array.from({ length: Math.min(100, 5 * figure + 10 - sent) }, () =>
            ingest(limited, id),
          );
          for (const { status } of await Promise.all(burst))
            counts.set(status, (counts.get(status) ?? 0) + 1);
        }
        expect(Object.fromEntries(counts)).toEqual({
          accepted: figure,
          rate_limited: 4 * figure,
          panic_mode: 10,
        });
      } finally {
        await limited.stop();
      }
    },
  );

  test("step by step: limit, rejection, panic mode, its end; another bucket is not affected", async () => {
    const account = await server.account({ tier: "free", balance: 1_000 });
    const { id } = await newBucket(account);
    const other = await newBucket(await server.account({ tier: "free" }));
    const send = async (count: number) => {
      const answers = [];
      for (let index = 0; index < count; index += 1) answers.push((await ingest(server, id)).status);
      return [...new Set(answers)];
    };
    expect(await send(60)).toEqual(["accepted"]);
    expect(await send(1)).toEqual(["rate_limited"]);
    expect(await ingest(server, id)).toEqual({ status: "rate_limited", verification: "none" });
    await server.clock.advance(59_999);
    expect(await send(1)).toEqual(["rate_limited"]);
    await server.clock.advance(1);
    expect(await send(60)).toEqual(["accepted"]);
    expect(await send(240)).toEqual(["rate_limited"]);
    expect(await ingest(server, id)).toEqual({ status: "panic_mode", verification: "none" });
    expect((await ingest(server, other.id)).status).toBe("accepted");
    await server.clock.advance(599_999);
    expect(await send(5)).toEqual(["panic_mode"]);
    await server.clock.advance(1);
    expect(await send(60)).toEqual(["accepted"]);
    expect(await send(1)).toEqual(["rate_limited"]);
    // Rejected requests are free of charge and leave no events.
    expect(await balanceOf(account)).toBe(1_000 - 180);
    expect(Object.values((await bucketOf(account, id)).events)).toEqual([100, 0, 0]);
  });

  test("follows a change of tier immediately", async () => {
    const account = await server.account({ tier: "free", balance: 1_000 });
    const { id } = await newBucket(account);
    for (let count = 0; count < 61; count += 1) await ingest(server, id);
    expect((await ingest(server, id)).status).toBe("rate_limited");
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { tier: "starter" });
    expect((await ingest(server, id)).status).toBe("accepted");
  });
});

describe("accepted events are not lost", () => {
  test("every accepted event is stored once after a restart, with correct counts", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, { provider: "stripe", signing_secret: "s" });
    const sent = await Promise.all(
      Array.from({ length: 100 }, (_, index) => {
        const body = JSON.stringify({ index });
        const signature = stripeSignature(server, index % 4 === 0 ? "wrong" : "s", body);
        return accepted(server, id, body, { "stripe-signature": signature });
      }),
    );
    await server.restart();
    const after = server.client(account.key);
    const events = await eventsOf(after, id);
    expect(events.map((event) => event.id)).toEqual(sent.toSorted());
    expect((await bucketOf(after, id)).events).toEqual({ pending: 75, delivered: 0, failed: 25 });
    // Events after the restart sort after those before it.
    const next = await accepted(server, id, "{}", { "stripe-signature": stripeSignature(server, "s", "{}") });
    expect(next > (events.at(-1)?.id ?? "")).toBe(true);
  });
});
