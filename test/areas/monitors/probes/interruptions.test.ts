import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { until } from "../../../support/eventually.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

let server: TestServer;
let sink: WebhookSink;
let account: Client;
let results = 0;
beforeEach(async () => {
  sink = new WebhookSink();
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  account = await server.account();
  const hook = { name: "Hook", kind: "webhook", config: { url: sink.url("/") } };
  expect((await account.post("/v1/pulse/channels", hook)).status).toBe(201);
});
afterEach(async () => {
  await server.stop();
  sink.stop();
});

/** Creates a probe, and returns its token. */
async function probe(name: string): Promise<string> {
  return String((await account.post("/v1/pulse/probes", { name })).body["token"]);
}

async function monitor(probes: readonly string[], more: object = {}): Promise<string> {
  const settings = { url: "https://10.9.8.7/", interval: MINUTE, timeout: 1_000, probes, ...more };
  const { status, body, text } = await account.post("/v1/pulse", settings);
  expect(status, text).toBe(201);
  return String(body["id"]);
}

/** Sends results of a monitor, which must be accepted. */
async function send(token: string, monitor_id: string, ...sent: readonly object[]): Promise<void> {
  const list = sent.map((result) => {
    results += 1;
    const usual = { result_id: `r-${results}`, monitor_id, age_ms: 0, status: "up", latency_ms: 20 };
    return {
      ...usual,
      ...("status" in result && result.status === "down" && { error: "timeout: none" }),
      ...result,
    };
  });
  const { body, text } = await server.client(token).post("/v1/probe/results", { results: list });
  expect(body, text).toEqual({ accepted: sent.length, rejected: [] });
}

async function restart(): Promise<void> {
  await server.restart();
  account = server.client(account.key);
}

const view = async (id: string) => (await account.get(`/v1/pulse/${id}`)).body;
const probeStatus = async () => {
  const { body } = await account.get("/v1/pulse/probes");
  return (body["probes"] as Record<string, unknown>[]).map(({ status }) => status);
};
/** Events that the channel has got since the last call. */
const events = () => sink.take().map(({ body }) => JSON.parse(body).event as string);

describe("probes that could not call", () => {
  const interruptions: readonly (readonly [name: string, interrupt: () => Promise<void>])[] = [
    ["while the server's machine slept", async () => server.clock.freeze(HOUR)],
    ["because the server's clock was set forward", async () => server.clock.setWall(HOUR)],
    [
      "while the server was away, or before its backup was restored",
      async () => {
        await server.halt();
        server.clock.freeze(HOUR);
        await server.start();
        account = server.client(account.key);
      },
    ],
  ];
  for (const [name, interrupt] of interruptions)
    test(`${name} have their time again before they are missed`, async () => {
      const fra = await probe("fra");
      const id = await monitor(["fra"]);
      await send(fra, id, {});
      await interrupt();
      await server.clock.advance(MINUTE);
      expect([events(), (await view(id))["status"], await probeStatus()]).toEqual([[], "up", ["online"]]);
      await send(fra, id, {});
      await server.clock.advance(MINUTE);
      expect([events(), (await view(id))["status"], await probeStatus()]).toEqual([[], "up", ["online"]]);
      await server.clock.advance(5 * MINUTE);
      expect(events().toSorted()).toEqual(["monitor.unknown", "probe.offline"]);
    });

  test("are missed, also after the server's clock was set back", async () => {
    const fra = await probe("fra");
    const id = await monitor(["fra"]);
    await send(fra, id, {});
    server.clock.setWall(-HOUR);
    await server.clock.advance(MINUTE);
    expect([events(), await probeStatus()]).toEqual([[], ["online"]]);
    await send(fra, id, {});
    await server.clock.advance(MINUTE);
    expect([events(), (await view(id))["status"]]).toEqual([[], "up"]);
    server.clock.setWall(-HOUR);
    await server.clock.advance(10 * MINUTE);
    expect([events().toSorted(), await probeStatus()]).toEqual([
      ["monitor.unknown", "probe.offline"],
      ["offline"],
    ]);
  });

  test("for 6 minutes send what they saw meanwhile to the history: only the newest counts", async () => {
    const fra = await probe("fra");
    const id = await monitor(["fra"]);
    await send(fra, id, {});
    await server.clock.advance(6 * MINUTE);
    expect(events().toSorted()).toEqual(["monitor.unknown", "probe.offline"]);
    const ages = [5.5, 4.5, 3.5, 2.5, 1.5];
    const down = ages.map((minutes) => ({ age_ms: minutes * MINUTE, status: "down" }));
    await send(fra, id, ...down, { age_ms: MINUTE / 2 });
    await server.clock.advance(1_000);
    expect(events()).toEqual(["probe.online"]);
    expect(await view(id)).toMatchObject({ status: "up", incident_id: null, consecutive_failures: 0 });
    const { body } = await account.get(`/v1/pulse/${id}/history`);
    const statuses = (body["checks"] as Record<string, unknown>[]).map(({ status }) => status);
    expect(statuses).toEqual(["up", ...ages.map(() => "down"), "up"]);
    expect(body["uptime"]).toMatchObject({ "24h": 100 });
  });
});

describe("votes", () => {
  test("of before a restart count after it", async () => {
    const [fra, nyc] = [await probe("fra"), await probe("nyc")];
    const id = await monitor(["fra", "nyc"], { consecutive_threshold: 2 });
    await send(fra, id, { status: "down" }, { status: "down" });
    await send(nyc, id, {}, { status: "down" });
    expect((await view(id))["status"]).toBe("degraded");
    await restart();
    await send(nyc, id, { status: "down" });
    expect(await view(id)).toMatchObject({
      status: "down",
      probe_states: [
        { name: "fra", status: "down" },
        { name: "nyc", status: "down" },
      ],
    });
  });

  test("of two probes that see it down in turn make no outage, and alert nobody", async () => {
    const [fra, nyc] = [await probe("fra"), await probe("nyc")];
    const id = await monitor(["fra", "nyc"]);
    for (const token of [fra, nyc]) await send(token, id, {});
    for (let round = 0; round < 10; round += 1) {
      const [one, other] = round % 2 === 0 ? [fra, nyc] : [nyc, fra];
      await send(other, id, {});
      await send(one, id, { status: "down" });
      expect(await view(id)).toMatchObject({
        status: "degraded",
        degraded_reason: "probes",
        incident_id: null,
      });
      await send(one, id, {});
      await server.clock.advance(MINUTE);
    }
    expect([events(), (await view(id))["flapping"]]).toEqual([[], false]);
    const { body } = await account.get("/v1/pulse/incidents");
    expect(body["incidents"]).toEqual([]);
  });

  test("of a probe that leaves the monitor no longer count, and those that stay decide", async () => {
    const [fra, nyc] = [await probe("fra"), await probe("nyc")];
    const id = await monitor(["fra", "nyc"], { confirm: "any" });
    await send(fra, id, { status: "down" });
    await send(nyc, id, {});
    expect((await view(id))["status"]).toBe("down");
    await account.put(`/v1/pulse/${id}`, { probes: ["nyc"] });
    await server.clock.advance(MINUTE);
    expect(await view(id)).toMatchObject({ status: "up", probe_states: [{ name: "nyc" }] });
    await account.put(`/v1/pulse/${id}`, { probes: ["fra", "nyc"] });
    expect((await view(id))["probe_states"]).toMatchObject([
      { name: "fra", status: "unknown" },
      { name: "nyc", status: "up" },
    ]);
  });
});

test("a suspension and the deletion of an account end the requests of their own probes alone", async () => {
  const waits = async (client: Client) => {
    const { body } = await client.post("/v1/pulse/probes", { name: "home" });
    const token = server.client(String(body["token"]));
    const { cursor } = (await token.get("/v1/probe/work?wait_ms=0")).body;
    const waiting = { isOver: false, response: token.get(`/v1/probe/work?wait_ms=55000&after=${cursor}`) };
    void waiting.response.then(() => {
      waiting.isOver = true;
    });
    const path = `/v1/pulse/probes/${body["id"]}`;
    await server.clock.advance(1_000);
    await until(
      async () => Date.parse(String((await client.get(path)).body["last_seen_at"])) === server.clock.now(),
    );
    return waiting;
  };
  const others: AccountClient[] = [await server.account(), await server.account()];
  const [suspended, deleted] = others as [AccountClient, AccountClient];
  const own = await waits(account);
  const ofSuspended = await waits(suspended);
  const ofDeleted = await waits(deleted);
  const admin = (client: AccountClient) => `/v1/admin/accounts/${client.userId}`;
  expect((await server.operator.patch(admin(suspended), { suspended: true })).status).toBe(200);
  expectError(await ofSuspended.response, "forbidden");
  expect((await server.operator.delete(admin(deleted))).status).toBe(202);
  expectError(await ofDeleted.response, "unauthorized");
  expect(own.isOver).toBe(false);
  const id = await monitor(["home"]);
  expect((await own.response).body["monitors"]).toMatchObject([{ monitor_id: id }]);
});
