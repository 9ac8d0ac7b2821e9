// Load tests. By default many clients compete for a few locks: they wait, pause, drop connections and sleep past their
// leases, while the server is stopped and restarted repeatedly. A witness that sees all clients reports two holders at
// the same time, fencing tokens that do not increase, waiters that were overtaken, and grants or releases that a stop lost.
//   scripts/harness storm                 30 s, 200 clients, 10 locks, 6 stops of the server
//   scripts/harness storm --seconds N     duration; with --neighbours that of each attack (default 3)
//   scripts/harness storm --clients N     number of clients
//   scripts/harness storm --keys N        number of locks
//   scripts/harness storm --kills N       number of stops (every fourth with SIGTERM, the others with SIGKILL)
//   scripts/harness storm --seed N        repeats the choices of an earlier run, not its timing
//   scripts/harness storm --streams N     instead: N flag streams (at most 10,000) and one change that reaches all of them
//   scripts/harness storm --neighbours    instead: expensive requests of one tenant, and the ping latency of another
//   scripts/harness storm --scale N       with --neighbours: share of the stored data (above 0, at most 1; default 1)
//   scripts/harness storm --binary        runs the executable dist/ninefold instead of the source
import { parseArgs } from "node:util";
import { Cleanup } from "./processes/cleanup.ts";
import { BINARY_COMMAND, SOURCE_COMMAND } from "./processes/server-process.ts";
import { describeNeighbours, runNeighbours } from "./storm/neighbours.ts";
import { describeStorm, runStorm } from "./storm/storm.ts";
import { describeStreamLoad, runStreamLoad } from "./storm/streams.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string" },
    clients: { type: "string", default: "200" },
    keys: { type: "string", default: "10" },
    kills: { type: "string", default: "6" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    streams: { type: "string" },
    neighbours: { type: "boolean", default: false },
    scale: { type: "string", default: "1" },
    binary: { type: "boolean", default: false },
  },
});

function positive(name: string, text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new Error(`--${name} must be a number above 0, not "${text}"`);
  return number;
}

const PROBLEMS_PRINTED_MAX = 20;

/** Runs the selected test. Resolves to whether it found no problem. */
async function run(folder: string): Promise<boolean> {
  const command = values.binary ? BINARY_COMMAND : SOURCE_COMMAND;
  if (values.streams !== undefined) {
    const load = await runStreamLoad({ command, folder, streams: positive("streams", values.streams) });
    console.log(describeStreamLoad(load));
    return load.problems.length === 0;
  }
  if (values.neighbours) {
    const seconds = positive("seconds", values.seconds ?? "3");
    const scale = positive("scale", values.scale);
    const rows = await runNeighbours({ command, folder, seconds, scale });
    console.log(describeNeighbours(rows));
    return rows.every(({ problems }) => problems.length === 0);
  }
  const result = await runStorm({
    command,
    folder,
    seconds: positive("seconds", values.seconds ?? "30"),
    clients: positive("clients", values.clients),
    keys: positive("keys", values.keys),
    kills: positive("kills", values.kills),
    seed: positive("seed", values.seed),
  });
  console.log(describeStorm(result));
  for (const problem of result.problems.slice(0, PROBLEMS_PRINTED_MAX)) console.log(`  ${problem}`);
  return result.problems.length === 0;
}

const cleanup = new Cleanup();
try {
  process.exitCode = (await run(cleanup.folder("storm"))) ? 0 : 1;
} catch (error) {
  console.error(`scripts/harness storm: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await cleanup.run();
}
process.exit();
