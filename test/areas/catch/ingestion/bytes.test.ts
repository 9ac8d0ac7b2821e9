import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { sendRaw } from "../../../support/raw-http.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { accepted, balanceOf, bucketOf, ingest, newBucket } from "../support.ts";

let server: TestServer;
beforeAll(async () => {
  // Many hostile requests: the bucket's limit is tested elsewhere.
  const scale = { ...DEFAULT_TIERS.scale, catchPerMinute: 1e6, requestsPerMinute: 1e6 };
  server = await startTestServer({ manualClock: true, config: { tiers: { ...DEFAULT_TIERS, scale } } });
});
afterAll(() => server.stop());

/** The event with its payload. */
async function wholeEvent(account: AccountClient, bucketId: string, eventId: string) {
  const { body } = await account.get(`/v1/catch/${bucketId}/events/${eventId}`);
  return {
    ...body,
    headers: body["headers"] as Record<string, string>,
    bytes: Buffer.from(String(body["payload_base64"]), "base64"),
  };
}

describe("exact bytes are stored", () => {
  test("of any bytes under any content type", async () => {
    const account = await server.account();
    const { id } = await newBucket(account);
    const type = fc.constantFrom(
      "application/json",
      "text/plain; charset=latin1",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/octet-stream",
      "nonsense",
    );
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), type, async (bytes, contentType) => {
        const event = await accepted(server, id, bytes, { "content-type": contentType });
        const kept = await wholeEvent(account, id, event);
        expect(kept.bytes.equals(Buffer.from(bytes))).toBe(true);
        expect(kept.headers["content-type"]).toBe(contentType);
      }),
      { numRuns: 60 },
    );
  });

  test("of chunked bodies", async () => {
    const account = await server.account();
    const { id } = await newBucket(account);
    const head = `POST /v1/catch/${id} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const answer = await sendRaw(server.url, [head, "3\r\na\r\n\r\n", "2\r\n\u0000\x7f\r\n0\r\n\r\n"]);
    const { bytes } = await wholeEvent(account, id, String(answer?.body["event_id"]));
    expect(bytes.toString("latin1")).toBe("a\r\n\u0000\x7f");
  });

  test("of requests without a body", async () => {
    const account = await server.account();
    const { id } = await newBucket(account);
    const answer = await sendRaw(server.url, [`POST /v1/catch/${id} HTTP/1.1\r\nHost: x\r\n\r\n`]);
    const kept = await wholeEvent(account, id, String(answer?.body["event_id"]));
    expect(kept.bytes.length).toBe(0);
  });

  test("with headers, joining repeated ones", async () => {
    const account = await server.account();
    const { id } = await newBucket(account);
    const answer = await sendRaw(server.url, [
      `POST /v1/catch/${id}?x=1 HTTP/1.1\r\nHost: x\r\nX-One: 1\r\nx-one: 2\r\n__proto__: p\r\nconstructor: c\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n` +
        "X-Latin: \u00e9\r\nContent-Length: 0\r\n\r\n",
    ]);
    const { headers } = await wholeEvent(account, id, String(answer?.body["event_id"]));
    expect(headers["x-one"]).toBe("1, 2");
    expect(headers["set-cookie"]).toBe("a=1,b=2");
    expect(headers["constructor"]).toBe("c");
    expect(Object.getOwnPropertyDescriptor(headers, "__proto__")?.value).toBe("p");
    expect(typeof headers["x-latin"]).toBe("string");
  });
});

describe("hostile requests", () => {
  test("return 200 and break nothing", async () => {
    const account = await server.account();
    const secured = await newBucket(account, { signing_secret: "whsec_c2VjcmV0" });
    const open = await newBucket(account, { provider: "stripe", signing_secret: "s" });
    const names = fc.constantFrom(
      ...["stripe-signature", "x-hub-signature-256", "x-shopify-hmac-sha256", "svix-signature", "svix-id"],
      ...["svix-timestamp", "content-type", "content-encoding", "expect", "x-anything", "cookie", "accept"],
    );
    const value = fc.string({
      unit: fc.constantFrom(...'\t !=,;:v1t.0aZ/+\u00ff\u0080%"{'.split("")),
      maxLength: 120,
    });
    const headers = fc.array(fc.tuple(names, value), { maxLength: 12 });
    const bucket = fc.constantFrom(
      secured.id,
      open.id,
      "nobody-knows-000000",
      "%",
      "%zz",
      "%ff",
      "a b",
      "..;",
    );
    await fc.assert(
      fc.asyncProperty(bucket, headers, fc.uint8Array({ maxLength: 300 }), async (id, pairs, body) => {
        const lines = pairs.map(([name, text]) => `${name}: ${text}`.replace(/[\r\n]/g, ""));
        const path = id.replaceAll(" ", "+");
        const head = [
          `POST /v1/catch/${path} HTTP/1.1`,
          "Host: x",
          ...lines,
          `Content-Length: ${body.length}`,
        ];
        const answer = await sendRaw(server.url, [
          Buffer.from(`${head.join("\r\n")}\r\n\r\n`, "latin1"),
          body,
        ]);
        // Null: requests that are not HTTP have no response.
        if (answer === null || answer.status === 200) return;
        // Requests to buckets that do not exist are limited.
        expect([secured.id, open.id], head.join("\n")).not.toContain(id);
        expect(answer).toMatchObject({ status: 429, body: { status: "rate_limited" } });
      }),
      { numRuns: 150 },
    );
    expect(server.logs.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("a client that disconnects in the middle of its body leaves no event", async () => {
    const account = await server.account({ balance: 10 });
    const { id } = await newBucket(account);
    const head = `POST /v1/catch/${id} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf of it`;
    expect(await sendRaw(server.url, [head], 100)).toBeNull();
    expect((await ingest(server, id)).status).toBe("accepted");
    expect((await bucketOf(account, id)).events.pending).toBe(1);
    expect(await balanceOf(account)).toBe(9);
    expect(server.logs.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("other methods on the public path are not endpoints", async () => {
    const { id } = await newBucket(await server.account());
    for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
      expect((await server.client(null).send(method, `/v1/catch/${id}`)).status).toBe(401);
      expect((await server.operator.send(method, `/v1/catch/${id}`)).status).toBe(404);
    }
  });
});
