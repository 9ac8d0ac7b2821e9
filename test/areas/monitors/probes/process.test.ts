import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { freePort } from "../../../harness/processes/ports.ts";
import { NINEFOLD_COMMAND, plainEnvironment } from "../../../harness/processes/server-process.ts";
import type { Client } from "../../../support/client.ts";
import { until } from "../../../support/eventually.ts";
import { ProbeProcesses } from "../../../support/probe-processes.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** A process starts, and the machine may be busy. */
const TIMEOUT_MS = 60_000;

let probes: ProbeProcesses;
let server: TestServer;
let target: WebhookSink;
let account: Client;

beforeAll(() => {
  probes = new ProbeProcesses();
  target = new WebhookSink();
});
afterAll(() => {
  target.stop();
  probes.remove();
});
beforeEach(async () => {
  server = await startTestServer({ manualClock: true, args: ["--port", String(freePort())] });
  account = await server.account();
  target.take();
  target.answers(200);
});
afterEach(async () => {
  probes.kill();
  await server.stop();
});

const start = (token: string, more: readonly string[] = [], env: Readonly<Record<string, string>> = {}) =>
  probes.start(server.url, token, more, env);

async function tokenOf(name: string): Promise<string> {
  return String((await account.post("/v1/pulse/probes", { name })).body["token"]);
}

async function monitorOf(...probes: string[]): Promise<string> {
  const body = { url: target.url("/health"), interval: MINUTE, timeout: 2_000, probes };
  return String((await account.post("/v1/pulse", body)).body["id"]);
}

async function statusOf(name: string): Promise<unknown> {
  const { body } = await account.get("/v1/pulse/probes");
  return (body["probes"] as Record<string, unknown>[]).find((probe) => probe["name"] === name)?.["status"];
}

const statusOfMonitor = async (id: string) => (await account.get(`/v1/pulse/${id}`)).body["status"];

/** Advances the clock until the probe has checked, since it may still be reading its list. */
async function advanceUntil(isDone: () => Promise<boolean>): Promise<void> {
  await until(async () => {
    await server.clock.advance(MINUTE);
    return isDone();
  });
}

describe("ninefold probe", () => {
  test(
    "drops what it found with settings that have changed meanwhile, and checks with the new ones",
    async () => {
      const token = await tokenOf("home");
      const id = await monitorOf("home");
      await account.put(`/v1/pulse/${id}`, { timeout: 30_000 });
      const held = Promise.withResolvers<Response>();
      target.answersBy(({ path }) => (path === "/health" ? held.promise : 200));
      const child = start(token, ["--allow-private-targets", "loopback"]);
      await until(async () => (await statusOf("home")) === "online");
      let isChecked = false;
      const checked = account.post(`/v1/pulse/${id}/check`).finally(() => {
        isChecked = true;
      });
      await until(async () => target.received.length > 0);
      await account.put(`/v1/pulse/${id}`, { url: target.url("/elsewhere") });
      const lines = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; text.split("Checking 1 monitor.").length < 3; ) text += (await lines.read()).value;
      expect(isChecked).toBe(false);
      held.resolve(new Response(null, { status: 503 }));
      expect((await checked).body).toMatchObject({ status: "up" });
      const { body } = await account.get(`/v1/pulse/${id}/history`);
      expect(body["checks"]).toMatchObject([{ status: "up", manual: true }]);
    },
    2 * TIMEOUT_MS,
  );

  test(
    "keeps its results while a proxy stands in place of the server",
    async () => {
      const monitor = { monitor_id: crypto.randomUUID(), type: "http", url: target.url("/health") };
      const settings = { method: "GET", headers: null, body: null, timeout: 10_000, interval: DAY };
      const monitors = [{ ...monitor, ...settings, consecutive_threshold: 1 }];
      const sent: string[] = [];
      const statuses = [404, 502, 200];
      const proxy = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        async fetch(request) {
          if (request.method === "GET") {
            const { searchParams } = new URL(request.url);
            if (searchParams.get("wait_ms") !== "0") await new Promise(() => {});
            const work = { cursor: "a", reset: true, complete: true, monitors, due: [], scheduled: true };
            return Response.json(work);
          }
          const { results } = (await request.json()) as { results: { result_id: string }[] };
          sent.push(...results.map(({ result_id }) => result_id));
          const status = statuses[sent.length - 1] ?? 200;
          return status === 200
            ? Response.json({ accepted: 1, rejected: [] })
            : new Response("no such page", { status });
        },
      });
      try {
        probes.start(String(proxy.url), "probe_x", ["--allow-private-targets", "loopback"]);
        await until(async () => sent.length === statuses.length);
        expect(new Set(sent).size).toBe(1);
      } finally {
        await proxy.stop(true);
      }
    },
    2 * TIMEOUT_MS,
  );

  test(
    "checks what the server may not reach, survives a restart of the server, and is noticed when it is killed",
    async () => {
      const token = await tokenOf("home");
      const id = await monitorOf("home");
      const child = start(token, ["--allow-private-targets", "loopback"]);
      await until(async () => (await statusOf("home")) === "online");
      await advanceUntil(async () => (await statusOfMonitor(id)) === "up");
      expect(target.take().length).toBeGreaterThan(0);
      target.answers(503);
      await server.clock.advance(MINUTE);
      expect(await statusOfMonitor(id)).toBe("down");

      await server.restart();
      target.answers(200);
      await advanceUntil(async () => (await statusOfMonitor(id)) === "up");

      child.kill("SIGKILL");
      await child.exited;
      await advanceUntil(async () => (await statusOf("home")) === "offline");
      await advanceUntil(async () => (await statusOfMonitor(id)) === "unknown");
      start(token, ["--allow-private-targets", "loopback"]);
      await until(async () => (await statusOf("home")) === "online");
      await advanceUntil(async () => (await statusOfMonitor(id)) === "up");
    },
    3 * TIMEOUT_MS,
  );

  test(
    "pings hosts, and says where it has no ping",
    async () => {
      const [home, bare] = [await tokenOf("home"), await tokenOf("bare")];
      const body = { type: "icmp", host: "127.0.0.1", packets: 1, interval: MINUTE, timeout: 2_000 };
      const create = async (probe: string) =>
        String((await account.post("/v1/pulse", { ...body, probes: [probe] })).body["id"]);
      const [id, other] = [await create("home"), await create("bare")];
      start(home, ["--allow-private-targets", "loopback"]);
      start(bare, ["--allow-private-targets", "loopback"], { PATH: probes.folder });
      await until(async () => (await statusOf("home")) === "online" && (await statusOf("bare")) === "online");
      await advanceUntil(async () => (await statusOfMonitor(id)) === "up");
      expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject({
        icmp: { sent: 1, received: 1, loss_percent: 0, avg_ms: expect.any(Number) },
      });
      await advanceUntil(async () =>
        (await account.get(`/v1/pulse/${other}`)).text.includes("unsupported: "),
      );
      expect((await account.get(`/v1/pulse/${other}`)).body).toMatchObject({
        status: "unknown",
        error: expect.stringContaining("ping is not installed"),
        probe_states: [{ name: "bare", status: "unknown", error: expect.stringContaining("unsupported: ") }],
      });
    },
    3 * TIMEOUT_MS,
  );

  test(
    "whose observer targets cannot be reached has no vote on what it cannot reach, and one on responses",
    async () => {
      const token = await tokenOf("home");
      target.answers(503);
      const responding = await monitorOf("home");
      const settings = { url: `http://127.0.0.1:${freePort()}/`, interval: MINUTE, probes: ["home"] };
      const silent = String((await account.post("/v1/pulse", settings)).body["id"]);
      const observer = ["--observer-targets", `127.0.0.1:${freePort()}`];
      start(token, ["--allow-private-targets", "loopback", ...observer]);
      await until(async () => (await statusOf("home")) === "online");
      await advanceUntil(async () => (await statusOfMonitor(responding)) === "down");
      const lastOf = async (id: string) =>
        (await account.get(`/v1/pulse/${id}/history?limit=1`)).body["checks"] as object[];
      await advanceUntil(async () => (await lastOf(silent)).length > 0);
      expect(await lastOf(silent)).toMatchObject([{ observer_offline: true, error: expect.any(String) }]);
      expect((await account.get(`/v1/pulse/${silent}`)).body).toMatchObject({
        status: "unknown",
        incident_id: null,
      });
    },
    2 * TIMEOUT_MS,
  );

  test(
    "obeys its own permission of private targets",
    async () => {
      const token = await tokenOf("home");
      const id = await monitorOf("home");
      start(token);
      await until(async () => (await statusOf("home")) === "online");
      await advanceUntil(async () => (await statusOfMonitor(id)) === "down");
      const { body } = await account.get(`/v1/pulse/${id}/history?limit=1`);
      expect(body["checks"]).toMatchObject([
        {
          probe: "home",
          error: expect.stringContaining("start the probe with --allow-private-targets loopback"),
        },
      ]);
      expect(target.take()).toEqual([]);
    },
    2 * TIMEOUT_MS,
  );

  test(
    "ends with 0 on SIGTERM, 1 for a token that the server rejects, 2 for a wrong call",
    async () => {
      const token = await tokenOf("home");
      const child = start(token);
      await until(async () => (await statusOf("home")) === "online");
      child.kill("SIGTERM");
      expect(await child.exited).toBe(0);
      const refused = start(`${token.slice(0, -8)}00000000`);
      expect(await refused.exited).toBe(1);
      expect(await new Response(refused.stderr).text()).toContain(
        `${server.url} rejects the token: the probe was deleted`,
      );
      for (const url of ["http://ninefold.example.com", "ftp://127.0.0.1", "http://9.9.9.9"]) {
        const wrong = Bun.spawn([...NINEFOLD_COMMAND, "probe", "--url", url, "--token-file", "none"], {
          env: plainEnvironment({}),
          stdout: "ignore",
          stderr: "ignore",
        });
        expect([url, await wrong.exited]).toEqual([url, 2]);
      }
    },
    2 * TIMEOUT_MS,
  );

  test.each<[string, { token?: string; url?: string; more?: string[] }, number, string]>([
    ["an empty file", { token: "" }, 1, "does not contain the token of a probe, which begins with probe_"],
    ["another key", { token: "sm_123456" }, 1, "Create a probe with POST /v1/pulse/probes or in the console"],
    [
      "a URL with a password",
      { url: "https://ann:x@ninefold.example.com" },
      2,
      "without a password or query",
    ],
    [
      "a host without a port",
      { more: ["--observer-targets", "1.1.1.1"] },
      1,
      '"1.1.1.1" is not a host and port',
    ],
    ["too many hosts", { more: ["--observer-targets", "a:1,b:1,c:1,d:1,e:1,f:1"] }, 1, "at most 5 hosts"],
  ])(
    "says what to do about %s",
    async (_name, { token = "probe_x", url, more = [] }, code, message) => {
      const child = start(token, [...(url === undefined ? [] : ["--url", url]), ...more]);
      expect(await child.exited).toBe(code);
      expect(await new Response(child.stderr).text()).toContain(message);
    },
    TIMEOUT_MS,
  );

  test(
    "says that the server is away at its start, and follows it when it is there",
    async () => {
      const token = await tokenOf("home");
      await server.halt();
      const child = start(token);
      let said = "";
      const reading = (async () => {
        for await (const chunk of child.stderr) said += Buffer.from(chunk).toString();
      })();
      await until(async () => said.includes("Retrying until it is back."));
      await server.restart();
      await until(async () => (await statusOf("home")) === "online");
      child.kill("SIGTERM");
      await Promise.all([child.exited, reading]);
      expect(said).toContain(
        `No connection to ${server.url}: the connection was refused. Retrying until it is back.`,
      );
      expect(said).toContain("Connection is back.\nChecking 0 monitors.");
    },
    TIMEOUT_MS,
  );
});
