import { afterAll, expect, test } from "bun:test";
import { Binaries, TIMEOUT_MS } from "./support.ts";

const binaries = new Binaries();
afterAll(() => binaries.close());

test(
  "the executable carries the page and everything that it loads",
  async () => {
    const { url } = await binaries.start(["--ephemeral"]);
    const page = await fetch(`${url}/docs`);
    const html = await page.text();
    expect(html).toContain("<title>Ninefold API</title>");
    const loaded = [...html.matchAll(/(?:href|src)="([^"]+\.(js|css))"/g)];
    expect(loaded.map(([, , type]) => type)).toEqual(["css", "css", "js", "js"]);
    for (const [, address = "", type] of loaded) {
      const file = await fetch(new URL(address, page.url), { headers: { "accept-encoding": "gzip" } });
      expect(file.status, address).toBe(200);
      expect(file.headers.get("content-encoding"), address).toBe("gzip");
      const text = await file.text();
      const source = address.includes("swagger-ui-")
        ? `node_modules/swagger-ui-dist/swagger-ui${type === "js" ? "-bundle" : ""}.${type}`
        : `src/pages/${address}`;
      expect(text, address).toBe(await Bun.file(`${import.meta.dir}/../../${source}`).text());
    }
  },
  TIMEOUT_MS,
);

test(
  "the executable carries the guides",
  async () => {
    const { url } = await binaries.start(["--ephemeral"]);
    for (const [path, text] of [
      ["/docs/guides/", "<title>"],
      ["/docs/guides/api/monitors", "<title>Monitors"],
      ["/docs/guides.css", "grid-template"],
      ["/docs/guides.js", "addSearch"],
      ["/docs/guides/search.json", '"sections"'],
    ] as const) {
      const response = await fetch(url + path);
      expect([path, response.status]).toEqual([path, 200]);
      expect(await response.text()).toContain(text);
    }
  },
  TIMEOUT_MS,
);

test.each(["dashboard", "portal"])(
  "the executable carries the program /%s/ as it was built",
  async (program) => {
    const { url } = await binaries.start(["--ephemeral"]);
    const built = `${import.meta.dir}/../../build/${program}`;
    const page = await fetch(program === "dashboard" ? url : `${url}/${program}`, {
      headers: { accept: "text/html" },
    });
    expect(page.url).toBe(`${url}/${program}/`);
    const html = await page.text();
    expect(html).toBe(await Bun.file(`${built}/index.html`).text());
    const names = [...html.matchAll(/(?:href|src)="\.\/([^"]+)"/g)].map(([, name = ""]) => name);
    expect(names).toHaveLength(2);
    for (const name of names) {
      const file = await fetch(`${url}/${program}/${name}`);
      expect(file.status, name).toBe(200);
      expect(await file.text(), name).toBe(await Bun.file(`${built}/${name}`).text());
    }
  },
  TIMEOUT_MS,
);
