import { describe, expect, test } from "bun:test";
import "@shopify/shopify-api/adapters/web-api";
import { verify as verifyLikeGithub } from "@octokit/webhooks-methods";
import { ApiVersion, shopifyApi } from "@shopify/shopify-api";
import { verifyKey } from "discord-interactions";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { PREFIX_LENGTH_MAX } from "../../../../src/areas/relay/endpoints/signature.ts";
import {
  TEXT_SECRET_LENGTH_MAX,
  TEXT_SECRET_LENGTH_MIN,
} from "../../../../src/kernel/outbound/signature-schemes.ts";
import { expectError } from "../../../support/errors.ts";
import { customerOf, OWNER } from "../../../support/portal.ts";
import type { Received } from "../../../support/webhook-sink.ts";
import { messagingStage } from "../../relay/messages-support.ts";
import { ingest, newBucket, setState } from "../support.ts";

const { stage, messaging } = messagingStage();

const PATH = "/v1/relay/endpoints";
const DAY_MS = 86_400_000;
const OLD = "old secret, of 8 to 256 characters";
const NEW = "shhh, the new one";
const HEX = { scheme: "hmac-sha256-hex", header: "X-Hub-Signature-256", prefix: "sha256=" };
const STRIPE = { scheme: "stripe", header: "Stripe-Signature" };
const WHSEC = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
const WHSK = `whsk_${Buffer.alloc(32, 7).toString("base64")}`;

/** Sends a message to the only endpoint. Returns the request that it received. */
async function received(): Promise<Received> {
  await messaging.send({ n: 1, name: "ü" });
  await messaging.settle();
  const [request] = stage.sink.take();
  if (request === undefined) throw new Error("nothing was received");
  return request;
}
const header = ({ headers }: Received, name: string) => headers.get(name) ?? "";
const rotate = async (id: string, secret: string) =>
  expect((await stage.account.post(`${PATH}/${id}/secret/rotate`, { secret })).status).toBe(200);
const stripe = new Stripe("sk_test_1");
/** Whether Stripe's library accepts a request at the time that the clock of the test shows. */
const isStripe = async (request: Received, secret: string): Promise<boolean> => {
  const signed = header(request, "Stripe-Signature");
  const now = stage.server.clock.now();
  try {
    await stripe.webhooks.constructEventAsync(request.body, signed, secret, 300, undefined, now);
    return true;
  } catch {
    return false;
  }
};

/** Whether a receiver of Ed25519 signatures accepts a request. */
function isEd25519({ headers, body }: Received, publicKey: string): Promise<boolean[]> {
  const [id, time] = [headers.get("webhook-id"), headers.get("webhook-timestamp")];
  const signatures = (headers.get("webhook-signature") ?? "").split(" ");
  const key = Buffer.from(publicKey.replace("whpk_", ""), "base64").toString("hex");
  return Promise.all(
    signatures.map((one) => {
      expect(one).toStartWith("v1a,");
      const hex = Buffer.from(one.slice("v1a,".length), "base64").toString("hex");
      return verifyKey(body, hex, `${id}.${time}.`, key);
    }),
  );
}

describe("the signature that a receiver knows from another sender", () => {
  test("hmac-sha256-hex with a prefix, like GitHub's; only it is sent, with id and time", async () => {
    await messaging.endpoint("/a", { signature: HEX, secret: OLD });
    const request = await received();
    expect(await verifyLikeGithub(OLD, request.body, header(request, "X-Hub-Signature-256"))).toBe(true);
    expect(header(request, "webhook-id")).toStartWith("msg_");
    expect(Number(header(request, "webhook-timestamp"))).toBe(Math.floor(stage.server.clock.now() / 1_000));
    expect(request.headers.has("webhook-signature")).toBe(false);
  });

  test("hmac-sha256-base64, like Shopify's", async () => {
    const headers = {
      "X-Shopify-Topic": "orders/create",
      "X-Shopify-Shop-Domain": "a.myshopify.com",
      "X-Shopify-API-Version": "2026-01",
      "X-Shopify-Webhook-Id": "1",
    };
    const signature = { scheme: "hmac-sha256-base64", header: "X-Shopify-Hmac-Sha256" };
    await messaging.endpoint("/a", { signature, secret: OLD, headers });
    const request = await received();
    const shopify = shopifyApi({
      apiKey: "a",
      apiSecretKey: OLD,
      hostName: "a.example.com",
      apiVersion: ApiVersion.January26,
      isEmbeddedApp: false,
    });
    const rawRequest = { method: "POST", url: "https://a.example.com/", headers: request.headers };
    const valid = await shopify.webhooks.validate({ rawBody: request.body, rawRequest });
    expect(valid).toMatchObject({ valid: true });
  });

  test("stripe, with a signature by each valid secret", async () => {
    const id = await messaging.endpoint("/a", { signature: STRIPE, secret: OLD });
    const first = await received();
    expect([await isStripe(first, OLD), await isStripe(first, NEW)]).toEqual([true, false]);
    await rotate(id, NEW);
    const both = await received();
    expect([await isStripe(both, OLD), await isStripe(both, NEW)]).toEqual([true, true]);
    expect(header(both, "Stripe-Signature")).toMatch(/^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/);
    await stage.server.clock.advance(DAY_MS);
    const last = await received();
    expect([await isStripe(last, OLD), await isStripe(last, NEW)]).toEqual([false, true]);
  });

  test("hmac with one signature signs with the newest secret, or with the old one until it expires", async () => {
    const verifies = async (secret: string) => {
      const request = await received();
      return verifyLikeGithub(secret, request.body, header(request, "X-Hub-Signature-256"));
    };
    const id = await messaging.endpoint("/a", { signature: HEX, secret: OLD });
    await rotate(id, NEW);
    expect(await verifies(NEW)).toBe(true);
    await messaging.patch(id, { signature: { ...HEX, grace: "old" } });
    expect(await verifies(OLD)).toBe(true);
    await stage.server.clock.advance(DAY_MS);
    expect(await verifies(NEW)).toBe(true);
  });

  test("with a timestamp header, the time is signed before the body", async () => {
    const signature = { ...HEX, timestamp_header: "X-Time" };
    await messaging.endpoint("/a", { signature, secret: OLD });
    const request = await received();
    const time = header(request, "X-Time");
    expect(time).toBe(header(request, "webhook-timestamp"));
    const signed = header(request, "X-Hub-Signature-256");
    expect(await verifyLikeGithub(OLD, `${time}.${request.body}`, signed)).toBe(true);
  });

  test("replaces a header of the endpoint, and of the sender of a forwarded event, in any spelling", async () => {
    const endpoint_id = await messaging.endpoint("/a", {
      signature: HEX,
      secret: OLD,
      headers: { "x-hub-signature-256": "mine" },
    });
    const { id } = await newBucket(stage.account, { targets: [{ endpoint_id }], target_url: null });
    await setState(stage.account, id, "live");
    await ingest(stage.server, id, '{"a":1}', { "X-HUB-Signature-256": "sha256=00" });
    await messaging.settle();
    const [request] = stage.sink.take();
    if (request === undefined) throw new Error("nothing was received");
    const value = header(request, "x-hub-signature-256");
    expect(await verifyLikeGithub(OLD, '{"a":1}', value)).toBe(true);
  });

  test("the secret that is made by default is the text of the key", async () => {
    const { body } = await stage.account.post(PATH, { url: stage.sink.url("/a"), signature: HEX });
    const request = await received();
    const secret = String(body["secret"]);
    expect(await verifyLikeGithub(secret, request.body, header(request, "X-Hub-Signature-256"))).toBe(true);
  });
});

describe("ed25519", () => {
  test("signs with a private key that no response contains", async () => {
    const made = await stage.account.post(PATH, {
      url: stage.sink.url("/a"),
      signature: { scheme: "ed25519" },
      owner_id: OWNER,
    });
    expect(made.status, made.text).toBe(201);
    const { endpoint_id, public_key } = made.body as { endpoint_id: string; public_key: string };
    expect(public_key).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/);
    expect("secret" in made.body).toBe(false);
    const path = `${PATH}/${endpoint_id}`;
    const rotated = await stage.account.post(`${path}/secret/rotate`, {});
    const next = String(rotated.body["public_key"]);
    const customer = await customerOf(stage.server, stage.account);
    const ofPortal = `/v1/relay/portal/endpoints/${endpoint_id}`;
    const responses = [
      made,
      rotated,
      await stage.account.get(path),
      await stage.account.get(PATH),
      await customer.get(ofPortal),
      await customer.post(`${ofPortal}/secret`, {}),
    ];
    for (const { status, text } of responses) {
      expect(status, text).toBeLessThan(300);
      expect(text).not.toContain("whsk_");
    }
    for (const { body } of [responses[2], responses[4], responses[5]].flatMap((one) => one ?? []))
      expect(body["public_key"]).toBe(next);
    await messaging.send({ n: 1 }, { owner_id: OWNER });
    await messaging.settle();
    const [request] = stage.sink.take();
    if (request === undefined) throw new Error("nothing was received");
    expect(await isEd25519(request, next)).toEqual([true, false]);
    expect(await isEd25519(request, public_key)).toEqual([false, true]);
  });

  test("signs with a key that is given, also after a restart", async () => {
    const id = await messaging.endpoint("/a", { signature: { scheme: "ed25519" }, secret: WHSK });
    const { public_key } = await messaging.read(id);
    await stage.restart();
    expect(await isEd25519(await received(), String(public_key))).toEqual([true]);
  });

  test("is made when an endpoint changes to it; back again, the secret must be given", async () => {
    const id = await messaging.endpoint("/a");
    await messaging.patch(id, { signature: { scheme: "ed25519" } });
    const { public_key } = await messaging.read(id);
    // The previous secret is of no use to this scheme.
    expect(await isEd25519(await received(), String(public_key))).toEqual([true]);
    const back = { signature: null };
    const answer = await stage.account.patch(`${PATH}/${id}`, back);
    expectError(answer, "validation_error");
    expect(Object.keys(answer.body["fields"] as object)).toEqual(["secret"]);
    await messaging.patch(id, { ...back, secret: WHSEC });
    const request = await received();
    const standard = new Webhook(WHSEC);
    const headers = Object.fromEntries(request.headers);
    expect(() => standard.verify(request.body, headers)).toThrow("too old");
    const at = new Date(1_000 * Number(header(request, "webhook-timestamp")));
    const [newest] = header(request, "webhook-signature").split(" ");
    expect(newest).toBe(standard.sign(header(request, "webhook-id"), at, request.body));
    expect((await messaging.read(id))["public_key"]).toBeNull();
  });
});

test("an event above 1 MiB is not sent to an endpoint that must read all of it", async () => {
  stage.account = await stage.server.account({ tier: "scale" });
  const targets: { endpoint_id: string }[] = [];
  for (const terms of [{ signature: { scheme: "ed25519" } }, { template: { id: { $: "/id" } } }, {}])
    targets.push({ endpoint_id: await messaging.endpoint("/a", terms) });
  const { id } = await newBucket(stage.account, { targets, target_url: null });
  await setState(stage.account, id, "live");
  const body = JSON.stringify({ text: "x".repeat(1024 * 1024) });
  await ingest(stage.server, id, body);
  await messaging.settle();
  const { deliveries } = (await stage.account.get("/v1/relay")).body as { deliveries: object[] };
  const failed = { status: "failed", attempts: 0, error: "the body is above 1 MiB" };
  expect(deliveries.toReversed()).toMatchObject([failed, failed, { status: "delivered", error: null }]);
  expect(stage.sink.take().map((received) => received.body === body)).toEqual([true]);
});

describe("a change of the scheme", () => {
  test("keeps a secret that fits, and needs another one otherwise", async () => {
    const id = await messaging.endpoint("/a", { secret: WHSEC });
    await messaging.patch(id, { signature: STRIPE });
    expect(await isStripe(await received(), WHSEC)).toBe(true);
    await messaging.patch(id, { signature: STRIPE, secret: OLD });
    const answer = await stage.account.patch(`${PATH}/${id}`, { signature: { scheme: "standard" } });
    expectError(answer, "validation_error");
    expect(await isStripe(await received(), OLD)).toBe(true);
  });
});

describe("rejected with 400", () => {
  const cases: readonly (readonly [name: string, change: object, field: string])[] = [
    ["an unknown scheme", { signature: { scheme: "md5" } }, "signature.scheme"],
    ["no header", { signature: { scheme: "stripe" } }, "signature.header"],
    ...["webhook-id", "Webhook_Other", "Content-Type", "user-agent", "Connection", "Host", "X-Svc-A"].map(
      (name) => [`the header ${name}`, { signature: { ...HEX, header: name } }, "signature.header"] as const,
    ),
    ["a header that is no name", { signature: { ...HEX, header: "a b" } }, "signature.header"],
    [
      "a time in a header of its own",
      { signature: { ...HEX, timestamp_header: "te" } },
      "signature.timestamp_header",
    ],
    [
      "both in one header",
      { signature: { ...HEX, timestamp_header: "x-hub-signature-256" } },
      "signature.timestamp_header",
    ],
    ["an empty prefix", { signature: { ...HEX, prefix: "" } }, "signature.prefix"],
    [
      "a long prefix",
      { signature: { ...HEX, prefix: "p".repeat(PREFIX_LENGTH_MAX + 1) } },
      "signature.prefix",
    ],
    ["a prefix for stripe", { signature: { ...STRIPE, prefix: "a" } }, "signature.prefix"],
    ["a header for ed25519", { signature: { scheme: "ed25519", header: "a" } }, "signature.header"],
    ["a grace for ed25519", { signature: { scheme: "ed25519", grace: "old" } }, "signature.grace"],
    ["a short secret", { signature: HEX, secret: "s".repeat(TEXT_SECRET_LENGTH_MIN - 1) }, "secret"],
    ["a long secret", { signature: HEX, secret: "s".repeat(TEXT_SECRET_LENGTH_MAX + 1) }, "secret"],
    ["a secret with a line break", { signature: HEX, secret: "12345678\n" }, "secret"],
    ["a text for a private key", { signature: { scheme: "ed25519" }, secret: OLD }, "secret"],
    ["a private key for a text", { signature: HEX, secret: WHSK }, "secret"],
    ["a text for standard", { signature: { scheme: "standard" }, secret: OLD }, "secret"],
  ];
  test.each(cases)("%s", async (_, change, field) => {
    const answer = await stage.account.post(PATH, { url: "https://example.com/", ...change });
    expectError(answer, "validation_error");
    expect(Object.keys(answer.body["fields"] as object)).toEqual([field]);
  });

  test("but the longest and the shortest are accepted", async () => {
    for (const secret of ["s".repeat(TEXT_SECRET_LENGTH_MIN), "s".repeat(TEXT_SECRET_LENGTH_MAX)]) {
      const signature = { ...HEX, prefix: "p".repeat(PREFIX_LENGTH_MAX) };
      const answer = await stage.account.post(PATH, { url: "https://example.com/", signature, secret });
      expect(answer.status, answer.text).toBe(201);
      expect(answer.body).toMatchObject({ signature, secret, public_key: null });
    }
  });
});
