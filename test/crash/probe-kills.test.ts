import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { judge } from "../harness/probes/judge.ts";
import { describeProbeKills, runProbeKills } from "../harness/probes/kills.ts";
import { Link, type Partition } from "../harness/probes/link.ts";
import {
  type Life,
  LOCAL,
  type ReceivedAlert,
  type RunRecord,
  type WatchedMonitor,
} from "../harness/probes/record.ts";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { until } from "../support/eventually.ts";

/** Far above the normal duration: the test must not fail on a busy machine. */
const TIMEOUT_MS = 240_000;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-probe-kills-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The short form of `scripts/harness probe-kills`. */
test(
  "kills of the server and of probes, and partitions, lose no check and cause no false alert",
  async () => {
    const result = await runProbeKills({
      command: NINEFOLD_COMMAND,
      folder,
      monitors: 40,
      intervalMs: 15_000,
      probes: 3,
      kills: 6,
      seed: 20_260_310,
      // How late a check may be is what the long form judges: here each must come, and every alert.
      slackMs: 60_000,
      phaseMs: 6_000,
      lifeMsMax: 2_000,
      outageMs: 1_000,
      downIntervalMs: 5_000,
      partitionMs: [1_000, 3_000],
      partitionPauseMs: 2_000,
      patienceMs: 60_000,
      settleMs: 90_000,
    });
    expect(result.problems).toEqual([]);
    // The run must have disturbed something, otherwise it shows nothing.
    expect(result.serverKills + result.probeKills).toBeGreaterThanOrEqual(6);
    expect(result.blipsAlerted).toBeGreaterThan(1);
    expect(result.blipsAlerted).toBe(result.blips);
    expect(result.stored).toBeGreaterThan(40);
    expect(describeProbeKills(result)).toContain("monitors");
  },
  TIMEOUT_MS,
);

describe("the judge", () => {
  const SECOND = 1_000;
  const START = Date.UTC(2026, 2, 10, 12);
  const at = (seconds: number) => START + seconds * SECOND;
  const END = 300;

  /** Times of checks, every 30 s, without some. */
  const times = (from = 5, without: readonly number[] = []) =>
    Array.from({ length: 10 }, (_, number) => from + 30 * number)
      .filter((time) => !without.includes(time) && time <= END)
      .map(at);

  const alive: Life = { from: at(0), readyAt: at(1), to: at(END) };

  function monitor(changes: Partial<WatchedMonitor> = {}): WatchedMonitor {
    const { checkers = [LOCAL] } = changes;
    const history = new Map(checkers.map((checker) => [checker, times()]));
    const seen = checkers.flatMap(() => times());
    return { id: "m", checkers, seesAll: true, outages: [], seen, history, ...changes };
  }

  const problemsOf = (
    monitors: readonly WatchedMonitor[],
    changes: Partial<RunRecord> = {},
  ): readonly string[] => {
    const lives = new Map([
      [LOCAL, [alive]],
      ["p1", [alive]],
    ]);
    const times = { from: START, to: at(END), intervalMs: 30_000, slackMs: 5_000, sendMs: 20_000 };
    return judge({ ...times, monitors, lives, cuts: new Map(), alerts: [], ...changes }).problems;
  };

  const alert = (event: string, seconds: number, more: Partial<ReceivedAlert> = {}): ReceivedAlert => ({
    id: `${event} ${seconds}`,
    event,
    about: "m",
    at: at(seconds),
    ...more,
  });

  const stored = (checker: string, seconds: readonly number[]) => new Map([[checker, seconds]]);

  test("finds nothing where nothing is lost", () => {
    expect(problemsOf([monitor(), monitor({ id: "n", checkers: ["p1"] })])).toEqual([]);
  });

  test("notices one check that a target did not see", () => {
    const lost = times(5, [95]);
    expect(problemsOf([monitor({ seen: lost, history: stored(LOCAL, lost) })])).toEqual([
      "m: its target was not checked by local for 60000 ms between 12:01:05.000 and 12:02:05.000",
      "m: its history has no check by local for 60000 ms between 12:01:05.000 and 12:02:05.000",
    ]);
  });

  test("notices one check of one probe that the history does not have", () => {
    const history = new Map([
      [LOCAL, times()],
      ["p1", times(7, [97])],
    ]);
    expect(problemsOf([monitor({ checkers: [LOCAL, "p1"], history })])).toEqual([
      "m: its history has no check by p1 for 60000 ms between 12:01:07.000 and 12:02:07.000",
    ]);
  });

  test("notices that checks end, and that a history has more than its target saw", () => {
    const ended = times().slice(0, 5);
    expect(problemsOf([monitor({ seen: ended })])).toEqual([
      "m: its target was not checked by local for 175000 ms between 12:02:05.000 and 12:05:00.000",
      "m: the history has 10 checks, and its target saw 5",
    ]);
  });

  test("excuses the server for the time that it was dead, and no more", () => {
    const lost = times(5, [95]);
    const one = monitor({ seen: lost, history: stored(LOCAL, lost) });
    const dead = (seconds: number): Partial<RunRecord> => ({
      lives: new Map([
        [
          LOCAL,
          [
            { ...alive, to: at(90) },
            { from: at(90), readyAt: at(90 + seconds), to: at(END) },
          ],
        ],
      ]),
    });
    expect(problemsOf([one], dead(25))).toEqual([]);
    expect(problemsOf([one], dead(20))).toHaveLength(2);
  });

  test("a probe that was killed begins again, within the interval and the slack of its start", () => {
    const lives = (startedAt: number, readyAt: number | null) =>
      new Map([
        [LOCAL, [alive]],
        [
          "p1",
          [
            { ...alive, to: at(90) },
            { from: at(startedAt), readyAt: readyAt === null ? null : at(readyAt), to: at(END) },
          ],
        ],
      ]);
    const one = (next: number) => {
      const checks = [...times().slice(0, 3), ...times(next)];
      return monitor({ checkers: ["p1"], seen: checks, history: stored("p1", checks) });
    };
    expect(problemsOf([one(125)], { lives: lives(91, 92) })).toEqual([]);
    expect(problemsOf([one(128)], { lives: lives(91, 92) })).toHaveLength(2);
    expect(problemsOf([one(128)], { lives: lives(94, 95) })).toEqual([]);
    // The server was there, so the probe should have got its list.
    expect(problemsOf([one(128)], { lives: lives(91, 127) })).toHaveLength(2);
  });

  test("a partition excuses a probe only while it has no list", () => {
    const lost = times(5, [95, 125]);
    const one = monitor({ checkers: ["p1"], seen: lost, history: stored("p1", lost) });
    const cuts = new Map([["p1", [{ from: at(80), to: at(150) }]]]);
    expect(problemsOf([one], { cuts })).toHaveLength(2);
    const reborn = [
      { ...alive, to: at(81) },
      { from: at(81), readyAt: at(152), to: at(END) },
    ];
    const lives = new Map([
      [LOCAL, [alive]],
      ["p1", reborn],
    ]);
    expect(problemsOf([one], { cuts, lives })).toEqual([]);
  });

  test("excuses the history for what a kill took from a probe that could not send it", () => {
    const lives = new Map([
      [LOCAL, [alive]],
      [
        "p1",
        [
          { ...alive, to: at(150) },
          { from: at(150), readyAt: at(151), to: at(END) },
        ],
      ],
    ]);
    const history = stored("p1", times(5, [95, 125]));
    const one = monitor({ checkers: ["p1"], history });
    expect(problemsOf([one], { lives })).toHaveLength(1);
    const cuts = new Map([["p1", [{ from: at(90), to: at(149) }]]]);
    expect(problemsOf([one], { lives, cuts })).toEqual([]);
  });

  const outage = { from: at(60), to: at(180), isLong: true };
  const down = alert("monitor.down", 70);
  const up = alert("monitor.up", 190);

  test.each([
    ["both alerts, one of them twice", [down, { ...down, at: at(75) }, up], []],
    ["votes that differ at first", [alert("monitor.degraded", 65), down, up], []],
    ["no alert", [], [/caused no alert$/]],
    ["no recovery", [down], [/caused monitor\.down$/]],
    ["two alerts", [down, alert("monitor.down", 90), up], [/caused monitor\.down, monitor\.down/]],
    [
      "an unknown status",
      [down, alert("monitor.unknown", 90), up],
      [/caused monitor\.down, monitor\.unknown/],
    ],
    [
      "an alert before it",
      [alert("monitor.down", 20), down, up],
      [/monitor\.down at 12:00:20\.000 is false/],
    ],
    ["a recovery before its end", [down, alert("monitor.up", 170)], [/^m: recovered at 12:02:50\.000/]],
  ])("long outage: %s", (_, alerts, problems) => {
    const found = problemsOf([monitor({ outages: [outage] })], { alerts });
    expect(found).toHaveLength(problems.length);
    for (const [index, problem] of problems.entries()) expect(found[index]).toMatch(problem);
  });

  test("a short outage causes pairs of alerts or none, and a monitor that was up none", () => {
    const outages = [{ from: at(60), to: at(62), isLong: false }];
    expect(problemsOf([monitor({ outages })])).toEqual([]);
    expect(problemsOf([monitor({ outages })], { alerts: [down, up] })).toEqual([]);
    expect(problemsOf([monitor({ outages })], { alerts: [down] })).toHaveLength(1);
    expect(problemsOf([monitor()], { alerts: [down, up] })).toHaveLength(2);
    expect(problemsOf([monitor()], { alerts: [alert("monitor.degraded", 70)] })).toHaveLength(1);
  });

  test("a probe is offline only after two minutes", () => {
    const alerts = [alert("probe.offline", 250, { about: "p1" })];
    const cut = (from: number) => ({ alerts, cuts: new Map([["p1", [{ from: at(from), to: at(END) }]]]) });
    expect(problemsOf([monitor()], cut(129))).toEqual([]);
    expect(problemsOf([monitor()], cut(135))).toEqual(["p1: probe.offline at 12:04:10.000 is false"]);
  });
});

describe("the link", () => {
  /** What arrives of requests before, during and after a partition, and how the first one ended. */
  async function linked(partition: Partition) {
    const received: string[] = [];
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        received.push(await request.text());
        return new Response("ok");
      },
    });
    const link = new Link(server.port ?? 0);
    try {
      const send = async (body: string) => {
        const signal = AbortSignal.timeout(TIMEOUT_MS / 4);
        return (await fetch(link.url, { method: "POST", body, keepalive: false, signal })).text();
      };
      expect(await send("before")).toBe("ok");
      link.break(partition);
      const abort = new AbortController();
      const during = fetch(link.url, { method: "POST", body: "during", signal: abort.signal }).then(
        () => "ok",
        () => "failed",
      );
      if (partition === "cut") expect(await during).toBe("failed");
      else await Bun.sleep(20);
      expect(received).toEqual(["before"]);
      link.heal();
      expect(await send("after")).toBe("ok");
      if (partition === "freeze") await until(() => received.length === 3);
      abort.abort();
      return { received: received.toSorted(), ended: await during, cuts: link.spans().length };
    } finally {
      link.stop();
    }
  }

  test("fails while it is cut", async () => {
    expect(await linked("cut")).toEqual({ received: ["after", "before"], ended: "failed", cuts: 1 });
  });

  test("delivers later what was sent while it was frozen", async () => {
    const { received, cuts } = await linked("freeze");
    expect({ received, cuts }).toEqual({ received: ["after", "before", "during"], cuts: 1 });
  });

  test("never delivers what was sent while it dropped everything", async () => {
    expect(await linked("drop")).toEqual({ received: ["after", "before"], ended: "failed", cuts: 1 });
  });
});
