import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeBearer, makeKey } from "../areas/keys/support.ts";
import { freePort } from "../harness/processes/ports.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { Proxies } from "../support/proxies.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";
import { readWritten } from "./page.ts";

const PAGE = readWritten("docs/guides/protect-an-api.md");
/** Timeout for the start of a proxy, long because the machine may be busy. */
const TIMEOUT_MS = 120_000;

let server: TestServer;
let account: AccountClient;
let proxyKey: string;
let folder: string;
/** The server behind the proxies, which responds with the headers that it received. */
let api: ReturnType<typeof Bun.serve>;
let proxies: Proxies;
beforeAll(async () => {
  server = await startTestServer({ args: ["--trust-proxy", "127.0.0.1"] });
  folder = mkdtempSync(join(tmpdir(), "ninefold-proxies-"));
  proxies = new Proxies(folder);
  api = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ headers, url }) =>
      url.endsWith("/teapot")
        ? new Response("no", { status: 403, headers: { "x-from": "api" } })
        : Response.json(Object.fromEntries(headers)),
  });
});
afterAll(async () => {
  await server.stop();
  await api.stop(true);
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  account = await server.account({ tier: "unlimited" });
  proxyKey = (await makeBearer(account, ["check:write"])).secret;
});
afterEach(() => proxies.stop());

/** The page's block in a language, with this test's ports and keys. */
function snippet(language: string, port: number): string {
  const [, block] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms").exec(PAGE) ?? [];
  if (block === undefined) throw new Error(`the page has nothing for ${language}`);
  return block
    .replaceAll("127.0.0.1:9909", new URL(server.url).host)
    .replaceAll("127.0.0.1:3000", `127.0.0.1:${api.port}`)
    .replaceAll("port: 3000", `port: ${port}, hostname: "127.0.0.1"`)
    .replaceAll("listen 8080", `listen 127.0.0.1:${port}`)
    .replaceAll(/^:8080/gm, `http://127.0.0.1:${port}`)
    .replaceAll("sm_…", proxyKey);
}

async function nginx(): Promise<string> {
  const port = freePort();
  await proxies.nginx(snippet("nginx", port), port);
  return `http://127.0.0.1:${port}`;
}

async function caddy(): Promise<string> {
  const port = freePort();
  await proxies.caddy(snippet("caddy", port), port, { NINEFOLD_API_KEY: proxyKey });
  return `http://127.0.0.1:${port}`;
}

const customer = (terms: object = {}) => makeKey(account, { owner_id: "acme", ...terms });
const refill = (amount: number) => account.post("/v1/meter/acme/refill", { amount });
const balance = async () => (await account.get("/v1/meter/acme/balance")).body.balance;

const PROXIES = [
  ["nginx", nginx],
  ["caddy", caddy],
] as const;

describe.each(PROXIES)("the guide's configuration of %s", (name, start) => {
  test(
    "allows, denies with the status of the check, and ignores headers that a client forges",
    async () => {
      const url = await start();
      await refill(5);
      const { secret, id } = await customer();
      const ask = (key: string | null, headers: Record<string, string> = {}, path = "/orders") =>
        fetch(url + path, {
          headers: { ...headers, ...(key === null ? {} : { authorization: `Bearer ${key}` }) },
        });

      const passed = await ask(secret, { "x-key-owner": "root", "x-forwarded-for": "203.0.113.9" });
      expect(passed.status).toBe(200);
      const seen = (await passed.json()) as Record<string, string>;
      expect(seen["x-key-owner"]).toBe("acme");
      expect(JSON.stringify(seen)).not.toContain(proxyKey);
      expect((await account.get(`/v1/keys/${id}`)).body.last_used_ip).toBe("127.0.0.1");
      expect(await balance()).toBe(4);

      // For a key without an owner the header is `-`, and not the client's value.
      const nobodys = await makeKey(account, { meter_id: "acme" });
      const plain = await ask(nobodys.secret, { "x-key-owner": "root" });
      expect(((await plain.json()) as Record<string, string>)["x-key-owner"]).toBe("-");

      for (const left of [2, 1]) {
        expect((await ask(secret, { "idempotency-key": "again" })).status).toBe(200);
        expect(await balance()).toBe(left);
      }
      expect((await ask(secret, {}, "/orders?deduct=0&require=nothing")).status).toBe(200);
      expect(await balance()).toBe(0);

      const [none, wrong] = [
        await ask(null),
        await ask("acme_wrong", { "x-ninefold-key": account.key ?? "" }),
      ];
      expect([none.status, wrong.status]).toEqual([401, 401]);
      expect(none.headers.get("www-authenticate")).toBe("Bearer");
      expect((await ask((await customer({ scopes: ["other"] })).secret)).status).toBe(403);
      expect((await ask(secret)).status).toBe(402);
      const ratelimits = [{ name: "requests", limit: 1, duration_ms: 60_000 }];
      const limited = await customer({ ratelimits });
      await refill(2);
      expect((await ask(limited.secret)).status).toBe(200);
      const late = await ask(limited.secret);
      expect(late.status).toBe(429);
      expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(50);

      const refused = await ask(secret, {}, "/teapot");
      expect([refused.status, refused.headers.get("x-from")]).toEqual([403, "api"]);
      await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: true });
      expect((await ask(secret)).status).toBe(name === "nginx" ? 500 : 503);
      await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: false });
    },
    TIMEOUT_MS,
  );
});

test(
  "the guide's server allows and denies",
  async () => {
    const port = freePort();
    const client = join(ROOT, "src/client/index.ts");
    writeFileSync(join(folder, "orders.ts"), snippet("ts", port).replace("ninefold/client", client));
    const environment = { NINEFOLD_URL: server.url, NINEFOLD_API_KEY: proxyKey };
    await proxies.run(port, [process.execPath, "--no-env-file", "orders.ts"], environment);
    const url = `http://127.0.0.1:${port}`;
    await refill(1);
    const { secret } = await customer();
    const ask = async (authorization: string) => {
      const answer = await fetch(url, { headers: { authorization } });
      return [answer.status, await answer.json()];
    };
    expect(await ask(`Bearer ${secret}`)).toEqual([200, { owner: "acme", credits: 0 }]);
    expect(await ask(`Bearer ${secret}`)).toEqual([402, { error: "insufficient_balance" }]);
    expect(await ask("")).toEqual([401, { error: "invalid_key" }]);
    expect(await ask(`Bearer ${"x".repeat(1_000)}`)).toEqual([401, { error: "invalid_key" }]);
  },
  TIMEOUT_MS,
);
