import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import packageOfServer from "../../package.json" with { type: "json" };
import { decoded } from "../../scripts/guides/code-blocks.ts";
import { guideFiles } from "../../scripts/guides.ts";
import { errorDocs, knownErrors } from "../../src/kernel/errors.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { expectError } from "../support/errors.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const { version } = packageOfServer;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({});
});
afterAll(() => server.stop());

/** The text of a page, without its tags. */
function textOf(html: string): string {
  return decoded(html.replaceAll(/<[^>]*>/g, ""));
}

function get(path: string): Promise<Response> {
  return fetch(server.url + path, { redirect: "manual" });
}

test("/docs/guides redirects to /docs/guides/ by a relative path", async () => {
  const response = await get("/docs/guides");
  expect([response.status, response.headers.get("location")]).toEqual([302, "guides/"]);
});

test("a guide is HTML under the security headers of the other pages", async () => {
  const [guide, reference] = await Promise.all([get("/docs/guides/api/monitors"), get("/docs")]);
  expect(guide.status).toBe(200);
  for (const name of [
    "content-type",
    "content-security-policy",
    "cross-origin-opener-policy",
    "referrer-policy",
    "x-content-type-options",
    "cache-control",
  ]) {
    expect([name, guide.headers.get(name)]).toEqual([name, reference.headers.get(name)]);
  }
});

test("a guide has its headings with anchors, its tables and its examples", async () => {
  const html = await (await get("/docs/guides/api/monitors")).text();
  expect(html).toContain("<title>Monitors · Ninefold</title>");
  expect(html).toContain('<h2 id="what-counts-as-up">What counts as up</h2>');
  expect(html).toContain("<td><code>interval</code></td>");
  expect(textOf(html)).toContain('consecutive_threshold": 2');
  expect(html).toContain('<a href="../api/incidents#channels">channel</a>');
  expect(html).not.toContain("<!-- fields");
});

test("an example has its languages as tabs, of which one is shown", async () => {
  const html = await (await get("/docs/guides/guides/send-webhooks")).text();
  const [tabs = ""] = /<div class="tabs".*?<\/div>/s.exec(html) ?? [];
  const titles = [
    ...tabs.matchAll(/<input type="radio" [^>]*?( checked)?><label [^>]*>([^<]*)<\/label><pre /g),
  ];
  expect(titles.map(([, checked, title]) => [title, checked !== undefined])).toEqual([
    ["curl", true],
    ["TypeScript", false],
    ["Python", false],
    ["Go", false],
    ["PHP", false],
  ]);
  // Blocks without other languages stay as they are, and none is left closed.
  const [, content = ""] = html.split("<main");
  expect(content).not.toContain("<details");
  expect(content.match(/class="tabs"/g)).toHaveLength(4);
  for (const [block = ""] of content.matchAll(/<div class="tabs".*?<\/div>/gs))
    expect(block.match(/<pre /g)).toHaveLength(5);
});

test.each(knownErrors())("the address of the error %s leads to its section", async (code) => {
  const address = errorDocs(code);
  const response = await get(address);
  expect(response.status).toBe(302);
  const { pathname, hash } = new URL(response.headers.get("location") ?? "", server.url + address);
  expect(await (await get(pathname)).text()).toContain(`<h3 id="${hash.slice(1)}">${code}</h3>`);
});

test("an error has the address of its section", async () => {
  const { error } = (await (await get("/v1/keys")).json()) as { error: object };
  expect(error).toMatchObject({ code: "unauthorized", docs: "/docs/errors/unauthorized" });
});

test("the address of an unknown error leads to the list of all", async () => {
  const response = await get("/docs/errors/none");
  expect([response.status, response.headers.get("location")]).toEqual([302, "../guides/errors"]);
});

test("screenshots are omitted, and diagrams are drawn with their title", async () => {
  const [readme, architecture] = await Promise.all(
    ["readme", "architecture"].map(async (page) => (await get(`/docs/guides/${page}`)).text()),
  );
  expect(readme).not.toContain("<img");
  expect(architecture).not.toContain("flowchart");
  expect(architecture).toContain(
    '<svg xmlns="http://www.w3.org/2000/svg" class="diagram" role="img" aria-labelledby="from-a-request-to-its-response"',
  );
  expect(architecture).toContain(
    '<title id="from-a-request-to-its-response">From a request to its response</title>',
  );
});

test("code is highlighted, and its text is what the page says", async () => {
  const html = await (await get("/docs/guides/api/monitors")).text();
  expect(html).toContain('<span class="variable">$URL</span>');
  expect(html).toContain('<pre tabindex="0" data-language="Shell"><code class="language-sh">');
});

test("a guide has the site tree with its own place, the pages around it, and the version", async () => {
  const html = await (await get("/docs/guides/api/relay-endpoints")).text();
  expect(html).toContain("<details open><summary>Services</summary>");
  expect(html).toContain("<details><summary>Guides</summary>");
  expect(html).toContain(
    '<a href="../api/relay-endpoints" aria-current="page">Relay: endpoints and messages</a>',
  );
  expect(html).toContain('<li><a href="#filters">Filters</a></li>');
  expect(html).toMatch(/<a rel="prev" href="\.\.\/api\/[^"]+"><small>Previous<\/small> /);
  expect(html).toMatch(/<a rel="next" href="\.\.\/api\/[^"]+"><small>Next<\/small> /);
  expect(html).toContain(`<p>Ninefold ${version}</p>`);
});

test("a guide links to the operations that it requests or names, and they to their guides", async () => {
  const html = await (await get("/docs/guides/api/relay-endpoints")).text();
  const create = "../../../docs#/Relay/relay.endpoints.create";
  expect(html).toContain(
    `<li><a href="${create}"><code>POST /v1/relay/endpoints</code></a> Create an endpoint for messages</li>`,
  );
  expect(html).toContain(
    '<a href="../../../docs#/Relay/relay.endpoints.recover"><code>POST /v1/relay/endpoints/{endpoint_id}/recover</code></a>',
  );
  const guides = (await (await get("/docs/guides/operations.json")).json()) as Record<
    string,
    [string, string][]
  >;
  expect(guides["relay.endpoints.create"]).toContainEqual([
    "Relay: endpoints and messages",
    "api/relay-endpoints",
  ]);
  // With the operations of a test clock, which this server does not have.
  const { paths } = (await Bun.file(`${ROOT}/test/golden/openapi.json`).json()) as {
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  const ids = Object.values(paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  );
  expect(Object.keys(guides).filter((id) => !ids.includes(id))).toEqual([]);
  // The API reference shows them.
  expect(Object.keys(guides).length).toBeGreaterThan(ids.length / 2);
});

test("the search index names every section with each of its words", async () => {
  const { pages, sections, words } = (await (await get("/docs/guides/search.json")).json()) as {
    pages: [title: string, address: string][];
    sections: [page: number, anchor: string, heading: string][];
    words: string;
  };
  const [, ...deltas] = /^breaker( .*)$/m.exec(words)?.[1]?.split(" ") ?? [];
  let section = 0;
  const found = deltas.map((delta) => {
    section += Number.parseInt(delta, 36);
    const [page = 0, anchor = "", heading = ""] = sections[section] ?? [];
    return [...(pages[page] ?? []), anchor, heading];
  });
  expect(found).toContainEqual([
    "Relay: endpoints and messages",
    "docs/guides/api/relay-endpoints",
    "health",
    "Health",
  ]);
  expect(pages).toContainEqual(["POST /v1/pulse", "docs#/Monitors/monitors.create"]);
});

test("the API reference links to the guides, and the guides to the reference", async () => {
  expect(await (await get("/docs")).text()).toContain('<a href="docs/guides/">Guides</a>');
  expect(await (await get("/docs/guides/")).text()).toContain('<a href="../../docs">API reference</a>');
});

describe("every link of every guide leads to a page of this server and to an anchor that exists", () => {
  const paths = guideFiles(ROOT).map((file) =>
    file === "docs/README.md"
      ? ""
      : file
          .replace(/^docs\//, "")
          .replace(/\.\w+$/, "")
          .toLowerCase(),
  );

  test.each(paths)("/docs/guides/%s", async (path) => {
    const response = await get(`/docs/guides/${path}`);
    expect(response.status).toBe(200);
    const html = await response.text();
    expect(html).not.toMatch(/<script(?! defer src="[./]+guides\.js"><\/script>)|<style|style=| on\w+=/);
    // Without one, browsers request /favicon.ico of every guide.
    expect(html).toContain('<link rel="icon" href="data:image/svg+xml,');
    const links = [...html.matchAll(/ href="([^"]+)"/g)].map(([, link = ""]) => new URL(link, response.url));
    for (const link of new Set(links.filter(({ origin }) => origin === server.url).map(String))) {
      const { pathname, hash } = new URL(link);
      const target = await get(pathname);
      expect([link, target.status]).toEqual([link, 200]);
      // Operations of the API reference are no anchors.
      if (hash !== "" && pathname !== "/docs")
        expect(await target.text()).toContain(` id="${decodeURIComponent(hash.slice(1))}"`);
    }
  });
});

test.each(["/", "nothing", "api/nothing", "api/monitors/", "api%2Fmonitors", "toString"])(
  "/docs/guides/%s is a 404",
  async (path) => {
    expectError(await server.client(null).get(`/docs/guides/${path}`), "not_found");
  },
);
