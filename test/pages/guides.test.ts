import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { guideFiles } from "../../scripts/guides.ts";
import { errorDocs, knownErrors } from "../../src/kernel/errors.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { expectError } from "../support/errors.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({});
});
afterAll(() => server.stop());

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
  expect(html).toContain("consecutive_threshold&quot;: 2");
  expect(html).toContain('<a href="../api/incidents#channels">channel</a>');
  expect(html).not.toContain("<!-- fields");
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

test("pictures are omitted", async () => {
  const [picture, drawing] = await Promise.all(
    ["readme", "architecture"].map(async (page) => (await get(`/docs/guides/${page}`)).text()),
  );
  expect(picture).not.toContain("<img");
  expect(drawing).not.toContain("flowchart");
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
    expect(html).not.toMatch(/<script|<style|style=| on\w+=/);
    // Without one, browsers request /favicon.ico of every guide.
    expect(html).toContain('<link rel="icon" href="data:image/svg+xml,');
    const links = [...html.matchAll(/ href="([^"]+)"/g)].map(([, link = ""]) => new URL(link, response.url));
    for (const link of new Set(links.filter(({ origin }) => origin === server.url).map(String))) {
      const { pathname, hash } = new URL(link);
      const target = await get(pathname);
      expect([link, target.status]).toEqual([link, 200]);
      if (hash !== "") expect(await target.text()).toContain(` id="${decodeURIComponent(hash.slice(1))}"`);
    }
  });
});

test.each(["/", "nothing", "api/nothing", "api/monitors/", "api%2Fmonitors", "toString"])(
  "/docs/guides/%s is a 404",
  async (path) => {
    expectError(await server.client(null).get(`/docs/guides/${path}`), "not_found");
  },
);
