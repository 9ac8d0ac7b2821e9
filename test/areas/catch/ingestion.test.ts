import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { sign as signLikeGithub } from "@octokit/webhooks-methods";
import fc from "fast-check";
import Stripe from "stripe";
import { Webhook } from "svix";
import { BODY_BYTES_MAX } from "../../../src/kernel/http/body.ts";
import { DEFAULT_TIERS } from "../../../src/kernel/tiers.ts";
import { UUID_V7 } from "../../support/errors.ts";
import { sendRaw } from "../../support/raw-http.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import {
  accepted,
  balanceOf,
  bucketOf,
  eventOf,
  eventsOf,
  ingest,
  newBucket,
  stripeSignature,
} from "./support.ts";

let server: TestServer;
beforeAll(async () => {
  // Hostile requests are many: the bucket's limit has tests of its own.
  const scale = { ...DEFAULT_TIERS.scale, catchPerMinute: 1e6, requestsPerMinute: 1e6 };
  server = await startTestServer({ manualClock: true, config: { tiers: { ...DEFAULT_TIERS, scale } } });
});
afterAll(() => server.stop());

const EVENT_ID = /^evt_[0-9a-v]{11}$/;

/** The event with everything that was received. */
async function wholeEvent(account: AccountClient, bucketId: string, eventId: string) {
  const { body } = await account.get(`/v1/catch/${bucketId}/events/${eventId}`);
  return {
    ...body,
    headers: body["headers"] as Record<string, string>,
    bytes: Buffer.from(String(body["payload_base64"]), "base64"),
  };
}

describe("what becomes of a request", () => {
  test("accepted: stored with its price, and answered with the event's id", async () => {
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

  test("ignored: a bucket that does not exist, in any spelling; nobody pays", async () => {
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
      expect({ id, http: answer?.status, ...answer?.body }).toEqual({
        ...{ id, http: 200 },
        ...{ status: "ignored", verification: "none" },
      });
    }
  });

  test("ignored: the bucket of a suspended account, until it is one no more", async () => {
    const account = await server.account({ balance: 10 });
    const { id } = await newBucket(account);
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: true });
    expect(await ingest(server, id)).toEqual({ status: "ignored", verification: "none" });
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: false });
    expect((await ingest(server, id)).status).toBe("accepted");
    expect((await eventsOf(account, id)).length).toBe(1);
  });

  test("insufficient_balance: nothing is stored, and it works again after a refill", async () => {
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

  test("many at once on a small balance: as many are accepted as were paid for", async () => {
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

  test("too_large: one byte more than a mebibyte; a mebibyte to the byte is taken", async () => {
    const account = await server.account({ balance: 10 });
    const { id } = await newBucket(account);
    const most = new Uint8Array(BODY_BYTES_MAX).fill(7);
    const event = await accepted(server, id, most);
    const { bytes } = await wholeEvent(account, id, event);
    expect(bytes.equals(Buffer.from(most))).toBe(true);
    const answer = await server.client(null).post(`/v1/catch/${id}`, new Uint8Array(BODY_BYTES_MAX + 1));
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ status: "too_large", verification: "none" });
    expect((await bucketOf(account, id)).events.pending).toBe(1);
    // One for the event, one for reading it.
    expect(await balanceOf(account)).toBe(8);
  });

  test("too_large: also when the length is not said beforehand", async () => {
    const account = await server.account({ balance: 10 });
    const { id } = await newBucket(account);
    const piece = "x".repeat(64 * 1024);
    const chunks = Array.from({ length: 17 }, () => `${piece.length.toString(16)}\r\n${piece}\r\n`);
    const head = `POST /v1/catch/${id} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const answer = await sendRaw(server.url, [head, ...chunks, "0\r\n\r\n"]);
    expect(answer?.body).toEqual({ status: "too_large", verification: "none" });
    expect((await bucketOf(account, id)).events.pending).toBe(0);
  });

  test("the operator's own buckets pay nothing and have no limit", async () => {
    const { id } = await newBucket(server.operator);
    for (let count = 0; count < 50; count += 1) expect((await ingest(server, id)).status).toBe("accepted");
    expect(await balanceOf(server.operator)).toBe(0);
  });
});

describe("the bucket's limit", () => {
  test("has the documented figures", () => {
    const { free, starter, pro, scale } = DEFAULT_TIERS;
    const figures = [free, starter, pro, scale].map(({ catchPerMinute }) => catchPerMinute);
    expect(figures).toEqual([60, 300, 600, 1_800]);
  });

  test.each(["free", "starter"] as const)(
    "tier %s: its figure a minute, then panic at five times",
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

  test("step by step: limit, refusal, panic, its end; another bucket never minds", async () => {
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
    // Refusals cost nothing, and neither did they leave events.
    expect(await balanceOf(account)).toBe(1_000 - 180);
    expect(Object.values((await bucketOf(account, id)).events)).toEqual([100, 0, 0]);
  });

  test("a change of tier works for the next request", async () => {
    const account = await server.account({ tier: "free", balance: 1_000 });
    const { id } = await newBucket(account);
    for (let count = 0; count < 61; count += 1) await ingest(server, id);
    expect((await ingest(server, id)).status).toBe("rate_limited");
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { tier: "starter" });
    expect((await ingest(server, id)).status).toBe("accepted");
  });
});

describe("signatures of the providers, over the wire", () => {
  const PAYLOAD = '{"id":"evt_1","name":"Ünïcödé 😀","amount":4200}';
  const SVIX_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const stripe = new Stripe("sk_test_unused");
  const seconds = () => Math.floor(server.clock.now() / 1000);
  const PROVIDERS = [
    {
      provider: "stripe",
      secret: "whsec_stripe",
      sign: async (secret: string): Promise<Record<string, string>> => ({
        "stripe-signature": await stripe.webhooks.generateTestHeaderStringAsync({
          payload: PAYLOAD,
          secret,
          timestamp: seconds(),
        }),
      }),
    },
    {
      provider: "github",
      secret: "It's a Secret",
      sign: async (secret: string): Promise<Record<string, string>> => ({
        "x-hub-signature-256": await signLikeGithub(secret, PAYLOAD),
        "x-github-event": "push",
      }),
    },
    {
      provider: "shopify",
      secret: "shpss_0123",
      sign: async (secret: string): Promise<Record<string, string>> => ({
        "x-shopify-hmac-sha256": createHmac("sha256", secret).update(PAYLOAD).digest("base64"),
      }),
    },
    {
      provider: "svix",
      secret: SVIX_SECRET,
      sign: async (secret: string): Promise<Record<string, string>> => ({
        "svix-id": "msg_1",
        "svix-timestamp": String(seconds()),
        "svix-signature": new Webhook(secret).sign("msg_1", new Date(server.clock.now()), PAYLOAD),
      }),
    },
  ] as const;
  const OTHER_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

  describe.each(PROVIDERS)("$provider", ({ provider, secret, sign }) => {
    test("valid in a bucket of this provider", async () => {
      const account = await server.account();
      const { id } = await newBucket(account, { provider, signing_secret: secret });
      const answer = await ingest(server, id, PAYLOAD, await sign(secret));
      expect(answer.verification).toBe("valid");
      const event = await eventOf(account, id, String(answer.event_id));
      expect(event).toMatchObject({ provider, verification: "valid", status: "pending", error: null });
    });

    test("valid in a bucket without a provider: the headers show it", async () => {
      const account = await server.account();
      const { id } = await newBucket(account, { signing_secret: secret });
      const answer = await ingest(server, id, PAYLOAD, await sign(secret));
      expect(answer.verification).toBe("valid");
      expect((await eventOf(account, id, String(answer.event_id))).provider).toBe(provider);
    });

    test("invalid with another secret: stored, failed, and paid like any other", async () => {
      const account = await server.account({ balance: 10 });
      const { id } = await newBucket(account, { provider, signing_secret: secret });
      const answer = await ingest(server, id, PAYLOAD, await sign(OTHER_SECRET));
      expect(answer).toMatchObject({ status: "accepted", verification: "invalid" });
      expect(await balanceOf(account)).toBe(9);
      const event = await eventOf(account, id, String(answer.event_id));
      expect(event).toMatchObject({ provider, verification: "invalid", status: "failed", attempts: 0 });
      expect(event.error).toBe("the signature is not valid");
      expect((await bucketOf(account, id)).events).toEqual({ pending: 0, delivered: 0, failed: 1 });
    });

    test("invalid without a signature, where provider and secret are set", async () => {
      const { id } = await newBucket(await server.account(), { provider, signing_secret: secret });
      expect((await ingest(server, id, PAYLOAD)).verification).toBe("invalid");
    });

    test("none without a secret; none without provider and headers", async () => {
      const account = await server.account();
      const unsecured = await newBucket(account, { provider });
      expect((await ingest(server, unsecured.id, PAYLOAD, await sign(secret))).verification).toBe("none");
      const unknown = await newBucket(account, { signing_secret: secret });
      expect((await ingest(server, unknown.id, PAYLOAD)).verification).toBe("none");
    });

    test("a changed secret works for the next request, and after a restart", async () => {
      const account = await server.account();
      const { id } = await newBucket(account, { provider, signing_secret: OTHER_SECRET });
      expect((await ingest(server, id, PAYLOAD, await sign(secret))).verification).toBe("invalid");
      await account.patch(`/v1/catch/buckets/${id}`, { signing_secret: secret });
      expect((await ingest(server, id, PAYLOAD, await sign(secret))).verification).toBe("valid");
      await server.restart();
      expect((await ingest(server, id, PAYLOAD, await sign(secret))).verification).toBe("valid");
    });
  });

  test("a bucket of one provider does not believe another's signature", async () => {
    const { id } = await newBucket(await server.account(), { provider: "stripe", signing_secret: "s" });
    const headers = { "x-hub-signature-256": await signLikeGithub("s", PAYLOAD) };
    expect((await ingest(server, id, PAYLOAD, headers)).verification).toBe("invalid");
  });

  test("a repeated signature header arrives as one, and one of its signatures is enough", async () => {
    const { id } = await newBucket(await server.account(), { provider: "github", signing_secret: "s" });
    const good = await signLikeGithub("s", "{}");
    const answer = await sendRaw(server.url, [
      `POST /v1/catch/${id} HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256=00\r\nX-Hub-Signature-256: ${good}\r\n` +
        "Content-Length: 2\r\n\r\n{}",
    ]);
    expect(answer?.body["verification"]).toBe("valid");
  });

  test("old and early signatures, by the server's clock", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, { provider: "stripe", signing_secret: "s" });
    const header = { "stripe-signature": stripeSignature(server, "s", PAYLOAD) };
    await server.clock.advance(300_000);
    expect((await ingest(server, id, PAYLOAD, header)).verification).toBe("valid");
    await server.clock.advance(1_000);
    expect((await ingest(server, id, PAYLOAD, header)).verification).toBe("invalid");
  });
});

describe("exactly what was sent is kept", () => {
  test("any bytes under any content type", async () => {
    const account = await server.account();
    const { id } = await newBucket(account);
    const type = fc.constantFrom(
      "application/json",
      "text/plain; charset=latin1",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/octet-stream",
      "nonsense",
    );
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), type, async (bytes, contentType) => {
        const event = await accepted(server, id, bytes, { "content-type": contentType });
        const kept = await wholeEvent(account, id, event);
        expect(kept.bytes.equals(Buffer.from(bytes))).toBe(true);
        expect(kept.headers["content-type"]).toBe(contentType);
      }),
      { numRuns: 60 },
    );
  });

  test("in pieces of unknown length", async () => {
    const account = await server.account();
    const { id } = await newBucket(account);
    const head = `POST /v1/catch/${id} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const answer = await sendRaw(server.url, [head, "3\r\na\r\n\r\n", "2\r\n\u0000\x7f\r\n0\r\n\r\n"]);
    const { bytes } = await wholeEvent(account, id, String(answer?.body["event_id"]));
    expect(bytes.toString("latin1")).toBe("a\r\n\u0000\x7f");
  });

  test("no body at all", async () => {
    const account = await server.account();
    const { id } = await newBucket(account);
    const answer = await sendRaw(server.url, [`POST /v1/catch/${id} HTTP/1.1\r\nHost: x\r\n\r\n`]);
    const kept = await wholeEvent(account, id, String(answer?.body["event_id"]));
    expect(kept.bytes.length).toBe(0);
  });

  test("the headers, repeated ones joined", async () => {
    const account = await server.account();
    const { id } = await newBucket(account);
    const answer = await sendRaw(server.url, [
      `POST /v1/catch/${id}?x=1 HTTP/1.1\r\nHost: x\r\nX-One: 1\r\nx-one: 2\r\n__proto__: p\r\nconstructor: c\r\n` +
        "X-Latin: \u00e9\r\nContent-Length: 0\r\n\r\n",
    ]);
    const { headers } = await wholeEvent(account, id, String(answer?.body["event_id"]));
    expect(headers["x-one"]).toBe("1, 2");
    expect(headers["constructor"]).toBe("c");
    expect(Object.getOwnPropertyDescriptor(headers, "__proto__")?.value).toBe("p");
    expect(typeof headers["x-latin"]).toBe("string");
  });
});

describe("hostile requests", () => {
  test("whatever is sent, the answer is 200 and nothing breaks", async () => {
    const account = await server.account();
    const secured = await newBucket(account, { signing_secret: "whsec_c2VjcmV0" });
    const open = await newBucket(account, { provider: "stripe", signing_secret: "s" });
    const names = fc.constantFrom(
      ...["stripe-signature", "x-hub-signature-256", "x-shopify-hmac-sha256", "svix-signature", "svix-id"],
      ...["svix-timestamp", "content-type", "content-encoding", "expect", "x-anything", "cookie", "accept"],
    );
    const value = fc.string({
      unit: fc.constantFrom(...'\t !=,;:v1t.0aZ/+\u00ff\u0080%"{'.split("")),
      maxLength: 120,
    });
    const headers = fc.array(fc.tuple(names, value), { maxLength: 12 });
    const bucket = fc.constantFrom(
      secured.id,
      open.id,
      "nobody-knows-000000",
      "%",
      "%zz",
      "%ff",
      "a b",
      "..;",
    );
    await fc.assert(
      fc.asyncProperty(bucket, headers, fc.uint8Array({ maxLength: 300 }), async (id, pairs, body) => {
        const lines = pairs.map(([name, text]) => `${name}: ${text}`.replace(/[\r\n]/g, ""));
        const path = id.replaceAll(" ", "+");
        const head = [
          `POST /v1/catch/${path} HTTP/1.1`,
          "Host: x",
          ...lines,
          `Content-Length: ${body.length}`,
        ];
        const answer = await sendRaw(server.url, [
          Buffer.from(`${head.join("\r\n")}\r\n\r\n`, "latin1"),
          body,
        ]);
        // Null: what is no HTTP at all gets none.
        if (answer !== null)
          expect({ head, status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
      }),
      { numRuns: 150 },
    );
    expect(server.logs.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("a client that goes away in the middle of its body leaves nothing behind", async () => {
    const account = await server.account({ balance: 10 });
    const { id } = await newBucket(account);
    const head = `POST /v1/catch/${id} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf of it`;
    expect(await sendRaw(server.url, [head], 100)).toBeNull();
    expect((await ingest(server, id)).status).toBe("accepted");
    expect((await bucketOf(account, id)).events.pending).toBe(1);
    expect(await balanceOf(account)).toBe(9);
    expect(server.logs.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("other methods on the public path are no endpoints", async () => {
    const { id } = await newBucket(await server.account());
    for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
      expect((await server.client(null).send(method, `/v1/catch/${id}`)).status).toBe(401);
      expect((await server.operator.send(method, `/v1/catch/${id}`)).status).toBe(404);
    }
  });
});

describe("nothing acknowledged is lost", () => {
  test("every accepted event is there after a restart, once, and the counts with them", async () => {
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
    // What comes after the restart sorts behind what came before.
    const next = await accepted(server, id, "{}", { "stripe-signature": stripeSignature(server, "s", "{}") });
    expect(next > (events.at(-1)?.id ?? "")).toBe(true);
  });
});
