import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { makeHeartbeat } from "../../../support/heartbeats.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

const MINUTE = 60_000;
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

describe("an early success", () => {
  const expectedOf = async (beat: { view(): Promise<Record<string, unknown>> }) =>
    (await beat.view())["expected_at"];

  test("of a schedule counts as the one of the coming time, by 5 % of the gap", async () => {
    // The clock stands at noon, UTC, of 10 March 2026.
    const early = 24 * HOUR * 0.05;
    const beat = await makeHeartbeat(server, account, { schedule: "0 14 * * *", grace_ms: HOUR });
    await server.clock.advance(2 * HOUR - early - 1);
    await beat.ping();
    expect(await expectedOf(beat)).toBe("2026-03-10T14:00:00.000Z");
    await server.clock.advance(1);
    await beat.ping();
    expect(await expectedOf(beat)).toBe("2026-03-11T14:00:00.000Z");
    await server.clock.advance(early + 2 * HOUR);
    expect((await beat.view())["status"]).toBe("up");
    // Further ones of the same time move nothing.
    await beat.ping();
    expect(await expectedOf(beat)).toBe("2026-03-11T14:00:00.000Z");
    await server.clock.advance(24 * HOUR);
    expect((await beat.view())["status"]).toBe("down");
  });

  test("also of a heartbeat with many pings, and after a restart", async () => {
    const beat = await makeHeartbeat(server, account, { schedule: "0 * * * *", grace_ms: 5 * MINUTE });
    for (let turn = 0; turn < 3; turn += 1) {
      await beat.ping();
      await server.clock.advance(MINUTE);
    }
    await server.clock.advance(54 * MINUTE);
    await beat.ping();
    expect(await expectedOf(beat)).toBe("2026-03-10T14:00:00.000Z");
    await server.restart();
    expect(await expectedOf(beat)).toBe("2026-03-10T14:00:00.000Z");
  });

  test("does not count of a period, nor does a creation", async () => {
    const period = await makeHeartbeat(server, account, { period_ms: HOUR, grace_ms: 5 * MINUTE });
    await server.clock.advance(59 * MINUTE);
    await period.ping();
    expect(await expectedOf(period)).toBe("2026-03-10T13:59:00.000Z");
    const created = await makeHeartbeat(server, account, { schedule: "0 * * * *", grace_ms: 5 * MINUTE });
    expect(await expectedOf(created)).toBe("2026-03-10T13:00:00.000Z");
  });
});
