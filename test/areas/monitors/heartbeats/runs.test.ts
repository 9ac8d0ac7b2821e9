import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { RUNS_MAX, WAIT_MS_MAX, WAIT_MS_MIN } from "../../../../src/areas/monitors/heartbeat-fields.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { makeHeartbeat } from "../../../support/heartbeats.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const ONCE_AN_HOUR = { period_ms: HOUR, grace_ms: 5 * MINUTE, max_runs_per_period: 1 };
const [FIRST, SECOND] = ["0c5cd6f4-6e0c-4a4f-8f0c-6f2f6b1a2d3e", "1d5cd6f4-6e0c-4a4f-8f0c-6f2f6b1a2d3e"];

let server: TestServer;
let sink: WebhookSink;
let account: Client;
/** Where the alerts of the test go: heartbeats of others are missed meanwhile. */
let path: string;
beforeAll(async () => {
  sink = new WebhookSink();
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(async () => {
  await server.stop();
  sink.stop();
});
beforeEach(async () => {
  account = await server.account({ tier: "pro" });
  path = `/${crypto.randomUUID()}`;
  const hook = { name: "Hook", kind: "webhook", config: { url: sink.url(path) } };
  expect((await account.post("/v1/pulse/channels", hook)).status).toBe(201);
});

async function bodies(): Promise<Record<string, unknown>[]> {
  await server.clock.advance(0);
  const sent = sink.take().filter((request) => request.path === path);
  return sent.map(({ body }) => JSON.parse(body));
}

/** The alerts so far, those about too many runs by their number. */
async function alerts(): Promise<unknown[]> {
  return (await bodies()).map(({ event, runs }) => runs ?? event);
}

describe("the longest run", () => {
  test("is start_grace_ms, or the grace", async () => {
    const terms = { period_ms: 24 * HOUR, grace_ms: 5 * MINUTE, start_grace_ms: 30 * MINUTE };
    const beat = await makeHeartbeat(server, account, terms);
    expect((await beat.view())["start_grace_ms"]).toBe(30 * MINUTE);
    await beat.ping();
    await beat.ping("/start");
    await server.clock.advance(30 * MINUTE - 1);
    expect((await beat.view())["status"]).toBe("up");
    await server.clock.advance(1);
    expect((await beat.view())["status"]).toBe("down");
    const { checks } = (await account.get(`/v1/pulse/${beat.id}/history`)).body as { checks: object[] };
    expect(checks[0]).toMatchObject({ error: expect.stringContaining("has not ended within 30 min") });
    await beat.ping();
    await account.put(`/v1/pulse/${beat.id}`, { start_grace_ms: null });
    expect((await beat.view())["start_grace_ms"]).toBeNull();
    await beat.ping("/start");
    await server.clock.advance(5 * MINUTE);
    expect((await beat.view())["status"]).toBe("down");
  });

  test("is shorter than the grace, of a first run as well", async () => {
    const beat = await makeHeartbeat(server, account, { grace_ms: HOUR, start_grace_ms: MINUTE });
    await beat.ping("/start");
    await server.clock.advance(MINUTE - 1);
    expect((await beat.view())["status"]).toBe("unknown");
    await server.clock.advance(1);
    expect(await beat.view()).toMatchObject({ status: "down", overdue: false });
  });

  test("of each run that overlaps is the same", async () => {
    const terms = { period_ms: 24 * HOUR, grace_ms: 5 * MINUTE, start_grace_ms: 30 * MINUTE };
    const beat = await makeHeartbeat(server, account, terms);
    await beat.ping(`/start?rid=${FIRST}`);
    await server.clock.advance(10 * MINUTE);
    await beat.ping(`/start?rid=${SECOND}`);
    await beat.ping(`?rid=${FIRST}`);
    await server.clock.advance(30 * MINUTE - 1);
    expect((await beat.view())["status"]).toBe("up");
    await server.clock.advance(1);
    expect((await beat.view())["status"]).toBe("down");
  });

  test("of a run that goes on is that of a changed setting", async () => {
    const beat = await makeHeartbeat(server, account, { period_ms: 24 * HOUR, grace_ms: 5 * MINUTE });
    await beat.ping();
    await beat.ping("/start");
    await account.put(`/v1/pulse/${beat.id}`, { start_grace_ms: HOUR });
    await server.clock.advance(HOUR - 1);
    expect((await beat.view())["status"]).toBe("up");
    await server.clock.advance(1);
    expect((await beat.view())["status"]).toBe("down");
  });

  describe("is awaited before a success is missed", () => {
    const LATE = { period_ms: HOUR, grace_ms: 10 * MINUTE, start_grace_ms: 2 * HOUR };

    /** The errors in a heartbeat's history, newest first. */
    async function errors(id: string): Promise<string[]> {
      const { checks } = (await account.get(`/v1/pulse/${id}/history`)).body as {
        checks: { error: string }[];
      };
      return checks.flatMap(({ error }) => error ?? []);
    }

    test("if it began by expected_at and the grace", async () => {
      const beat = await makeHeartbeat(server, account, LATE);
      await beat.ping();
      await server.clock.advance(70 * MINUTE - 1);
      await beat.ping("/start");
      await server.clock.advance(2 * HOUR - 1);
      expect((await beat.view())["status"]).toBe("up");
      await beat.ping();
      // The next success has its usual deadline.
      await server.clock.advance(70 * MINUTE - 1);
      expect((await beat.view())["status"]).toBe("up");
      await server.clock.advance(1);
      expect((await beat.view())["status"]).toBe("down");
      expect((await errors(beat.id))[0]).toStartWith("No ping for ");
    });

    test("and its own deadline is the one that is reported, once", async () => {
      const beat = await makeHeartbeat(server, account, LATE);
      await beat.ping();
      await server.clock.advance(HOUR);
      await beat.ping("/start");
      await server.clock.advance(2 * HOUR);
      expect((await beat.view())["status"]).toBe("down");
      expect(await errors(beat.id)).toEqual([expect.stringContaining("has not ended within 2 h")]);
      expect(await alerts()).toEqual(["monitor.down"]);
    });

    test("but not if a job begins again and again", async () => {
      const beat = await makeHeartbeat(server, account, LATE);
      await beat.ping();
      await server.clock.advance(HOUR);
      for (let minutes = 0; minutes < 125; minutes += 5) {
        await beat.ping("/start");
        await server.clock.advance(5 * MINUTE);
      }
      // The last one in time began 10 minutes after the expected time.
      expect((await beat.view())["status"]).toBe("up");
      await server.clock.advance(5 * MINUTE);
      expect((await beat.view())["status"]).toBe("down");
    });

    test("nor if it begins afterwards, or has no limit of its own", async () => {
      const late = await makeHeartbeat(server, account, LATE);
      const without = await makeHeartbeat(server, account, { ...LATE, start_grace_ms: null });
      await late.ping();
      await without.ping();
      await server.clock.advance(HOUR + MINUTE);
      await without.ping("/start");
      await server.clock.advance(9 * MINUTE);
      expect((await late.view())["status"]).toBe("down");
      expect((await without.view())["status"]).toBe("down");
      await late.ping("/start");
      expect((await late.view())["status"]).toBe("down");
    });

    test("also the first one, and one whose limit is changed meanwhile", async () => {
      const first = await makeHeartbeat(server, account, LATE);
      const changed = await makeHeartbeat(server, account, { ...LATE, start_grace_ms: null });
      await changed.ping();
      await server.clock.advance(HOUR);
      await first.ping("/start");
      await changed.ping("/start");
      await account.put(`/v1/pulse/${changed.id}`, { start_grace_ms: "2h" });
      await server.clock.advance(2 * HOUR - 1);
      expect(await first.view()).toMatchObject({ status: "unknown", overdue: false });
      expect((await changed.view())["status"]).toBe("up");
      await account.put(`/v1/pulse/${changed.id}`, { start_grace_ms: null });
      await server.clock.advance(1);
      expect(await first.view()).toMatchObject({ status: "down", overdue: false });
      expect((await changed.view())["status"]).toBe("down");
    });
  });

  test("has limits, and is for heartbeats", async () => {
    for (const start_grace_ms of [WAIT_MS_MIN, WAIT_MS_MAX, null, "2h"])
      await makeHeartbeat(server, account, { start_grace_ms });
    for (const start_grace_ms of [WAIT_MS_MIN - 1, WAIT_MS_MAX + 1, 0, "x"])
      expectError(await account.post("/v1/pulse", { type: "heartbeat", start_grace_ms }), "validation_error");
    const http = { url: "https://a.example.com/", interval: 300_000, start_grace_ms: HOUR };
    expectError(await account.post("/v1/pulse", http), "validation_error");
  });
});

describe("more runs than max_runs_per_period", () => {
  test("are one alert per period, and no outage", async () => {
    const beat = await makeHeartbeat(server, account, { ...ONCE_AN_HOUR, name: "Nightly" });
    expect((await beat.view())["max_runs_per_period"]).toBe(1);
    await beat.ping();
    await server.clock.advance(MINUTE);
    expect(await alerts()).toEqual([]);
    await beat.ping();
    const [alert, ...more] = await bodies();
    expect(more).toEqual([]);
    expect(alert).toMatchObject({
      event: "monitor.runs_exceeded",
      name: "Nightly",
      status: "up",
      previous_status: "up",
      runs: 2,
      max_runs_per_period: 1,
      text: "More runs than may begin in a period: 2, at most 1.",
    });
    for (let more = 0; more < 3; more += 1) await beat.ping();
    expect(await alerts()).toEqual([]);
    expect((await beat.view())["status"]).toBe("up");
    expect((await account.get("/v1/pulse/incidents")).body["incidents"]).toEqual([]);
    await server.clock.advance(58 * MINUTE);
    await beat.ping();
    expect(await alerts()).toEqual([]);
    await beat.ping();
    expect(await alerts()).toEqual([2]);
  });

  test("are counted by starts, and by ends whose start was not reported", async () => {
    const beat = await makeHeartbeat(server, account, { ...ONCE_AN_HOUR, max_runs_per_period: 2 });
    for (const signal of ["/start", "/log", "", "/start", "/3"]) await beat.ping(signal);
    expect(await alerts()).toEqual(["monitor.down"]);
    await beat.ping("/fail");
    expect(await alerts()).toEqual([3]);
  });

  test("with a rid are counted once, however often a ping is sent", async () => {
    const beat = await makeHeartbeat(server, account, ONCE_AN_HOUR);
    for (const signal of ["/log", "/start", "/start", "", ""]) await beat.ping(`${signal}?rid=${FIRST}`);
    expect(await alerts()).toEqual([]);
    await beat.ping(`/start?rid=${SECOND}`);
    expect(await alerts()).toEqual([2]);
    await beat.ping(`?rid=${SECOND}`);
    expect(await alerts()).toEqual([]);
  });

  test("are not those of a job that is a little early", async () => {
    const beat = await makeHeartbeat(server, account, ONCE_AN_HOUR);
    for (let turn = 0; turn < 4; turn += 1) {
      await beat.ping();
      await server.clock.advance(57 * MINUTE);
    }
    expect(await alerts()).toEqual([]);
    await beat.ping();
    await server.clock.advance(57 * MINUTE - 1);
    await beat.ping();
    expect(await alerts()).toEqual([2]);
  });

  test("of a schedule are counted between its times", async () => {
    // The clock stands at noon, UTC, or later: the next day begins at midnight.
    const terms = { schedule: "0 0 * * *", grace_ms: 2 * HOUR, max_runs_per_period: 1 };
    const beat = await makeHeartbeat(server, account, terms);
    const midnight = Math.ceil((server.clock.now() + 1) / (24 * HOUR)) * 24 * HOUR;
    await server.clock.advance(midnight - server.clock.now());
    await beat.ping();
    const early = 24 * HOUR * 0.05;
    await server.clock.advance(24 * HOUR - early);
    await beat.ping();
    expect(await alerts()).toEqual([]);
    await server.clock.advance(24 * HOUR - 1);
    await beat.ping();
    expect(await alerts()).toEqual([2]);
    await server.clock.advance(1);
    await beat.ping();
    expect(await alerts()).toEqual([]);
  });

  test("are counted across restarts, and from anew after a change of the period or of the limit", async () => {
    const beat = await makeHeartbeat(server, account, ONCE_AN_HOUR);
    await beat.ping();
    await server.restart();
    account = server.client(account.key);
    await account.put(`/v1/pulse/${beat.id}`, { name: "Hourly" });
    await beat.ping();
    expect(await alerts()).toEqual([2]);
    for (const change of [{ period_ms: 2 * HOUR }, { max_runs_per_period: 2 }, { schedule: "0 * * * *" }]) {
      await account.put(`/v1/pulse/${beat.id}`, change);
      await beat.ping();
      expect(await alerts()).toEqual([]);
    }
    await account.put(`/v1/pulse/${beat.id}`, { max_runs_per_period: null });
    for (let more = 0; more < 4; more += 1) await beat.ping();
    expect(await alerts()).toEqual([]);
  });

  test("are not counted while the heartbeat is paused, and no alert during maintenance", async () => {
    const beat = await makeHeartbeat(server, account, ONCE_AN_HOUR);
    await account.put(`/v1/pulse/${beat.id}`, { active: false });
    await beat.ping();
    await account.put(`/v1/pulse/${beat.id}`, { active: true });
    await beat.ping();
    expect(await alerts()).toEqual([]);
    const now = server.clock.now();
    const [starts_at, ends_at] = [now + 1, now + HOUR].map((at) => new Date(at).toISOString());
    const works = { title: "Works", starts_at, ends_at, monitor_ids: [beat.id] };
    const made = await account.post("/v1/pulse/maintenance", works);
    expect(made.status).toBe(201);
    await server.clock.advance(1);
    await beat.ping();
    expect(await alerts()).toEqual([]);
  });

  test("have limits, and are for heartbeats", async () => {
    for (const max_runs_per_period of [1, RUNS_MAX, null])
      await makeHeartbeat(server, account, { max_runs_per_period });
    for (const max_runs_per_period of [0, RUNS_MAX + 1, 1.5, "1"])
      expectError(
        await account.post("/v1/pulse", { type: "heartbeat", max_runs_per_period }),
        "validation_error",
      );
    const http = { url: "https://a.example.com/", interval: 300_000, max_runs_per_period: 1 };
    expectError(await account.post("/v1/pulse", http), "validation_error");
  });

  test("are an event of new channels by default", async () => {
    const { channels } = (await account.get("/v1/pulse/channels")).body as {
      channels: { events: string[] }[];
    };
    expect(channels[0]?.events).toContain("monitor.runs_exceeded");
  });
});
