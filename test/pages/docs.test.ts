import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { expectError, UUID_V7 } from "../support/errors.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const ORIGIN = "https://app.example.com";
const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ args: ["--cors-origins", ORIGIN] });
});
afterAll(() => server.stop());

/** The answer as it came over the wire: neither decompressed nor followed. */
function raw(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> {
  return fetch(server.url + path, { method, headers, redirect: "manual", decompress: false });
}

/** The addresses that the page loads, as paths of this server. */
async function linked(): Promise<string[]> {
  const html = await (await raw("/docs", { "accept-encoding": "identity" })).text();
  const addresses = [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, address]) => address ?? "");
  return addresses
    .filter((address) => !address.startsWith("data:"))
    .map((address) => new URL(address, `${server.url}/docs`).pathname);
}

describe("the root path", () => {
  test("redirects a browser", async () => {
    const answer = await raw("/", HTML);
    expect(answer.status).toBe(302);
    expect(answer.headers.get("location")).toBe("dashboard/");
    expect(answer.headers.get("vary")).toBe("Accept, Origin");
  });

  test.each(["*/*", "application/json", ""])("returns 404 to other clients (%p)", async (accept) => {
    const answer = await server.client(null).get("/", { headers: { accept } });
    const { error } = expectError(answer, "not_found");
    expect(error.message).toBe("There is no GET /.");
  });

  test.each(["/", "/docs", "/docs/page.js"])("only GET and HEAD: %s", async (path) => {
    expectError(await server.client(null).post(path), "not_found");
    expect((await raw(path, HTML, "HEAD")).status).toBeLessThan(400);
  });
});

describe("the page", () => {
  test("is public HTML with a policy that allows only its own files", async () => {
    const answer = await raw("/docs");
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("x-request-id")).toMatch(UUID_V7);
    expect(answer.headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  });

  test("names no other host, and neither inline scripts nor inline styles", async () => {
    const html = await (await raw("/docs", { "accept-encoding": "identity" })).text();
    expect(html).toContain("<title>Ninefold API</title>");
    expect(html.replace("http://www.w3.org/2000/svg", "")).not.toMatch(/https?:|\{\{/);
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|style=| on\w+=/);
  });

  test("links only to existing files", async () => {
    const paths = await linked();
    expect(paths).toContain("/openapi.json");
    expect(paths.filter((path) => path.endsWith(".js")).length).toBe(2);
    expect(paths.filter((path) => path.endsWith(".css")).length).toBe(2);
    for (const path of paths) {
      const answer = await raw(path, { "accept-encoding": "identity" });
      expect(answer.status, path).toBe(200);
      expect((await answer.bytes()).length, path).toBeGreaterThan(50);
    }
  });

  test("files with a version in their path are immutable, others are revalidated", async () => {
    const paths = (await linked()).filter((path) => /\.(js|css|txt)$/.test(path));
    expect(paths.length).toBe(6);
    for (const path of paths) {
      const kept = (await raw(path)).headers.get("cache-control");
      const versioned = /\/swagger-ui-\d+\.\d+\.\d+[.-]/.test(path);
      expect(kept, path).toBe(versioned ? "public, max-age=31536000, immutable" : "no-cache");
    }
    expect((await raw("/docs")).headers.get("cache-control")).toBe("no-cache");
  });
});

describe("a file of the page", () => {
  const PATH = "/docs/page.js";

  test("is compressed for clients that accept it", async () => {
    const plain = await raw(PATH, { "accept-encoding": "identity" });
    const zipped = await raw(PATH, { "accept-encoding": "br, gzip;q=0.8" });
    expect(plain.headers.get("content-encoding")).toBeNull();
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    const [text, bytes] = [await plain.text(), await zipped.bytes()];
    expect(bytes.length).toBeLessThan(text.length);
    expect(new TextDecoder().decode(Bun.gunzipSync(new Uint8Array(bytes)))).toBe(text);
    expect(text).toContain("SwaggerUIBundle");
    for (const answer of [plain, zipped]) {
      expect(answer.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
      expect(answer.headers.get("vary")).toBe("Accept-Encoding, Origin");
      expect(answer.headers.get("etag")).toMatch(/^"[\w-]+"$/);
    }
    expect(plain.headers.get("etag")).not.toBe(zipped.headers.get("etag"));
  });

  test.each(["gzip;q=0", "gzip; q=0.000", "br", "x-gzip", ""])(
    "is not compressed for other clients: %p",
    async (accepted) => {
      const answer = await raw(PATH, { "accept-encoding": accepted });
      expect(answer.headers.get("content-encoding")).toBeNull();
      expect(await answer.text()).toContain("SwaggerUIBundle");
    },
  );

  test.each(["identity", "gzip"])("returns 304 for a matching ETag (%s)", async (encoding) => {
    const first = await raw(PATH, { "accept-encoding": encoding });
    const etag = first.headers.get("etag") ?? "";
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await raw(PATH, { "accept-encoding": encoding, "if-none-match": known });
      expect(again.status, known).toBe(304);
      expect(again.headers.get("etag")).toBe(etag);
      expect(again.headers.get("x-request-id")).toMatch(UUID_V7);
      expect(again.headers.get("content-type")).toBeNull();
      expect(await again.text()).toBe("");
    }
    const other = await raw(PATH, { "accept-encoding": encoding, "if-none-match": '"other"' });
    expect(other.status).toBe(200);
  });

  test("has different ETags for its two forms", async () => {
    const zipped = await raw(PATH, { "accept-encoding": "gzip" });
    const headers = { "accept-encoding": "identity", "if-none-match": zipped.headers.get("etag") ?? "" };
    expect((await raw(PATH, headers)).status).toBe(200);
  });

  test("returns the same headers and no body for HEAD", async () => {
    const [get, head] = [await raw(PATH), await raw(PATH, {}, "HEAD")];
    expect(head.status).toBe(200);
    expect(head.headers.get("etag")).toBe(get.headers.get("etag"));
    expect(await head.text()).toBe("");
  });
});
