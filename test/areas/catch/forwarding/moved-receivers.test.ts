import { afterEach, expect, setDefaultTimeout, setSystemTime, test } from "bun:test";
import {
  HookdeckWebhookVerificationParameterError,
  verifyWebhookSignature,
} from "@hookdeck/sdk/webhooks/helpers";
import { verify as verifyLikeGithub } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { Webhook as Svix } from "svix";
import { Draft } from "../../../../src/configuration/import/draft.ts";
import { importConvoy } from "../../../../src/configuration/import/webhooks/convoy/convoy.ts";
import { importHookdeck } from "../../../../src/configuration/import/webhooks/hookdeck/hookdeck.ts";
import { importSvix } from "../../../../src/configuration/import/webhooks/svix.ts";
import * as convoy from "../../../configuration/import/webhooks/convoy-fixture.ts";
import * as hookdeck from "../../../configuration/import/webhooks/hookdeck-fixture.ts";
import { Configured, SECRET_TEXT } from "../../../configuration/support.ts";
import type { Received } from "../../../support/webhook-sink.ts";
import { messagingStage } from "../../relay/messages-support.ts";
import { ingest } from "../support.ts";

/** Busy machines take longer. */
setDefaultTimeout(60_000);

const { stage, messaging } = messagingStage();
afterEach(() => void setSystemTime());

const OWNER = "acme";
/** Another secret than the one of all resources. */
const OTHER_SECRET = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;

/** Applies what an import makes of a source. All its secrets are `SECRET_TEXT`. */
async function move(convert: (draft: Draft) => void): Promise<void> {
  const configured = new Configured(stage.server, stage.account.key ?? "");
  const draft = new Draft(configured.kinds);
  convert(draft);
  await configured.apply(draft.text());
}

/** Delivers what is due. Returns the only request, as a receiver gets it. */
async function delivered(): Promise<{ request: Received; headers: Record<string, string> }> {
  await messaging.settle();
  const [request, ...others] = stage.sink.take();
  if (request === undefined) throw new Error("nothing was received");
  expect(others).toEqual([]);
  return { request, headers: Object.fromEntries(request.headers) };
}

test("receivers of Svix verify with its library, and with Standard Webhooks", async () => {
  const endpoint = { id: "ep_1", uid: "billing", url: stage.sink.url("/svix"), disabled: false };
  await move((draft) => importSvix(draft, { data: [endpoint], done: true }, OWNER));
  await messaging.send({ n: 1, name: "ü" }, { owner_id: OWNER });
  const { request, headers } = await delivered();
  setSystemTime(stage.server.clock.now());
  for (const Library of [Svix, Webhook]) {
    expect(() => new Library(SECRET_TEXT).verify(request.body, headers)).not.toThrow();
    expect(() => new Library(OTHER_SECRET).verify(request.body, headers)).toThrow("No matching signature");
  }
});

test("receivers of Convoy find the HMAC of the body in its header, in hex", async () => {
  const endpoint = convoy.endpoint("billing", { url: stage.sink.url("/convoy"), owner_id: OWNER });
  const file = {
    project: convoy.project(),
    endpoints: convoy.page([endpoint]),
    subscriptions: convoy.page([convoy.subscription("all", "billing")]),
  };
  await move((draft) => importConvoy(draft, file));
  await messaging.send({ n: 1, name: "ü" }, { owner_id: OWNER });
  const { request, headers } = await delivered();
  // GitHub's signature is the same, with a prefix.
  const signature = `sha256=${headers["x-convoy-signature"]}`;
  expect(request.body).toBe('{"n":1,"name":"ü"}');
  expect(await verifyLikeGithub(SECRET_TEXT, request.body, signature)).toBe(true);
  expect(await verifyLikeGithub(OTHER_SECRET, request.body, signature)).toBe(false);
});

test("receivers of Hookdeck verify with its library, and the sender's signature with the sender's", async () => {
  const source = hookdeck.source("stripe", "STRIPE", { auth: { webhook_secret_key: SECRET_TEXT } });
  const destination = hookdeck.destination("shop", { url: stage.sink.url("/hookdeck") });
  await move((draft) => importHookdeck(draft, hookdeck.page([hookdeck.connection(source, destination)])));
  const { buckets } = (await stage.account.get("/v1/catch/buckets")).body as { buckets: { id: string }[] };
  const payload = JSON.stringify({ id: "evt_1", object: "event", type: "invoice.paid", name: "ü" });
  const stripe = new Stripe("sk_test_1");
  const now = stage.server.clock.now();
  const timestamp = Math.floor(now / 1_000);
  const signed = await stripe.webhooks.generateTestHeaderStringAsync({
    payload,
    secret: SECRET_TEXT,
    timestamp,
  });
  await ingest(stage.server, buckets[0]?.id ?? "", payload, { "Stripe-Signature": signed });
  const { request, headers } = await delivered();
  const verification = (signingSecret: string, checkSourceVerification = false) =>
    verifyWebhookSignature({
      headers,
      rawBody: request.body,
      signingSecret,
      config: { checkSourceVerification },
    });
  expect(await verification(SECRET_TEXT)).toEqual({ isValidSignature: true });
  expect(await verification(OTHER_SECRET)).toEqual({ isValidSignature: false });
  // Needs a header that only Hookdeck sends: the bucket has rejected what is not verified.
  await expect(verification(SECRET_TEXT, true)).rejects.toThrow(HookdeckWebhookVerificationParameterError);
  const ofSender = headers["stripe-signature"] ?? "";
  const event = stripe.webhooks.constructEventAsync(request.body, ofSender, SECRET_TEXT, 300, undefined, now);
  expect(await event).toMatchObject({ id: "evt_1" });
});
