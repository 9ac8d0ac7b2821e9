import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { expectError } from "../../../support/errors.ts";
import { sendRaw } from "../../../support/raw-http.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { bucketOf, eventOf, eventsOf, ingest, newBucket } from "../support.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--public-url", "https://nf.example:8443"] });
  account = await server.account({ balance: 1_000 });
});
afterAll(() => server.stop());

const seconds = () => String(Math.floor(server.clock.now() / 1000));

describe("discord", () => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const key = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");

  async function send(id: string, body: string) {
    const headers = {
      "x-signature-ed25519": sign(null, Buffer.from(seconds() + body), privateKey).toString("hex"),
      "x-signature-timestamp": seconds(),
    };
    return server.client(null).post(`/v1/in/${id}`, body, { headers });
  }

  test("an event of Webhook Events, which has the type 1 as the ping of Interactions has, is stored", async () => {
    const { id } = await newBucket(account, {
      provider: "discord",
      signing_secret: key,
      deduplicate_hours: 1,
    });
    const body =
      '{"version":1,"application_id":"1234560123453231555","type":1,"event":{"type":"APPLICATION_AUTHORIZED","timestamp":"2024-10-18T14:42:53.064834"}}';
    const answer = await send(id, body);
    expect(answer.body).toMatchObject({ status: "accepted", verification: "valid" });
    expect((await eventsOf(account, id))[0]?.event_type).toBe("APPLICATION_AUTHORIZED");
    expect((await send(id, body)).body["status"]).toBe("duplicate");
  });

  test("pings of both products get the response of their product, and are not stored", async () => {
    const { id } = await newBucket(account, { provider: "discord", signing_secret: key });
    const ping = await send(id, '{"version":1,"application_id":"1","type":0}');
    expect([ping.status, ping.text]).toEqual([204, ""]);
    expect((await send(id, '{"application_id":"1","type":1,"version":1}')).body).toEqual({ type: 1 });
    expect(await eventsOf(account, id)).toEqual([]);
  });
});

describe("secrets with which no signature can be valid are rejected", () => {
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const { publicKey: other } = generateKeyPairSync("ec", { namedCurve: "secp384r1" });
  const spki = (from: typeof publicKey) => from.export({ format: "der", type: "spki" }).toString("base64");
  const pem = String(publicKey.export({ format: "pem", type: "spki" }));
  const custom = (signature: object) => ({
    provider: "custom",
    signature: { header: "X-Sig", template: "{body}", ...signature },
  });
  const HEX = custom({ algorithm: "hmac-sha256", secret_encoding: "hex" });
  const BASE64 = custom({ algorithm: "hmac-sha512", secret_encoding: "base64" });
  const WHSEC = custom({ algorithm: "hmac-sha256", secret_encoding: "whsec" });
  const KEY = custom({ algorithm: "ed25519" });
  const EC = custom({ algorithm: "ecdsa-p256-sha256", secret_encoding: "base64" });
  const TOKEN = custom({ algorithm: "token", template: undefined });

  test.each<[object, string]>([
    [{ provider: "standard" }, "whsec_!!!"],
    [{ provider: "standard" }, "whsec_"],
    [{ provider: "standard" }, "v1,whsec_"],
    [{ provider: "standard" }, "v1,whsec_!!!"],
    [{ provider: "standard" }, "not base64"],
    [{ provider: "standard" }, "whpk_MCowBQYDK2VwAyEA"],
    [{ provider: "clerk" }, "whsec_%"],
    [{ provider: "resend" }, "whsec_A"],
    [{ provider: "openai" }, "whsec_ü"],
    [{ provider: "gitlab-signed" }, "whsec_="],
    [{ provider: "svix" }, "whsec_"],
    [{ provider: "svix" }, "a"],
    [{ provider: "discord" }, "abcd"],
    [{ provider: "discord" }, "0".repeat(63)],
    [{ provider: "discord" }, "zz".repeat(32)],
    [{ provider: "sendgrid" }, "hello"],
    [{ provider: "sendgrid" }, spki(other)],
    ...["whsec_x\n", " whsec_x", "sk_live_x", "rk_test_x"].map((secret): [object, string] => [
      { provider: "stripe" },
      secret,
    ]),
    ...["shopify", "slack", "linear", "paddle", "zoom", "intercom", "zendesk"].map(
      (provider): [object, string] => [{ provider }, "copied with its line break\r\n"],
    ),
    [{ provider: "gitlab" }, " token"],
    [{ provider: "gitlab" }, "to\nken"],
    [HEX, "xyz"],
    [HEX, "abc"],
    [BASE64, "%%%"],
    [WHSEC, "whsec_"],
    [KEY, "not a PEM"],
    [KEY, pem],
    [EC, "AAAA"],
    [TOKEN, "token "],
  ])("%j with %j", async (terms, secret) => {
    const all = { target_url: "https://hooks.example.com/in", ...terms };
    for (const field of ["signing_secret", "previous_signing_secret"]) {
      const previous_expires_at = new Date(server.clock.now() + 60_000).toISOString();
      const extra = field === "signing_secret" ? {} : { previous_expires_at };
      const answer = await account.post("/v1/catch/buckets", { ...all, [field]: secret, ...extra });
      expectError(answer, "validation_error");
      expect(answer.text).toContain(`${field} is not a secret of`);
    }
    const { id } = await newBucket(account, terms);
    const answer = await account.patch(`/v1/catch/buckets/${id}`, { signing_secret: secret });
    expectError(answer, "validation_error");
    expect((await bucketOf(account, id)).has_signing_secret).toBe(false);
  });

  test.each<[object, string]>([
    [{ provider: "standard" }, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    [{ provider: "standard" }, "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    [{ provider: "standard" }, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    [{ provider: "standard" }, "polar_whs_!"],
    [{ provider: "polar" }, "any text!"],
    [{ provider: "sendgrid" }, pem],
    [{ provider: "sendgrid" }, spki(publicKey).replace(/(.{60})/g, "$1\n")],
    [{ provider: "gitlab" }, "tökén"],
    [{ provider: "stripe" }, "anything"],
    [{ provider: "github" }, "chosen by a person, with blanks "],
    [{ provider: "standard" }, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"],
    [EC, pem],
    [TOKEN, "a b"],
  ])("others are not: %j with %j", async (terms, secret) => {
    expect((await newBucket(account, { ...terms, signing_secret: secret })).has_signing_secret).toBe(true);
  });

  test("a recipe must fit the secret that the bucket has; other updates of a bucket do not check it", async () => {
    const { id } = await newBucket(account, { ...TOKEN, signing_secret: "not hex" });
    const recipe = { ...HEX, provider: undefined };
    const answer = await account.patch(`/v1/catch/buckets/${id}`, recipe);
    expectError(answer, "validation_error");
    expect(answer.text).toContain("signing_secret");
    expect((await account.patch(`/v1/catch/buckets/${id}`, { name: "kept" })).status).toBe(200);
    expect(
      (await account.patch(`/v1/catch/buckets/${id}`, { ...recipe, signing_secret: "00ff" })).status,
    ).toBe(200);
  });
});

test("a token beyond ASCII is compared as the UTF-8 that was sent", async () => {
  const { id } = await newBucket(account, { provider: "gitlab", signing_secret: "tökén" });
  const answer = await sendRaw(server.url, [
    Buffer.from(
      `POST /v1/in/${id} HTTP/1.1\r\nHost: x\r\nX-Gitlab-Token: tökén\r\nContent-Length: 2\r\n\r\n{}`,
    ),
  ]);
  expect(answer?.body["verification"]).toBe("valid");
  expect((await ingest(server, id, "{}", { "x-gitlab-token": "token" })).verification).toBe("invalid");
});

describe("twilio signs the URL as it sends it", () => {
  const SECRET = "auth-token";
  const FORM = "application/x-www-form-urlencoded";

  /** Sends a request with a target as it is, signed for an origin. */
  async function send(id: string, below: string, origin: string, signedBelow = below) {
    const signed = createHmac("sha1", SECRET)
      .update(`${origin}/v1/in/${id}${signedBelow}CallSidCA1`)
      .digest("base64");
    const head = `POST /v1/in/${id}${below} HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\nX-Twilio-Signature: ${signed}`;
    const answer = await sendRaw(server.url, [
      Buffer.from(`${head}\r\nContent-Length: 11\r\n\r\nCallSid=CA1`),
    ]);
    const { path, query } = await eventOf(account, id, String(answer?.body["event_id"]));
    return { verification: answer?.body["verification"], stored: path + (query === "" ? "" : `?${query}`) };
  }

  test.each([
    ["?x=it's"],
    ['?x="a"&y=<b>'],
    ["?x=it%27s"],
    ["?x=%22a%22&y=it's"],
    ["?x=%3c%3e"],
    ["/a^b{c}`d?x=1"],
    ["/caf%C3%A9?x=%C3%A9"],
    ["/café?x=é'<ü>"],
    ["/%FF'?x=%FF"],
    ["?x=|[]~+%20!*()"],
    ["?name=William+O'hara"],
    ["?name=William+O'hara&x=%27"],
    ["/%22a%22/{b}?c=%C3%A9&d=é"],
  ])("%s: valid, and stored as sent", async (below) => {
    const { id } = await newBucket(account, { provider: "twilio", signing_secret: SECRET });
    expect(await send(id, below, "https://nf.example:8443")).toEqual({
      verification: "valid",
      stored: below,
    });
  });

  test("with or without the port of --public-url; another port, host or target is invalid", async () => {
    const { id } = await newBucket(account, { provider: "twilio", signing_secret: SECRET });
    const result = async (origin: string, signedBelow?: string) =>
      (await send(id, "?x=1", origin, signedBelow)).verification;
    expect(await result("https://nf.example")).toBe("valid");
    expect(await result("https://nf.example:8443")).toBe("valid");
    for (const origin of ["https://nf.example:443", "http://nf.example:8443", "https://other.example"])
      expect(await result(origin), origin).toBe("invalid");
    expect(await result("https://nf.example", "?x=2")).toBe("invalid");
  });

  test("without a valid signature a target is stored as the runtime normalizes it", async () => {
    const { id } = await newBucket(account, {});
    const answer = await sendRaw(server.url, [
      `POST /v1/in/${id}?x=it's HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`,
    ]);
    expect((await eventOf(account, id, String(answer?.body["event_id"]))).query).toBe("x=it%27s");
  });
});

test("square and recipes with the path are compared with the target as sent, too", async () => {
  const { id: square } = await newBucket(account, { provider: "square", signing_secret: "key" });
  const { id: custom } = await newBucket(account, {
    provider: "custom",
    signing_secret: "key",
    signature: { header: "X-Sig", algorithm: "hmac-sha256", template: "{path}|{body}" },
  });
  const send = async (target: string, header: string) =>
    (
      await sendRaw(server.url, [
        Buffer.from(`POST ${target} HTTP/1.1\r\nHost: x\r\n${header}\r\nContent-Length: 2\r\n\r\n{}`),
      ])
    )?.body["verification"];
  const mac = (text: string) => createHmac("sha256", "key").update(text);
  const url = `/v1/in/${square}/it's?y="<é>"`;
  const signed = mac(`https://nf.example:8443${url}{}`).digest("base64");
  expect(await send(url, `X-Square-HmacSha256-Signature: ${signed}`)).toBe("valid");
  const path = `/v1/in/${custom}/{a}`;
  expect(await send(path, `X-Sig: ${mac(`${path}|{}`).digest("hex")}`)).toBe("valid");
});

describe("what identifies a retry", () => {
  const SECOND_TICKET = { "x-zendesk-webhook-invocation-id": "2" };

  test.each<[provider: string, first: object, second: object, body: string]>([
    [
      "gitlab",
      { "idempotency-key": "1", "x-gitlab-event-uuid": "u" },
      { "idempotency-key": "2", "x-gitlab-event-uuid": "u" },
      "{}",
    ],
    ["zendesk", { "x-zendesk-webhook-invocation-id": "1" }, SECOND_TICKET, '{"id":"a ticket"}'],
    ["bitbucket", { "x-request-uuid": "1" }, { "x-request-uuid": "2" }, "{}"],
    ["bitbucket", { "x-request-id": "1" }, { "x-request-id": "2" }, "{}"],
    ["shopify", { "x-shopify-event-id": "1" }, { "x-shopify-event-id": "2" }, "{}"],
    ["shopify", { "shopify-webhook-id": "1" }, { "shopify-webhook-id": "2" }, "{}"],
    ["gitlab-signed", { "webhook-id": "1" }, { "webhook-id": "2" }, "{}"],
  ])("%s: %j is not %j", async (provider, first, second, body) => {
    const { id } = await newBucket(account, { provider, deduplicate_hours: 1 });
    const status = async (headers: object) => (await ingest(server, id, body, { ...headers })).status;
    expect([await status(first), await status(first), await status(second)]).toEqual([
      "accepted",
      "duplicate",
      "accepted",
    ]);
  });

  test("signed webhooks of GitLab have the type of their header", async () => {
    const { id } = await newBucket(account, { provider: "gitlab-signed" });
    await ingest(server, id, "{}", { "webhook-id": "1", "x-gitlab-event": "Push Hook" });
    expect((await eventsOf(account, id))[0]?.event_type).toBe("Push Hook");
  });
});

test("a blank between prefix and signature does not matter", async () => {
  const { id } = await newBucket(account, { provider: "github", signing_secret: "s" });
  const signature = createHmac("sha256", "s").update("{}").digest("hex");
  const sent = await ingest(server, id, "{}", { "x-hub-signature-256": `sha256= ${signature}` });
  expect(sent.verification).toBe("valid");
});

describe("spellings of signatures", () => {
  test("hexadecimal digits may be capitals", async () => {
    const { id } = await newBucket(account, { provider: "github", signing_secret: "s" });
    const digest = createHmac("sha256", "s").update("{}").digest("hex").toUpperCase();
    const verification = async (sent: string) =>
      (await ingest(server, id, "{}", { "x-hub-signature-256": sent })).verification;
    expect(await verification(`sha256=${digest}`)).toBe("valid");
    expect(await verification(`sha256=${digest.replace(/.{4}$/, "GGGG")}`)).toBe("invalid");
  });

  test("a service that sends with Svix under the names of Standard Webhooks; without a provider it is not taken for Svix", async () => {
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const key = Buffer.from(secret.slice(6), "base64");
    const headers = {
      "webhook-id": "msg_1",
      "webhook-timestamp": seconds(),
      "webhook-signature": `v1,${createHmac("sha256", key).update(`msg_1.${seconds()}.{}`).digest("base64")}`,
    };
    const { id } = await newBucket(account, {
      provider: "svix",
      signing_secret: secret,
      deduplicate_hours: 1,
    });
    expect((await ingest(server, id, "{}", headers)).verification).toBe("valid");
    expect((await ingest(server, id, "{}", headers)).status).toBe("duplicate");
    const { id: any } = await newBucket(account, { signing_secret: secret });
    expect((await ingest(server, any, "{}", headers)).verification).toBe("none");
  });
});
