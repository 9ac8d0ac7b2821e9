import { beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { runInNewContext } from "node:vm";
import { Ninefold, verifyDelivery } from "../../src/client/index.ts";
import { useDeliveries } from "./deliveries.ts";

const { server, sink, delivered, now } = useDeliveries();
let key = "";
let nf: Ninefold;
beforeAll(async () => {
  key = String((await server.account({ tier: "scale" })).key);
  nf = new Ninefold({ url: server.url, apiKey: key });
});

/** The headers without the id. */
function withoutId(headers: Headers): Headers {
  const left = new Headers(headers);
  for (const name of ["x-svc-delivery-id", "x-svc-event-id"]) left.delete(name);
  return left;
}

describe("deliveries of a real server", () => {
  test("accepts scheduled deliveries", async () => {
    const order = { target_url: sink.url(), delay: "5s", payload: { ü: "ö" }, headers: {} };
    const { relay_id } = await nf.relay.schedule({ ...order, method: "POST" });
    const { headers, body } = await delivered(5_000);
    const delivery = await verifyDelivery(headers, body, key, now());
    expect(delivery).toMatchObject({ kind: "relay", id: relay_id, event: null, text: '{"ü":"ö"}' });
    expect(delivery.json()).toEqual({ ü: "ö" });
    expect(delivery.signedAt).toBe(server.clock.now());
    await expect(verifyDelivery(withoutId(headers), body, key, now())).rejects.toThrow(
      "the header X-Svc-Delivery-Id is missing",
    );
    await expect(verifyDelivery(headers, body.replace("ö", "o"), key, now())).rejects.toThrow(
      "its signature is not valid",
    );
  });

  test("accepts scheduled deliveries without a body", async () => {
    await nf.relay.schedule({ target_url: sink.url(), method: "GET", delay: "1s", payload: {}, headers: {} });
    const { headers } = await delivered(1_000);
    expect(await verifyDelivery(headers, "", key, now())).toMatchObject({ kind: "relay", text: "" });
    await expect(verifyDelivery(headers, "{}", key, now())).rejects.toThrow("its signature is not valid");
  });

  test("accepts alerts of monitors", async () => {
    const hook = sink.url("/alerts");
    sink.answersBy(({ path }) => (path === "/alerts" ? 200 : 500));
    const { id } = await nf.monitors.create({
      url: sink.url("/health"),
      interval: 60_000,
      webhook_url: hook,
    });
    await server.clock.advance(5_000);
    const alert = sink.received.splice(0).find(({ path }) => path === "/alerts");
    await nf.monitors.delete(id);
    const { headers, body } = alert ?? { headers: new Headers(), body: "" };
    const delivery = await verifyDelivery(headers, body, key, now());
    expect(delivery).toMatchObject({
      kind: "alert",
      event: "monitor.down",
      id: headers.get("x-svc-delivery-id"),
    });
    expect(delivery.json()).toMatchObject({ monitor_id: id, status: "down" });
    const hourLater = delivery.signedAt + 3_600_000;
    expect((await verifyDelivery(headers, body, key, { now: hourLater })).kind).toBe("alert");
    await expect(verifyDelivery(headers, body, key, { now: hourLater + 1 })).rejects.toThrow(
      "it was signed 3600001 ms ago",
    );
    const wrong = { "x-svc-signature": String(headers.get("x-svc-signature")), "x-svc-event": "monitor.up" };
    await expect(verifyDelivery(wrong, body, key, now())).rejects.toThrow(
      "its X-Svc-Event differs from the body",
    );
  });

  test("accepts forwarded and replayed events with any bytes", async () => {
    sink.answers(200);
    const bucket = await nf.catch.buckets.create({ target_url: sink.url() });
    await nf.catch.buckets.update(bucket.id, { state: "live" });
    const { event_id } = await nf.catch.send(bucket.id, "no json");
    const forwarded = await delivered(1);
    await nf.catch.events.replay(bucket.id, String(event_id));
    const [replayed] = sink.received.splice(0);
    for (const { headers, body } of [forwarded, replayed].filter((one) => one !== undefined)) {
      const delivery = await verifyDelivery(headers, body, key, now());
      expect(delivery).toMatchObject({ kind: "event", id: String(event_id), event: null, text: "no json" });
      expect(() => delivery.json()).toThrow(SyntaxError);
      await expect(verifyDelivery(withoutId(headers), body, key, now())).rejects.toThrow(
        "the header X-Svc-Event-Id is missing",
      );
    }
    expect(replayed).toBeDefined();
  });

  test("accepts a signature by either key during a rotation", async () => {
    const { key: next } = await nf.account.rotateKey();
    await nf.relay.schedule({ target_url: sink.url(), method: "PUT", delay: "1s", payload: {}, headers: {} });
    const { headers, body } = await delivered(1_000);
    await expect(verifyDelivery(headers, body, key, now())).rejects.toMatchObject({
      code: "delivery_invalid",
    });
    expect((await verifyDelivery(headers, body, [key, next], now())).kind).toBe("relay");
    expect((await verifyDelivery(headers, body, next, now())).kind).toBe("relay");
  });
});

const SECRET = "sm_secret_00000000";
const AT = 1_773_144_030_000;
const BODY = '{"a":1}';
const hmac = (text: string, secret = SECRET): string =>
  createHmac("sha256", secret).update(text).digest("hex");
const relay = (body = BODY, at: string | number = AT) => ({
  "x-svc-signature": `sha256=${hmac(`${at}${body}`)}`,
  "x-svc-timestamp": String(at),
  "x-svc-delivery-id": "d",
});
const ALERT = JSON.stringify({ event: "monitor.down", timestamp: AT / 1000 });
const SECONDS = AT / 1000;
const event = { "x-svc-signature": `t=${SECONDS},v1=${hmac(`${SECONDS}.${BODY}`)}`, "x-svc-event-id": "e" };

/** What a test runner that gives each file globals of its own hands over. */
function elsewhere(bytes: Uint8Array): ArrayBuffer {
  return runInNewContext("Uint8Array.from(bytes).buffer", { bytes: [...bytes] });
}

describe("forms of headers and bodies", () => {
  const signed = relay();
  test.each<[string, Parameters<typeof verifyDelivery>[0]]>([
    ["Headers", new Headers(signed)],
    [
      "a plain object, whatever its case",
      {
        "X-Svc-Signature": signed["x-svc-signature"],
        "X-SVC-Timestamp": String(AT),
        "X-Svc-Delivery-Id": "d",
      },
    ],
    [
      "Node's, with lists and undefined",
      { ...signed, "set-cookie": ["a", "b"], other: undefined, "x-svc-delivery-id": ["d"] },
    ],
  ])("%s", async (_, headers) => {
    expect(await verifyDelivery(headers, BODY, SECRET, { now: AT })).toMatchObject({
      kind: "relay",
      id: "d",
    });
  });

  const bytes = Buffer.from(BODY);
  test.each<[string, string | Uint8Array | ArrayBuffer]>([
    ["a text", BODY],
    ["a Buffer", bytes],
    ["bytes", new Uint8Array(bytes)],
    ["a part of bytes", new TextEncoder().encode(`xx${BODY}yy`).subarray(2, 2 + BODY.length)],
    ["an ArrayBuffer", new Uint8Array(bytes).buffer],
    ["an ArrayBuffer of another realm", elsewhere(bytes)],
  ])("%s", async (_, body) => {
    expect((await verifyDelivery(signed, body, SECRET, { now: AT })).text).toBe(BODY);
  });

  test.each([[""], [[]], [["a", ""]], [undefined], [[undefined]]])("rejects the key %p", async (apiKey) => {
    const wrong = verifyDelivery(signed, BODY, apiKey as string, { now: AT });
    await expect(wrong).rejects.toThrow(
      new TypeError("apiKey must be the account's platform key, or a list of keys, none of them empty"),
    );
  });

  test("accepts a Map with names in lower case", async () => {
    const kinds = [relay(), event].map((headers) =>
      verifyDelivery(new Map(Object.entries(headers)) as never, BODY, SECRET, { now: AT }),
    );
    expect((await Promise.all(kinds)).map(({ kind, id }) => [kind, id])).toEqual([
      ["relay", "d"],
      ["event", "e"],
    ]);
    const none = verifyDelivery(new Map() as never, BODY, SECRET, { now: AT });
    await expect(none).rejects.toThrow("the header X-Svc-Signature is missing");
  });

  test("rejects a parsed body", async () => {
    const parsed = { a: 1 } as unknown as string;
    await expect(verifyDelivery(signed, parsed, SECRET, { now: AT })).rejects.toThrow(TypeError);
  });
});

describe("rejected deliveries", () => {
  test.each<[string, Record<string, string | string[]>, string, string]>([
    ["no signature", { "x-svc-timestamp": String(AT) }, BODY, "the header X-Svc-Signature is missing"],
    [
      "two signatures",
      { ...relay(), "x-svc-signature": [relay()["x-svc-signature"], "sha256=0"] },
      BODY,
      "the header X-Svc-Signature is missing",
    ],
    ["malformed", { ...relay(), "x-svc-signature": "sha1=00" }, BODY, "its X-Svc-Signature is malformed"],
    [
      "capital digits",
      { ...relay(), "x-svc-signature": relay()["x-svc-signature"].toUpperCase().replace("SHA", "sha") },
      BODY,
      "its X-Svc-Signature is malformed",
    ],
    [
      "another key",
      { ...relay(), "x-svc-signature": `sha256=${hmac(AT + BODY, "x")}` },
      BODY,
      "its signature is not valid",
    ],
    ["another body", relay(), '{"a":2}', "its signature is not valid"],
    ["another time", { ...relay(), "x-svc-timestamp": String(AT + 1) }, BODY, "its signature is not valid"],
    ["an invalid time", relay(BODY, "now"), BODY, "its X-Svc-Timestamp is malformed"],
    ["an event's body changed", event, '{"a":2}', "its signature is not valid"],
    // One form must not pass for another: the signatures of these do hold, over the same bytes cut elsewhere.
    ["digits moved into the time", relay("", `${AT}0`), "", "its X-Svc-Timestamp is malformed"],
    [
      "digits moved into the body",
      { ...relay(""), "x-svc-timestamp": String(AT).slice(0, 12) },
      "0",
      "its X-Svc-Timestamp is malformed",
    ],
    [
      "an event's as a scheduled one's",
      { "x-svc-signature": `sha256=${hmac(`${SECONDS}.${BODY}`)}`, "x-svc-timestamp": String(SECONDS) },
      `.${BODY}`,
      "its X-Svc-Timestamp is malformed",
    ],
    [
      "a scheduled one's as an alert's",
      { "x-svc-signature": relay()["x-svc-signature"] },
      AT + BODY,
      "it is not an alert of a monitor",
    ],
    [
      "one without body as an alert",
      { "x-svc-signature": relay("")["x-svc-signature"] },
      String(AT),
      "it is not an alert of a monitor",
    ],
    [
      "an alert without its header",
      { "x-svc-signature": `sha256=${hmac(ALERT)}` },
      ALERT,
      "its X-Svc-Event differs from the body",
    ],
    [
      "an alert without a time",
      { "x-svc-signature": `sha256=${hmac('{"event":"x"}')}`, "x-svc-event": "x" },
      '{"event":"x"}',
      "it is not an alert of a monitor",
    ],
  ])("%s", async (_, headers, body, why) => {
    const error = await verifyDelivery(headers, body, SECRET, { now: AT }).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "delivery_invalid", status: 0 });
    expect(error.message).toBe(`The delivery is not valid: ${why}.`);
  });

  test.each([
    [relay(), 300_000, true],
    [relay(), -300_000, true],
    [relay(), 300_001, false],
    [relay(), -300_001, false],
    [event, 300_000, true],
    [event, 300_001, false],
    [relay(), Number.NaN, false],
  ])("%o, %p ms later: %p", async (headers, laterMs, passes) => {
    const verified = verifyDelivery(headers, BODY, SECRET, { now: AT + laterMs }).then(
      () => true,
      () => false,
    );
    expect(await verified).toBe(passes);
  });

  test("accepts a custom tolerance", async () => {
    const at = (toleranceMs: number) =>
      verifyDelivery(relay(), BODY, SECRET, { now: AT + 1_000, toleranceMs });
    expect((await at(1_000)).kind).toBe("relay");
    await expect(at(999)).rejects.toThrow("it was signed 1000 ms ago");
    expect((await at(Number.POSITIVE_INFINITY)).kind).toBe("relay");
  });
});
