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
      const file = await fetch(new URL(address, page.url));
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
