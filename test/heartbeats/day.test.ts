import { expect, test } from "bun:test";
import { simulateDay } from "../../scripts/heartbeats/day.ts";
import { NINEFOLD_COMMAND } from "../../scripts/processes/server-process.ts";

/** Far above what it takes: a machine that is busy with other things must not fail it. */
const TIMEOUT_MS = 60_000;

test(
  "among a hundred monitors every ping that is missing is found at its moment, and no other",
  async () => {
    const plan = { monitors: 100, hours: 6, seed: 20_260_310 };
    const { problems, pings, missed } = await simulateDay({ command: NINEFOLD_COMMAND, ...plan });
    expect(problems).toEqual([]);
    // Otherwise it has shown nothing.
    expect([pings > 200, missed > 5]).toEqual([true, true]);
  },
  TIMEOUT_MS,
);
