// Many clients fight over few locks: they wait, pause, drop connections and sleep past their leases, while the server
// is killed again and again. A witness that sees all of them looks for two holders at once, fencing tokens that do
// not rise, waiters that were overtaken, and grants or releases that a kill has undone.
//   scripts/storm                 30 s, 200 clients, 10 keys, 6 ends of the server
//   scripts/storm --seconds N     for so long in all
//   scripts/storm --clients N     so many clients
//   scripts/storm --keys N        so many locks
//   scripts/storm --kills N       so many ends of the server (every fourth in order, the others by kill -9)
//   scripts/storm --seed N        repeats the choices of an earlier run (not its timing)
//   scripts/storm --streams N     instead: N streams of flags (10,000 at most), one change, and what that takes
//   scripts/storm --binary        the executable dist/ninefold instead of the source
import { parseArgs } from "node:util";
import { Cleanup } from "./processes/cleanup.ts";
import { BINARY_COMMAND, SOURCE_COMMAND } from "./processes/server-process.ts";
import { describeStorm, runStorm } from "./storms/storm.ts";
import { describeStreamLoad, runStreamLoad } from "./storms/streams.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "30" },
    clients: { type: "string", default: "200" },
    keys: { type: "string", default: "10" },
    kills: { type: "string", default: "6" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    streams: { type: "string" },
    binary: { type: "boolean", default: false },
  },
});

function positive(name: string, text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new Error(`--${name} must be a number above 0, not "${text}"`);
  return number;
}

const PROBLEMS_SHOWN = 20;

/** Runs what was asked for. Resolves to whether all was well. */
async function run(folder: string): Promise<boolean> {
  const command = values.binary ? BINARY_COMMAND : SOURCE_COMMAND;
  if (values.streams !== undefined) {
    const load = await runStreamLoad({ command, folder, streams: positive("streams", values.streams) });
    console.log(describeStreamLoad(load));
    return load.problems.length === 0;
  }
  const result = await runStorm({
    command,
    folder,
    seconds: positive("seconds", values.seconds),
    clients: positive("clients", values.clients),
    keys: positive("keys", values.keys),
    kills: positive("kills", values.kills),
    seed: positive("seed", values.seed),
  });
  console.log(describeStorm(result));
  for (const problem of result.problems.slice(0, PROBLEMS_SHOWN)) console.log(`  ${problem}`);
  return result.problems.length === 0;
}

const cleanup = new Cleanup();
try {
  process.exitCode = (await run(cleanup.folder("storm"))) ? 0 : 1;
} catch (error) {
  console.error(`scripts/storm: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await cleanup.run();
}
process.exit();
