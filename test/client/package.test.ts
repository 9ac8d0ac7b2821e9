import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { COMPILER, COMPILER_ENVIRONMENT } from "../../scripts/packages/build.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { installPackage, NODE, type Stranger } from "./installed.ts";

/** Building, packing and installing take a while on a busy machine. */
const INSTALL_TIMEOUT_MS = 60_000;

/** So does a compiler. */
const CHECK_TIMEOUT_MS = 120_000;

/** What runs JavaScript here. Where there is no Node, Bun has to do. */
const RUNTIMES: readonly (readonly [name: string, command: string])[] =
  NODE === null
    ? [["bun", process.execPath]]
    : [
        ["bun", process.execPath],
        ["node", NODE],
      ];

const ROOT = join(import.meta.dir, "../..");

let server: TestServer;
let key = "";
let realTime: TestServer;
let stranger: Stranger;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  key = String((await server.account({ tier: "unlimited" })).key);
  realTime = await startTestServer();
  stranger = await installPackage();
}, INSTALL_TIMEOUT_MS);
afterAll(async () => {
  stranger[Symbol.dispose]();
  await server.stop();
  await realTime.stop();
});

const SCRIPT = `
import { Ninefold, NinefoldError, verifyDelivery } from "ninefold/client";
import { verifyReceipt } from "ninefold/verify";
const nf = new Ninefold({ url: process.env.NINEFOLD_URL, apiKey: process.env.NINEFOLD_API_KEY });
const meter = nf.meter("m-" + process.argv[2]);
await meter.refill(10);
const { balance } = await meter.deduct(3);
const refused = await meter.deduct(100).catch((error) => error);
const kinds = [];
for await (const entry of meter.history({ limit: 1 })) kinds.push(entry.kind);
const locked = await nf.withLock("lock", ({ fencingToken }) => fencingToken > 0);
await nf.notary.init();
const receipt = await nf.notary.log({ a: 1 });
const forged = await verifyDelivery({ "x-svc-signature": "sha256=" + "0".repeat(64), "x-svc-timestamp": String(Date.now()) }, "{}", "k").catch((error) => error);
console.log(JSON.stringify({
  balance, kinds, locked,
  refused: [refused instanceof NinefoldError, refused.code, refused.extras.balance],
  verdict: verifyReceipt(receipt).valid,
  forged: forged.code,
}));
`;

describe("installed from its tarball", () => {
  test("has no dependencies", () => {
    const manifest = JSON.parse(
      readFileSync(join(stranger.folder, "node_modules/ninefold/package.json"), "utf8"),
    );
    // What runs the server comes as an optional package of the platform, and no script runs at its installation.
    expect(Object.keys(manifest).filter((name) => /dependencies|scripts|bin/i.test(name))).toEqual([
      "bin",
      "optionalDependencies",
    ]);
    const files = [...new Bun.Glob("**/*").scanSync(join(stranger.folder, "node_modules"))];
    expect(files.filter((path) => !/^(ninefold\/|@types|undici-types|\.)/.test(path))).toEqual([]);
    expect(files).toContain("ninefold/LICENSE");
    expect(files).toContain("ninefold/verify/LICENSES.txt");
  });

  test.each(RUNTIMES)("it works in %s", async (name, command) => {
    stranger.write("script.js", SCRIPT);
    const { out, error, code } = await stranger.run([command, "script.js", name], {
      NINEFOLD_URL: server.url,
      NINEFOLD_API_KEY: key,
    });
    expect({ error, code }).toEqual({ error: "", code: 0 });
    expect(JSON.parse(out)).toEqual({
      balance: 7,
      kinds: ["deduct", "refill"],
      locked: true,
      verdict: true,
      forged: "delivery_invalid",
      refused: [true, "insufficient_balance", 7],
    });
  });

  test("the example of a SaaS back end installs as its page says, and runs", async () => {
    const page = readFileSync(join(ROOT, "examples/saas/README.md"), "utf8");
    const [, install] = page.match(/^\.\.\/\.\.\/scripts\/package\n(npm install \S+)$/m) ?? [];
    // The package of this test is such a file, installed by this command.
    expect(install).toBe("npm install ../../dist/package/*.tgz");
    cpSync(join(ROOT, "examples/saas/server.ts"), join(stranger.folder, "server.ts"));
    const listening = stranger.run([process.execPath, "-e", 'await import("./server.ts"); process.exit(0)'], {
      NINEFOLD_URL: server.url,
      NINEFOLD_API_KEY: key,
      ADMIN_TOKEN: "secret",
      PORT: "0",
    });
    expect(await listening).toMatchObject({
      code: 0,
      error: "",
      out: expect.stringMatching(/^listening on http/),
    });
  });

  test.each(RUNTIMES)("in %s a wait can take longer than the platform's fetch", async (name, command) => {
    stranger.write("wait.js", WAIT);
    const environment = { NINEFOLD_URL: realTime.url, NINEFOLD_API_KEY: realTime.key };
    const { out, error } = await stranger.run([command, "wait.js", name], environment);
    expect(error).toBe("");
    // Bun's fetch has no such limit to be set; there the wait of the other one ends by itself.
    expect(out).toBe(
      name === "node" ? "HeadersTimeoutError, then acquired\n" : "answered 408, then acquired\n",
    );
  });

  test.each(RUNTIMES)(
    "in %s require loads the client, whose types are those of CommonJS",
    async (name, command) => {
      const call = 'new Ninefold({ url: process.env["NINEFOLD_URL"] ?? "", apiKey: null }).ping()';
      stranger.write(
        "required.cjs",
        `const { Ninefold } = require("ninefold/client"); ${call}.then((pong) => console.log(JSON.stringify(pong)));`,
      );
      const flags = name === "node" ? ["--no-experimental-require-module"] : [];
      const ran = await stranger.run([command, ...flags, "required.cjs"], { NINEFOLD_URL: server.url });
      expect(ran, ran.error).toMatchObject({ code: 0, out: '{"pong":true}\n' });
      stranger.write("required.cts", `import { Ninefold } from "ninefold/client";\n${call};\n`);
      expect(await stranger.check("nodenext", ["required.cts"])).toBe("");
    },
    CHECK_TIMEOUT_MS,
  );

  test(
    "the types of its test server need none of Node",
    async () => {
      stranger.write(
        "testing.ts",
        'import { startNinefold } from "ninefold/testing";\nawait using it = await startNinefold();\n',
      );
      const compilerOptions = {
        strict: true,
        target: "es2022",
        lib: ["es2022", "dom"],
        types: [],
        noEmit: true,
        module: "esnext",
        moduleResolution: "bundler",
        skipLibCheck: false,
      };
      stranger.write("tsconfig.plain.json", JSON.stringify({ compilerOptions, files: ["testing.ts"] }));
      const compiler = [process.execPath, join(ROOT, COMPILER), "-p", "tsconfig.plain.json"];
      expect((await stranger.run(compiler, COMPILER_ENVIRONMENT)).out).toBe("");
    },
    CHECK_TIMEOUT_MS,
  );

  test.each(["bundler", "nodenext"] as const)(
    "its types are valid under %s, and the compiler reports the bare name",
    async (resolution) => {
      stranger.write("good.ts", TYPED);
      stranger.write("bare.ts", 'import { Ninefold } from "ninefold";\nnew Ninefold({ url: "" });\n');
      const wrong = WRONG.map((_, at) => `wrong-${at}.ts`);
      for (const [at, text] of WRONG.entries()) stranger.write(`wrong-${at}.ts`, `${HEAD}${text}\n`);
      const found = await stranger.check(resolution, ["good.ts", "bare.ts", ...wrong]);
      const files = [...found.matchAll(/^([^ (]+)\(\d+,\d+\): error/gm)].map(([, file]) => file);
      expect([...new Set(files)].sort(), found).toEqual(["bare.ts", ...wrong].sort());
      // The bare name says what to import instead.
      expect(found).toContain(
        `bare.ts(2,5): error TS2351: This expression is not constructable.\n  Type '{ readonly 'Import it from "ninefold/client"': never; }' has no construct signatures`,
      );
    },
    CHECK_TIMEOUT_MS,
  );

  test.each(RUNTIMES)(
    "in %s an import of the bare name throws an error with the right imports",
    async (_, command) => {
      const ways = [
        'import "ninefold";',
        'import Ninefold from "ninefold"; console.log(Ninefold);',
        'import { Ninefold } from "ninefold"; console.log(Ninefold);',
        'import { startNinefold } from "ninefold"; console.log(startNinefold);',
        'import { createRequire } from "node:module"; createRequire(import.meta.url)("ninefold");',
      ];
      for (const way of ways) {
        stranger.write("bare.js", way);
        const { error, code } = await stranger.run([command, "bare.js"]);
        expect(code).toBe(1);
        expect(error).toContain(
          'There is nothing in "ninefold" itself. Write one of: import { Ninefold } from "ninefold/client"',
        );
      }
    },
  );

  test("its bundle for browsers imports nothing of Node", async () => {
    stranger.write("page.js", SCRIPT);
    const entrypoints = [join(stranger.folder, "page.js")];
    const { outputs, logs } = await Bun.build({ entrypoints, target: "browser" });
    expect(logs).toEqual([]);
    const text = (await Promise.all(outputs.map((output) => output.text()))).join("");
    expect(text).toContain("Idempotency-Key");
    expect(text.match(/(?<![\w/.-])(import|require)\s*\(?\s*["']|from\s+["']/g)).toBeNull();
  });
});

/** Makes Node's `fetch` as impatient with everyone as it is with waits of more than 300 s, and waits for longer. */
const WAIT = `
import { Ninefold } from "ninefold/client";
await fetch(process.env.NINEFOLD_URL + "/v1/ping");
const dispatcher = Symbol.for("undici.globalDispatcher.1");
const Agent = globalThis[dispatcher]?.constructor;
if (Agent !== undefined) globalThis[dispatcher] = new Agent({ headersTimeout: 300 });
const nf = new Ninefold({ url: process.env.NINEFOLD_URL, apiKey: process.env.NINEFOLD_API_KEY });
const name = "wait-" + process.argv[2];
const { token } = await nf.locks.acquire(name, { ttlMs: 60_000 });
const impatient = fetch(process.env.NINEFOLD_URL + "/v1/latch/" + name + "/acquire", {
  method: "POST",
  headers: { authorization: "Bearer " + process.env.NINEFOLD_API_KEY },
  body: JSON.stringify({ timeout: 3_000 }),
}).then(({ status }) => "answered " + status, (error) => error.cause.name);
const patient = nf.locks.acquire(name, { waitMs: 900_000 });
const first = await impatient;
await nf.locks.release(name, token);
console.log(first + ", then " + (await patient).status);
`;

const HEAD = `
import { Ninefold } from "ninefold/client";
const nf = new Ninefold({ url: "http://127.0.0.1:1", apiKey: null });
`;

const TYPED = `
import { type Delivery, type FetchLike, Ninefold, NinefoldError, type NinefoldOptions, type AnswerOf, verifyDelivery } from "ninefold/client";
import { type Verdict, verifyChain, verifyReceipt } from "ninefold/verify";
import type { IncomingHttpHeaders } from "node:http";

const send: FetchLike = (url, init) => fetch(url, init);
const options: NinefoldOptions = { url: "http://127.0.0.1:1", apiKey: process.env["KEY"], fetch: send };
const nf = new Ninefold(options);

export async function all(signal: AbortSignal, headers: IncomingHttpHeaders, body: Buffer): Promise<void> {
  const balance: number = (await nf.meter("m").deduct(3, { signal, idempotencyKey: "x" })).balance;
  for await (const key of nf.keys.list({ limit: 5 }, { signal })) {
    const scopes: string[] = key.scopes;
    const end: string | null = key.expires_at;
    console.log(scopes, end);
  }
  const status: "up" | "degraded" | "down" | "unknown" = (await nf.monitors.get("m")).status;
  const done: string = await nf.withLock("k", async ({ fencingToken }) => String(fencingToken), { ttlMs: 1000, signal });
  const delivery: Delivery = await verifyDelivery(headers, body, ["a", "b"]);
  await verifyDelivery(new Headers(), "text", "a", { toleranceMs: 1 });
  const chain = await nf.notary.init();
  if (chain.success) console.log(chain.publicKey.x);
  const page: AnswerOf<"keys.list"> = await nf.keys.list().page();
  interface Entry { event: string }
  const entry: Entry = { event: "paid" };
  const receipt = await nf.notary.log(entry);
  const verdict: Verdict = verifyReceipt(receipt);
  await nf.relay.schedule({ target_url: "https://a.example", method: "POST", delay: "5m", payload: entry, headers: {} });
  await nf.projects.update("p", { description: null, name: undefined });
  try {
    await nf.ping();
  } catch (error) {
    if (error instanceof NinefoldError && error.code === "rate_limit_exceeded") console.log(error.retryAfterMs);
  }
  console.log(balance, status, done, delivery.json(), page.next_cursor, verdict.checks, verifyChain([receipt]).count);
}
`;

/** One mistake each. */
const WRONG = [
  'new Ninefold({ url: "https://a.example" });',
  'await nf.meter("m").deduct("3");',
  'await nf.keys.create({ prefix: "a", name: "b" });',
  'await nf.monitors.create({ url: "https://a.example", interval: 60_000, method: 2 });',
  'console.log((await nf.meter("m").balance()).user_id);',
  'await nf.relay.list({ status: "sent" }).page();',
  'await nf.flags.isEnabled("beta", { fallback: "no" });',
  'await nf.flags.number("beta", {}, "no");',
  'await nf.request("FETCH", "/v1/ping");',
  'await nf.withLock("k");',
  "for (const key of nf.keys.list()) console.log(key);",
];
