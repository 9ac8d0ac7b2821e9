import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import "@shopify/shopify-api/adapters/web-api";
import { LinearWebhookClient } from "@linear/sdk/webhooks";
import { Paddle } from "@paddle/paddle-node-sdk";
import { webhooks as polar } from "@polar-sh/sdk/2026-10";
import { EventWebhook } from "@sendgrid/eventwebhook";
import { ApiVersion, shopifyApi } from "@shopify/shopify-api";
import { verifyKey } from "discord-interactions";
import { WebhooksHelper } from "square";
import { Webhook } from "standardwebhooks";
import { validateRequest, validateRequestWithBody } from "twilio/lib/webhooks/webhooks";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { newBucket } from "../support.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ args: ["--public-url", "https://nf.example"] });
  account = await server.account({ balance: 1_000 });
});
afterAll(() => server.stop());

/** A signed request. */
interface Signed {
  readonly secret: string;
  readonly body: string;
  readonly headers: Record<string, string>;
  /** The URL that the sender was given. */
  readonly url: string;
}

/** A sender: how it signs, and what its own package says of a request. */
interface Vendor {
  readonly provider: string;
  readonly what?: string;
  readonly secret: string;
  readonly body?: string;
  /** Appended to the bucket's URL. */
  readonly query?: string;
  readonly sign: (request: Omit<Signed, "headers">) => Record<string, string>;
  readonly accepts: (request: Signed) => boolean | Promise<boolean>;
}

const BODY = '{"id":"evt_1","type":"invoice.paid","name":"Ünïcödé 😀"}';
/** Half a minute ahead: no package rejects it, however slow the machine is. */
const seconds = Math.floor(Date.now() / 1000) + 30;
const hmac = (hash: string, secret: string | Uint8Array, text: string, encoding: "hex" | "base64") =>
  createHmac(hash, secret).update(text).digest(encoding);
const discord = generateKeyPairSync("ed25519");
const sendgrid = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const shopify = shopifyApi({
  apiKey: "key",
  apiSecretKey: "shpss_0123",
  hostName: "nf.example",
  apiVersion: ApiVersion.January26,
  isEmbeddedApp: false,
  logger: { log: () => undefined },
});
const shopifyAccepts = async ({ url, body, headers }: Signed) =>
  (
    await shopify.webhooks.validate({
      rawBody: body,
      rawRequest: new Request(url, { method: "POST", headers, body }),
    })
  ).valid;

async function isAccepted(verified: Promise<unknown>): Promise<boolean> {
  return verified.then(
    () => true,
    (error) => /unknown/i.test(String(error?.name)),
  );
}

function standardHeaders(key: string | Uint8Array, body: string): Record<string, string> {
  return {
    "webhook-id": "msg_1",
    "webhook-timestamp": `${seconds}`,
    "webhook-signature": `v1,${hmac("sha256", key, `msg_1.${seconds}.${body}`, "base64")}`,
  };
}

const fields = (body: string) => Object.fromEntries(new URLSearchParams(body));
const formText = (body: string) =>
  [...new URLSearchParams(body)]
    .sort()
    .map((pair) => pair.join(""))
    .join("");

const VENDORS: readonly Vendor[] = [
  {
    provider: "polar",
    secret: "polar_whs_0123456789abcdefghijklmnopqrstuv",
    sign: ({ secret, body }) => standardHeaders(secret, body),
    accepts: ({ body, headers, secret }) => isAccepted(polar.validateEvent(body, headers, secret)),
  },
  {
    provider: "polar",
    what: "with a secret chosen by you",
    secret: "my own secret!",
    sign: ({ secret, body }) => standardHeaders(secret, body),
    accepts: ({ body, headers, secret }) => isAccepted(polar.validateEvent(body, headers, secret)),
  },
  {
    provider: "standard",
    what: "as Supabase shows the secret",
    secret: "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    sign: ({ body }) => standardHeaders(Buffer.from("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "base64"), body),
    accepts: ({ body, headers, secret }) =>
      isAccepted(Promise.try(() => new Webhook(secret.replace("v1,whsec_", "")).verify(body, headers))),
  },
  {
    provider: "discord",
    secret: discord.publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex"),
    sign: ({ body }) => ({
      "x-signature-ed25519": sign(null, Buffer.from(seconds + body), discord.privateKey).toString("hex"),
      "x-signature-timestamp": `${seconds}`,
    }),
    accepts: ({ body, headers, secret }) =>
      verifyKey(body, headers["x-signature-ed25519"] ?? "", headers["x-signature-timestamp"] ?? "", secret),
  },
  {
    provider: "linear",
    secret: "lin_wh_0123456789",
    body: `{"type":"Issue","action":"create","webhookTimestamp":${seconds}000}`,
    sign: ({ secret, body }) => ({ "linear-signature": hmac("sha256", secret, body, "hex") }),
    accepts: ({ body, headers, secret }) =>
      isAccepted(
        Promise.try(() =>
          new LinearWebhookClient(secret).verify(Buffer.from(body), headers["linear-signature"] ?? ""),
        ),
      ),
  },
  {
    provider: "paddle",
    secret: "pdl_ntfset_01h_secret",
    sign: ({ secret, body }) => ({
      "paddle-signature": `ts=${seconds};h1=${hmac("sha256", secret, `${seconds}:${body}`, "hex")}`,
    }),
    accepts: ({ body, headers, secret }) =>
      new Paddle("key").webhooks.isSignatureValid(body, secret, headers["paddle-signature"] ?? ""),
  },
  {
    provider: "sendgrid",
    secret: sendgrid.publicKey.export({ format: "der", type: "spki" }).toString("base64"),
    body: '[{"event":"delivered"}]\r\n',
    sign: ({ body }) => ({
      "x-twilio-email-event-webhook-signature": sign(
        "sha256",
        Buffer.from(seconds + body),
        sendgrid.privateKey,
      ).toString("base64"),
      "x-twilio-email-event-webhook-timestamp": `${seconds}`,
    }),
    accepts: ({ body, headers, secret }) => {
      const own = new EventWebhook();
      return own.verifySignature(
        own.convertPublicKeyToECDSA(secret),
        body,
        headers["x-twilio-email-event-webhook-signature"] ?? "",
        headers["x-twilio-email-event-webhook-timestamp"] ?? "",
      );
    },
  },
  {
    provider: "square",
    secret: "square-key",
    sign: ({ secret, body, url }) => ({
      "x-square-hmacsha256-signature": hmac("sha256", secret, url + body, "base64"),
    }),
    accepts: ({ body, headers, secret, url }) =>
      WebhooksHelper.verifySignature({
        requestBody: body,
        signatureHeader: headers["x-square-hmacsha256-signature"] ?? "",
        signatureKey: secret,
        notificationUrl: url,
      }),
  },
  {
    provider: "shopify",
    what: "webhooks",
    secret: "shpss_0123",
    sign: ({ secret, body }) => ({
      "x-shopify-hmac-sha256": hmac("sha256", secret, body, "base64"),
      "x-shopify-topic": "orders/create",
      "x-shopify-api-version": "2026-01",
      "x-shopify-shop-domain": "shop.myshopify.com",
      "x-shopify-webhook-id": "b54557e4",
    }),
    accepts: shopifyAccepts,
  },
  {
    provider: "shopify",
    what: "events",
    secret: "shpss_0123",
    sign: ({ secret, body }) => ({
      "shopify-hmac-sha256": hmac("sha256", secret, body, "base64"),
      "shopify-topic": "Order",
      "shopify-api-version": "2026-01",
      "shopify-shop-domain": "shop.myshopify.com",
      "shopify-webhook-id": "b54557e4",
      "shopify-action": "update",
      "shopify-handle": "orders",
      "shopify-triggered-at": "2026-01-01T00:00:00Z",
    }),
    accepts: shopifyAccepts,
  },
  {
    provider: "twilio",
    what: "a form",
    secret: "auth-token",
    body: "To=%2B15557654321&CallSid=CA1&From=%2B15551234567&Body=it%27s",
    sign: ({ secret, url, body }) => ({
      ...FORM,
      "x-twilio-signature": hmac("sha1", secret, url + formText(body), "base64"),
    }),
    accepts: ({ secret, url, body, headers }) =>
      validateRequest(secret, headers["x-twilio-signature"] ?? "", url, fields(body)),
  },
  {
    provider: "twilio",
    what: "with the port of HTTPS in the signed URL",
    secret: "auth-token",
    body: "CallSid=CA1",
    sign: ({ secret, url, body }) => ({
      ...FORM,
      "x-twilio-signature": hmac(
        "sha1",
        secret,
        url.replace("nf.example", "nf.example:443") + formText(body),
        "base64",
      ),
    }),
    accepts: ({ secret, url, body, headers }) =>
      validateRequest(secret, headers["x-twilio-signature"] ?? "", url, fields(body)),
  },
  {
    provider: "twilio",
    what: "with a shared key",
    secret: "shared-key",
    body: "CallSid=CA1",
    sign: ({ secret, url, body }) => ({
      ...FORM,
      "x-twilio-webhooks-signature-settings": "key=webhooks_sharedkey_1,algorithm=HMAC_SHA256",
      "x-twilio-signature": hmac("sha256", secret, url + formText(body), "base64"),
    }),
    accepts: ({ secret, url, body, headers }) =>
      validateRequest(secret, headers["x-twilio-signature"] ?? "", url, fields(body), "HMAC_SHA256"),
  },
  {
    provider: "twilio",
    what: "JSON",
    secret: "auth-token",
    query: `?bodySHA256=${new Bun.CryptoHasher("sha256").update(BODY).digest("hex")}`,
    sign: ({ secret, url }) => ({
      "content-type": "application/json",
      "x-twilio-signature": hmac("sha1", secret, url, "base64"),
    }),
    accepts: ({ secret, url, body, headers }) =>
      validateRequestWithBody(secret, headers["x-twilio-signature"] ?? "", url, body),
  },
];

test.each(VENDORS.map((vendor) => [`${vendor.provider} ${vendor.what ?? ""}`.trim(), vendor] as const))(
  "%s: what the sender's own package accepts is valid, and what it rejects is invalid",
  async (_, { provider, secret, body = BODY, query = "", sign: signed, accepts }) => {
    const { id } = await newBucket(account, { provider, signing_secret: secret });
    const url = `https://nf.example/v1/in/${id}${query}`;
    const headers = signed({ secret, body, url });
    const verification = async (sent: string) =>
      (await server.client(null).post(`/v1/in/${id}${query}`, sent, { headers })).body["verification"];
    expect([await accepts({ secret, body, url, headers }), await verification(body)]).toEqual([
      true,
      "valid",
    ]);
    const other = `${body} `;
    expect([await accepts({ secret, body: other, url, headers }), await verification(other)]).toEqual([
      false,
      "invalid",
    ]);
  },
);
