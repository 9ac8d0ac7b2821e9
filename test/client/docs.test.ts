import { afterAll, beforeAll, expect, test } from "bun:test";
import { readWritten } from "../docs/page.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { installPackage, NODE, type Stranger } from "./installed.ts";

/** Pages whose programs are run. */
const PAGES = ["client.md", "guides/llm-calls.md"];
const TEXT = PAGES.map((page) => readWritten(`docs/${page}`)).join("\n");
const BLOCKS = [...TEXT.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = ""]) => text);
const PRELUDE = [
  'import { Ninefold } from "ninefold/client";',
  "const nf = new Ninefold({ url: process.env.NINEFOLD_URL!, apiKey: process.env.NINEFOLD_API_KEY! });",
].join("\n");
/** Building, packing, installing and compiling take a while on a busy machine. */
const INSTALL_TIMEOUT_MS = 60_000;

/** A block as a program: those without imports go on from the first one. */
function programOf(block: string): string {
  return block.includes("import ") ? block : `${PRELUDE}\n${block}`;
}

/** Runs a block by Node, which runs what Bun has taken the types from. */
function run(at: number, key: string | null) {
  const program = new Bun.Transpiler({ loader: "ts" }).transformSync(programOf(BLOCKS[at] ?? ""));
  stranger.write(`block-${at}.js`, program);
  const environment = { NINEFOLD_URL: server.url, NINEFOLD_API_KEY: String(key) };
  return stranger.run([NODE ?? process.execPath, `block-${at}.js`], environment);
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

test("the pages have examples", () => expect(BLOCKS.length).toBeGreaterThan(8));

test(
  "type-checks the examples",
  async () => {
    const files = BLOCKS.map((_, at) => `block-${at}.ts`);
    expect(await stranger.check("bundler", files)).toBe("");
  },
  INSTALL_TIMEOUT_MS,
);

test.each(BLOCKS.map((block, at) => [at, block.trim().split("\n").slice(-1)[0] ?? "", block] as const))(
  "example %i prints its documented output: %s",
  async (at, _, block) => {
    const { key } = await server.account({ tier: "unlimited" });
    const { out, error, code } = await run(at, key);
    expect({ error, code }).toEqual({ error: "", code: 0 });
    expect(out.trimEnd().split("\n")).toEqual(printedBy(block));
  },
);

/** What checks change, whoever sets up what. */
const OF_CHECKS: ReadonlySet<string> = new Set([
  "latency_ms",
  "last_checked_at",
  "consecutive_failures",
  "error",
  "incident_id",
  "status",
]);

test(
  "the set-up script can run again: the second run changes nothing",
  async () => {
    const at = BLOCKS.findIndex((block) => block.includes("setUp()"));
    const account = await server.account({ tier: "unlimited" });
    const runAndLook = async () => {
      const { code, error } = await run(at, account.key);
      expect({ code, error }).toEqual({ code: 0, error: "" });
      await server.clock.advance(1_000);
      const paths = ["/v1/projects", "/v1/keys", "/v1/gate/config", "/v1/pulse", "/v1/catch/buckets"];
      const answers = await Promise.all(paths.map(async (path) => (await account.get(path)).text));
      return JSON.parse(`[${answers.join()}]`, (name, value) => (OF_CHECKS.has(name) ? undefined : value));
    };
    const made = await runAndLook();
    expect(made).toMatchObject([
      { projects: [{ name: "Web shop" }, {}] },
      { keys: [{ name: "web shop server" }] },
      { flags: [{ flag_key: "new-basket", enabled: true }] },
      { monitors: [{ name: "web shop", interval: 60_000 }] },
      { buckets: [{ name: "payments", state: "live" }] },
    ]);
    expect(await runAndLook()).toEqual(made);
  },
  INSTALL_TIMEOUT_MS,
);
