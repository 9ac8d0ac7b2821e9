import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { LATE_START_MS_MAX, nextExpected } from "../../../../src/areas/monitors/heartbeats/state.ts";
import { makeHeartbeat, type TestHeartbeat } from "../../../support/heartbeats.ts";
import {
  type AccountClient,
  startTestServer,
  TEST_START_MS,
  type TestServer,
} from "../../../support/server.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

let server: TestServer;
let account: AccountClient;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account();
});
afterEach(async () => {
  await server.stop();
});

const TERMS = {
  period_ms: HOUR,
  grace_ms: 5 * MINUTE,
  cooldown_ms: 10 * MINUTE,
  webhook_url: "https://hooks.example.com/in",
  notify_recovery: true,
};

async function statusOf(beat: TestHeartbeat): Promise<unknown> {
  return (await beat.view())["status"];
}

/** The events in alerts with their causes, oldest first. */
const CAUSES: Readonly<Record<string, string>> = { "No ping": "missed", "The run": "overran" };
function told(): string[] {
  const rows = server.server.kernel.db.all<{ body: string }>(
    "SELECT CAST(body AS TEXT) AS body FROM relays ORDER BY rowid",
  )();
  return rows.map(({ body }) => {
    const { event, error } = JSON.parse(body) as { event: string; error: string | null };
    return error === null ? event : `${event} ${CAUSES[error.slice(0, 7)] ?? error}`;
  });
}

async function historyOf(beat: TestHeartbeat): Promise<Record<string, unknown>> {
  return (await account.get(`/v1/pulse/${beat.id}/history?limit=100`)).body;
}

async function errorsOf(beat: TestHeartbeat): Promise<unknown[]> {
  return ((await historyOf(beat))["checks"] as { error: string | null }[]).map(({ error }) => error);
}

function jobs(): number {
  return server.server.kernel.db.number(
    "SELECT count(*) AS n FROM jobs WHERE kind = 'monitors.heartbeats'",
  )();
}

describe("a heartbeat", () => {
  test("is unknown until its first success, which is expected from its creation on", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    const first = new Date(server.clock.now() + HOUR).toISOString();
    expect(await beat.view()).toMatchObject({ status: "unknown", expected_at: first, last_ping_at: null });
    expect(jobs()).toBe(1);
    await server.clock.advance(48 * HOUR);
    await beat.ping("/log");
    expect(await statusOf(beat)).toBe("unknown");
    await beat.ping();
    const expected_at = new Date(server.clock.now() + HOUR).toISOString();
    expect(await beat.view()).toMatchObject({ status: "up", expected_at });
    expect(jobs()).toBe(1);
  });

  test("goes down after period and grace, alerts again after the cooldown, counts one check, and recovers with a success", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping();
    await server.clock.advance(HOUR + 5 * MINUTE - 1);
    expect(await statusOf(beat)).toBe("up");
    await server.clock.advance(1);
    expect(await statusOf(beat)).toBe("down");
    expect(told()).toEqual(["monitor.down missed"]);
    await server.clock.advance(10 * MINUTE - 1);
    expect(told().length).toBe(1);
    await server.clock.advance(1);
    await server.clock.advance(10 * MINUTE);
    expect(told()).toEqual(Array(3).fill("monitor.down missed"));
    await beat.ping();
    expect(await statusOf(beat)).toBe("up");
    expect(told().at(-1)).toBe("monitor.up");
    const missed = "No ping for 65 min. Expected 13:00 UTC, grace 5 min.";
    expect(await errorsOf(beat)).toEqual([null, missed, null]);
    expect(((await historyOf(beat))["uptime"] as Record<string, number>)["24h"]).toBe(76.471);
    expect(jobs()).toBe(1);
  });

  test("stays up while its pings arrive on time, with one deadline", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    for (let hour = 0; hour < 50; hour += 1) {
      await beat.ping();
      await server.clock.advance(HOUR + 4 * MINUTE);
    }
    expect(told()).toEqual([]);
    expect(jobs()).toBe(1);
  });

  test("goes down after the threshold of failures, and immediately after a missing ping", async () => {
    const beat = await makeHeartbeat(server, account, { ...TERMS, consecutive_threshold: 2 });
    await beat.ping();
    await beat.ping("/fail");
    expect(await beat.view()).toMatchObject({ status: "up", consecutive_failures: 1 });
    await beat.ping("/3");
    expect(await statusOf(beat)).toBe("down");
    expect(told()).toEqual(["monitor.down exit status 3"]);
    // The failure was alerted: no further alert is expected until it succeeds.
    await server.clock.advance(24 * HOUR);
    expect(told().length).toBe(1);
    expect(jobs()).toBe(0);
    await beat.ping();
    await server.clock.advance(HOUR + 5 * MINUTE);
    expect(await statusOf(beat)).toBe("down");
    expect(told().slice(1)).toEqual(["monitor.up", "monitor.down missed"]);
  });

  test("goes down when a run does not end within the grace, and recovers with the late end", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping("/start");
    expect((await beat.view())["started_at"]).toBe(new Date(TEST_START_MS).toISOString());
    await server.clock.advance(5 * MINUTE - 1);
    expect(await statusOf(beat)).toBe("unknown");
    await server.clock.advance(1);
    expect(await statusOf(beat)).toBe("down");
    expect(told()).toEqual(["monitor.down overran"]);
    await server.clock.advance(10 * MINUTE);
    expect(told()).toEqual(["monitor.down overran", "monitor.down overran"]);
    await server.clock.advance(MINUTE);
    await beat.ping();
    expect(await beat.view()).toMatchObject({
      status: "up",
      started_at: null,
      last_duration_ms: 16 * MINUTE,
      latency_ms: 16 * MINUTE,
    });
    const overran = "The run that started at 12:00 UTC has not ended within 5 min.";
    expect(await errorsOf(beat)).toEqual([null, overran]);
  });

  test("has a run of 0 ms when the clock was set back during the run", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    const rid = "00000000-0000-4000-8000-000000000000";
    await beat.ping(`/start?rid=${rid}`);
    await beat.ping("/start");
    server.clock.setWall(-HOUR);
    await beat.ping(`?rid=${rid}`);
    expect((await beat.view())["last_duration_ms"]).toBe(0);
    await beat.ping();
    expect(await beat.view()).toMatchObject({ last_duration_ms: 0, latency_ms: 0 });
  });

  describe("with overlapping runs", () => {
    const [a, b, c] = ["1", "2", "3"].map((digit) => `?rid=00000000-0000-4000-8000-00000000000${digit}`);

    test("reports the one that hangs, though others start and end after it", async () => {
      const beat = await makeHeartbeat(server, account, TERMS);
      await beat.ping(`/start${a}`);
      await server.clock.advance(MINUTE);
      await beat.ping(`/start${b}`);
      await beat.ping(b);
      await beat.ping(`/start${c}`);
      expect((await beat.view())["started_at"]).toBe(new Date(TEST_START_MS).toISOString());
      await server.clock.advance(4 * MINUTE - 1);
      expect(await statusOf(beat)).toBe("up");
      await server.clock.advance(1);
      expect(told()).toEqual(["monitor.down overran"]);
      expect((await errorsOf(beat))[0]).toBe("The run that started at 12:00 UTC has not ended within 5 min.");
    });

    test("watches the next one when the oldest has ended, from its own start", async () => {
      const beat = await makeHeartbeat(server, account, TERMS);
      await beat.ping(`/start${a}`);
      await server.clock.advance(2 * MINUTE);
      await beat.ping(`/start${b}`);
      await beat.ping(a);
      await server.clock.advance(5 * MINUTE - 1);
      expect(await statusOf(beat)).toBe("up");
      await server.clock.advance(1);
      expect(told()).toEqual(["monitor.down overran"]);
      expect((await errorsOf(beat))[0]).toBe("The run that started at 12:02 UTC has not ended within 5 min.");
    });

    test("reports each of two that started in the same millisecond once", async () => {
      const beat = await makeHeartbeat(server, account, TERMS);
      await beat.ping(`/start${a}`);
      await beat.ping(`/start${b}`);
      await server.clock.advance(6 * MINUTE);
      const text = "The run that started at 12:00 UTC has not ended within 5 min.";
      expect(await errorsOf(beat)).toEqual([text, text]);
    });

    test("watches the others when one is started again", async () => {
      const beat = await makeHeartbeat(server, account, TERMS);
      await beat.ping(`/start${a}`);
      await server.clock.advance(MINUTE);
      await beat.ping(`/start${b}`);
      await server.clock.advance(MINUTE);
      await beat.ping(`/start${a}`);
      await server.clock.advance(4 * MINUTE);
      expect((await errorsOf(beat))[0]).toBe("The run that started at 12:01 UTC has not ended within 5 min.");
      await server.clock.advance(MINUTE);
      expect((await errorsOf(beat))[0]).toBe("The run that started at 12:02 UTC has not ended within 5 min.");
    });

    test("reports each that hangs; a failure of one does not end another", async () => {
      const beat = await makeHeartbeat(server, account, TERMS);
      await beat.ping(`/start${a}`);
      await server.clock.advance(2 * MINUTE);
      await beat.ping(`/start${b}`);
      await beat.ping(`/start${c}`);
      await beat.ping(`/fail${c}`);
      await server.clock.advance(3 * MINUTE);
      await server.clock.advance(2 * MINUTE);
      expect((await errorsOf(beat)).map((error) => String(error).slice(0, 31))).toEqual([
        "The run that started at 12:02 U",
        "The run that started at 12:00 U",
        "fail",
      ]);
    });

    test("an end without a rid ends all of them", async () => {
      const beat = await makeHeartbeat(server, account, TERMS);
      await beat.ping("/start");
      await beat.ping(`/start${a}`);
      await beat.ping(`/start${b}`);
      await beat.ping();
      expect((await beat.view())["started_at"]).toBeNull();
      await server.clock.advance(HOUR);
      expect(told()).toEqual([]);
    });
  });

  test("uses the earlier deadline when a run starts near the end of the period", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping();
    await server.clock.advance(HOUR + 4 * MINUTE);
    await beat.ping("/start");
    await server.clock.advance(MINUTE);
    expect(await statusOf(beat)).toBe("down");
    // The run continues, and can exceed its maximum duration as well.
    await server.clock.advance(4 * MINUTE);
    expect((await errorsOf(beat)).map((error) => CAUSES[String(error).slice(0, 7)] ?? error)).toEqual([
      "overran",
      "missed",
      null,
    ]);
  });

  test("stores pings and keeps its status while paused, and starts a new period when resumed", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping();
    await account.put(`/v1/pulse/${beat.id}`, { active: false });
    expect(jobs()).toBe(0);
    await server.clock.advance(10 * HOUR);
    await beat.ping("/fail", "kept");
    const { body } = await account.get(`/v1/pulse/${beat.id}/pings`);
    expect((body["pings"] as object[])[0]).toMatchObject({ kind: "fail", body: "kept" });
    expect(await beat.view()).toMatchObject({
      status: "up",
      last_ping_at: new Date(server.clock.now()).toISOString(),
      consecutive_failures: 0,
    });
    await account.put(`/v1/pulse/${beat.id}`, { active: true });
    await server.clock.advance(HOUR + 5 * MINUTE - 1);
    expect(await statusOf(beat)).toBe("up");
    await server.clock.advance(1);
    expect(await statusOf(beat)).toBe("down");
  });

  test("applies a changed period from its last success on", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping();
    await server.clock.advance(30 * MINUTE);
    await account.put(`/v1/pulse/${beat.id}`, { period_ms: 40 * MINUTE, grace_ms: MINUTE });
    await server.clock.advance(11 * MINUTE - 1);
    expect(await statusOf(beat)).toBe("up");
    await server.clock.advance(1);
    expect(await statusOf(beat)).toBe("down");
  });
});

describe("a server that was down while deadlines passed", () => {
  test("postpones these deadlines by the grace, up to 10 minutes", async () => {
    const terms = { ...TERMS, webhook_url: undefined };
    const short = await makeHeartbeat(server, account, terms);
    const long = await makeHeartbeat(server, account, { ...terms, grace_ms: HOUR });
    const later = await makeHeartbeat(server, account, { ...terms, period_ms: 24 * HOUR });
    for (const beat of [short, long, later]) await beat.ping();
    await server.halt();
    await server.clock.advance(5 * HOUR);
    await server.start();
    await server.clock.advance(5 * MINUTE - 1);
    await long.ping();
    expect(await statusOf(short)).toBe("up");
    await server.clock.advance(1);
    expect(await statusOf(short)).toBe("down");
    await server.clock.advance(HOUR);
    expect([await statusOf(long), await statusOf(later)]).toEqual(["up", "up"]);
    await server.clock.advance(18 * HOUR);
    expect(await statusOf(later)).toBe("down");
  });

  test("sends no alert for a ping, or the end of a run, within that time", async () => {
    const beat = await makeHeartbeat(server, account, { ...TERMS, grace_ms: HOUR });
    await beat.ping();
    await beat.ping("/start");
    await server.halt();
    await server.clock.advance(5 * HOUR);
    await server.start();
    await server.clock.advance(LATE_START_MS_MAX - 1);
    await beat.ping();
    await server.clock.advance(MINUTE);
    expect(told()).toEqual([]);
    expect(await beat.view()).toMatchObject({ status: "up", started_at: null });
  });

  test("is treated the same when the machine was asleep", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping();
    server.clock.setWall(5 * HOUR);
    await server.clock.advance(5 * MINUTE - 1);
    expect(await statusOf(beat)).toBe("up");
    await server.clock.advance(1);
    expect(await statusOf(beat)).toBe("down");
  });

  test("reports a missed ping in time after the clock was ahead and is set back", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping("/fail");
    server.clock.setWall(-24 * HOUR);
    await beat.ping();
    await server.clock.advance(HOUR + 5 * MINUTE - 1);
    expect(await statusOf(beat)).toBe("up");
    await server.clock.advance(1);
    expect(await statusOf(beat)).toBe("down");
  });

  test("reports a missed ping in time when the clock is set back while it is pending", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping();
    await server.clock.advance(HOUR);
    server.clock.setWall(-48 * HOUR);
    await server.clock.advance(5 * MINUTE - 1);
    expect(await statusOf(beat)).toBe("up");
    await server.clock.advance(1);
    expect(await statusOf(beat)).toBe("down");
    await beat.ping();
    expect(await statusOf(beat)).toBe("up");
  });

  test("reports a missed ping when the clock was ahead before a restart and is correct after it", async () => {
    server.clock.setWall(400 * 24 * HOUR);
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping();
    await server.halt();
    server.clock.setWall(-400 * 24 * HOUR);
    await server.start();
    await server.clock.advance(HOUR + 5 * MINUTE - 1);
    expect(await statusOf(beat)).toBe("up");
    await server.clock.advance(1);
    expect(await statusOf(beat)).toBe("down");
  });

  test("records a ping while the clock is behind the last ping", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping("/fail");
    expect(await statusOf(beat)).toBe("down");
    server.clock.setWall(-2 * MINUTE);
    await beat.ping();
    expect(await statusOf(beat)).toBe("up");
  });

  test("does not miss pings while the process was stopped", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping();
    await server.clock.advance(HOUR + 4 * MINUTE);
    server.clock.freeze(5 * MINUTE);
    await server.clock.advance(0);
    expect(await statusOf(beat)).toBe("up");
    await server.clock.advance(5 * MINUTE - 1);
    expect(await statusOf(beat)).toBe("up");
    await server.clock.advance(1);
    expect(await statusOf(beat)).toBe("down");
  });

  test("reports a ping that is missed after its start in time", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping();
    await server.clock.advance(HOUR);
    await server.restart();
    await server.clock.advance(5 * MINUTE - 1);
    expect(await statusOf(beat)).toBe("up");
    await server.clock.advance(1);
    expect(await statusOf(beat)).toBe("down");
    expect(told()).toEqual(["monitor.down missed"]);
  });
});

describe("a schedule", () => {
  /** The expected time of the next ping after a success at `at`, without year and seconds. */
  function expectedAfter(schedule: string, tz: string, at: string): string {
    const next = nextExpected({ schedule, tz, period_ms: null }, Date.parse(at));
    return new Date(next ?? 0).toISOString().slice(5, 16);
  }

  test("in Berlin: a time skipped by daylight saving occurs after the change, a repeated one occurs once", async () => {
    const nightly = (at: string) => expectedAfter("30 2 * * *", "Europe/Berlin", at);
    expect(nightly("2026-03-28T00:00:00Z")).toBe("03-28T01:30");
    expect(nightly("2026-03-28T01:30:00Z")).toBe("03-29T01:00");
    expect(nightly("2026-03-29T01:00:00Z")).toBe("03-30T00:30");
    expect(nightly("2026-10-24T12:00:00Z")).toBe("10-25T00:30");
    expect(nightly("2026-10-25T00:30:00Z")).toBe("10-26T01:30");
    const beat = await makeHeartbeat(server, account, {
      ...TERMS,
      period_ms: undefined,
      grace_ms: MINUTE,
      schedule: "30 2 * * *",
      tz: "Europe/Berlin",
    });
    await beat.ping();
    expect((await beat.view())["expected_at"]).toBe("2026-03-11T01:30:00.000Z");
    await server.clock.advance(Date.parse("2026-03-11T01:31:00Z") - TEST_START_MS);
    expect(await statusOf(beat)).toBe("down");
  });

  test("in other forms", () => {
    const monday = (at: string) => expectedAfter("0 9 * * MON#1", "America/New_York", at);
    expect(monday("2026-01-01T00:00:00Z")).toBe("01-05T14:00");
    expect(monday("2026-01-05T14:00:00Z")).toBe("02-02T14:00");
    expect(expectedAfter("0 0 L * *", "UTC", "2026-01-31T00:00:00Z")).toBe("02-28T00:00");
  });

  test("accepts early pings and reports a missing one", async () => {
    const beat = await makeHeartbeat(server, account, {
      ...TERMS,
      schedule: "0 * * * *",
      period_ms: undefined,
    });
    for (let ping = 0; ping < 3; ping += 1) {
      await beat.ping();
      await server.clock.advance(MINUTE);
    }
    expect((await beat.view())["expected_at"]).toBe(new Date(TEST_START_MS + HOUR).toISOString());
    await server.clock.advance(HOUR - 3 * MINUTE);
    await beat.ping();
    expect((await beat.view())["expected_at"]).toBe(new Date(TEST_START_MS + 2 * HOUR).toISOString());
    await server.clock.advance(HOUR + 5 * MINUTE);
    expect(await statusOf(beat)).toBe("down");
  });
});
