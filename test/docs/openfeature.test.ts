import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../harness/processes/server-process.ts";
import { closeBrowser, openBrowser, openContext } from "../pages/browser.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { readPage } from "./page.ts";
import { NODE_OR_BUN } from "./runtime.ts";

/** Starting a browser takes seconds on a machine that is busy with other things. */
const TIMEOUT_MS = 180_000;

const [SERVER = "", BROWSER = ""] = [
  ...readPage("docs/guides/openfeature.md").matchAll(/^```js\n(.*?)^```$/gms),
].map(([, block = ""]) => block);

let server: TestServer;
let key = "";
const folder = mkdtempSync(join(tmpdir(), "ninefold-openfeature-"));
const site = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: ({ url }) =>
    url.endsWith("/shop.js")
      ? new Response(Bun.file(join(folder, "out", "browser.js")))
      : new Response('<script type="module" src="/shop.js"></script>', {
          headers: { "content-type": "text/html" },
        }),
});

beforeAll(async () => {
  server = await startTestServer({ args: ["--cors-origins", site.url.origin] });
  await openBrowser();
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const { body } = await server.operator.post("/v1/keys", {
    prefix: "sm",
    name: "k",
    scopes: ["ofrep:read"],
  });
  key = String(body.secret);
  await save(true);
}, TIMEOUT_MS);
afterAll(async () => {
  await closeBrowser();
  await site.stop(true);
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}, TIMEOUT_MS);

async function save(enabled: boolean): Promise<void> {
  const split = [
    { variant: "on", weight: 25 },
    { variant: "off", weight: 75 },
  ];
  const rules = [{ when: [{ attribute: "plan", op: "in", values: ["pro", "scale"] }], serve: { split } }];
  const flag = { flag_key: "new-checkout", enabled, rules, default: { variant: "off" } };
  const { status, text } = await server.operator.post("/v1/gate", flag);
  expect(status, text).toBe(201);
}

/** A block as a program, with the address and the key that the reader inserts. */
function writeProgram(name: string, block: string): string {
  expect(block).toContain("sm_…");
  const path = join(folder, name);
  writeFileSync(path, block.replace("http://127.0.0.1:9909", server.url).replace("sm_…", key));
  return path;
}

test(
  "the server's example prints what the page says",
  async () => {
    const child = Bun.spawn([NODE_OR_BUN, writeProgram("server.mjs", SERVER)], {
      cwd: folder,
      stderr: "pipe",
    });
    const [out, error] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    expect({ code: await child.exited, out: out.split("\n").slice(0, 2), error }).toMatchObject({
      code: 0,
      out: ["true", "my default"],
    });
  },
  TIMEOUT_MS,
);

test(
  "the browser's example shows a change, from another origin",
  async () => {
    const entry = writeProgram("browser.js", BROWSER);
    const built = await Bun.build({ entrypoints: [entry], outdir: join(folder, "out"), target: "browser" });
    expect(built.success).toBe(true);
    const context = await openContext();
    const page = await context.newPage();
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    const streamed = page.waitForRequest((request) => request.url().includes("/ofrep/v1/events?token="));
    await page.goto(site.url.href);
    await page.waitForFunction("document.title === 'new'");
    await streamed;
    await save(false);
    // Without the stream of changes it never would be.
    await page.waitForFunction("document.title === 'old'");
    expect(faults).toEqual([]);
    await context.close();
  },
  TIMEOUT_MS,
);
