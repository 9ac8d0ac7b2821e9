import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { XMLValidator } from "fast-xml-parser";
import { HtmlValidate } from "html-validate";
import { CACHE_BYTES_MAX, StatusCache } from "../../../src/areas/status-pages/cache.ts";
import { INCIDENTS_MAX, UPDATES_SHOWN } from "../../../src/areas/status-pages/events.ts";
import { RENDER_INTERVAL_MS } from "../../../src/areas/status-pages/public-pages.ts";
import { TEXT_BYTES_MAX } from "../../../src/areas/status-pages/text-budget.ts";
import { LINKS_MAX, linksOf, paragraphs } from "../../../src/kernel/data/markup.ts";
import { TaggedText } from "../../../src/kernel/http/responses/etag.ts";
import { expectError } from "../../support/errors.ts";
import { leastMs, longestTurnMs, processorMs, TURN_MS_MAX } from "../../support/processor-time.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

const UPDATES = 99;
/** The longest message, full of short links: each grows to seven times its length. */
const HOSTILE = "http://a ".repeat(555);
/** Size of a page without user-written texts. */
const FRAME_BYTES = 64 * 1024;
/** A tenth of the time that a page without limits takes, and ten times the time with limits. */
const RENDER_MS_MAX = 800;

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ tier: "scale" });
});
afterAll(() => server.stop());

/** Stores updates without their links, as earlier versions did. */
async function addUpdates(message: string, count: number): Promise<void> {
  const { db, writer } = server.server.kernel;
  const insert = db.change<[{ readonly message: string; readonly count: number }]>(
    `INSERT INTO incident_updates (incident_ref, number, at, status, message)
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $count)
     SELECT ref, i, 1, 'investigating', $message FROM incidents, n`,
  );
  await writer.submit((tx) => insert(tx, { message, count }));
}

async function open(more: object = {}): Promise<string> {
  const terms = { title: "Incident", public: true, ...more };
  const { status, text, body } = await account.post("/v1/pulse/incidents", terms);
  expect(status, text).toBe(201);
  return String(body["id"]);
}

async function read(path: string) {
  const { status, text } = await server.client(null).get(`/status/${path}`);
  expect(status, path).toBe(200);
  return text;
}

describe("a page with the maximum of user-written text", () => {
  const ids: string[] = [];
  beforeAll(async () => {
    await account.post("/v1/pulse/pages", { slug: "hostile", title: "Hostile" });
    for (let count = 0; count < INCIDENTS_MAX; count += 1) ids.push(await open());
    await addUpdates(HOSTILE, UPDATES);
  });

  test.each(["", ".json", "/feed.atom"])("is limited in bytes and renders fast: %s", async (suffix) => {
    await server.clock.advance(RENDER_INTERVAL_MS);
    let text = "";
    const rendering = await processorMs(async () => {
      text = await read(`hostile${suffix}`);
    });
    expect(rendering).toBeLessThan(RENDER_MS_MAX);
    expect(Buffer.byteLength(text)).toBeWithin(TEXT_BYTES_MAX / 4, TEXT_BYTES_MAX + FRAME_BYTES);
  });

  test("shows the newest updates of an incident and their number", async () => {
    const { incidents } = JSON.parse(await read("hostile.json"));
    expect(incidents).toHaveLength(INCIDENTS_MAX);
    expect(incidents[0]).toMatchObject({ id: ids.at(-1), updates_count: UPDATES });
    expect(incidents[0].updates).toHaveLength(UPDATES_SHOWN);
    const html = await read("hostile");
    expect(html).toContain(`href="hostile/incidents/${ids[0]}"`);
    expect(html).toContain(`${UPDATES - UPDATES_SHOWN} earlier updates`);
  });

  test("the page of an incident shows further updates, within the same limit", async () => {
    const html = await read(`hostile/incidents/${ids[0]}`);
    expect(Buffer.byteLength(html)).toBeWithin(TEXT_BYTES_MAX / 4, TEXT_BYTES_MAX + FRAME_BYTES);
    expect(html).toContain("earlier updates not shown");
    const report = await new HtmlValidate({ extends: ["html-validate:standard"] }).validateString(html);
    expect(report.results.flatMap(({ messages }) => messages)).toEqual([]);
    expect(XMLValidator.validate(await read("hostile/feed.atom"))).toBe(true);
  });

  test.each([
    "hostile",
    "hostile/feed.atom",
    "hostile.json",
    "hostile/incidents/:id",
    "hostile/incidents/:id.json",
  ])("does not block the event loop: %s", async (path) => {
    const turn = async (): Promise<number> => {
      await server.clock.advance(RENDER_INTERVAL_MS);
      const request = new Request(`${server.url}/status/${path.replace(":id", ids[0] ?? "")}`);
      return longestTurnMs(async () => (await server.server.app.http.handle(request)).bytes());
    };
    expect(await leastMs(TURN_MS_MAX, turn)).toBeLessThanOrEqual(TURN_MS_MAX);
  });

  test("lists return the number of updates, a single incident returns the updates", async () => {
    const { body, text } = await account.get("/v1/pulse/incidents?limit=100");
    expect(text.length).toBeLessThan(INCIDENTS_MAX * 1_000);
    expect(body["incidents"]).toHaveLength(INCIDENTS_MAX);
    const [first] = body["incidents"] as Record<string, unknown>[];
    expect(first).toMatchObject({ updates_count: UPDATES });
    expect(first).not.toHaveProperty("updates");
    const one = await account.get(`/v1/pulse/incidents/${ids[0]}`);
    expect(one.body["updates"]).toHaveLength(UPDATES);
  });
});

describe("the page of an incident", () => {
  let other: AccountClient;
  beforeAll(async () => {
    other = await server.account({ tier: "scale" });
    await other.post("/v1/pulse/pages", { slug: "incidents", title: "Incidents" });
  });
  const opened = async (more: object = {}) => {
    const { body } = await other.post("/v1/pulse/incidents", { title: "One", public: true, ...more });
    return String(body["id"]);
  };

  test("shows all updates, newest first, as HTML and JSON", async () => {
    const id = await opened({ message: "first" });
    for (const message of ["second", "third", "fourth https://example.com/x."])
      await other.post(`/v1/pulse/incidents/${id}/updates`, { status: "identified", message });
    const html = await read(`incidents/incidents/${id}`);
    expect(html.indexOf("fourth")).toBeLessThan(html.indexOf("first"));
    expect(html).toContain('<a href="https://example.com/x" rel="nofollow noopener noreferrer">');
    expect(html).toContain('href="../../incidents"');
    const data = JSON.parse(await read(`incidents/incidents/${id}.json`));
    expect(data).toMatchObject({ id, title: "One", updates_count: 4, resolved_at: null });
    expect(data.updates.map(({ message }: { message: string }) => message)).toEqual([
      "first",
      "second",
      "third",
      "fourth https://example.com/x.",
    ]);
    const style = /href="(..\/..\/style-[0-9a-f]+\.css)"/.exec(html)?.[1] ?? "";
    const address = new URL(style, `${server.url}/status/incidents/incidents/${id}`);
    expect((await fetch(address)).status, address.href).toBe(200);
  });

  test("is not found if its status page does not show the incident", async () => {
    await server.clock.advance(60_000);
    const nobody = server.client(null);
    const hidden = await opened({ public: false });
    for (const path of [
      `incidents/incidents/${hidden}`,
      `incidents/incidents/${hidden}.json`,
      "incidents/incidents/inc_0",
      `hostile/incidents/${await opened()}`,
      `none/incidents/${await opened()}`,
    ])
      expectError(await nobody.get(`/status/${path}`), "not_found");
    const page = await nobody.get(`/status/incidents/incidents/${hidden}`, {
      headers: { accept: "text/html" },
    });
    expect([page.status, page.text.includes("Status page not found")]).toEqual([404, true]);
  });
});

describe("links", () => {
  test("are found in one pass, up to the limit", async () => {
    expect(linksOf("see https://example.com/x. http://b\nhttp:// https://c")).toEqual([
      4, 25, 27, 35, 44, 53,
    ]);
    expect(linksOf(HOSTILE)).toHaveLength(2 * LINKS_MAX);
    const long = `${"http://a.example/?".padEnd(5_000, "http://")} `.repeat(200);
    expect(await processorMs(() => linksOf(long))).toBeLessThan(500);
    expect(paragraphs("a http://b", []).text).toBe("<p>a http://b</p>");
  });

  test("are stored with their update", async () => {
    const id = await open({ message: "see https://example.com/x" });
    const stored = server.server.kernel.db.one<{ links: string }, [string]>(
      "SELECT links FROM incident_updates JOIN incidents ON ref = incident_ref WHERE incident_id = ?",
    )(id);
    expect(JSON.parse(stored?.links ?? "null")).toEqual([4, 25]);
  });
});

describe("the cache", () => {
  const pageAt = (slug: string) =>
    ({ slug, projectRef: 1, settings: {} }) as unknown as Parameters<StatusCache["add"]>[0];
  const text = (bytes: number) => async () => new TaggedText("x".repeat(bytes));

  test("is limited in bytes and drops the oldest page first", async () => {
    const cache = new StatusCache(10_000);
    await cache.text(cache.add(pageAt("one"), 0), "html", text(3_000));
    expect(cache.find("one")).not.toBeNull();
    await cache.text(cache.add(pageAt("two"), 0), "html", text(3_000));
    expect([cache.find("one"), cache.find("two")?.page.slug]).toEqual([null, "two"]);
    expect(cache.size).toBeLessThan(10_000);
    expect(CACHE_BYTES_MAX).toBeGreaterThan(100 * TEXT_BYTES_MAX);
  });

  test("renders once for concurrent requests, and stores one variant of a text", async () => {
    const cache = new StatusCache();
    const page = cache.add(pageAt("one"), 0);
    let rendered = 0;
    const render = async () => {
      rendered += 1;
      return new TaggedText("text");
    };
    const texts = await Promise.all([1, 2, 3].map(() => cache.text(page, "html", render)));
    expect([new Set(texts).size, rendered]).toEqual([1, 1]);
    const before = cache.size;
    for (let host = 0; host < 100; host += 1)
      await cache.text(page, "feed", async () => new TaggedText("text"), `http://${host}`);
    expect(cache.size).toBeLessThan(2 * before);
    cache.drop("one");
    expect(cache.size).toBe(0);
  });

  test("does not store a failed rendering", async () => {
    const cache = new StatusCache();
    const page = cache.add(pageAt("one"), 0);
    const fail = () => Promise.reject(new Error("failed"));
    await expect(cache.text(page, "html", fail)).rejects.toThrow("failed");
    expect(await cache.text(page, "html", text(1))).toBeInstanceOf(TaggedText);
  });
});

test("a compressed feed decompresses to the feed", async () => {
  const response = await fetch(`${server.url}/status/incidents/feed.atom`, {
    headers: { "accept-encoding": "gzip" },
    decompress: false,
  });
  expect(gunzipSync(await response.bytes()).toString()).toContain("<feed");
});

describe("the management API", () => {
  test("the overview counts open incidents, also manual ones", async () => {
    const owner = await server.account({ tier: "scale" });
    const { body } = await owner.post("/v1/pulse/incidents", { title: "Payments fail" });
    expect((await owner.get("/v1/overview")).body).toMatchObject({ incidents_open: 1 });
    await owner.post(`/v1/pulse/incidents/${body["id"]}/updates`, { status: "resolved" });
    expect((await owner.get("/v1/overview")).body).toMatchObject({ incidents_open: 0 });
  });

  test("the error for an unavailable slug reveals nothing about the other page", async () => {
    const owner = await server.account({ tier: "scale" });
    await owner.post("/v1/pulse/pages", { slug: "unseen", title: "Unseen", published: false });
    const taken = await account.post("/v1/pulse/pages", { slug: "unseen", title: "Mine" });
    expectError(taken, "page_slug_taken");
    expect(taken.text).not.toContain("page of");
  });
});

test("a title that was written for an automatic incident is shown", async () => {
  const owner = await server.account({ tier: "scale" });
  const monitor = { url: "https://secret.example.com/", interval: 300_000, name: "Shop" };
  const { body } = await owner.post("/v1/pulse", monitor);
  const groups = [{ name: "", monitor_ids: [body["id"]] }];
  const page = { slug: "titles", title: "T", groups, publish_incidents: "all" };
  expect((await owner.post("/v1/pulse/pages", page)).status).toBe(201);
  await owner.post(`/v1/pulse/${body["id"]}/check`);
  const { incidents } = (await owner.get("/v1/pulse/incidents")).body as { incidents: { id: string }[] };
  expect(incidents).toHaveLength(1);
  const titles = async () => {
    await server.clock.advance(RENDER_INTERVAL_MS);
    const data = JSON.parse(await read("titles.json")) as { incidents: { title: string }[] };
    return data.incidents.map(({ title }) => title);
  };
  expect(await titles()).toEqual(["Shop is down"]);
  await owner.patch(`/v1/pulse/incidents/${incidents[0]?.id}`, { public: true });
  expect(await titles()).toEqual(["Shop is down"]);
  await owner.patch(`/v1/pulse/incidents/${incidents[0]?.id}`, { title: "Payments fail" });
  expect(await titles()).toEqual(["Payments fail"]);
});

test("lists return pages without groups, a single page returns them", async () => {
  const owner = await server.account({ tier: "scale" });
  const monitor = await owner.post("/v1/pulse", { url: "https://a.example.com/", interval: 300_000 });
  const groups = [{ name: "Shop", monitor_ids: [String(monitor.body["id"])] }];
  const { body: made } = await owner.post("/v1/pulse/pages", { slug: "listed", title: "Listed", groups });
  const { groups: _groups, logo: _logo, ...summary } = made;
  expect((await owner.get("/v1/pulse/pages")).body["pages"]).toEqual([summary]);
  expect((await owner.get(`/v1/pulse/pages/${made["id"]}`)).body["groups"]).toEqual(groups);
});
