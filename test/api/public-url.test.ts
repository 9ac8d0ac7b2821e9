import { describe, expect, test } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import { StartupError } from "../../src/kernel/errors.ts";
import { useTestServer } from "../support/server.ts";

const PUBLIC_URL = "https://example.com/ninefold";
const server = useTestServer({ manualClock: true, args: ["--public-url", PUBLIC_URL] });

describe("a public URL with a path prefix", () => {
  test("starts every URL in responses", async () => {
    const account = await server.account();
    const bucket = await account.post("/v1/catch/buckets", { target_url: "https://example.com/" });
    expect(bucket.body["ingest_url"]).toBe(`${PUBLIC_URL}/v1/in/${bucket.body["id"]}`);
    const heartbeat = await account.post("/v1/pulse", { type: "heartbeat" });
    expect(heartbeat.body["ping_url"]).toStartWith(`${PUBLIC_URL}/ping/`);
    const page = await account.post("/v1/pulse/pages", { slug: "prefixed", title: "Prefixed" });
    expect(page.body["url"]).toBe(`${PUBLIC_URL}/status/prefixed`);
    const feed = await server.client(null).get("/status/prefixed/feed.atom");
    expect(feed.text).toContain(
      `<link rel="alternate" type="text/html" href="${PUBLIC_URL}/status/prefixed"/>`,
    );
    const link = await server.operator.post("/v1/admin/login-links", {});
    expect(link.body["url"]).toStartWith(`${PUBLIC_URL}/dashboard/#/setup/`);
    const flags = await account.post("/ofrep/v1/evaluate/flags", {});
    const [stream] = flags.body["eventStreams"] as { url: string }[];
    expect(stream?.url).toStartWith(`${PUBLIC_URL}/ofrep/v1/events`);
  });

  test("is the server in the description of the API", async () => {
    const { body } = await server.client(null).get("/openapi.json");
    expect(body["servers"]).toEqual([{ url: PUBLIC_URL }]);
  });

  test("is the origin of the server's pages", async () => {
    const { key } = await server.account();
    const own = { "x-ninefold-session": "1", "sec-fetch-site": "same-origin" };
    const from = (origin: string) =>
      server.client(null).post("/v1/session", { key }, { headers: { ...own, origin } });
    expect((await from("https://example.com")).status).toBe(201);
    expect((await from("https://other.example.com")).status).toBe(403);
  });
});

describe("--public-url", () => {
  const given = (url: string) => loadConfig(["--public-url", url], {}).publicUrl;

  test.each(["https://n.example.com", "http://127.0.0.1:9909", PUBLIC_URL, "https://example.com/a/b-c"])(
    "may be %s",
    (url) => expect(given(url)).toBe(url),
  );

  test.each([
    "https://example.com/",
    "https://example.com/a/",
    "https://example.com/a?b",
    "https://example.com/a#b",
    "https://example.com/a/../b",
    "https://ann@example.com",
    "ftp://example.com",
    "example.com",
  ])("is not %s", (url) => expect(() => given(url)).toThrow(StartupError));
});
