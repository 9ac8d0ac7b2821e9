import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  FULL_PACE_MS,
  GAP_MS_MAX,
  TestClockPace,
} from "../../../../src/areas/monitors/checks/test-clock-pace.ts";
import type { MonitorState } from "../../../../src/areas/monitors/domain.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Thousands of stops of the clock take seconds on a busy machine. */
const TIMEOUT_MS = 60_000;

let server: TestServer;
let account: AccountClient;
let site: WebhookSink;
/** Times of the requests to the target, by the server's clock. */
let asked: number[];
let isUp: () => boolean;
beforeEach(async () => {
  site = new WebhookSink();
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  account = await server.account();
  asked = [];
  isUp = () => true;
  site.answersBy(({ path }) => {
    if (path !== "/health") return 200;
    asked.push(server.clock.now());
    return isUp() ? 200 : 500;
  });
});
afterEach(async () => {
  await server.stop();
  site.stop();
});

async function create(more: object = {}): Promise<string> {
  const { body } = await account.post("/v1/pulse", { url: site.url("/health"), interval: MINUTE, ...more });
  return String(body["id"]);
}

/** Every check in the history, oldest first. */
function recorded(): { at: number; up: number }[] {
  const { db } = server.server.kernel;
  return db.all<{ at: number; up: number }>(
    "SELECT checked_at AS at, up FROM monitor_checks ORDER BY sequence",
  )();
}

function expectMinuteByMinute(checks: readonly { at: number }[]): void {
  const gaps = checks.slice(2).map(({ at }, index) => at - (checks[index + 1]?.at ?? 0));
  expect(new Set(gaps)).toEqual(new Set([MINUTE]));
}

test(
  "a long advance makes few checks, records all, and runs every check of the last hour",
  async () => {
    const id = await create();
    await server.clock.advance(10 * DAY);
    const checks = recorded();
    expect(checks.length).toBeGreaterThan(10 * 24 * 60 - 3);
    expectMinuteByMinute(checks);
    expect(checks.at(-1)?.at).toBeGreaterThan(server.clock.now() - MINUTE);
    expect(asked.length).toBeLessThan(200);
    expect(asked.filter((at) => at > server.clock.now() - FULL_PACE_MS).length).toBe(60);
    const { body } = await account.get(`/v1/pulse/${id}/history?limit=1`);
    expect(body["uptime"]).toEqual({ "24h": 100, "7d": 100, "30d": 100, "90d": 100 });
  },
  TIMEOUT_MS,
);

test("advances of an hour run every check", async () => {
  await create();
  for (let hour = 0; hour < 3; hour += 1) await server.clock.advance(HOUR);
  expect(asked.length).toBe(recorded().length);
  expect(asked.length).toBeGreaterThanOrEqual(180);
});

test(
  "a target that stays down is reported at the end of each cooldown, to the minute",
  async () => {
    isUp = () => false;
    await create({ webhook_url: site.url("/alerts"), cooldown_ms: HOUR, consecutive_threshold: 3 });
    await server.clock.advance(DAY);
    expectMinuteByMinute(recorded());
    const alerts = site.received.filter(({ path }) => path === "/alerts").map(({ body }) => JSON.parse(body));
    const times = alerts.map(({ checked_at }) => checked_at);
    expect(times.length).toBe(24);
    expect(new Set(times.slice(1).map((time, index) => time - times[index]))).toEqual(new Set([3_600]));
    // Checks that were skipped count as consecutive failures.
    expect(alerts[1].consecutive_failures).toBe(63);
    expect(asked.length).toBeLessThan(300);
  },
  TIMEOUT_MS,
);

test(
  "a change of the target is found within the longest gap, and every check runs again",
  async () => {
    const start = server.clock.now();
    isUp = () => server.clock.now() < start + 5 * DAY || server.clock.now() > start + 6 * DAY;
    const id = await create({ webhook_url: site.url("/alerts"), cooldown_ms: HOUR, notify_recovery: true });
    await server.clock.advance(10 * DAY);
    expectMinuteByMinute(recorded());
    const events = site.received.filter(({ path }) => path === "/alerts").map(({ body }) => JSON.parse(body));
    expect([events[0].event, events.at(-1).event]).toEqual(["monitor.down", "monitor.up"]);
    const downAt = events[0].checked_at * 1_000 - (start + 5 * DAY);
    expect(downAt).toBeGreaterThanOrEqual(0);
    expect(downAt).toBeLessThanOrEqual(GAP_MS_MAX);
    // During the outage, a check runs at each end of the cooldown, so the recovery is found by then.
    expect(events.at(-1).checked_at * 1_000 - (start + 6 * DAY)).toBeLessThanOrEqual(HOUR);
    expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject({ status: "up" });
  },
  TIMEOUT_MS,
);

test(
  "a monitor that is updated or deleted during an advance leaves nothing behind",
  async () => {
    const [kept, gone] = [await create(), await create()];
    const advance = server.clock.advance(5 * DAY);
    while (asked.length < 20) await Bun.sleep(1);
    await account.put(`/v1/pulse/${kept}`, { interval: 2 * MINUTE });
    await account.delete(`/v1/pulse/${gone}`);
    await advance;
    const { body } = await account.get(`/v1/pulse/${kept}/history?limit=100`);
    const times = (body["checks"] as { checked_at: number }[]).map(({ checked_at }) => checked_at);
    expect(times.length).toBe(100);
    expect(new Set(times.slice(1).map((time, index) => (times[index] ?? 0) - time))).toEqual(new Set([120]));
  },
  TIMEOUT_MS,
);

test("no check is skipped without an advance", () => {
  const state: MonitorState = {
    status: "up",
    latencyMs: 1,
    lastCheckedAt: 0,
    consecutiveFailures: 0,
    alertedAt: null,
    degraded: false,
    isSplit: false,
    overdue: false,
    streak: 0,
  };
  const made = { up: true, latencyMs: 1, at: 0, manual: false, responseStatus: 200, error: null };
  const rules = {
    recoveryThreshold: 1,
    degradedMs: null,
    threshold: 1,
    cooldownMs: HOUR,
    notifyRecovery: false,
    hasListeners: false,
  };
  const check = { ref: 1, intervalMs: MINUTE, dueAt: 0, completed: made, before: state, after: state, rules };
  const next = (left: number | null) => new TestClockPace({ advancing: () => left }).nextAt(check, MINUTE);
  expect([next(null), next(0), next(FULL_PACE_MS), next(FULL_PACE_MS + MINUTE)]).toEqual(
    Array(4).fill(MINUTE),
  );
  expect(next(FULL_PACE_MS + 2 * MINUTE)).toBe(2 * MINUTE);
  expect(next(30 * DAY)).toBe(2 * MINUTE);
});
