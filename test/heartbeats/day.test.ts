import { expect, test } from "bun:test";
import { simulateDay } from "../harness/heartbeats/day.ts";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";

/** Far above the normal duration: the test must not fail on a busy machine. */
const TIMEOUT_MS = 180_000;

test(
  "among a hundred monitors every missed ping is detected on time, and no other",
  async () => {
    const plan = { monitors: 100, hours: 6, seed: 20_260_310 };
    const { problems, pings, missed } = await simulateDay({ command: NINEFOLD_COMMAND, ...plan });
    expect(problems).toEqual([]);
    // Otherwise the run proves nothing.
    expect([pings > 200, missed > 5]).toEqual([true, true]);
  },
  TIMEOUT_MS,
);

test(
  "a run that ends before the first pings of some heartbeats finds no problem",
  async () => {
    const plan = { monitors: 100, hours: 1, seed: 20_260_310 };
    const { problems, pings, memory } = await simulateDay({ command: NINEFOLD_COMMAND, ...plan });
    expect({ problems, memory }).toEqual({ problems: [], memory: null });
    // Whether one is missed within the hour depends on the order in which the heartbeats were created.
    expect(pings).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);
