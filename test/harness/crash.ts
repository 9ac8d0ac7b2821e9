// Kills the server under load, repeatedly, and checks that nothing was lost or doubled.
//   scripts/harness crash                   20 rounds from source, killed after 0.1 to 1 s under load
//   scripts/harness crash --rounds N        number of rounds (20)
//   scripts/harness crash --seconds N       longest time under load before a kill (1)
//   scripts/harness crash --connections N   number of concurrent requests (16)
//   scripts/harness crash --seed N          repeats the choices of an earlier run (not its timing)
//   scripts/harness crash --apply           instead: kills `ninefold apply` and the server under it, twice a round
//   scripts/harness crash --binary          runs the executable dist/ninefold instead of the source
import { parseArgs } from "node:util";
import { type ApplyKill, describeKill, runApplyRounds } from "./crash/applies.ts";
import { describeRound, runCrashRounds } from "./crash/rounds.ts";
import { allWorkloads } from "./crash/workloads.ts";
import { Cleanup } from "./processes/cleanup.ts";
import { BINARY_COMMAND, SOURCE_COMMAND } from "./processes/server-process.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    seconds: { type: "string", default: "1" },
    connections: { type: "string", default: "16" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    apply: { type: "boolean", default: false },
    binary: { type: "boolean", default: false },
  },
});

function positive(name: string, text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new Error(`--${name} must be a number above 0, not "${text}"`);
  return number;
}

const command = values.binary ? BINARY_COMMAND : SOURCE_COMMAND;

/** Kills the server under load. Resolves to whether a problem was found. */
async function failsUnderLoad(folder: string, rounds: number, seed: number): Promise<boolean> {
  const secondsMax = positive("seconds", values.seconds);
  const connections = positive("connections", values.connections);
  console.log(`${rounds} rounds, ${connections} concurrent requests, seed ${seed}`);
  const results = await runCrashRounds({
    command,
    folder,
    rounds,
    secondsMax,
    connections,
    seed,
    workloads: allWorkloads(),
    report: (round) => {
      console.log(describeRound(round));
      for (const problem of round.problems) console.log(`  ${problem}`);
    },
  });
  const acknowledged = results.reduce((sum, round) => sum + round.acknowledged, 0);
  const failed = results.some((round) => round.problems.length > 0);
  console.log(
    `${results.length} kills, ${acknowledged} acknowledged: ${failed ? "FAILED" : "nothing lost, nothing doubled"}`,
  );
  return failed;
}

/** Kills `ninefold apply` and the server under it. Resolves to whether a problem was found. */
async function failsToApply(folder: string, rounds: number, seed: number): Promise<boolean> {
  console.log(`${rounds} rounds, seed ${seed}`);
  const report = (kill: ApplyKill) => console.log(describeKill(kill));
  const kills = await runApplyRounds({ command, folder, rounds, seed, report });
  return kills.some(({ problems }) => problems.length > 0);
}

const cleanup = new Cleanup();
try {
  const rounds = positive("rounds", values.rounds);
  const seed = positive("seed", values.seed);
  const run = values.apply ? failsToApply : failsUnderLoad;
  process.exitCode = (await run(cleanup.folder("crash"), rounds, seed)) ? 1 : 0;
} catch (error) {
  if (!cleanup.interrupted)
    console.error(`scripts/harness crash: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await cleanup.run();
}
process.exit();
