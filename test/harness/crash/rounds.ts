import { join } from "node:path";
import { type Command, type Launch, ServerProcess, spawnServer } from "../processes/server-process.ts";
import { launchUnderLoad, runLoad } from "./load.ts";
import { createRandom, type Random } from "./random.ts";
import { ServerTarget } from "./target.ts";
import { tallyOf, verifyWorkloads } from "./verification.ts";
import type { Tally, Workload } from "./workload.ts";

/** Settings of a run. */
export interface CrashRun {
  readonly command: Command;
  /** An empty folder; the data folder is created in it. */
  readonly folder: string;
  readonly rounds: number;
  /** Shortest time under load before a kill (default {@link LOAD_SECONDS_MIN}). */
  readonly secondsMin?: number;
  /** Longest time under load before a kill. */
  readonly secondsMax: number;
  /** Concurrent requests. */
  readonly connections: number;
  /**
   * Minimum number of steps before a kill: on a slow machine, time alone would kill a server before its first request.
   */
  readonly actsMin?: number;
  readonly seed: number;
  readonly workloads: readonly Workload[];
  /** Called after every round. */
  readonly report?: (round: RoundResult) => void;
  /** Called with the data folder between the kill and the restart: tests damage the file here. */
  readonly tamper?: (folder: string) => void;
}

/** Result of a round. */
export interface RoundResult extends Tally {
  readonly round: number;
  readonly loadSeconds: number;
  /** Starts that were killed before the server was ready. */
  readonly startsKilled: number;
  readonly readyMs: number;
  readonly problems: readonly string[];
}

/** Shortest time under load before a kill. */
const LOAD_SECONDS_MIN = 0.1;
/** Share of the restarts that are killed before the server is ready, and the latest time of such a kill. */
const START_KILL_CHANCE = 0.25;
const START_KILL_MS_MAX = 250;
/** Runs the rounds one after another on one data folder. Stops after a round with a problem. */
export async function runCrashRounds(run: CrashRun): Promise<RoundResult[]> {
  const random = createRandom(run.seed);
  const data = join(run.folder, "data");
  const launch = launchUnderLoad(run.command, run.folder, data);
  let server = await ServerProcess.start(launch);
  const results: RoundResult[] = [];
  try {
    const target = new ServerTarget(server.url, server.key ?? "", data);
    for (const workload of run.workloads) await workload.prepare(target);
    for (let round = 1; round <= run.rounds; round += 1) {
      const loadSeconds = await loadAndKill(run, server, target, random);
      const deathProblems = lastWords(server, target);
      run.tamper?.(data);
      const startsKilled = await killSomeStarts(launch, random);
      server = await ServerProcess.start(launch);
      target.attach(server.url);
      const problems = [...deathProblems, ...(await verifyWorkloads(run.workloads, target))];
      const tally = tallyOf(run.workloads);
      const result = { round, loadSeconds, startsKilled, readyMs: server.readyMs, ...tally, problems };
      results.push(result);
      run.report?.(result);
      if (problems.length > 0) break;
    }
  } finally {
    await server.stop("SIGKILL");
  }
  return results;
}

async function loadAndKill(
  run: CrashRun,
  server: ServerProcess,
  target: ServerTarget,
  random: Random,
): Promise<number> {
  const { secondsMin = LOAD_SECONDS_MIN, secondsMax } = run;
  const spanMs = Math.max(0, secondsMax - secondsMin) * 1000;
  const loadSeconds = secondsMin + random.below(spanMs + 1) / 1000;
  const enough = Promise.withResolvers<void>();
  let acts = 0;
  const load = runLoad({
    ...run,
    target,
    random,
    goesOn: () => {
      acts += 1;
      // Each connection calls this once before its first step.
      if (acts >= run.connections + (run.actsMin ?? 0)) enough.resolve();
      return !target.gone;
    },
  });
  // The load ends by itself when the server is gone, or when a workload fails because of a bug.
  await Promise.race([Promise.all([Bun.sleep(loadSeconds * 1000), enough.promise]), load]);
  target.expectDeath();
  await server.stop("SIGKILL");
  await load;
  return loadSeconds;
}

/** Until it is killed a server must run, respond to every request, and log no warning or error. */
function lastWords(server: ServerProcess, target: ServerTarget): string[] {
  const problems: string[] = [];
  if (target.unexplained > 0) problems.push(`${target.unexplained} requests unanswered before the kill`);
  if (target.rejections > 0) problems.push(`${target.rejections} requests got 503`);
  if (server.warnings !== "") problems.push(`the server's log: ${server.warnings.trim()}`);
  return problems;
}

/** Kills the recovery as well: the next start must succeed. */
async function killSomeStarts(launch: Launch, random: Random): Promise<number> {
  let killed = 0;
  while (random.chance(START_KILL_CHANCE)) {
    const start = spawnServer(launch);
    await Bun.sleep(random.below(START_KILL_MS_MAX));
    start.process.kill("SIGKILL");
    await start.process.exited;
    killed += 1;
  }
  return killed;
}

/** A round as one line. */
export function describeRound(result: RoundResult): string {
  const { round, loadSeconds, acknowledged, inDoubt, happened, startsKilled, readyMs, problems } = result;
  const starts = startsKilled === 0 ? "" : `, ${startsKilled} starts killed`;
  const verdict = problems.length === 0 ? "ok" : `${problems.length} PROBLEMS`;
  return (
    `round ${String(round).padStart(3)}: killed after ${loadSeconds.toFixed(2)} s, ` +
    `${acknowledged} acknowledged, ${inDoubt} in doubt (${happened} of them had happened)${starts}, ` +
    `ready again in ${readyMs.toFixed(0)} ms: ${verdict}`
  );
}
