import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "../../../support/client.ts";
import { eventually } from "../../../support/eventually.ts";
import { makeHeartbeat, type TestHeartbeat } from "../../../support/heartbeats.ts";
import { startTestServer, TEST_START_MS, TestServer } from "../../../support/server.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** What the owner of a heartbeat sees. */
async function everything(account: Client, { id }: TestHeartbeat): Promise<unknown> {
  const read = async (path: string) => (await account.get(`/v1/pulse${path}`)).body;
  const [view, pings, history] = [
    await read(`/${id}`),
    await read(`/${id}/pings`),
    await read(`/${id}/history?limit=100`),
  ];
  // Cursors are sealed, each time with a new nonce.
  delete history["cursor"];
  const list = (await read("?status=up"))["monitors"];
  return JSON.parse(JSON.stringify({ view, pings, history, list }).replaceAll(account.url, ""));
}

/** Whether states in memory are newer than their rows. */
function isBehind(server: TestServer): boolean {
  const { db } = server.server.kernel;
  return db.number("SELECT value AS n FROM settings WHERE name = 'heartbeats_unsaved_since'")() > 0;
}

function storedPings(server: TestServer): number {
  return server.server.kernel.db.number("SELECT sum(pings) AS n FROM heartbeat_states")();
}

/** A server on a copy of the files of another one, as a kill leaves them. */
async function killedCopy(server: TestServer, manualClock: boolean): Promise<TestServer> {
  const copy = new TestServer({ manualClock: manualClock && { startMs: server.clock.now() } });
  copy.makeFolder();
  for (const name of ["ninefold.db", "ninefold.db-wal", "master.key"]) {
    const from = join(server.folder, name);
    if (existsSync(from)) copyFileSync(from, join(copy.folder, name));
  }
  return copy.start();
}

async function withServer(work: (server: TestServer) => Promise<void>): Promise<void> {
  const server = await startTestServer({ manualClock: true });
  try {
    await work(server);
  } finally {
    await server.stop();
  }
}

describe("plain successes", () => {
  test("are visible immediately, and their states are written later", () =>
    withServer(async (server) => {
      const account = await server.account();
      const beat = await makeHeartbeat(server, account, { period_ms: MINUTE, grace_ms: MINUTE });
      for (let sent = 0; sent < 5; sent += 1) {
        await server.clock.advance(1_000);
        await beat.ping();
      }
      expect(storedPings(server)).toBe(1);
      const at = new Date(TEST_START_MS + 5_000).toISOString();
      expect(await beat.view()).toMatchObject({
        status: "up",
        last_ping_at: at,
        last_checked_at: (TEST_START_MS + 5_000) / 1_000,
        expected_at: new Date(TEST_START_MS + 5_000 + MINUTE).toISOString(),
      });
      const { pings } = (await account.get(`/v1/pulse/${beat.id}/pings`)).body as { pings: object[] };
      expect(pings.length).toBe(5);
      expect(pings[0]).toEqual({
        at,
        kind: "success",
        exit: null,
        duration_ms: null,
        rid: null,
        ip: "127.0.0.1",
        body: null,
      });
      const before = await everything(account, beat);
      // The next round, two seconds of real time after the one before.
      await eventually(() => expect([storedPings(server), isBehind(server)]).toEqual([5, false]));
      expect(await everything(account, beat)).toEqual(before);
    }));

  test("survive a kill with everything that they changed", () =>
    withServer(async (server) => {
      const account = await server.account();
      const daily = await makeHeartbeat(server, account, { schedule: "0 * * * *", tz: "Europe/Berlin" });
      const often = await makeHeartbeat(server, account, { period_ms: MINUTE, grace_ms: MINUTE });
      // More than the stored number of each, across an hour.
      for (let sent = 0; sent < 130; sent += 1) {
        await server.clock.advance(30_000);
        await often.ping();
        if (sent % 10 === 0) await daily.ping();
        if (sent % 40 === 0) await often.ping("", "a body");
      }
      await daily.ping();
      expect(isBehind(server)).toBe(true);
      const copy = await killedCopy(server, true);
      try {
        const owner = copy.client(account.key);
        for (const beat of [daily, often]) {
          expect(await everything(owner, beat)).toEqual(await everything(account, beat));
        }
        // A second kill before anything is written, and a regular stop, change nothing.
        await copy.restart();
        expect(isBehind(copy)).toBe(false);
        const again = copy.client(account.key);
        for (const beat of [daily, often]) {
          expect(await everything(again, beat)).toEqual(await everything(account, beat));
        }
      } finally {
        await copy.stop();
      }
    }));

  test("move the deadline, which is reported once", () =>
    withServer(async (server) => {
      const account = await server.account();
      const beat = await makeHeartbeat(server, account, { period_ms: MINUTE, grace_ms: MINUTE });
      for (let sent = 0; sent < 4; sent += 1) {
        await beat.ping();
        await server.clock.advance(MINUTE);
      }
      await server.clock.advance(MINUTE - 1);
      expect(await beat.view()).toMatchObject({ status: "up" });
      await server.clock.advance(1);
      expect(await beat.view()).toMatchObject({ status: "down", consecutive_failures: 1 });
      await beat.ping();
      expect(await beat.view()).toMatchObject({ status: "up", consecutive_failures: 0 });
    }));

  test("count in their hour and day", () =>
    withServer(async (server) => {
      const account = await server.account();
      const beat = await makeHeartbeat(server, account, { period_ms: HOUR, grace_ms: HOUR });
      for (let sent = 0; sent < 3; sent += 1) await beat.ping();
      await server.clock.advance(HOUR);
      for (let sent = 0; sent < 2; sent += 1) await beat.ping();
      const { db } = server.server.kernel;
      const hours = db.all<{ checks: number }>("SELECT checks FROM monitor_hours")();
      expect(hours).toEqual([{ checks: 3 }]);
      await beat.ping("/fail");
      await server.clock.advance(HOUR / 2);
      const { uptime } = (await account.get(`/v1/pulse/${beat.id}/history`)).body as {
        uptime: Record<string, number>;
      };
      // An hour was up, and half an hour is down, however many pings came.
      expect(uptime["24h"]).toBe(66.667);
    }));
});

describe("pings in memory are included when a heartbeat is changed by", () => {
  test("a failure, a start, a body", () =>
    withServer(async (server) => {
      const account = await server.account();
      const beat = await makeHeartbeat(server, account);
      for (const signal of ["", "", "/log", "", "", "/start", "", "/fail", "", ""]) await beat.ping(signal);
      await beat.ping("", "a body");
      const { pings } = (await account.get(`/v1/pulse/${beat.id}/pings`)).body as {
        pings: { kind: string; body: string | null }[];
      };
      expect(
        pings
          .map(({ kind }) => kind)
          .reverse()
          .join(" "),
      ).toBe("success success log success success start success fail success success success");
      expect(pings[0]?.body).toBe("a body");
      expect(storedPings(server)).toBe(11);
    }));

  test("a change of its settings, and a pause", () =>
    withServer(async (server) => {
      const account = await server.account();
      const beat = await makeHeartbeat(server, account, { period_ms: HOUR, grace_ms: MINUTE });
      for (let sent = 0; sent < 3; sent += 1) await beat.ping();
      await account.put(`/v1/pulse/${beat.id}`, { period_ms: 2 * HOUR });
      expect(storedPings(server)).toBe(3);
      expect(await beat.view()).toMatchObject({
        expected_at: new Date(TEST_START_MS + 2 * HOUR).toISOString(),
      });
      for (let sent = 0; sent < 3; sent += 1) await beat.ping();
      await account.put(`/v1/pulse/${beat.id}`, { active: false });
      await beat.ping();
      const history = (await account.get(`/v1/pulse/${beat.id}/history`)).body as { checks: object[] };
      expect([storedPings(server), history.checks.length]).toEqual([7, 6]);
    }));

  test("maintenance: its successes are not counted", () =>
    withServer(async (server) => {
      const account = await server.account();
      const beat = await makeHeartbeat(server, account);
      for (let sent = 0; sent < 3; sent += 1) await beat.ping();
      const planned = await account.post("/v1/pulse/maintenance", {
        title: "Move",
        monitor_ids: [beat.id],
        starts_at: new Date(TEST_START_MS).toISOString(),
        ends_at: new Date(TEST_START_MS + HOUR).toISOString(),
      });
      expect(planned.status).toBe(201);
      for (let sent = 0; sent < 2; sent += 1) await beat.ping();
      const history = (await account.get(`/v1/pulse/${beat.id}/history`)).body as {
        checks: { maintenance: boolean }[];
      };
      expect(history.checks.map(({ maintenance }) => maintenance)).toEqual([true, true, false, false, false]);
    }));

  test("a deletion", () =>
    withServer(async (server) => {
      const account = await server.account();
      const beats = [await makeHeartbeat(server, account), await makeHeartbeat(server, account)];
      for (const beat of beats) for (let sent = 0; sent < 3; sent += 1) await beat.ping();
      await account.send("DELETE", `/v1/pulse/${beats[0]?.id}`);
      expect((await beats[0]?.ping())?.status).toBe(404);
      expect((await beats[1]?.ping())?.status).toBe(200);
      const { db } = server.server.kernel;
      expect(db.number("SELECT count(DISTINCT id / 100) AS n FROM heartbeat_pings")()).toBe(1);
    }));

  test("a suspension of its account: pings are rejected, and the heartbeat is reset", () =>
    withServer(async (server) => {
      const account = await server.account();
      const beat = await makeHeartbeat(server, account);
      for (let sent = 0; sent < 3; sent += 1) await beat.ping();
      const path = `/v1/admin/accounts/${account.userId}`;
      await server.operator.patch(path, { suspended: true });
      expect((await beat.ping()).status).toBe(404);
      await server.operator.patch(path, { suspended: false });
      await server.clock.advance(1_000);
      expect(await beat.view()).toMatchObject({ status: "unknown", overdue: false });
      expect((await beat.ping()).status).toBe(200);
      expect(await beat.view()).toMatchObject({ status: "up" });
    }));
});

test("a commit that fails leaves nothing of its pings in memory", () =>
  withServer(async (server) => {
    const account = await server.account();
    const beat = await makeHeartbeat(server, account);
    for (let sent = 0; sent < 3; sent += 1) await beat.ping();
    const before = await everything(account, beat);
    const { db } = server.server.kernel;
    db.execute("PRAGMA query_only = ON");
    await server.clock.advance(1_000);
    expect((await beat.ping()).status).toBe(503);
    expect((await beat.ping("/fail")).status).toBe(503);
    db.execute("PRAGMA query_only = OFF");
    expect(await everything(account, beat)).toEqual(before);
    expect((await beat.ping()).status).toBe(200);
    await server.restart();
    const { pings } = (await server.client(account.key).get(`/v1/pulse/${beat.id}/pings`)).body as {
      pings: object[];
    };
    expect(pings.length).toBe(4);
  }));
