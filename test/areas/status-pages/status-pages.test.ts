import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { HtmlValidate } from "html-validate";
import { RENDER_INTERVAL_MS } from "../../../src/areas/status-pages/public-pages.ts";
import { PUBLIC_PER_MINUTE } from "../../../src/areas/status-pages/public-routes.ts";
import { BADGE_LABEL_MAX, GROUPS_MAX } from "../../../src/areas/status-pages/schema.ts";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const MINUTE_MS = 60_000;
const HOSTILE = `<script>alert("1")</script> & 'x' \u0007`;

let server: TestServer;
let site: WebhookSink;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  site = new WebhookSink();
  account = await server.account();
});
afterAll(async () => {
  await server.stop();
  site.stop();
});

let slugs = 0;
/** Creates a page of monitors with these names, null for no name. Each monitor is checked once. */
async function pageOf(names: readonly (string | null)[], more: object = {}) {
  const monitor_ids: string[] = [];
  for (const name of names) {
    const body = {
      url: site.url(name === null ? "/unnamed" : "/named"),
      interval: 300_000,
      ...(name === null ? {} : { name }),
    };
    const created = await account.post("/v1/pulse", body);
    expect(created.status, created.text).toBe(201);
    monitor_ids.push(String(created.body["id"]));
  }
  await server.clock.advance(5_000);
  const slug = `public-${++slugs}`;
  const groups = [{ name: "Group", monitor_ids }];
  const created = await account.post("/v1/pulse/pages", { slug, title: "Acme", groups, ...more });
  expect(created.status, created.text).toBe(201);
  return { slug, id: String(created.body["id"]), monitor_ids };
}

let requests = 0;
/** Sends a request without a key. The clock advances before the rate limit is reached. */
async function look(path: string, headers: Record<string, string> = {}) {
  requests += 1;
  if (requests % (PUBLIC_PER_MINUTE / 2) === 0) await server.clock.advance(MINUTE_MS);
  return server.client(null).get(`/status/${path}`, { headers });
}

async function json(slug: string) {
  const { status, body } = await look(`${slug}.json`);
  expect(status).toBe(200);
  return body as {
    status: string;
    sentence: string;
    first_day: string;
    groups: { number: number; name: string; monitors: Record<string, unknown>[] }[];
  };
}

describe("without a key", () => {
  test("the page is public, and caches may store it for half a minute", async () => {
    const { slug } = await pageOf(["Cached"]);
    const response = await look(slug);
    expect(response.status).toBe(200);
    const headers = Object.fromEntries(response.headers);
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "public, max-age=30",
      "content-security-policy":
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors *",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      refresh: "60",
    });
    expect((await look(`${slug}.json`)).headers.get("refresh")).toBeNull();
    expect(response.text).toContain("All systems operational");
  });

  test.each([
    ["", "text/html; charset=utf-8"],
    [".json", "application/json"],
    ["/feed.atom", "application/atom+xml; charset=utf-8"],
    ["/maintenance.ics", "text/calendar; charset=utf-8"],
    ["/badge/1.svg", "image/svg+xml; charset=utf-8"],
    ["/badge/1.json", "application/json"],
    ["/badge.svg", "image/svg+xml; charset=utf-8"],
    ["/badge.json", "application/json"],
    ["/groups/1.json", "application/json"],
    ["/groups/1/badge.svg", "image/svg+xml; charset=utf-8"],
    ["/groups/1/badge.json", "application/json"],
  ])("a matching ETag gets 304, and HEAD works: %s", async (suffix, type) => {
    const { slug } = await pageOf([`Tagged ${suffix}`]);
    const path = slug + suffix;
    for (const encoding of ["gzip", "identity"]) {
      const first = await look(path, { "accept-encoding": encoding });
      expect([first.status, first.headers.get("content-type")]).toEqual([200, type]);
      const etag = first.headers.get("etag") ?? "";
      const again = await look(path, { "accept-encoding": encoding, "if-none-match": `"other", W/${etag}` });
      expect([again.status, again.text, again.headers.get("etag")]).toEqual([304, "", etag]);
      expect(again.headers.get("cache-control")).toBe("public, max-age=30");
    }
    const head = await server.client(null).send("HEAD", `/status/${path}`);
    expect([head.status, head.text]).toEqual([200, ""]);
  });

  test("an unpublished page cannot be distinguished from one that does not exist", async () => {
    const { slug, id } = await pageOf(["Hidden"]);
    await account.patch(`/v1/pulse/pages/${id}`, { published: false });
    for (const suffix of [
      "",
      ".json",
      "/feed.atom",
      "/maintenance.ics",
      "/icon",
      "/badge/1.svg",
      "/badge/1.json",
      "/badge.svg",
      "/badge.json",
      "/groups/1.json",
      "/groups/1/badge.svg",
      "/groups/1/badge.json",
    ]) {
      const texts: string[] = [];
      for (const path of [slug, "never-made", "NO SLUG", "x".repeat(5_000)]) {
        const { status, text, headers } = await look(encodeURIComponent(path) + suffix);
        expect([status, headers.get("cache-control")]).toEqual([404, null]);
        texts.push(text.replace(/"request_id":"[^"]+"/, ""));
      }
      expect(new Set(texts).size, suffix).toBe(1);
    }
    for (const path of [slug, "never-made"]) {
      const { status, text } = await look(path, { accept: "text/html,*/*;q=0.8" });
      expect([status, text.includes("Status page not found")]).toEqual([404, true]);
    }
    await account.patch(`/v1/pulse/pages/${id}`, { published: true });
    expect((await look(slug)).status).toBe(200);
  });

  test("pages of a suspended account are not found", async () => {
    const other = await server.account();
    await other.post("/v1/pulse/pages", { slug: "suspended", title: "Acme" });
    expect((await look("suspended")).status).toBe(200);
    await server.operator.patch(`/v1/admin/accounts/${other.userId}`, { suspended: true });
    expect((await look("suspended")).status).toBe(404);
  });

  test("60 requests a minute are allowed, then 429 with Retry-After", async () => {
    const { slug } = await pageOf(["Busy"]);
    await server.clock.advance(MINUTE_MS);
    const nobody = server.client(null);
    for (let count = 0; count < PUBLIC_PER_MINUTE; count += 1)
      expect((await nobody.get(`/status/${slug}${count % 2 === 0 ? "" : "/feed.atom"}`)).status).toBe(200);
    const limited = await nobody.get(`/status/${slug}.json`);
    expectError(limited, "rate_limit_exceeded");
    expect(limited.headers.get("retry-after")).toBe("60");
    await server.clock.advance(MINUTE_MS);
    expect((await nobody.get(`/status/${slug}`)).status).toBe(200);
  });

  test("the stylesheet can be cached forever", async () => {
    const { slug } = await pageOf(["Styled"]);
    const style = /href="(style-[0-9a-f]+\.css)"/.exec((await look(slug)).text)?.[1] ?? "";
    const { status, headers } = await fetch(`${server.url}/status/${style}`);
    expect([status, headers.get("content-type")]).toEqual([200, "text/css; charset=utf-8"]);
    expect(headers.get("cache-control")).toContain("immutable");
  });
});

describe("content", () => {
  test("is cached for ten seconds, unless the page is updated", async () => {
    const { slug, id, monitor_ids } = await pageOf(["Standing"]);
    expect((await json(slug)).status).toBe("up");
    site.answers(503);
    await account.post(`/v1/pulse/${monitor_ids[0]}/check`);
    site.answers(200);
    await server.clock.advance(RENDER_INTERVAL_MS - 1);
    expect((await json(slug)).status).toBe("up");
    await server.clock.advance(1);
    expect(await json(slug)).toMatchObject({ status: "down", sentence: "Major outage" });
    await account.patch(`/v1/pulse/pages/${id}`, { title: "Renamed" });
    expect((await look(slug)).text).toContain("<h1>Renamed</h1>");
  });

  test("contains neither ids nor URLs nor hosts by default", async () => {
    const { slug, id, monitor_ids } = await pageOf([null, "Private"]);
    const shown = [
      "",
      ".json",
      "/feed.atom",
      "/badge/1.svg",
      "/badge/2.json",
      "/badge.json",
      "/groups/1.json",
    ];
    const texts = await Promise.all(shown.map(async (suffix) => (await look(slug + suffix)).text));
    const all = texts.join("\n").replaceAll(server.url, "");
    for (const hidden of [...monitor_ids, id, "127.0.0.1", " ms", "latency"])
      expect(all).not.toContain(hidden);
    expect((await json(slug)).groups[0]?.monitors.map(({ name }) => name)).toEqual(["Monitor 1", "Private"]);
    expectError(await look(`${slug}/badge/1.svg?metric=latency`), "not_found");

    await account.patch(`/v1/pulse/pages/${id}`, { show_urls: true, show_latency: true });
    const [first] = (await json(slug)).groups[0]?.monitors ?? [];
    expect(first).toMatchObject({ name: `127.0.0.1:${site.port}`, url: site.url("/unnamed") });
    expect(first?.["latency_ms"]).toBeNumber();
    expect((await look(slug)).text).toContain(site.url("/unnamed"));
    expect((await look(`${slug}/badge/1.json?metric=latency`)).text).toContain(" ms");
  });

  test("the position of a deleted monitor stays empty, so badges keep their monitors", async () => {
    const { slug, monitor_ids } = await pageOf(["First", "Second"]);
    await account.delete(`/v1/pulse/${monitor_ids[0]}`);
    await server.clock.advance(RENDER_INTERVAL_MS);
    expectError(await look(`${slug}/badge/1.json`), "not_found");
    expect((await look(`${slug}/badge/2.json`)).body).toMatchObject({
      label: "Second",
      message: "operational",
    });
    expect((await json(slug)).groups[0]?.monitors).toMatchObject([{ number: 2 }]);
  });

  test("shows paused monitors, and no data before the first check", async () => {
    const { slug, monitor_ids } = await pageOf(["Paused"]);
    await account.put(`/v1/pulse/${monitor_ids[0]}`, { active: false });
    await server.clock.advance(RENDER_INTERVAL_MS);
    expect(await json(slug)).toMatchObject({ status: "unknown", sentence: "No data yet" });
    expect((await look(slug)).text).toContain("Paused");
  });

  test("is noindex by default", async () => {
    const { slug, id } = await pageOf(["Listed"]);
    expect((await look(slug)).text).toContain('content="noindex"');
    await account.patch(`/v1/pulse/pages/${id}`, { index: true });
    expect((await look(slug)).text).not.toContain("noindex");
  });
});

describe("the icon", () => {
  test("is the first letter of the title on the page's color, as an image that cannot run scripts", async () => {
    const { slug, id } = await pageOf(["Icon"], { title: "<acme", color: "#ffee00" });
    const icon = await look(`${slug}/icon`);
    expect(Object.fromEntries(icon.headers)).toMatchObject({
      "content-type": "image/svg+xml",
      "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      "x-content-type-options": "nosniff",
    });
    expect(icon.text).toContain('fill="#ffee00"');
    expect(icon.text).toContain('fill="#1f2328">&lt;</text>');
    expect(XMLValidator.validate(icon.text)).toBe(true);
    await account.patch(`/v1/pulse/pages/${id}`, { color: null });
    expect((await look(`${slug}/icon`)).text).toContain('fill="#0f766e"');
  });

  test("is the page's logo, byte for byte", async () => {
    const bytes = Buffer.from("89504e470d0a1a0a", "hex");
    const logo = `data:image/png;base64,${bytes.toString("base64")}`;
    const { slug, id } = await pageOf(["Logo"], { logo, website_url: "https://acme.example/help" });
    const icon = await fetch(`${server.url}/status/${slug}/icon`);
    expect(icon.headers.get("content-type")).toBe("image/png");
    expect(Buffer.from(await icon.arrayBuffer()).equals(bytes)).toBe(true);
    expect((await account.get(`/v1/pulse/pages/${id}`)).body["logo"]).toBe(logo);
    expect((await look(slug)).text).toContain(
      '<a class="website" href="https://acme.example/help" rel="noopener">acme.example</a>',
    );
    await account.patch(`/v1/pulse/pages/${id}`, { logo: null });
    const { text } = await account.get("/v1/audit?limit=1");
    expect(text).toContain(`sha256:${new Bun.CryptoHasher("sha256").update(logo).digest("hex")}`);
    expect(text).not.toContain("base64");
  });
});

describe("badges", () => {
  test("have styles and a label of their own", async () => {
    const { slug } = await pageOf(["Styles of badges"]);
    const badge = async (query: string) => (await look(`${slug}/badge/1.svg?${query}`)).text;
    expect(await badge("style=flat")).toBe(await badge(""));
    expect(await badge("style=flat-square")).toContain('height="20" rx="0"');
    const large = await badge("style=for-the-badge&label=%3Capi%3E");
    expect(large).toContain("&lt;API&gt;</text>");
    expect(large).toContain("<title>&lt;api&gt;: operational</title>");
    expect(XMLValidator.validate(large)).toBe(true);
    expect((await look(`${slug}/badge/1.json?label=api`)).body["label"]).toBe("api");
    expect((await look(`${slug}/badge/1.svg?label=${"x".repeat(BADGE_LABEL_MAX)}`)).status).toBe(200);
    for (const query of ["style=plastic", "label=", `label=${"x".repeat(BADGE_LABEL_MAX + 1)}`])
      expectError(await look(`${slug}/badge/1.svg?${query}`), "validation_error");
  });
  test.each(["0.svg", "9999.svg", "1.png", "1", "01.svg", "-1.json", "1e0.svg", "10000.svg"])(
    "404 for %s",
    async (name) => {
      const { slug } = await pageOf([`Badge ${name}`]);
      expectError(await look(`${slug}/badge/${name}`), "not_found");
    },
  );

  test("400 for an unknown metric", async () => {
    const { slug } = await pageOf(["Metric"]);
    expectError(await look(`${slug}/badge/1.svg?metric=weather`), "validation_error");
  });

  test.each([
    ["status", "Metrics status", { label: "Metrics status", message: "operational", color: "brightgreen" }],
    ["uptime-24h", "Metrics 24h", { label: "Metrics 24h uptime 24h", message: "100%", color: "brightgreen" }],
    ["uptime-7d", "Metrics 7d", { label: "Metrics 7d uptime 7d", message: "100%", color: "brightgreen" }],
    ["uptime-30d", "Metrics 30d", { label: "Metrics 30d uptime 30d", message: "100%", color: "brightgreen" }],
    ["uptime-90d", "Metrics 90d", { label: "Metrics 90d uptime 90d", message: "100%", color: "brightgreen" }],
    ["cert", "Plain", { label: "Plain certificate", message: "no data", color: "lightgrey", isError: true }],
  ])("%s", async (metric, name, badge) => {
    const { slug } = await pageOf([name]);
    const { body } = await look(`${slug}/badge/1.json?metric=${metric}`);
    expect(body).toEqual({ schemaVersion: 1, ...badge });
    const { text } = await look(`${slug}/badge/1.svg?metric=${metric}`);
    expect(text).toContain(`<title>${badge.label}: ${badge.message}</title>`);
  });

  test("a long name is shortened, in characters", async () => {
    const { slug } = await pageOf(["🙂".repeat(100)]);
    expect((await look(`${slug}/badge/1.json`)).body["label"]).toBe(`${"🙂".repeat(39)}…`);
  });
});

describe("groups", () => {
  /** A page with a group that is down, one that is up with a paused monitor, and one whose monitor is deleted. */
  async function grouped() {
    const names = ["Shop", "Search", "Old", "Gone"].map((name) => `${name} of page ${slugs + 1}`);
    const { slug, id, monitor_ids } = await pageOf(names);
    const [shop, search, old, gone] = monitor_ids as [string, string, string, string];
    const groups = [
      { name: "Store", monitor_ids: [shop] },
      { name: "", monitor_ids: [search, old] },
      { name: "Past", monitor_ids: [gone] },
    ];
    await account.patch(`/v1/pulse/pages/${id}`, { groups });
    const incident = { title: "Fails", impact: "outage", public: true, monitor_ids: [shop] };
    await account.post("/v1/pulse/incidents", incident);
    await account.put(`/v1/pulse/${old}`, { active: false });
    await account.delete(`/v1/pulse/${gone}`);
    await server.clock.advance(RENDER_INTERVAL_MS);
    return { slug };
  }

  test("have JSON as in that of the page, and badges, as the page has one", async () => {
    const { slug } = await grouped();
    const page = await json(slug);
    expect(page).toMatchObject({ status: "down", sentence: "Partial outage: 1 of 2 systems is down" });
    expect(page.groups).toMatchObject([
      { number: 1, name: "Store", status: "down", sentence: "Major outage" },
      { number: 2, name: "", status: "up", sentence: "1 of 2 systems operational, 1 paused" },
    ]);
    for (const group of page.groups) {
      const { status, body } = await look(`${slug}/groups/${group.number}.json`);
      const { checked_at, first_day, ...shared } = body;
      expect([status, shared]).toEqual([200, { ...group }]);
      expect([checked_at, first_day]).toEqual([expect.any(String), page.first_day]);
    }
    const badge = async (path: string) => (await look(`${slug}${path}/badge.json`)).body;
    const head = { schemaVersion: 1 };
    expect(await badge("")).toEqual({ ...head, label: "Acme", message: "partial outage", color: "red" });
    expect(await badge("/groups/1")).toEqual({ ...head, label: "Store", message: "outage", color: "red" });
    const second = { ...head, label: "Acme", message: "1 of 2 operational", color: "brightgreen" };
    expect(await badge("/groups/2")).toEqual(second);
    const { text } = await look(slug);
    expect(text).toContain('<span class="state down">Outage</span>');
  });

  test("badges have styles and labels", async () => {
    const { slug } = await grouped();
    for (const path of ["badge", "groups/1/badge"]) {
      const svg = await look(`${slug}/${path}.svg?style=for-the-badge&label=%3Capi%3E`);
      expect(svg.text).toContain("&lt;API&gt;</text>");
      expect(XMLValidator.validate(svg.text)).toBe(true);
      const { body } = await look(`${slug}/${path}.json?label=${"x".repeat(BADGE_LABEL_MAX)}`);
      expect(body["label"]).toBe("x".repeat(BADGE_LABEL_MAX));
      for (const query of ["style=plastic", "label=", `label=${"x".repeat(BADGE_LABEL_MAX + 1)}`])
        expectError(await look(`${slug}/${path}.svg?${query}`), "validation_error");
    }
  });

  test("404 for a position without a group, or without monitors", async () => {
    const { slug } = await grouped();
    const missing = ["0", "01", "3", "4", "99", "100", "-1", "x", "1.svg"];
    for (const group of missing) {
      expectError(await look(`${slug}/groups/${group}/badge.svg`), "not_found");
      expectError(await look(`${slug}/groups/${group}.json`), "not_found");
    }
    expectError(await look(`${slug}/groups/1.json/badge.svg`), "not_found");
  });

  test("the last group of a page has an address", async () => {
    const { slug, id, monitor_ids } = await pageOf(["Only"]);
    const groups = Array.from({ length: GROUPS_MAX }, (_, index) => ({ name: `g${index + 1}`, monitor_ids }));
    await account.patch(`/v1/pulse/pages/${id}`, { groups });
    expect((await look(`${slug}/groups/${GROUPS_MAX}.json`)).body).toMatchObject({
      name: `g${GROUPS_MAX}`,
      monitors: [{ number: GROUPS_MAX }],
    });
    expect((await look(`${slug}/groups/${GROUPS_MAX}/badge.json`)).body["label"]).toBe(`g${GROUPS_MAX}`);
  });
});

describe("hostile texts", () => {
  const TEXTS = {
    title: HOSTILE,
    description: `${HOSTILE}\nhttps://example.com/a?b=1&c=2.`,
    footer: HOSTILE,
    show_urls: true,
  };

  test("are escaped in HTML, Atom, SVG and JSON, and each format stays valid", async () => {
    const named = await pageOf([`<b>"&'</b>`], TEXTS);
    const { slug } = named;
    const html = (await look(slug)).text;
    expect(html).not.toContain("<script");
    expect(html).toContain('<a href="https://example.com/a?b=1&amp;c=2" rel="nofollow noopener noreferrer">');
    const report = await new HtmlValidate({ extends: ["html-validate:standard"] }).validateString(html);
    expect(report.results.flatMap(({ messages }) => messages)).toEqual([]);
    for (const path of ["/feed.atom", "/badge/1.svg", "/badge.svg", "/groups/1/badge.svg"]) {
      const xml = (await look(slug + path)).text;
      expect(XMLValidator.validate(xml), path).toBe(true);
      expect(xml).not.toContain("\u0007");
    }
    expect((await look(`${slug}.json`)).body).toMatchObject({ title: HOSTILE });
    expectShieldsEndpoint((await look(`${slug}/badge/1.json`)).body);
  });

  test("a feed has the elements that RFC 4287 requires", async () => {
    const { slug } = await pageOf(["Fed"], TEXTS);
    const { feed } = new XMLParser({ ignoreAttributes: false }).parse((await look(`${slug}/feed.atom`)).text);
    expect(feed["@_xmlns"]).toBe("http://www.w3.org/2005/Atom");
    expect(feed.id).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Date.parse(feed.updated)).toBeGreaterThan(0);
    expect(feed.author.name).toBeString();
    const links = feed.link.map((link: Record<string, string>) => [link["@_rel"], link["@_href"]]);
    expect(links).toEqual([
      ["self", `${server.url}/status/${slug}/feed.atom`],
      ["alternate", `${server.url}/status/${slug}`],
    ]);
  });
});

/** Checks the fields of shields.io's endpoint badge that are used. */
function expectShieldsEndpoint(body: Record<string, unknown>): void {
  const known = ["schemaVersion", "label", "message", "color", "isError"];
  expect(Object.keys(body).filter((name) => !known.includes(name))).toEqual([]);
  expect(body["schemaVersion"]).toBe(1);
  for (const name of ["label", "message", "color"]) expect(body[name]).toBeString();
  expect(body["message"]).not.toBe("");
}
