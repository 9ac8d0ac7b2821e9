import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  type AlertRules,
  afterCheck,
  FIRST_CHECK_MS_MAX,
  firstCheckAt,
  isFailing,
  type MonitorState,
  nextCheckAt,
  OUTDATED_MS_MAX,
  uptimePercent,
} from "../../../src/areas/monitors/domain.ts";

/** The state of a monitor that was never checked. */
const UNCHECKED: MonitorState = {
  status: "unknown",
  latencyMs: null,
  lastCheckedAt: null,
  consecutiveFailures: 0,
  alertedAt: null,
  degraded: false,
  isSplit: false,
  overdue: false,
  streak: 0,
};

const RULES: AlertRules = {
  threshold: 1,
  recoveryThreshold: 1,
  degradedMs: null,
  cooldownMs: 60_000,
  notifyRecovery: true,
  hasListeners: true,
};
const NOW = Date.UTC(2026, 2, 10, 12);

/** A step: the result of a check, and the expected status, consecutive failures and alert. Checks are 15 s apart. */
type Step = readonly [
  check: "ok" | "fails" | "manual ok" | "manual fails",
  status: string,
  failures: number,
  told: string,
];

const SEQUENCES: readonly {
  name: string;
  rules?: Partial<AlertRules>;
  steps: readonly Step[];
}[] = [
  {
    name: "the first success makes it up and sends no alert",
    steps: [
      ["ok", "up", 0, ""],
      ["ok", "up", 0, ""],
    ],
  },
  {
    name: "the first failure makes it down immediately with a threshold of 1",
    steps: [["fails", "down", 1, "down"]],
  },
  {
    name: "up, down, up",
    steps: [
      ["ok", "up", 0, ""],
      ["fails", "down", 1, "down"],
      ["ok", "up", 0, "up"],
      ["ok", "up", 0, ""],
    ],
  },
  {
    name: "recovery is alerted only if configured",
    rules: { notifyRecovery: false },
    steps: [
      ["fails", "down", 1, "down"],
      ["ok", "up", 0, ""],
    ],
  },
  {
    name: "a threshold of 3 is reached by 3 failures in a row, from up and from unknown",
    rules: { threshold: 3 },
    steps: [
      ["fails", "unknown", 1, ""],
      ["fails", "unknown", 2, ""],
      ["fails", "down", 3, "down"],
      ["ok", "up", 0, "up"],
      ["fails", "up", 1, ""],
      ["fails", "up", 2, ""],
      ["fails", "down", 3, "down"],
    ],
  },
  {
    name: "a success in between restarts the count",
    rules: { threshold: 3 },
    steps: [
      ["fails", "unknown", 1, ""],
      ["fails", "unknown", 2, ""],
      ["ok", "up", 0, ""],
      ["fails", "up", 1, ""],
      ["fails", "up", 2, ""],
      ["ok", "up", 0, ""],
    ],
  },
  {
    name: "the longest threshold",
    rules: { threshold: 10 },
    steps: [
      ...Array.from({ length: 9 }, (_, failed): Step => ["fails", "unknown", failed + 1, ""]),
      ["fails", "down", 10, "down"],
    ],
  },
  {
    name: "a lasting outage is alerted again when the cooldown of 60 s has passed, and not before",
    steps: [
      ["fails", "down", 1, "down"],
      ["fails", "down", 2, ""],
      ["fails", "down", 3, ""],
      ["fails", "down", 4, ""],
      ["fails", "down", 5, "down"],
      ["fails", "down", 6, ""],
      ["fails", "down", 7, ""],
      ["fails", "down", 8, ""],
      ["fails", "down", 9, "down"],
    ],
  },
  {
    name: "flapping: the cooldown holds nothing back once it was up",
    steps: [
      ["fails", "down", 1, "down"],
      ["ok", "up", 0, "up"],
      ["fails", "down", 1, "down"],
      ["ok", "up", 0, "up"],
    ],
  },
  {
    name: "manual checks send no alert, with any result",
    steps: [
      ["manual ok", "up", 0, ""],
      ["manual fails", "down", 1, ""],
      ["manual ok", "up", 0, ""],
    ],
  },
  {
    name: "manual failures count",
    rules: { threshold: 3 },
    steps: [
      ["manual fails", "unknown", 1, ""],
      ["manual fails", "unknown", 2, ""],
      ["fails", "down", 3, "down"],
    ],
  },
  {
    name: "an outage that only a manual check has found is alerted by the next scheduled failure",
    steps: [
      ["ok", "up", 0, ""],
      ["manual fails", "down", 1, ""],
      ["fails", "down", 2, "down"],
      ["fails", "down", 3, ""],
    ],
  },
  {
    name: "a manual failure starts no cooldown, and does not end one",
    steps: [
      ["fails", "down", 1, "down"],
      ["manual fails", "down", 2, ""],
      ["fails", "down", 3, ""],
      ["fails", "down", 4, ""],
      ["fails", "down", 5, "down"],
    ],
  },
  {
    name: "a recovery that a manual check has found is not alerted afterwards",
    steps: [
      ["fails", "down", 1, "down"],
      ["manual ok", "up", 0, ""],
      ["ok", "up", 0, ""],
      ["fails", "down", 1, "down"],
    ],
  },
  {
    name: "a down that only a manual check has found, and then a recovery",
    steps: [
      ["manual fails", "down", 1, ""],
      ["ok", "up", 0, "up"],
    ],
  },
  {
    name: "no alert is sent without a recipient",
    rules: { hasListeners: false },
    steps: [
      ["fails", "down", 1, ""],
      ["fails", "down", 2, ""],
      ["ok", "up", 0, ""],
    ],
  },
];

describe("recovery and slowness", () => {
  /**
   * The result of each check: its latency, or -1 for a failure; and the state after it, with `slow` while it is
   * degraded.
   */
  const walk = (rules: Partial<AlertRules>, latencies: readonly number[]): string[] => {
    let state: MonitorState = UNCHECKED;
    return latencies.map((latencyMs, number) => {
      const result = { up: latencyMs >= 0, manual: false, latencyMs, at: NOW + number * 15_000 };
      const next = afterCheck(state, result, { ...RULES, ...rules });
      state = next.state;
      return [
        state.status,
        ...(state.degraded ? ["slow"] : []),
        ...(next.event?.split(".").slice(1) ?? []),
      ].join();
    });
  };

  test("recovery_threshold successes make it up; a failure in between resets the count", () => {
    expect(walk({ recoveryThreshold: 3 }, [1, -1, 1, 1, -1, 1, 1, 1, 1])).toEqual([
      ...["up", "down,down", "down", "down", "down", "down", "down", "up,up", "up"],
    ]);
  });

  test("the first success of a monitor that is not down makes it up", () => {
    expect(walk({ recoveryThreshold: 10 }, [1, -1])).toEqual(["up", "down,down"]);
  });

  test("an insufficient success resets the count of failures, and the cooldown continues", () => {
    let state: MonitorState = UNCHECKED;
    const seen = [-1, -1, 1, -1, -1, -1].map((latencyMs, number) => {
      const result = { up: latencyMs > 0, manual: false, latencyMs, at: NOW + number * 15_000 };
      const next = afterCheck(state, result, { ...RULES, recoveryThreshold: 2 });
      state = next.state;
      return `${state.consecutiveFailures} ${next.event}`;
    });
    expect(seen).toEqual([...["1 monitor.down", "2 null", "0 null", "1 null", "2 monitor.down", "3 null"]]);
  });

  test("three consecutive slow checks make it slow, three fast ones end it; the limit itself is fast", () => {
    expect(walk({ degradedMs: 100 }, [101, 101, 100, 101, 101, 101, 100, 100, 101, 100, 100, 100])).toEqual([
      ...["up", "up", "up", "up", "up", "up,slow"],
      ...["up,slow", "up,slow", "up,slow", "up,slow", "up,slow", "up"],
    ]);
  });

  test("a failure resets the count of slow checks, and a monitor that is down is not slow", () => {
    expect(
      walk({ degradedMs: 100, threshold: 2 }, [101, 101, -1, 101, 101, 101, -1, -1, 101, 101, 101]),
    ).toEqual([
      ...["up", "up", "up", "up", "up", "up,slow"],
      ...["up,slow", "down,down", "up,up", "up", "up,slow"],
    ]);
  });

  test("without degraded_ms no check is slow, and removing it ends slowness", () => {
    expect(walk({}, [9_000, 9_000, 9_000])).toEqual(["up", "up", "up"]);
    const slow: MonitorState = { ...UNCHECKED, status: "up", degraded: true };
    const result = { up: true, manual: false, latencyMs: 9_000, at: NOW };
    expect(afterCheck(slow, result, RULES).state).toMatchObject({ degraded: false, streak: 0 });
  });

  test("is failing only while it is not down", () => {
    const failing = (latencies: readonly number[], threshold: number) => {
      let state: MonitorState = UNCHECKED;
      return latencies.map((latencyMs, number) => {
        const result = { up: latencyMs > 0, manual: false, latencyMs, at: NOW + number };
        state = afterCheck(state, result, { ...RULES, threshold }).state;
        return isFailing(state);
      });
    };
    expect(failing([-1, -1, -1, 1, -1], 3)).toEqual([true, true, false, false, true]);
  });
});

describe("sequences of checks", () => {
  for (const { name, rules, steps } of SEQUENCES) {
    test(name, () => {
      let state: MonitorState = UNCHECKED;
      const seen = steps.map(([check], number): Step => {
        const result = {
          up: check.endsWith("ok"),
          manual: check.startsWith("manual"),
          latencyMs: number,
          at: NOW + number * 15_000,
        };
        const next = afterCheck(state, result, { ...RULES, ...rules });
        state = next.state;
        expect({ latency: state.latencyMs, at: state.lastCheckedAt }).toEqual({
          latency: number,
          at: result.at,
        });
        return [check, state.status, state.consecutiveFailures, next.event?.split(".")[1] ?? ""];
      });
      expect(seen).toEqual([...steps]);
    });
  }

  test("a slow check that ends after a later one changes nothing", () => {
    const result = { latencyMs: 5, manual: false };
    const up = afterCheck(UNCHECKED, { ...result, up: true, at: NOW }, RULES).state;
    const older = afterCheck(up, { ...result, up: false, at: NOW - 1 }, RULES);
    expect(older).toEqual({ state: up, event: null });
    const together = afterCheck(up, { ...result, up: false, at: NOW }, RULES);
    expect([together.state.status, together.event]).toEqual(["down", "monitor.down"]);
  });

  test("a check older than any duration counts, since the clock was set back", () => {
    const result = { latencyMs: 5, manual: false };
    const up = afterCheck(UNCHECKED, { ...result, up: true, at: NOW }, RULES).state;
    const failsAt = (state: MonitorState, at: number) =>
      afterCheck(state, { ...result, up: false, at }, RULES);
    expect(failsAt(up, NOW - OUTDATED_MS_MAX)).toEqual({ state: up, event: null });
    const at = NOW - OUTDATED_MS_MAX - 1;
    const down = failsAt(up, at);
    expect(down.state).toMatchObject({ status: "down", lastCheckedAt: at, alertedAt: at });
    // For a lasting outage, alerts are sent as if the clock had not been set.
    const set = failsAt(down.state, at - OUTDATED_MS_MAX - 1);
    expect(set.event).toBe("monitor.down");
    expect(failsAt(set.state, set.state.lastCheckedAt ?? 0).event).toBeNull();
  });

  test("a recipient that is added during an outage is notified at the next failure", () => {
    const fails = (at: number) => ({ up: false, manual: false, latencyMs: 1, at });
    const down = afterCheck(UNCHECKED, fails(NOW), { ...RULES, hasListeners: false });
    expect(afterCheck(down.state, fails(NOW + 15_000), RULES).event).toBe("monitor.down");
  });
});

describe("when checks are made", () => {
  test("the first within 5 seconds", () => {
    for (let ref = 1; ref <= 1_000; ref += 1) {
      const wait = firstCheckAt(ref, NOW) - NOW;
      expect(wait).toBeGreaterThanOrEqual(0);
      expect(wait).toBeLessThanOrEqual(FIRST_CHECK_MS_MAX);
    }
  });

  test("then at the same offset of every interval, regardless of the duration of checks", () => {
    let dueAt = firstCheckAt(7, NOW);
    const times: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      dueAt = nextCheckAt(7, 15_000, dueAt, dueAt + 10_000);
      times.push(dueAt);
    }
    expect(times.slice(1).map((time, round) => time - (times[round] ?? 0))).toEqual([
      15_000, 15_000, 15_000, 15_000,
    ]);
  });

  test("missed times are skipped: one check, not a burst", () => {
    const second = nextCheckAt(7, 15_000, NOW, NOW);
    const dueAt = nextCheckAt(7, 15_000, second, second);
    const late = dueAt + 3_600_000 + 1;
    const next = nextCheckAt(7, 15_000, dueAt, late);
    expect(next).toBeGreaterThan(late);
    expect(next).toBeLessThanOrEqual(late + 15_000);
    expect((next - dueAt) % 15_000).toBe(0);
  });

  test("the next time is always in the future, at most one interval after the previous", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.integer({ min: 15_000, max: 300_000 }),
        fc.integer({ min: 0, max: 400_000 }),
        (ref, interval, took) => {
          const next = nextCheckAt(ref, interval, NOW, NOW + took);
          expect(next).toBeGreaterThan(NOW + took);
          expect(next - NOW).toBeGreaterThanOrEqual(Math.floor(interval / 2));
          expect(next - NOW).toBeLessThanOrEqual(took + interval);
          // However the first check is placed, the third one is at the offset of the monitor.
          const third = nextCheckAt(ref, interval, next, next);
          const slot = nextCheckAt(ref, interval, third, third);
          expect(slot - third).toBe(interval);
        },
      ),
    );
  });

  test("10,000 monitors at 15 s are spread evenly over the interval", () => {
    const counts = new Array<number>(150).fill(0);
    for (let ref = 1; ref <= 10_000; ref += 1) {
      const second = nextCheckAt(ref, 15_000, NOW, NOW);
      const slot = Math.floor((nextCheckAt(ref, 15_000, second, second) % 15_000) / 100);
      counts[slot] = (counts[slot] ?? 0) + 1;
    }
    // 66.7 on average.
    expect(Math.max(...counts)).toBeLessThanOrEqual(72);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(62);
  });
});

describe("uptime", () => {
  const HOUR = 3_600_000;
  const untimed = { knownMs: 0, upMs: 0 };
  const counts = [
    { hour: NOW, checks: 1, up: 0, knownMs: HOUR, upMs: HOUR / 2 },
    { hour: NOW - 23 * HOUR, checks: 100, up: 100, knownMs: HOUR, upMs: HOUR },
    { hour: NOW - 24 * HOUR, checks: 4, up: 0, knownMs: 5 * HOUR, upMs: 0 },
    { hour: NOW - 100 * HOUR, checks: 4, up: 0, knownMs: 3 * HOUR, upMs: 0 },
  ];

  test("is the share of the time in the last hours, however many checks were made in it", () => {
    expect(uptimePercent(counts, NOW, 24)).toBe(75);
    expect(uptimePercent(counts, NOW, 168)).toBe(15);
  });

  test("is the share of the checks until time is known; null without checks; with three decimals", () => {
    expect(uptimePercent([], NOW, 24)).toBe(null);
    expect(uptimePercent([{ hour: NOW, checks: 3, up: 1, ...untimed }], NOW, 24)).toBe(33.333);
    expect(uptimePercent([{ hour: NOW, checks: 3, up: 3, ...untimed }], NOW, 24)).toBe(100);
  });
});
