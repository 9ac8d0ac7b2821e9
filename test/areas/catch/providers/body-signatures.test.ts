import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { hmacValidator, type Types } from "@adyen/api-library";
import { TOKEN_HOURS } from "../../../../src/areas/catch/ingestion/ingestion.ts";
import {
  ADYEN_ITEMS_MAX,
  MAILGUN_TOLERANCE_SECONDS,
} from "../../../../src/areas/catch/providers/body-signatures.ts";
import { FORM_FIELDS_MAX } from "../../../../src/areas/catch/providers/signatures.ts";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { accepted, eventOf, ingest, newBucket } from "../support.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  const scale = { ...DEFAULT_TIERS.scale, requestsPerMinute: 1e6, catchPerMinute: 1e6 };
  server = await startTestServer({ manualClock: true, config: { tiers: { ...DEFAULT_TIERS, scale } } });
  account = await server.account({ tier: "scale", balance: 10_000 });
});
afterAll(() => server.stop());

const send = (id: string, body: string, headers: Record<string, string> = {}) =>
  server.client(null).post(`/v1/in/${id}`, body, { headers });

describe("adyen", () => {
  // The key and the item of Adyen's documentation.
  const KEY = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056";
  const ITEM = {
    pspReference: "7914073381342284",
    originalReference: "",
    merchantAccountCode: "TestMerchant",
    merchantReference: "TestPayment-1407325143704",
    amount: { value: 1130, currency: "EUR" },
    eventCode: "AUTHORISATION",
    success: "true",
  };
  const PUBLISHED = "coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=";

  /** Items, signed by Adyen's own package. */
  function signed(...items: object[]): string {
    return JSON.stringify({
      live: "false",
      notificationItems: items.map((item) => ({
        NotificationRequestItem: { ...item, additionalData: { hmacSignature: signatureOf(item) } },
      })),
    });
  }
  const signatureOf = (item: object) =>
    new hmacValidator().calculateHmac(item as Types.notification.NotificationRequestItem, KEY);
  const bucket = async () => (await newBucket(account, { provider: "adyen", signing_secret: KEY })).id;
  const verificationOf = async (id: string, body: string, headers = {}) => {
    const { body: page } = await account.get(`/v1/catch/${id}/events?limit=1`);
    const { text } = await send(id, body, headers);
    const { body: after } = await account.get(`/v1/catch/${id}/events?limit=1`);
    const [event] = after["events"] as { id: string; verification: string }[];
    expect(event?.id).not.toBe((page["events"] as { id: string }[])[0]?.id);
    expect([text, event?.verification]).toEqual(["[accepted]", event?.verification]);
    return event?.verification;
  };

  test("the published signature, and signatures of its package, are valid", async () => {
    const id = await bucket();
    expect(signatureOf(ITEM)).toBe(PUBLISHED);
    expect(await verificationOf(id, signed(ITEM))).toBe("valid");
    const { originalReference: _, ...missing } = ITEM;
    expect(await verificationOf(id, signed(missing))).toBe("valid");
    expect(await verificationOf(id, signed(ITEM, { ...ITEM, pspReference: "2" }))).toBe("valid");
  });

  test("every item must be signed, and none is invalid", async () => {
    const id = await bucket();
    const changed = (from: string, to: string) => signed(ITEM).replace(from, to);
    for (const body of [
      changed("1130", "1131"),
      changed('"true"', '"false"'),
      changed("EUR", "USD"),
      changed(PUBLISHED, ""),
      signed(ITEM, ITEM).replace(PUBLISHED, `${PUBLISHED.slice(0, -2)}A=`),
      '{"notificationItems":[]}',
      "{}",
      "no JSON",
    ])
      expect(await verificationOf(id, body)).toBe("invalid");
    const many = (count: number) => signed(...Array.from({ length: count }, () => ITEM));
    expect(await verificationOf(id, many(ADYEN_ITEMS_MAX))).toBe("valid");
    expect(await verificationOf(id, many(ADYEN_ITEMS_MAX + 1))).toBe("invalid");
  });

  test("the id of a single item and its type", async () => {
    const id = await bucket();
    await send(id, signed(ITEM));
    await send(id, signed(ITEM, ITEM));
    const { body } = await account.get(`/v1/catch/${id}/events`);
    const [two, member] = body["events"] as { id: string; event_type: string }[];
    expect([member?.event_type, two?.event_type]).toEqual(["AUTHORISATION", "AUTHORISATION"]);
    expect((await eventOf(account, id, member?.id ?? "")).provider_event_id).toBe(
      "7914073381342284.AUTHORISATION",
    );
    expect((await eventOf(account, id, two?.id ?? "")).provider_event_id).toBeNull();
  });

  test("platform webhooks are signed in a header, over the body", async () => {
    const id = await bucket();
    const body = '{"type":"balancePlatform.transfer.created","data":{}}';
    const hmacsignature = new hmacValidator().calculateHmac(body, KEY);
    expect(await verificationOf(id, body, { hmacsignature, protocol: "HmacSHA256" })).toBe("valid");
    expect(await verificationOf(id, `${body} `, { hmacsignature })).toBe("invalid");
  });

  test("a response of the bucket's own takes precedence, and a secret must be hexadecimal", async () => {
    const terms = { provider: "adyen", signing_secret: KEY, response: { status: 202, body: "ok" } };
    const { id } = await newBucket(account, terms);
    const answer = await send(id, signed(ITEM));
    expect([answer.status, answer.text]).toEqual([202, "ok"]);
    const wrong = await account.patch(`/v1/catch/buckets/${id}`, { signing_secret: "not hexadecimal" });
    expect(wrong.status).toBe(400);
  });
});

describe("mailgun", () => {
  const KEY = "key-0123456789abcdef";
  let tokens = 0;
  const fields = (at = server.clock.now()) => {
    tokens += 1;
    const timestamp = String(Math.floor(at / 1000));
    const token = `${"f".repeat(40)}${String(tokens).padStart(10, "0")}`;
    return {
      timestamp,
      token,
      signature: createHmac("sha256", KEY)
        .update(timestamp + token)
        .digest("hex"),
    };
  };
  const json = (signature: object, name = "opened") =>
    JSON.stringify({ signature, "event-data": { id: "Ase7i2zsRYeDXztHGENqRA", event: name } });
  const form = (values: object) => new URLSearchParams({ recipient: "a@b.c", ...values }).toString();
  const FORM = { "content-type": "application/x-www-form-urlencoded; charset=utf-8" };
  const bucket = async (terms = {}) =>
    (await newBucket(account, { provider: "mailgun", signing_secret: KEY, ...terms })).id;

  test("in JSON, a form and parts of a form; id and type are those of the event", async () => {
    const id = await bucket();
    const event = await eventOf(account, id, await accepted(server, id, json(fields())));
    expect([event.verification, event.provider_event_id, event.event_type]).toEqual([
      "valid",
      "Ase7i2zsRYeDXztHGENqRA",
      "opened",
    ]);
    expect((await ingest(server, id, form(fields()), FORM)).verification).toBe("valid");
    const parts = new FormData();
    parts.append("attachment-1", new File(["x".repeat(100_000)], "a;name=token.txt", { type: "text/plain" }));
    for (const [name, value] of Object.entries(fields())) parts.append(name, value);
    const response = new Response(parts);
    const type = { "content-type": response.headers.get("content-type") ?? "" };
    const bytes = new Uint8Array(await response.arrayBuffer());
    expect((await ingest(server, id, bytes, type)).verification).toBe("valid");
  });

  test("other values, missing ones and those beyond the limit of fields are invalid", async () => {
    const id = await bucket();
    const verified = async (body: string, headers = {}) =>
      (await ingest(server, id, body, headers)).verification;
    for (const wrong of [{ timestamp: "1" }, { token: "t" }, { signature: "00" }, { token: "" }])
      expect(await verified(json({ ...fields(), ...wrong }))).toBe("invalid");
    expect(await verified("{}")).toBe("invalid");
    expect(await verified("token=a", FORM)).toBe("invalid");
    expect(await verified("--b--", { "content-type": "multipart/form-data" })).toBe("invalid");
    expect(await verified("", { "content-type": "multipart/form-data; boundary=b" })).toBe("invalid");
    const behind = (count: number) => `${"a=1&".repeat(count)}${new URLSearchParams(fields())}`;
    expect(await verified(behind(FORM_FIELDS_MAX - 3), FORM)).toBe("valid");
    expect(await verified(behind(FORM_FIELDS_MAX - 2), FORM)).toBe("invalid");
  });

  test("timestamps are valid within the tolerance, to the second", async () => {
    const id = await bucket();
    const verified = async (seconds: number) =>
      (await ingest(server, id, json(fields(server.clock.now() + seconds * 1_000)))).verification;
    for (const sign of [-1, 1]) {
      expect(await verified(sign * MAILGUN_TOLERANCE_SECONDS)).toBe("valid");
      expect(await verified(sign * (MAILGUN_TOLERANCE_SECONDS + 1))).toBe("invalid");
    }
  });

  test("a token is valid for one body only, for a day, also after a restart", async () => {
    const id = await bucket();
    const rejecting = await bucket({ verification_mode: "reject" });
    const signature = fields(server.clock.now() + MAILGUN_TOLERANCE_SECONDS * 1_000);
    const verified = async (name: string) => (await ingest(server, id, json(signature, name))).verification;
    expect([await verified("opened"), await verified("opened"), await verified("clicked")]).toEqual([
      "valid",
      "valid",
      "invalid",
    ]);
    await ingest(server, rejecting, json(signature));
    expect((await ingest(server, rejecting, json(signature, "clicked"))).status).toBe("rejected");
    await server.restart();
    expect([await verified("clicked"), await verified("opened")]).toEqual(["invalid", "valid"]);
    expect(TOKEN_HOURS * 3_600).toBeGreaterThan(2 * MAILGUN_TOLERANCE_SECONDS);
  });
});
