import { createHmac } from "node:crypto";
import type { Benchmark, WrkRequest } from "./benchmark.ts";
import type { Stage } from "./stage.ts";

const SECRET = "whsec_benchmark";
const BODY_BYTES = 1024;
const BODY = JSON.stringify({ id: "evt_1", object: "event", data: "" }).replace(
  '""',
  `"${"x".repeat(BODY_BYTES - 41)}"`,
);

/** Buckets that the measurements use in turn, so that none of them gets full. */
const BUCKETS = 20;
const bucketIds: string[] = [];
let measurements = 0;

/** A webhook as Stripe sends it, signed now: the signature is valid for five minutes. */
function stripeWebhook(): WrkRequest {
  const bucketId = bucketIds[measurements % BUCKETS];
  measurements += 1;
  const seconds = Math.floor(Date.now() / 1000);
  const signature = createHmac("sha256", SECRET).update(`${seconds}.${BODY}`).digest("hex");
  return {
    method: "POST",
    path: `/v1/catch/${bucketId}`,
    headers: {
      "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
      Accept: "*/*; q=0.5, application/xml",
      "Cache-Control": "no-cache",
      "Stripe-Signature": `t=${seconds},v1=${signature}`,
    },
    body: BODY,
  };
}

/** Sends one webhook, which must be accepted with a valid signature, because wrk only checks the status. */
async function check(stage: Stage): Promise<void> {
  const { path, headers = {}, body = "" } = stripeWebhook();
  const response = await fetch(stage.url + path, { method: "POST", headers, body });
  const text = await response.text();
  if (!text.includes('"accepted"') || !text.includes('"valid"')) throw new Error(`not accepted: ${text}`);
}

/** Events on a page of a stream. */
const STREAMED = 20;
let streamedId = "";

/** A page of a stream with 20 whole events of 1 KiB, as a listener that has fallen behind fetches it. */
export const WEBHOOK_STREAM: Omit<Benchmark, "requires"> = {
  name: "stream of webhooks, 20 of 1 KiB",
  connections: [32],
  async prepare(stage) {
    streamedId = String((await stage.post("/v1/catch/buckets", { delivery: "pull" }))["id"]);
    for (let count = 0; count < STREAMED; count += 1)
      await fetch(`${stage.url}/v1/catch/${streamedId}`, { method: "POST", body: BODY });
  },
  request: (stage) => ({
    method: "GET",
    path: `/v1/catch/${streamedId}/stream?after=beginning&limit=${STREAMED}`,
    headers: { Authorization: `Bearer ${stage.key}` },
  }),
};

/** Inbound webhooks of 1 KiB: verified, metered, and durable before the response is sent. */
export const WEBHOOK_IN: Omit<Benchmark, "requires"> = {
  name: "webhook in, 1 KiB",
  connections: [32],
  async prepare(stage) {
    const terms = { target_url: "https://hooks.example.com/", provider: "stripe", signing_secret: SECRET };
    for (let count = 0; count < BUCKETS; count += 1) {
      const made = await stage.post("/v1/catch/buckets", terms);
      bucketIds.push(String(made["id"]));
    }
    await check(stage);
  },
  request: stripeWebhook,
};
