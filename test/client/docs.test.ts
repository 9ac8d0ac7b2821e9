import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startTestServer, type TestServer } from "../support/server.ts";
import { installPackage, NODE, type Stranger } from "./installed.ts";

const PAGE = readFileSync(join(import.meta.dir, "../../docs/client.md"), "utf8");
const BLOCKS = [...PAGE.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = ""]) => text);
const PRELUDE = [
  'import { Ninefold } from "ninefold/client";',
  "const nf = new Ninefold({ url: process.env.NINEFOLD_URL!, apiKey: process.env.NINEFOLD_KEY! });",
].join("\n");
/** Building, packing and installing take a while on a busy machine. */
const INSTALL_TIMEOUT_MS = 60_000;

/** A block as a program: those without imports go on from the first one. */
function programOf(block: string): string {
  return block.includes("import ") ? block : `${PRELUDE}\n${block}`;
}

/** What a block says that it prints. */
function printedBy(block: string): string[] {
  return [...block.matchAll(/\/\/ → (.*)$/gm)].map(([, text = ""]) => text);
}

let server: TestServer;
let stranger: Stranger;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  stranger = await installPackage();
  for (const [at, block] of BLOCKS.entries()) stranger.write(`block-${at}.ts`, programOf(block));
}, INSTALL_TIMEOUT_MS);
afterAll(async () => {
  stranger[Symbol.dispose]();
  await server.stop();
});

test("the page has examples", () => expect(BLOCKS.length).toBeGreaterThan(8));

test("their types hold", async () => {
  expect(
    await stranger.check(
      "bundler",
      BLOCKS.map((_, at) => `block-${at}.ts`),
    ),
  ).toBe("");
});

test.each(BLOCKS.map((block, at) => [at, block.trim().split("\n").slice(-1)[0] ?? "", block] as const))(
  "example %i prints what it says: %s",
  async (at, _, block) => {
    const { key } = await server.account({ tier: "unlimited" });
    const environment = { NINEFOLD_URL: server.url, NINEFOLD_KEY: String(key) };
    // Node runs what Bun has taken the types from.
    stranger.write(`block-${at}.js`, new Bun.Transpiler({ loader: "ts" }).transformSync(programOf(block)));
    const { out, error, code } = await stranger.run(
      [NODE ?? process.execPath, `block-${at}.js`],
      environment,
    );
    expect({ error, code }).toEqual({ error: "", code: 0 });
    expect(out.trimEnd().split("\n")).toEqual(printedBy(block));
  },
);
