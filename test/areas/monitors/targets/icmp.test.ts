import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PACKETS_MAX } from "../../../../src/areas/monitors/options.ts";
import { expectError } from "../../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { StubPing } from "../../../support/stub-ping.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const names = new Map([["inner.example", ["10.0.0.7"]]]);
const resolver = {
  resolve: async (host: string): Promise<readonly string[]> => {
    const found = names.get(host);
    if (found === undefined) throw new Error("not found");
    return found;
  },
};

const stub = new StubPing();
let server: TestServer;
let account: AccountClient;
let hooks: WebhookSink;
beforeAll(() => {
  hooks = new WebhookSink();
});
afterAll(() => {
  hooks.stop();
  stub.remove();
});
beforeEach(async () => {
  server = await startTestServer({
    manualClock: true,
    args: ["--allow-private-targets", "loopback"],
    deps: { outbound: { resolver, commandNamed: stub.commandNamed } },
  });
  account = await server.account({ tier: "pro" });
  hooks.take();
});
afterEach(async () => {
  stub.restore();
  await server.stop();
});

const terms = (change: object = {}) => ({
  type: "icmp",
  host: "127.0.0.1",
  interval: MINUTE,
  packets: 1,
  ...change,
});

async function create(change: object = {}): Promise<string> {
  const { status, text, body } = await account.post("/v1/pulse", terms(change));
  expect([status, text]).toEqual([201, expect.any(String)]);
  return String(body["id"]);
}

const view = async (id: string) => (await account.get(`/v1/pulse/${id}`)).body;
const check = async (id: string) => (await account.post(`/v1/pulse/${id}/check`)).body;
const historyOf = async (id: string) =>
  JSON.parse((await account.get(`/v1/pulse/${id}/history?limit=1`)).text) as {
    readonly checks: readonly Record<string, unknown>[];
    readonly uptime: Readonly<Record<string, number | null>>;
    readonly outages: Readonly<Record<string, { readonly count: number }>>;
  };
const incidentsOf = async (id: string) =>
  (await account.get(`/v1/pulse/incidents?monitor_id=${id}`)).body["incidents"] as Record<string, unknown>[];

/** Events of alerts since the last call. */
const events = () => hooks.take().map(({ body }) => JSON.parse(body) as Record<string, unknown>);
async function hook(): Promise<void> {
  const config = { url: hooks.url("/hook") };
  expect((await account.post("/v1/pulse/channels", { name: "Hook", kind: "webhook", config })).status).toBe(
    201,
  );
}

describe("an icmp monitor", () => {
  for (const host of ["127.0.0.1", "::1", "localhost"])
    test(`sends packets to ${host} by the ping of the system`, async () => {
      const id = await create({ host, packets: 2 });
      await server.clock.advance(5_000);
      const packets = {
        sent: 2,
        received: 2,
        loss_percent: 0,
        min_ms: expect.any(Number),
        avg_ms: expect.any(Number),
        max_ms: expect.any(Number),
      };
      const shownHost = host.includes(":") ? `[${host}]` : host;
      expect(await view(id)).toMatchObject({
        type: "icmp",
        name: shownHost,
        url: `icmp://${shownHost}`,
        status: "up",
        error: null,
        packets: 2,
        max_loss_percent: 99,
        icmp: packets,
      });
      const [last] = (await historyOf(id)).checks;
      expect(last).toMatchObject({ status: "up", error: null, response_status: null, icmp: packets });
    });

  test("has no packets before its first check", async () => {
    const created = await account.post("/v1/pulse", { type: "icmp", host: "127.0.0.1", interval: MINUTE });
    expect(created.body).toMatchObject({ packets: 3, max_loss_percent: 99, icmp: null, error: null });
    const other = await account.post("/v1/pulse", { url: "https://example.com/", interval: MINUTE });
    expect(other.body).not.toHaveProperty("icmp");
  });

  test("has settings within limits", async () => {
    for (const [field, values] of [
      ["packets", [0, PACKETS_MAX + 1, 1.5, "3"]],
      ["max_loss_percent", [-1, 100, 0.5]],
      ["port", [80]],
      ["url", ["https://example.com/"]],
      ["keyword", ["x"]],
      ["host", ["", "http://example.com", "10.0.0.1"]],
    ] as const)
      for (const value of values)
        expectError(await account.post("/v1/pulse", terms({ [field]: value })), "validation_error");
    expectError(await account.post("/v1/pulse", { type: "icmp", interval: MINUTE }), "validation_error");
    expectError(await account.post("/v1/pulse", { type: "icmp", host: "127.0.0.1" }), "validation_error");
    for (const [packets, max_loss_percent] of [
      [1, 0],
      [PACKETS_MAX, 99],
    ])
      await create({ packets, max_loss_percent });
    const http = { url: "https://example.com/", interval: MINUTE, packets: 2 };
    expectError(await account.post("/v1/pulse", http), "validation_error");
  });

  test("is down when more packets are lost than allowed", async () => {
    const id = await create({ max_loss_percent: 33 });
    stub.counts(3, 2);
    expect(await check(id)).toMatchObject({
      status: "down",
      error: "loss: 1 of 3 packets, more than 33 %",
      latency_ms: 20,
      icmp: { sent: 3, received: 2, loss_percent: 33.3, min_ms: 10.125, avg_ms: 20.25, max_ms: 30.5 },
    });
    await account.put(`/v1/pulse/${id}`, { max_loss_percent: 34 });
    expect(await check(id)).toMatchObject({ status: "up", error: null, icmp: { received: 2 } });
    await account.put(`/v1/pulse/${id}`, { max_loss_percent: 99, packets: 10 });
    stub.counts(10, 1);
    expect(await check(id)).toMatchObject({ status: "up", icmp: { loss_percent: 90 } });
    stub.counts(10, 0);
    expect(await check(id)).toMatchObject({
      status: "down",
      error: "timeout: no response to 10 packets",
      icmp: { sent: 10, received: 0, loss_percent: 100, min_ms: null, avg_ms: null, max_ms: null },
    });
  });

  test("alerts with its packets", async () => {
    await hook();
    await create({ webhook_url: hooks.url("/own") });
    await server.clock.advance(5_000);
    stub.counts(3, 0);
    await server.clock.advance(2 * MINUTE);
    const down = { event: "monitor.down", icmp: { sent: 3, received: 0, loss_percent: 100 } };
    expect(events()).toMatchObject([down, down]);
    stub.restore();
    await server.clock.advance(MINUTE);
    expect(events()).toMatchObject([{ event: "monitor.up", icmp: { received: 1 } }]);
  });

  test("forgets the packets of another host", async () => {
    const id = await create();
    await server.clock.advance(5_000);
    expect((await view(id))["icmp"]).toMatchObject({ sent: 1 });
    expect((await account.put(`/v1/pulse/${id}`, { host: "127.0.0.2" })).body["icmp"]).toBeNull();
  });

  test("goes to no address that is not allowed", async () => {
    const id = await create({ host: "inner.example" });
    expect(await check(id)).toMatchObject({
      status: "down",
      error: expect.stringMatching(/^blocked: .*private/),
      icmp: null,
    });
    expect(await check(await create({ host: "none.example" }))).toMatchObject({
      status: "down",
      error: expect.stringMatching(/^dns: /),
    });
  });

  test("ends a command that does not end itself", async () => {
    const file = join(tmpdir(), `ninefold-ping-${crypto.randomUUID()}`);
    stub.runs(`echo $$ > ${file}; trap '' INT; exec sleep 600`);
    const id = await create({ timeout: 1_000 });
    expect(await check(id)).toMatchObject({ status: "down", error: expect.stringMatching(/^timeout: /) });
    expect(existsSync(file)).toBe(true);
    const pid = Number(readFileSync(file, "utf8"));
    expect(() => process.kill(pid, 0)).toThrow();
  });
});

describe("without a ping that may be run, an icmp monitor", () => {
  test("stays unknown, and says how to install it", async () => {
    await hook();
    stub.isMissing();
    const id = await create();
    await server.clock.advance(10 * MINUTE);
    const unsupported = {
      status: "unknown",
      error: expect.stringMatching(/^unsupported: .*not installed.*apt install iputils-ping/),
    };
    expect(await view(id)).toMatchObject({
      ...unsupported,
      failing: false,
      consecutive_failures: 0,
      icmp: null,
    });
    const { checks, uptime, outages } = await historyOf(id);
    expect(checks).toMatchObject([unsupported]);
    expect(uptime["24h"]).toBeNull();
    expect(outages["24h"]?.count).toBe(0);
    expect(await incidentsOf(id)).toEqual([]);
    expect(events()).toEqual([]);
    expect((await account.get("/v1/pulse?status=unknown")).body["monitors"]).toMatchObject([
      { monitor_id: id },
    ]);
    stub.restore();
    await server.clock.advance(MINUTE);
    expect(await view(id)).toMatchObject({ status: "up", error: null });
    expect(events()).toEqual([]);
  });

  test("is unknown where it may send nothing", async () => {
    const id = await create();
    const reasons = [
      "ping: socktype: SOCK_RAW\nping: socket: Operation not permitted",
      "ping: permission denied (are you root?)",
      "ping: Lacking privilege for icmp socket.",
    ];
    for (const reason of reasons) {
      stub.runs(`echo '${reason}' >&2; exit 2`);
      const { status, error } = await check(id);
      expect([status, error]).toEqual(["unknown", expect.stringMatching(/^unsupported: .*setcap/)]);
    }
    stub.runs("echo 'ping: invalid option -- W' >&2; exit 2");
    expect((await check(id))["error"]).toMatch(/^unsupported: .*another one/);
  });

  test("alerts once when it is no longer known, and not as an outage; the time counts in no uptime", async () => {
    await hook();
    const id = await create({ interval: 10 * MINUTE });
    await server.clock.advance(HOUR);
    expect((await historyOf(id)).uptime["24h"]).toBe(100);
    stub.isMissing();
    await server.clock.advance(HOUR);
    expect(events()).toMatchObject([
      {
        event: "monitor.unknown",
        status: "unknown",
        previous_status: "up",
        error: expect.stringMatching(/^unsupported: /),
      },
    ]);
    expect((await historyOf(id)).uptime["24h"]).toBe(100);
    stub.restore();
    await server.clock.advance(HOUR);
    expect(await view(id)).toMatchObject({ status: "up" });
    expect([events(), await incidentsOf(id)]).toEqual([[], []]);
  });

  test("leaves an outage open until it is known that it is over", async () => {
    await hook();
    const id = await create();
    stub.counts(3, 0);
    await server.clock.advance(5_000);
    expect(events()).toMatchObject([{ event: "monitor.down" }]);
    stub.isMissing();
    await server.clock.advance(2 * MINUTE);
    expect(await view(id)).toMatchObject({ status: "unknown" });
    expect(events()).toMatchObject([{ event: "monitor.unknown", previous_status: "down" }]);
    expect(await incidentsOf(id)).toMatchObject([{ resolved_at: null }]);
    await server.restart();
    account = server.client(account.key) as AccountClient;
    stub.counts(3, 0);
    await server.clock.advance(MINUTE);
    expect(await view(id)).toMatchObject({ status: "down" });
    expect([events(), await incidentsOf(id)]).toMatchObject([[], [{ resolved_at: null }]]);
    stub.isMissing();
    await server.clock.advance(MINUTE);
    expect(events()).toMatchObject([{ event: "monitor.unknown" }]);
    stub.restore();
    await server.clock.advance(MINUTE);
    expect(events()).toMatchObject([{ event: "monitor.up" }]);
    expect(await incidentsOf(id)).toMatchObject([{ resolved_at: expect.any(String) }]);
  });
});
