import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../harness/processes/ports.ts";
import { plainEnvironment, ROOT } from "../harness/processes/server-process.ts";
import { endOf } from "../support/ended.ts";
import { until } from "../support/eventually.ts";
import { Proxies } from "../support/proxies.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";
import { WebhookSink } from "../support/webhook-sink.ts";

const TIMEOUT_MS = 180_000;
const at = (path: string): string => join(ROOT, "examples", path);
const folder = mkdtempSync(join(tmpdir(), "ninefold-examples-"));
const sink = new WebhookSink();
const proxies = new Proxies(folder);

let server: TestServer;
let account: AccountClient;
const running: Bun.Subprocess[] = [];
beforeAll(async () => {
  server = await startTestServer({ args: ["--allow-private-targets", "loopback"] });
  account = await server.account({ tier: "unlimited" });
});
afterAll(async () => {
  for (const child of running) {
    child.kill();
    await child.exited;
  }
  await proxies.stop();
  await server.stop();
  await sink.stop();
  rmSync(folder, { recursive: true, force: true });
});

const environment = (): Record<string, string> => ({
  NINEFOLD_URL: server.url,
  NINEFOLD_API_KEY: String(account.key),
});

/** Starts an example that serves, and resolves to the line that it prints when it listens. */
async function serve(command: string[], more: Record<string, string>): Promise<string> {
  // A file: a program whose output nobody reads any more may end at its next line.
  const output = Bun.file(join(folder, `output-${running.length}`));
  const child = Bun.spawn(command, {
    env: plainEnvironment({ HOME: folder, ...environment(), ...more }),
    cwd: folder,
    stdout: output,
    stderr: "inherit",
  });
  running.push(child);
  await until(async () => (await output.text()).includes("\n"));
  return (await output.text()).trim();
}

test(
  "saas: a customer pays for reports until the credits are used up, and gets webhooks",
  async () => {
    const line = await serve([process.execPath, at("saas/server.ts")], { ADMIN_TOKEN: "secret", PORT: "0" });
    const url = line.replace("listening on ", "");
    const post = (path: string, token: string, body?: object) =>
      fetch(new URL(path, url), {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    expect((await post("/customers", "other", { id: "acme" })).status).toBe(401);
    const created = await post("/customers", "secret", { id: "acme" });
    expect(created.status).toBe(201);
    const { secret } = (await created.json()) as { secret: string };

    const endpoint = { url: sink.url("/hook"), owner_id: "acme", event_types: ["report.created"] };
    expect((await account.post("/v1/relay/endpoints", endpoint)).status).toBe(201);
    const first = await post("/reports", secret);
    expect([first.status, await first.json()]).toEqual([
      201,
      { id: expect.any(String), format: "csv", credits: 96 },
    ]);
    await account.post("/v1/gate", { flag_key: "pdf-reports", enabled: true });
    expect(await (await post("/reports", secret)).json()).toMatchObject({ format: "pdf", credits: 92 });
    expect((await post("/reports", "acme_wrong")).status).toBe(401);
    const { body: deducted } = await account.post("/v1/meter/acme/deduct", { amount: 90 });
    expect(deducted).toMatchObject({ balance: 2 });
    const refused = await post("/reports", secret);
    expect([refused.status, await refused.json()]).toEqual([402, { error: "insufficient_balance" }]);
    const page = (await (await post("/webhooks", secret)).json()) as { url: string };
    expect(page.url).toContain("/portal/#token=");

    const { body } = await account.get("/v1/relay");
    expect(body["deliveries"]).toHaveLength(2);
  },
  TIMEOUT_MS,
);

test(
  "cron: a job reports start, output and exit status, and keeps its own",
  async () => {
    const key = String((await account.post("/v1/pulse/ping-key")).body["ping_key"]);
    const job = (url: string, ...command: readonly string[]) =>
      endOf(["sh", at("cron/job"), ...command], {
        timeoutMs: TIMEOUT_MS / 2,
        environment: { NINEFOLD_URL: url, NINEFOLD_PING_KEY: key },
      });
    expect(await job(server.url, "nightly", "echo", "42 files")).toEqual({
      code: 0,
      out: "42 files\n",
      error: "",
    });
    const failed = await job(server.url, "nightly", "sh", "-c", "echo no disk >&2; exit 3");
    expect([failed.code, failed.out]).toEqual([3, "no disk\n"]);
    const { body } = await account.get("/v1/pulse");
    const [monitor] = body["monitors"] as Record<string, unknown>[];
    expect(monitor).toMatchObject({ type: "heartbeat", status: "down" });
    const { body: said } = await account.get(`/v1/pulse/${monitor?.["monitor_id"]}/pings`);
    const pings = said["pings"] as Record<string, unknown>[];
    expect(pings).toHaveLength(4);
    expect(JSON.stringify(pings)).toContain("no disk");
    const alone = await job("http://127.0.0.1:1", "nightly", "echo", "still");
    expect([alone.code, alone.out]).toEqual([0, "still\n"]);
  },
  TIMEOUT_MS,
);

test(
  "status-page: setup can run twice, and Caddy serves the page and nothing else",
  async () => {
    const setup = (...urls: readonly string[]) =>
      endOf(["sh", at("status-page/setup"), "acme", ...urls], {
        timeoutMs: TIMEOUT_MS / 2,
        environment: environment(),
      });
    const first = await setup("https://example.com/health");
    expect([first.error, first.code]).toEqual(["", 0]);
    const second = await setup("https://example.com/health", "https://example.com/api");
    expect([second.error, second.code, second.out]).toEqual(["", 0, first.out]);
    const { body } = await account.get("/v1/pulse/pages");
    expect(body["pages"]).toHaveLength(1);

    const port = freePort();
    const url = `http://127.0.0.1:${port}`;
    const command = ["caddy", "run", "--config", at("status-page/Caddyfile"), "--adapter", "caddyfile"];
    await proxies.run(port, command, {
      CADDY_ADMIN: "off",
      STATUS_DOMAIN: url,
      STATUS_SLUG: "acme",
      NINEFOLD_ADDRESS: new URL(server.url).host,
    });
    const page = await fetch(url);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("example.com/health")]);
    expect((await fetch(`${url}/status/acme.json`)).status).toBe(200);
    for (const path of ["/v1/ping", "/dashboard/", "/docs", "/status/other", "/metrics"])
      expect([path, (await fetch(`${url}${path}`)).status]).toEqual([path, 404]);
  },
  TIMEOUT_MS,
);
