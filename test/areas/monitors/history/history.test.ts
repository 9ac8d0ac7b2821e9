import { describe, expect, test } from "bun:test";
import { CommitWindow } from "../../../../src/areas/monitors/checks/schedule.ts";
import { CHECK_RETENTION_MS } from "../../../../src/areas/monitors/domain.ts";
import { checkStore } from "../../../../src/areas/monitors/store.ts";
import { ATTEMPTS_MAX } from "../../../../src/areas/monitors/targets/measure.ts";
import { STALL_MS_MAX } from "../../../../src/kernel/outbound/event-loop.ts";
import { expectError } from "../../../support/errors.ts";
import { startTestServer } from "../../../support/server.ts";
import { monitorStage } from "../support.ts";

const SECOND = 1_000;
const LOOPBACK = ["--allow-private-targets", "127.0.0.0/8"];

const stage = monitorStage();
const { create, told } = stage;

describe("a process that stalled", () => {
  test("repeats checks, and skips them if that does not help, instead of reporting a slow or failed target", async () => {
    let stalledMs = 0;
    let answers = 0;
    const held = await startTestServer({
      manualClock: true,
      args: LOOPBACK,
      deps: { outbound: { stalls: { longestSince: () => stalledMs, wake: () => {}, stop: () => {} } } },
    });
    try {
      const user = await held.account();
      const body = { url: stage.site.url(), interval: 15_000, webhook_url: stage.hooks.url() };
      const { body: created } = await user.post("/v1/pulse", body);
      const path = `/v1/pulse/${created["id"]}`;
      await held.clock.advance(5 * SECOND);
      // Stalled once: the first attempt fails, the second one counts.
      stage.site.answersBy(() => {
        answers += 1;
        stalledMs = answers === 1 ? STALL_MS_MAX + 1 : 0;
        return answers === 1 ? 500 : 200;
      });
      await held.clock.advance(23 * SECOND);
      expect((await user.get(path)).body).toMatchObject({ status: "up", consecutive_failures: 0 });
      expect(answers).toBeGreaterThanOrEqual(2);
      // Stalled every time: the cause is unknown, so nothing is reported.
      const before = (await user.get(path)).body;
      stage.site.take();
      stage.site.answersBy(() => {
        stalledMs = STALL_MS_MAX + 1;
        return 500;
      });
      await held.clock.advance(15 * SECOND);
      expect(stage.site.take().length).toBe(ATTEMPTS_MAX);
      expect((await user.get(path)).body).toEqual(before);
      expectError(await user.post(`${path}/check`), "service_unavailable");
      // At the limit it counts.
      stage.site.answersBy(() => {
        stalledMs = STALL_MS_MAX;
        return 500;
      });
      await held.clock.advance(15 * SECOND);
      expect((await user.get(path)).body).toMatchObject({ status: "down", consecutive_failures: 1 });
      expect(told()).toEqual(["monitor.down"]);
    } finally {
      await held.stop();
    }
  });
});

describe("history", () => {
  test("lists every check, manual ones too, newest first, in pages, with the uptime", async () => {
    const id = await create({ interval: 300_000 });
    await stage.server.clock.advance(5 * SECOND);
    stage.site.answers(500);
    await stage.account.post(`/v1/pulse/${id}/check`);
    stage.site.answers(200);
    await stage.account.post(`/v1/pulse/${id}/check`);
    await stage.account.post(`/v1/pulse/${id}/check`);
    const read = async (query: string) => {
      const { body } = await stage.account.get(`/v1/pulse/${id}/history${query}`);
      const checks = body["checks"] as { status: string; manual: boolean; response_status: number }[];
      return {
        checks: checks.map(({ status, manual, response_status }) => [status, manual, response_status]),
        cursor: body["cursor"],
        uptime: body["uptime"],
      };
    };
    const all = [
      ["up", true, 200],
      ["up", true, 200],
      ["down", true, 500],
      ["up", false, 200],
    ];
    // Manual checks stand for no time.
    const uptime = { "24h": 100, "7d": 100, "30d": 100, "90d": 100 };
    expect(await read("")).toEqual({ checks: all, cursor: undefined, uptime } as never);
    const first = await read("?limit=3");
    expect(first.checks).toEqual(all.slice(0, 3) as never);
    expect(await read(`?limit=3&cursor=${first.cursor}`)).toMatchObject({
      checks: all.slice(3),
      cursor: undefined,
    });
    expect((await read("?limit=4")).cursor).toBe(undefined);
  });

  test("rejects the cursor of another monitor", async () => {
    const [a, b] = [await create(), await create()];
    await stage.server.clock.advance(60 * SECOND);
    const { body } = await stage.account.get(`/v1/pulse/${a}/history?limit=1`);
    expectError(
      await stage.account.get(`/v1/pulse/${b}/history?cursor=${body["cursor"]}`),
      "validation_error",
    );
  });

  test("covers 30 days", async () => {
    const id = await create({ interval: 300_000 });
    await stage.server.clock.advance(5 * SECOND);
    await stage.account.put(`/v1/pulse/${id}`, { active: false });
    await stage.server.clock.advance(CHECK_RETENTION_MS / 2);
    await stage.account.post(`/v1/pulse/${id}/check`);
    const count = async () =>
      ((await stage.account.get(`/v1/pulse/${id}/history`)).body["checks"] as unknown[]).length;
    expect(await count()).toBe(2);
    await stage.server.clock.advance(CHECK_RETENTION_MS / 2 + 3_600 * SECOND);
    expect(await count()).toBe(1);
  }, 60_000);

  test("stores the newest checks up to a total limit, and pages stay consistent", async () => {
    const id = await create({ interval: 300_000 });
    for (let number = 0; number < 5; number += 1) await stage.account.post(`/v1/pulse/${id}/check`);
    const { db, writer } = stage.server.server.kernel;
    const store = checkStore(db);
    const remove = (keptMax: number) => writer.submit((tx) => store.removeOld(tx, 100, 0, keptMax));
    const count = async () => {
      const { body } = await stage.account.get(`/v1/pulse/${id}/history`);
      return (body["checks"] as unknown[]).length;
    };
    expect([await remove(5), await count()]).toEqual([0, 5]);
    expect([await remove(4), await count()]).toEqual([1, 4]);
    // The newest one is always stored, because sequences continue from it.
    expect([await remove(0), await count()]).toEqual([3, 1]);
    await stage.server.restart();
    const after = stage.server.client(stage.account.key);
    await after.post(`/v1/pulse/${id}/check`);
    expect(((await after.get(`/v1/pulse/${id}/history`)).body["checks"] as unknown[]).length).toBe(2);
  });
});

test("results share a commit only when many arrive", async () => {
  const window = new CommitWindow();
  for (let result = 0; result < 10; result += 1) expect(window.join()).toBe(undefined);
  await Promise.all([window.join(), window.join()]);
  // The expected load of a window is that of the window before.
  const next = window.join();
  expect(next).toBeInstanceOf(Promise);
  await next;
  await Bun.sleep(150);
  expect(window.join()).toBe(undefined);
});
