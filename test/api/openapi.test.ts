import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { version } from "../../package.json" with { type: "json" };
import { leastMs, processorMs } from "../support/processor-time.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

function read(headers: Readonly<Record<string, string>>): Promise<Response> {
  return fetch(`${server.url}/openapi.json`, { headers, decompress: false });
}

describe("GET /openapi.json", () => {
  test("is compressed as the client accepts, with a separate ETag for each form", async () => {
    const plain = await read({ "accept-encoding": "identity" });
    const text = await plain.text();
    expect(JSON.parse(text).info.version).toBe(version);
    const gzip = await read({ "accept-encoding": "gzip, deflate" });
    const zstd = await read({ "accept-encoding": "gzip, deflate, br, zstd" });
    expect([plain, gzip, zstd].map(({ headers }) => headers.get("content-encoding"))).toEqual([
      null,
      "gzip",
      "zstd",
    ]);
    expect(new Set([plain, gzip, zstd].map(({ headers }) => headers.get("etag"))).size).toBe(3);
    expect(gunzipSync(await gzip.arrayBuffer()).toString()).toBe(text);
    expect(zstdDecompressSync(await zstd.arrayBuffer()).toString()).toBe(text);
    for (const { headers } of [plain, gzip, zstd]) {
      expect(headers.get("content-type")).toBe("application/json");
      expect(headers.get("vary")).toBe("Accept-Encoding");
      expect(headers.get("cache-control")).toBe("no-cache");
    }
  });

  test("returns 304 without a body for a matching ETag", async () => {
    const accepted = { "accept-encoding": "gzip" };
    const etag = (await read(accepted)).headers.get("etag") ?? "";
    const again = await read({ ...accepted, "if-none-match": etag });
    expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", etag]);
    expect((await read({ ...accepted, "if-none-match": '"other"' })).status).toBe(200);
  });

  test("is rendered once for fifty concurrent requests", async () => {
    await read({}).then((response) => response.arrayBuffer());
    const reading = () =>
      processorMs(async () => {
        const fifty = await Promise.all(
          Array.from({ length: 50 }, () => read({ "accept-encoding": "gzip" })),
        );
        const sizes = fifty.map(async (response) => (await response.arrayBuffer()).byteLength);
        expect(new Set(await Promise.all(sizes)).size).toBe(1);
      });
    // To write the text fifty times takes 300 ms.
    expect(await leastMs(150, reading)).toBeLessThanOrEqual(150);
  });
});
