import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { sign as signLikeGithub } from "@octokit/webhooks-methods";
import Stripe from "stripe";
import { Webhook } from "svix";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { sendRaw } from "../../../support/raw-http.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";
import { balanceOf, bucketOf, eventOf, ingest, newBucket, stripeSignature } from "../support.ts";

let server: TestServer;
beforeAll(async () => {
  // Many hostile requests: the bucket's limit is tested elsewhere.
  const scale = { ...DEFAULT_TIERS.scale, catchPerMinute: 1e6, requestsPerMinute: 1e6 };
  server = await startTestServer({ manualClock: true, config: { tiers: { ...DEFAULT_TIERS, scale } } });
});
afterAll(() => server.stop());

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

    test("valid in a bucket without a provider, detected by headers", async () => {
      const account = await server.account();
      const { id } = await newBucket(account, { signing_secret: secret });
      const answer = await ingest(server, id, PAYLOAD, await sign(secret));
      expect(answer.verification).toBe("valid");
      expect((await eventOf(account, id, String(answer.event_id))).provider).toBe(provider);
    });

    test("invalid with another secret: stored, failed, and charged", async () => {
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

    test("invalid without a signature, if provider and secret are set", async () => {
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

    test("a changed secret applies to the next request, and after a restart", async () => {
      const account = await server.account();
      const { id } = await newBucket(account, { provider, signing_secret: OTHER_SECRET });
      expect((await ingest(server, id, PAYLOAD, await sign(secret))).verification).toBe("invalid");
      await account.patch(`/v1/catch/buckets/${id}`, { signing_secret: secret });
      expect((await ingest(server, id, PAYLOAD, await sign(secret))).verification).toBe("valid");
      await server.restart();
      expect((await ingest(server, id, PAYLOAD, await sign(secret))).verification).toBe("valid");
    });
  });

  test("a bucket of one provider rejects the signature of another", async () => {
    const { id } = await newBucket(await server.account(), { provider: "stripe", signing_secret: "s" });
    const headers = { "x-hub-signature-256": await signLikeGithub("s", PAYLOAD) };
    expect((await ingest(server, id, PAYLOAD, headers)).verification).toBe("invalid");
  });

  test("a repeated signature header is joined, and one valid signature is enough", async () => {
    const { id } = await newBucket(await server.account(), { provider: "github", signing_secret: "s" });
    const good = await signLikeGithub("s", "{}");
    const answer = await sendRaw(server.url, [
      `POST /v1/catch/${id} HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256=00\r\nX-Hub-Signature-256: ${good}\r\n` +
        "Content-Length: 2\r\n\r\n{}",
    ]);
    expect(answer?.body["verification"]).toBe("valid");
  });

  test("old and future signatures, by the server's clock", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, { provider: "stripe", signing_secret: "s" });
    const header = { "stripe-signature": stripeSignature(server, "s", PAYLOAD) };
    await server.clock.advance(300_000);
    expect((await ingest(server, id, PAYLOAD, header)).verification).toBe("valid");
    await server.clock.advance(1_000);
    expect((await ingest(server, id, PAYLOAD, header)).verification).toBe("invalid");
  });
});
