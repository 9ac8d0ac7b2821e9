import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { CODINGS_MAX, DECODED_BYTES_MAX } from "../../../../src/kernel/data/content.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { accepted, eventOf, ingest, LOOPBACK_ALLOWED, newBucket, Receiver, setState } from "../support.ts";

let server: TestServer;
let account: AccountClient;
let receiver: Receiver;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
  account = await server.account({ balance: 1_000 });
  receiver = new Receiver();
});
beforeEach(() => {
  receiver.hits.length = 0;
});
afterAll(async () => {
  await receiver.stop();
  await server.stop();
});

const BODY = '{"id":"evt_1","type":"order.paid","amount":120,"note":"Grüße, 世界"}';
const GZIP = { "content-encoding": "gzip", "content-type": "application/json" };
/** A sender whose ids and types are members of the body. */
const BY_MEMBERS = {
  provider: "custom",
  signature: {
    header: "X-Sig",
    algorithm: "hmac-sha256",
    template: "{body}",
    event_id: "/id",
    event_type: "/type",
  },
};

describe("a body with a content coding", () => {
  test("is forwarded, replayed and streamed with the same bytes and its Content-Encoding", async () => {
    const sent = gzipSync(BODY);
    const { id } = await newBucket(account, { target_url: receiver.url });
    await setState(account, id, "live");
    const event = await accepted(server, id, sent, GZIP);
    await server.clock.advance(1_000);
    await account.post(`/v1/catch/${id}/events/${event}/replay`);
    await account.post(`/v1/catch/${id}/replays`, {});
    await server.clock.advance(2_000);
    expect(receiver.hits).toHaveLength(3);
    for (const { headers, body } of receiver.hits) {
      expect([headers.get("content-encoding"), headers.get("content-type")]).toEqual([
        "gzip",
        "application/json",
      ]);
      expect(body.equals(sent)).toBe(true);
    }
    const stream = await account.get(`/v1/catch/${id}/stream?after=beginning`);
    const [streamed] = stream.body["events"] as { headers: Record<string, string>; payload_base64: string }[];
    expect(streamed?.headers["content-encoding"]).toBe("gzip");
    expect(Buffer.from(streamed?.payload_base64 ?? "", "base64").equals(sent)).toBe(true);
    const raw = await server.client(account.key).get(`/v1/catch/${id}/events/${event}`);
    expect(raw.body).toMatchObject({ size_bytes: sent.length, payload: JSON.parse(BODY) });
  });

  test("arrives at endpoints with it, also when a delivery is resent", async () => {
    const endpoint = await account.post("/v1/relay/endpoints", { url: receiver.url, retry_schedule: [] });
    const targets = [{ endpoint_id: endpoint.body["endpoint_id"], filter: { amount: { $gte: 100 } } }];
    const { id } = await newBucket(account, { target_url: null, targets });
    await setState(account, id, "live");
    await accepted(server, id, gzipSync(BODY.replace("120", "99")), GZIP);
    const sent = gzipSync(BODY);
    const event = await accepted(server, id, sent, GZIP);
    receiver.respond = () => 500;
    await server.clock.advance(1_000);
    receiver.respond = () => 200;
    const [delivery] = (await eventOf(account, id, event)).deliveries;
    expect((await account.post(`/v1/relay/${delivery?.relay_id}/resend`)).status).toBeLessThan(300);
    await server.clock.advance(1_000);
    expect(receiver.hits).toHaveLength(2);
    for (const { headers, body } of receiver.hits)
      expect([headers.get("content-encoding"), body.equals(sent)]).toEqual(["gzip", true]);
  });

  const chunked = (text: string) => gzipSync(deflateSync(text));
  test.each([
    ["gzip", gzipSync],
    ["x-gzip", gzipSync],
    ["GZIP", gzipSync],
    ["deflate", deflateSync],
    ["deflate", deflateRawSync],
    ["br", brotliCompressSync],
    ["zstd", zstdCompressSync],
    ["identity", (text: string) => Buffer.from(text)],
    ["UTF-8", (text: string) => Buffer.from(text)],
    ["none, gzip", gzipSync],
    ["deflate, gzip", chunked],
  ] as const)("%s: ids, types, payloads and search read what was encoded", async (coding, encode) => {
    const { id } = await newBucket(account, {
      ...BY_MEMBERS,
      signing_secret: "s3cr3t",
      deduplicate_hours: 1,
    });
    const body = Buffer.from(encode(BODY));
    const headers = {
      "content-encoding": coding,
      "x-sig": createHmac("sha256", "s3cr3t").update(body).digest("hex"),
    };
    const event = await accepted(server, id, body, headers);
    expect(await ingest(server, id, body, headers)).toMatchObject({
      status: "duplicate",
      verification: "valid",
    });
    expect(await eventOf(account, id, event)).toMatchObject({
      event_type: "order.paid",
      provider_event_id: "evt_1",
      payload: JSON.parse(BODY),
    });
    const found = await account.get(`/v1/catch/${id}/events?q=gr%C3%BC%C3%9Fe`);
    expect(found.body["events"]).toHaveLength(1);
  });

  test.each([
    ["gzip", Buffer.from(BODY)],
    ["gzip", gzipSync(BODY).subarray(0, 20)],
    ["unknown", Buffer.from(BODY)],
    [
      Array(CODINGS_MAX + 1)
        .fill("gzip")
        .join(),
      gzipSync(gzipSync(gzipSync(BODY))),
    ],
    ["gzip", gzipSync(JSON.stringify({ id: "evt_1", pad: "x".repeat(DECODED_BYTES_MAX) }))],
    ["gzip", gzipSync(Buffer.alloc(32 * 1024 * 1024))],
    ["br", brotliCompressSync(Buffer.alloc(4 * 1024 * 1024))],
  ])(
    "%s that cannot be decoded within the limit is stored as it is, without id and type",
    async (coding, body) => {
      const { id } = await newBucket(account, { ...BY_MEMBERS, deduplicate_hours: 1 });
      const event = await accepted(server, id, body, { "content-encoding": coding });
      const stored = await eventOf(account, id, event);
      expect(stored).toMatchObject({ provider_event_id: null, event_type: null, size_bytes: body.length });
      expect(Buffer.from(String(stored.payload_base64), "base64").equals(body)).toBe(true);
      expect((await account.get(`/v1/catch/${id}/events?q=evt_1`)).body["events"]).toHaveLength(0);
    },
  );

  test("is read up to the limit", async () => {
    const { id } = await newBucket(account, BY_MEMBERS);
    const padded = (bytes: number) => {
      const start = '{"id":"evt_1","pad":"';
      return gzipSync(`${start}${"x".repeat(bytes - start.length - 2)}"}`);
    };
    const idOf = async (bytes: number) =>
      (await eventOf(account, id, await accepted(server, id, padded(bytes), GZIP))).provider_event_id;
    expect([await idOf(DECODED_BYTES_MAX), await idOf(DECODED_BYTES_MAX + 1)]).toEqual(["evt_1", null]);
  });
});

describe("a body in a charset", () => {
  const utf16 = (text: string, mark = "") => Buffer.from(mark + text, "utf16le");
  test.each([
    ["application/json; charset=ISO-8859-1", Buffer.from('{"id":"Grüße"}', "latin1"), "Grüße"],
    [
      'application/json;charset="windows-1252"',
      Buffer.from([...Buffer.from('{"id":"'), 0x80, ...Buffer.from('"}')]),
      "€",
    ],
    [
      "application/json; charset=GBK",
      Buffer.from([...Buffer.from('{"id":"'), 0xca, 0xc0, 0xbd, 0xe7, ...Buffer.from('"}')]),
      "世界",
    ],
    ["application/json; charset=utf-16le", utf16('{"id":"世界"}'), "世界"],
    ["application/json", utf16('{"id":"世界"}', "\ufeff"), "世界"],
    ["application/json", utf16('{"id":"世界"}', "\ufeff").swap16(), "世界"],
    ["application/json", Buffer.from('\ufeff{"id":"é"}'), "é"],
    ["application/json; charset=UTF8", Buffer.from('{"id":"é"}'), "é"],
    ["application/json; charset=x-unknown", Buffer.from('{"id":"é"}'), "é"],
  ])("%s", async (type, body, expected) => {
    const { id } = await newBucket(account, BY_MEMBERS);
    const event = await accepted(server, id, body, { "content-type": type });
    expect(await eventOf(account, id, event)).toMatchObject({
      provider_event_id: expected,
      payload: { id: expected },
    });
    const found = await account.get(`/v1/catch/${id}/events?q=${encodeURIComponent(expected)}`);
    expect(found.body["events"]).toHaveLength(1);
  });
});
