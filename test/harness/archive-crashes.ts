// Kills an archiving server at random times while clients write and the object store fails now and then, and at each step of
// an upload, of a base and of a start; each request of such a step fails once, too. Compares what the archive restores with the
// file, table by table, and restores the time of each object. The object store is that of the tests, on loopback.
//
// Then the same at each step of the deletion of expired objects, with servers that retain three seconds: every retained time is
// restored after each kill, and a later server has to delete what the kill has left.
//   scripts/harness archive-crashes                50 kills, and 40 in deletions
//   scripts/harness archive-crashes --rounds N     number of kills
//   scripts/harness archive-crashes --removals N   number of those in deletions
//   scripts/harness archive-crashes --seed N       repeats the choices of an earlier run, not its timing
//   scripts/harness archive-crashes --binary       runs the executable dist/ninefold instead of the source, except in deletions
import { parseArgs } from "node:util";
import { S3Server } from "../support/s3-server.ts";
import { ALL_REMOVAL_ROUNDS, runRemovalRounds } from "./archive/removals.ts";
import { runArchiveRounds } from "./archive/rounds.ts";
import { BINARY_COMMAND, SOURCE_COMMAND } from "./processes/server-process.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "50" },
    removals: { type: "string", default: String(ALL_REMOVAL_ROUNDS) },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    binary: { type: "boolean", default: false },
  },
});

const command = values.binary ? BINARY_COMMAND : SOURCE_COMMAND;

async function killAtRandom(s3: S3Server, rounds: number): Promise<readonly string[]> {
  const seed = Number(values.seed);
  const outcome = await runArchiveRounds(s3.disturbed(), { command, rounds, seed });
  const { kills, failures, restores, lagSeconds, acknowledged, objects, bases, problems } = outcome;
  console.log(
    `${kills} kills, ${failures} failed steps, ${restores} restores, lag up to ${lagSeconds} s, ${acknowledged} acknowledged changes, ${objects} objects, ${bases} bases, seed ${seed}: ${verdict(problems)}`,
  );
  return problems;
}

async function killInDeletions(s3: S3Server, rounds: number): Promise<readonly string[]> {
  const outcome = await runRemovalRounds(s3.disturbed(), { command, rounds });
  const { kills, failures, restores, left, removed, acknowledged, problems } = outcome;
  console.log(
    `deletions: ${kills} kills, ${failures} failed steps, ${restores} restores, ${left} expired objects left by kills, ${removed} of them deleted later, ${acknowledged} acknowledged changes: ${verdict(problems)}`,
  );
  return problems;
}

function verdict(problems: readonly string[]): string {
  return problems.length === 0 ? "nothing lost" : `${problems.length} problems\n${problems.join("\n")}`;
}

/** Each on a store of its own. */
async function onStore(
  rounds: string,
  run: (s3: S3Server, rounds: number) => Promise<readonly string[]>,
): Promise<void> {
  if (Number(rounds) === 0) return;
  const s3 = await new S3Server().start();
  try {
    if ((await run(s3, Number(rounds))).length > 0) process.exitCode = 1;
  } finally {
    await s3.stop();
  }
}

await onStore(values.rounds, killAtRandom);
await onStore(values.removals, killInDeletions);
