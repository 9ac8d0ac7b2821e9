import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { compressed } from "../../src/kernel/http/responses/compression.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ balance: 1_000 });
  for (let number = 0; number < 40; number += 1) {
    const description = `A description that is long enough for a list of some kilobytes, number ${number}`;
    await account.post("/v1/gate", { flag_key: `flag-${number}`, enabled: true, description });
  }
});
afterAll(() => server.stop());

/** Sends a request, and returns the response as it arrives: fetch does not decompress here. */
async function raw(
  path: string,
  encoding: string,
  more: Record<string, string> = {},
  init: RequestInit = {},
) {
  const headers = { authorization: `Bearer ${account.key}`, "accept-encoding": encoding, ...more };
  const response = await fetch(server.url + path, { ...init, headers, decompress: false });
  return { response, bytes: new Uint8Array(await response.arrayBuffer()) };
}

const text = (bytes: Uint8Array<ArrayBuffer>): string => new TextDecoder().decode(bytes);

describe("responses above 1 KiB", () => {
  test("are compressed for clients that accept gzip", async () => {
    const plain = await raw("/v1/gate/config", "identity");
    expect(plain.response.headers.get("content-encoding")).toBeNull();
    expect(plain.response.headers.get("vary")).toContain("Accept-Encoding");
    const { response, bytes } = await raw("/v1/gate/config", "br, gzip");
    expect(response.headers.get("content-encoding")).toBe("gzip");
    expect(response.headers.get("vary")).toContain("Accept-Encoding");
    expect(bytes.length).toBeLessThan(plain.bytes.length / 3);
    expect(text(Bun.gunzipSync(bytes))).toBe(text(plain.bytes));
  });

  test("are not compressed for clients that reject gzip", async () => {
    for (const encoding of ["br", "gzip;q=0", ""])
      expect((await raw("/v1/gate/config", encoding)).response.headers.get("content-encoding")).toBeNull();
  });

  test("keep their ETag as a weak one, and return 304", async () => {
    const context = { method: "POST", body: JSON.stringify({ context: { targetingKey: "user-1" } }) };
    const { response } = await raw("/ofrep/v1/evaluate/flags", "gzip", {}, context);
    expect(response.headers.get("content-encoding")).toBe("gzip");
    const etag = response.headers.get("etag") ?? "";
    expect(etag).toStartWith('W/"');
    const again = await raw("/ofrep/v1/evaluate/flags", "gzip", { "if-none-match": etag }, context);
    expect(again.response.status).toBe(304);
    expect(again.bytes.length).toBe(0);
  });

  test("are compressed on another thread if they are large", async () => {
    const request = new Request(server.url, { headers: { "accept-encoding": "gzip" } });
    const of = (length: number) =>
      compressed({ status: 200, text: "x".repeat(length), headers: null }, request);
    expect(of(64 * 1024)).not.toBeInstanceOf(Promise);
    const large = of(64 * 1024 + 1);
    expect(large).toBeInstanceOf(Promise);
    const { bytes } = await large;
    expect(text(Bun.gunzipSync(bytes as Uint8Array<ArrayBuffer>))).toBe("x".repeat(64 * 1024 + 1));
  });
});

test("smaller responses are sent as they are", async () => {
  const { response } = await raw("/v1/meter/balance", "gzip");
  expect(response.headers.get("content-encoding")).toBeNull();
  expect(response.headers.get("vary")).toBeNull();
});

test("responses with secrets are not compressed: their size would reveal them", async () => {
  const name = "x".repeat(255);
  const scopes = Array.from({ length: 60 }, (_, number) => `scope-${number}:read-and-write`);
  const body = JSON.stringify({ prefix: "acme", name, scopes });
  const { response, bytes } = await raw("/v1/keys", "gzip", {}, { method: "POST", body });
  expect(response.status).toBe(201);
  expect(bytes.length).toBeGreaterThan(1_024);
  expect(response.headers.get("content-encoding")).toBeNull();
});
