// Kills an archiving server at random times while clients write and the object store fails now and then, and at each step of
// an upload, of a base and of a start; each request of such a step fails once, too. Compares what the archive restores with the
// file, table by table, and restores the time of each object. The object store is that of the tests, on loopback.
//   scripts/archive-crashes              50 kills
//   scripts/archive-crashes --rounds N   number of kills
//   scripts/archive-crashes --seed N     repeats the choices of an earlier run, not its timing
//   scripts/archive-crashes --binary     runs the executable dist/ninefold instead of the source
import { parseArgs } from "node:util";
import { S3Server } from "../test/support/s3-server.ts";
import { runArchiveRounds } from "./archives/rounds.ts";
import { BINARY_COMMAND, SOURCE_COMMAND } from "./processes/server-process.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "50" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    binary: { type: "boolean", default: false },
  },
});

const s3 = await new S3Server().start();
try {
  const seed = Number(values.seed);
  const command = values.binary ? BINARY_COMMAND : SOURCE_COMMAND;
  const outcome = await runArchiveRounds(s3.disturbed(), { command, rounds: Number(values.rounds), seed });
  const { kills, failures, restores, lagSeconds, acknowledged, objects, bases, problems } = outcome;
  for (const problem of problems) console.log(problem);
  console.log(
    `${kills} kills, ${failures} failed steps, ${restores} restores, lag up to ${lagSeconds} s, ${acknowledged} acknowledged changes, ${objects} objects, ${bases} bases, seed ${seed}: ` +
      `${problems.length === 0 ? "nothing lost" : `${problems.length} problems`}`,
  );
  process.exitCode = problems.length === 0 ? 0 : 1;
} finally {
  await s3.stop();
}
