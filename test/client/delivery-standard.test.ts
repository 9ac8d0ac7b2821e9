import { beforeAll, describe, expect, test } from "bun:test";
import { Ninefold, verifyDelivery } from "../../src/client/index.ts";
import { useDeliveries } from "./deliveries.ts";

const { server, sink, delivered, now } = useDeliveries();
let key = "";
let nf: Ninefold;
beforeAll(async () => {
  key = String((await server.account({ tier: "scale" })).key);
  nf = new Ninefold({ url: server.url, apiKey: key });
});

describe("verification by the project's secret", () => {
  test("accepts scheduled deliveries with any bytes; the id is signed", async () => {
    const { secret } = await nf.relay.secret();
    const order = { target_url: sink.url(), delay: "5s", method: "POST" } as const;
    const { relay_id } = await nf.relay.schedule({ ...order, body_base64: btoa("<no json/>") });
    const { headers, body } = await delivered(5_000);
    const delivery = await verifyDelivery(headers, body, secret, now());
    expect(delivery).toMatchObject({ kind: "relay", id: relay_id, event: null, text: "<no json/>" });
    expect(delivery.signedAt).toBe(1_000 * Math.floor(server.clock.now() / 1_000));
    // Nor does the old form ask for JSON.
    expect(await verifyDelivery(headers, body, key, now())).toMatchObject({
      kind: "relay",
      id: relay_id,
    });
    const other = new Headers(headers);
    other.set("webhook-id", "another");
    const holdsNot = "its signature is not valid";
    await expect(verifyDelivery(other, body, secret, now())).rejects.toThrow(holdsNot);
    await expect(verifyDelivery(headers, `${body} `, secret, now())).rejects.toThrow(holdsNot);
    // With the old headers gone it is verified all the same.
    for (const name of [...other.keys()]) if (name.startsWith("x-svc-")) headers.delete(name);
    expect((await verifyDelivery(headers, body, secret, now())).id).toBe(relay_id);
  });

  test("accepts alerts, signed at the attempt, and events", async () => {
    const { secret } = await nf.relay.secret();
    sink.answersBy(({ path }) => (path === "/alerts" ? 200 : 500));
    const terms = { url: sink.url("/health"), interval: 60_000, webhook_url: sink.url("/alerts") };
    const { id } = await nf.monitors.create(terms);
    await server.clock.advance(5_000);
    const alert = sink.received.splice(0).find(({ path }) => path === "/alerts");
    await nf.monitors.delete(id);
    const { headers, body } = alert ?? { headers: new Headers(), body: "" };
    const delivery = await verifyDelivery(headers, body, secret, now());
    expect(delivery).toMatchObject({ kind: "alert", event: "monitor.down", id: headers.get("webhook-id") });
    const late = { now: delivery.signedAt + 300_001 };
    await expect(verifyDelivery(headers, body, secret, late)).rejects.toThrow("it was signed 300001 ms ago");
    sink.answersBy(() => 200);
    const bucket = await nf.catch.buckets.create({ target_url: sink.url() });
    await nf.catch.buckets.update(bucket.id, { state: "live" });
    const { event_id } = await nf.catch.send(bucket.id, "no json");
    const event = await delivered(1);
    expect(await verifyDelivery(event.headers, event.body, secret, now())).toMatchObject({
      kind: "event",
      id: String(event_id),
      text: "no json",
    });
  });

  test("accepts either secret during a rotation, and key or secret during a migration", async () => {
    const { secret } = await nf.relay.secret();
    const { secret: next } = await nf.relay.rotateSecret();
    await nf.relay.schedule({ target_url: sink.url(), method: "POST", delay: "1s" });
    const { headers, body } = await delivered(1_000);
    for (const keys of [secret, next, [next, secret], [key, next], ["sm_other", secret]])
      expect((await verifyDelivery(headers, body, keys, now())).kind).toBe("relay");
    const old = new Headers(headers);
    for (const name of [...headers.keys()]) if (name.startsWith("webhook-")) old.delete(name);
    expect((await verifyDelivery(old, body, [key, next], now())).kind).toBe("relay");
    const forged = new Headers(headers);
    forged.set("webhook-signature", "v1,AAAA");
    expect((await verifyDelivery(forged, body, [key, next], now())).kind).toBe("relay");
    await expect(verifyDelivery(forged, body, ["sm_other", next], now())).rejects.toThrow("is not valid");
    await expect(verifyDelivery(old, body, next, now())).rejects.toThrow("the header webhook-id");
  });
});

describe("rejected deliveries", () => {
  const WHSEC = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
  const STANDARD = {
    "webhook-id": "msg_01",
    "webhook-timestamp": "1767225600",
    "webhook-signature": "v1,KrauGVXZBiowSs6RfXWt79f6ng26u47RjX3oClAS1A0=",
  };
  const STANDARD_BODY = '{"id":"evt_1","type":"invoice.paid"}';
  const STANDARD_AT = 1_767_225_600_000;
  test.each<[string, object, string | null]>([
    ["the specification's", {}, null],
    ["one among others", { "webhook-signature": `v1a,x v1,AAAA ${STANDARD["webhook-signature"]} v2,` }, null],
    ["no id", { "webhook-id": undefined }, "the header webhook-id is missing"],
    ["an empty id", { "webhook-id": "" }, "the header webhook-id is missing"],
    ["no time", { "webhook-timestamp": undefined }, "the header webhook-timestamp is missing"],
    ["no signature", { "webhook-signature": undefined }, "the header webhook-signature is missing"],
    ["milliseconds", { "webhook-timestamp": `${STANDARD_AT}` }, "its webhook-timestamp is malformed"],
    ["an invalid time", { "webhook-timestamp": "now" }, "its webhook-timestamp is malformed"],
    ["another time", { "webhook-timestamp": "1767225601" }, "its signature is not valid"],
    [
      "a part moved",
      { "webhook-id": "msg_01.1767225600", "webhook-timestamp": "1767225600" },
      "its signature is not valid",
    ],
    [
      "a signature cut",
      { "webhook-signature": STANDARD["webhook-signature"].slice(0, -1) },
      "its signature is not valid",
    ],
    [
      "another version",
      { "webhook-signature": STANDARD["webhook-signature"].replace("v1", "v2") },
      "its signature is not valid",
    ],
    ["an event in a header alone", { "x-svc-event": "monitor.down" }, "it is not an alert of a monitor"],
  ])("Standard Webhooks: %s", async (_, change, why) => {
    const headers = { ...STANDARD, ...change };
    const verified = verifyDelivery(headers, STANDARD_BODY, WHSEC, { now: STANDARD_AT });
    if (why === null) expect(await verified).toMatchObject({ id: "msg_01", signedAt: STANDARD_AT });
    else await expect(verified).rejects.toThrow(`The delivery is not valid: ${why}.`);
  });

  test("Standard Webhooks: accepts five minutes in either direction", async () => {
    for (const [laterMs, passes] of [
      [300_000, true],
      [-300_000, true],
      [300_001, false],
      [-300_001, false],
    ] as const) {
      const now = STANDARD_AT + laterMs;
      const verified = verifyDelivery(STANDARD, STANDARD_BODY, WHSEC, { now }).then(
        () => true,
        () => false,
      );
      expect(await verified).toBe(passes);
    }
  });

  test.each(["whsec_", "whsec_!", "whsec_A"])("rejects the secret %p", async (secret) => {
    const wrong = verifyDelivery(STANDARD, STANDARD_BODY, secret, { now: STANDARD_AT });
    await expect(wrong).rejects.toThrow(TypeError);
  });
});
