// Kills a server and its probes at random, and partitions one of the probes, while it watches targets that go down and come
// back. No check may be lost for longer than its interval and 5 s, no alert may be missing, and none may be false. The rules are
// in test/harness/probes/judge.ts.
//   scripts/harness probe-kills                 500 kills of a server and 4 probes under 2,000 monitors at 30 s
//   scripts/harness probe-kills --kills N       number of kills
//   scripts/harness probe-kills --monitors N    number of monitors
//   scripts/harness probe-kills --probes N      number of probes, 3 at least
//   scripts/harness probe-kills --interval N    interval of the monitors, in seconds (15 at least)
//   scripts/harness probe-kills --seed N        repeats the choices of an earlier run, not its timing
//   scripts/harness probe-kills --binary        runs the executable dist/ninefold instead of the source
import { parseArgs } from "node:util";
import { describeProbeKills, runProbeKills } from "./probes/kills.ts";
import { Cleanup } from "./processes/cleanup.ts";
import { BINARY_COMMAND, SOURCE_COMMAND } from "./processes/server-process.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "500" },
    monitors: { type: "string", default: "2000" },
    probes: { type: "string", default: "4" },
    interval: { type: "string", default: "30" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    binary: { type: "boolean", default: false },
  },
});

const PROBLEMS_SHOWN = 40;
const cleanup = new Cleanup();
try {
  const intervalMs = 1_000 * Number(values.interval);
  console.log(`seed ${values.seed}`);
  const result = await runProbeKills({
    command: values.binary ? BINARY_COMMAND : SOURCE_COMMAND,
    folder: cleanup.folder("probe-kills"),
    monitors: Number(values.monitors),
    intervalMs,
    probes: Number(values.probes),
    kills: Number(values.kills),
    seed: Number(values.seed),
    slackMs: 5_000,
    // Less than a vote lasts after the interval before it.
    phaseMs: (2 / 3) * intervalMs,
    lifeMsMax: 5_000,
    outageMs: 5 * intervalMs,
    downIntervalMs: Math.max(5_000, intervalMs / 2),
    partitionMs: [3_000, 1.5 * intervalMs],
    partitionPauseMs: intervalMs,
    patienceMs: 0,
    settleMs: 3 * intervalMs + 60_000,
    report: (line) => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`),
  });
  for (const problem of result.problems.slice(0, PROBLEMS_SHOWN)) console.log(`  ${problem}`);
  console.log(describeProbeKills(result));
  console.log(result.problems.length === 0 ? "ok" : "FAILED");
  process.exitCode = result.problems.length === 0 ? 0 : 1;
} catch (error) {
  console.error(`scripts/harness probe-kills: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await cleanup.run();
}
process.exit();
