import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { freePort } from "../harness/processes/ports.ts";
import { ProbeProcesses } from "../support/probe-processes.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { ninefold, TIMEOUT_MS } from "./support.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

let server: TestServer;
let account: AccountClient;
let sink: WebhookSink;
let probes: ProbeProcesses;
beforeEach(async () => {
  sink = new WebhookSink();
  probes = new ProbeProcesses();
  // Probes of a restored server call it under its address.
  server = await startTestServer({
    manualClock: true,
    args: [...["--port", String(freePort())], ...["--allow-private-targets", "127.0.0.0/8"]],
  });
  account = await server.account();
});
afterEach(async () => {
  probes.remove();
  await server.stop();
  sink.stop();
  rmSync(`${server.folder}.db`, { force: true });
});

async function backUp(): Promise<void> {
  await server.halt();
  const { code, error } = await ninefold(["backup", `${server.folder}.db`, "--data", server.folder]);
  expect([code, error]).toEqual([0, ""]);
  await server.start();
}

/** Puts the backup in place; returns what `ninefold restore` prints. */
async function restore(): Promise<string> {
  await server.halt();
  const args = ["restore", `${server.folder}.db`, "--data", server.folder, "--force"];
  const { code, out, error } = await ninefold(args);
  expect([code, error]).toEqual([0, ""]);
  await server.start();
  return out;
}

async function created(path: string, body: object): Promise<Record<string, unknown>> {
  const answer = await account.post(path, body);
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

const channel = (more: object = {}) =>
  created("/v1/pulse/channels", { name: "hook", kind: "webhook", config: { url: sink.url("/") }, ...more });
const probe = async (name: string) => String((await created("/v1/pulse/probes", { name }))["token"]);
const monitor = async (name: string, by: readonly string[]) => {
  const body = { name, url: "https://10.9.8.7/", interval: MINUTE, timeout: 1_000, probes: by };
  return String((await created("/v1/pulse", body))["id"]);
};

/** Sends a result of a probe; returns the response. */
async function send(
  token: string,
  monitor_id: string,
  status: "up" | "down",
  result_id: string = crypto.randomUUID(),
) {
  const found = status === "up" ? { latency_ms: 20 } : { error: "timeout: none" };
  const result = { result_id, monitor_id, age_ms: 0, status, ...found };
  return server.client(token).post("/v1/probe/results", { results: [result] });
}

const ACCEPTED = { accepted: 1, rejected: [] };
const statusOf = async (id: string) => (await account.get(`/v1/pulse/${id}`)).body["status"];
/** Events that the channel has got since the last call, those in one message together. */
const events = () =>
  sink.take().map(({ body }) => {
    const { event, alerts } = JSON.parse(body) as { event: string; alerts?: { event: string }[] };
    return alerts === undefined ? event : alerts.map((alert) => alert.event).join(", ");
  });

describe("probes after a restore", () => {
  test(
    "have the tokens of the backup: deleted ones work again, and later ones are rejected",
    async () => {
      const kept = await probe("kept");
      const deleted = await probe("deleted");
      await backUp();
      const { probes: list } = (await account.get("/v1/pulse/probes")).body as {
        probes: Record<string, unknown>[];
      };
      const { id } = list.find(({ name }) => name === "deleted") ?? {};
      expect((await account.delete(`/v1/pulse/probes/${id}`)).status).toBe(200);
      const later = await probe("later");
      const statuses = () =>
        Promise.all(
          [kept, deleted, later].map(
            async (token) => (await server.client(token).get("/v1/probe/work?wait_ms=0")).status,
          ),
        );
      expect(await statuses()).toEqual([200, 401, 200]);
      const out = await restore();
      expect(await statuses()).toEqual([200, 200, 401]);
      const { email } = account;
      expect(out).toContain(
        `\nprobes    the tokens of these are valid: delete again those that you deleted since, and create those again that you created since\n          kept of ${email}\n          deleted of ${email}\n`,
      );
      const refused = probes.start(server.url, later);
      expect(await refused.exited).toBe(1);
      expect(await new Response(refused.stderr).text()).toContain(
        "rejects the token: the probe was deleted, or the token is that of another server",
      );
    },
    TIMEOUT_MS,
  );

  test(
    "vote anew, send each result once, and outages that were alerted before the backup are not alerted again",
    async () => {
      await channel();
      const [fra, nyc] = [await probe("fra"), await probe("nyc")];
      const [shop, api] = [await monitor("Shop", ["fra", "nyc"]), await monitor("API", ["fra"])];
      for (const [token, id] of [
        [fra, shop],
        [nyc, shop],
        [fra, api],
      ] as const)
        expect((await send(token, id, "down")).body).toEqual(ACCEPTED);
      await server.clock.advance(1_000);
      expect(events()).toEqual(["monitor.down", "monitor.down"]);
      await backUp();
      expect((await send(fra, api, "down", "later")).body).toEqual(ACCEPTED);
      server.clock.freeze(HOUR);
      await restore();
      expect([await statusOf(shop), await statusOf(api)]).toEqual(["down", "down"]);
      // A probe that was told nothing sends it again.
      expect((await send(fra, api, "down", "later")).body).toEqual(ACCEPTED);
      expect((await send(fra, api, "down", "later")).body["rejected"]).toEqual([
        { index: 0, reason: "duplicate" },
      ]);
      await server.clock.advance(MINUTE);
      expect(events()).toEqual([]);
      // The votes of the backup have lapsed: the one that reports decides.
      await send(nyc, shop, "up");
      await send(fra, api, "up");
      await server.clock.advance(1_000);
      expect(events()).toEqual(["monitor.up", "monitor.up"]);
      expect([await statusOf(shop), await statusOf(api)]).toEqual(["up", "up"]);
      const { checks } = (await account.get(`/v1/pulse/${api}/history`)).body as { checks: unknown[] };
      expect(checks.length).toBe(3);
    },
    TIMEOUT_MS,
  );
});

describe("alerts that were held at the time of the backup", () => {
  test(
    "are sent after the restore in one message, at the end of the quiet hours, or immediately if these are over",
    async () => {
      // The clock starts at 12:00 UTC.
      await channel({ quiet_hours: { from: "11:00", to: "13:00", time_zone: "UTC" } });
      const fra = await probe("fra");
      const [shop, api] = [await monitor("Shop", ["fra"]), await monitor("API", ["fra"])];
      for (const id of [shop, api]) await send(fra, id, "down");
      await backUp();
      await send(fra, shop, "up");
      await restore();
      for (const id of [shop, api]) await send(fra, id, "down");
      await server.clock.advance(30 * MINUTE);
      expect(events()).toEqual([]);
      await server.clock.advance(31 * MINUTE);
      expect(events()).toEqual([
        "monitor.down, monitor.down, probe.offline, monitor.unknown, monitor.unknown",
      ]);
      await restore();
      await server.clock.advance(1_000);
      expect(events()).toEqual(["monitor.down, monitor.down"]);
      for (const id of [shop, api]) await send(fra, id, "up");
      await server.clock.advance(1_000);
      expect(events()).toEqual(["monitor.up", "monitor.up"]);
    },
    TIMEOUT_MS,
  );
});
