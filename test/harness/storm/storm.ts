import { join } from "node:path";
import { createRandom } from "../crash/random.ts";
import { type Command, type Launch, ServerProcess } from "../processes/server-process.ts";
import { type Counts, type Shared, StormClient } from "./client.ts";
import { Target } from "./target.ts";
import { Resource, Witness } from "./witness.ts";

/** Settings of a run. */
export interface Storm {
  readonly command: Command;
  /** An empty folder; the data folder is created in it. */
  readonly folder: string;
  readonly seconds: number;
  readonly clients: number;
  readonly keys: number;
  /** Number of restarts. */
  readonly kills: number;
  readonly seed: number;
}

/** Counts and problems of a run. */
export interface StormResult extends Counts {
  readonly seed: number;
  readonly grants: number;
  readonly kills: number;
  /** Writes of holders with an expired lease, rejected because of their fencing token. */
  readonly staleWrites: number;
  /** Leases that the server still had after a restart. */
  readonly leasesFound: number;
  readonly releasesFound: number;
  readonly problems: readonly string[];
}

/** One of so many stops is a SIGTERM; the others are SIGKILL. */
const GRACEFUL_EVERY = 4;
/** Leases that expire sooner than this after a restart are not compared. */
const LEASE_MARGIN_MS = 100;

/** Runs clients against a server that is stopped and restarted repeatedly. */
export async function runStorm(storm: Storm): Promise<StormResult> {
  let server: ServerProcess | null = null;
  let key = "";
  const target = new Target(() => key);
  const shared: Shared = {
    target,
    witness: new Witness(),
    resource: new Resource(),
    random: createRandom(storm.seed),
    keys: Array.from({ length: storm.keys }, (_, index) => `storm:${index}`),
    counts: { dropped: 0, timeouts: 0, rejected: 0, oversleeps: 0, refreshes: 0 },
    isOver: false,
  };
  const found = { leases: 0, releases: 0 };
  const clients = Array.from({ length: storm.clients }, (_, id) => new StormClient(shared, id).run());
  // A bug in a client ends the run immediately.
  const failed = Promise.all(clients);
  try {
    for (let restarts = 0; restarts <= storm.kills; restarts += 1) {
      server = await ServerProcess.start(launchOf(storm));
      key = server.key ?? key;
      await compare(shared, server.url, found);
      target.attach(server.url);
      await Promise.race([Bun.sleep((storm.seconds * 1000) / (storm.kills + 1)), failed]);
      if (restarts === storm.kills) shared.isOver = true;
      await stopServer(shared, server, restarts);
    }
    target.attach("http://127.0.0.1:9");
    await failed;
  } finally {
    if (server !== null && !server.ended) await server.stop("SIGKILL");
  }
  return resultOf(storm, shared, found);
}

function launchOf(storm: Storm): Launch {
  const args = ["--port", "0", "--data", join(storm.folder, "data"), "--log-level", "warn"];
  return { command: storm.command, args };
}

async function stopServer(shared: Shared, server: ServerProcess, restarts: number): Promise<void> {
  shared.target.expectStop();
  const isGraceful = shared.isOver || restarts % GRACEFUL_EVERY === GRACEFUL_EVERY - 1;
  const code = await server.stop(isGraceful ? "SIGTERM" : "SIGKILL");
  if (isGraceful && code !== 0) shared.witness.note(`the server ended with exit code ${code} after SIGTERM`);
  if (server.warnings !== "") shared.witness.note(`the server's log: ${server.warnings.trim()}`);
  shared.witness.restarted();
}

/** Runs before the clients reconnect: grants and releases that were acknowledged before the stop must still hold. */
async function compare(
  shared: Shared,
  url: string,
  found: { leases: number; releases: number },
): Promise<void> {
  const { target, witness } = shared;
  const connection = await target.open(url);
  for (const grant of witness.releases()) {
    const response = await target.send(connection, `${grant.key}/release`, { token: grant.token });
    if (response.status === 200) witness.note(`${grant.key}: an acknowledged release is lost`);
    found.releases += 1;
  }
  for (const grant of witness.holders(LEASE_MARGIN_MS)) {
    // A refresh would change the lease. A release with a wrong token returns 403 only if the lock is held.
    const other = await target.send(connection, `${grant.key}/release`, { token: "wrong" });
    if (other.status !== 403) witness.note(`${grant.key}: an acknowledged grant is lost`);
    found.leases += 1;
  }
  connection.close();
}

function resultOf(
  storm: Storm,
  shared: Shared,
  found: { readonly leases: number; readonly releases: number },
): StormResult {
  const { witness, resource, counts } = shared;
  return {
    ...counts,
    seed: storm.seed,
    grants: witness.grants,
    kills: storm.kills,
    staleWrites: resource.rejected,
    leasesFound: found.leases,
    releasesFound: found.releases,
    problems: witness.problems,
  };
}

/** The result as a few lines of text. */
export function describeStorm(result: StormResult): string {
  const { grants, kills, dropped, timeouts, rejected, oversleeps, refreshes, staleWrites, problems } = result;
  const verdict =
    problems.length === 0 ? "one holder at a time, in order, nothing lost" : `${problems.length} PROBLEMS`;
  return [
    `${grants} grants, ${refreshes} refreshes, ${timeouts} timeouts, ${dropped} dropped connections`,
    `${oversleeps} holders slept past their lease, ${staleWrites} of their writes rejected by fencing token`,
    `${kills} restarts of the server: ${result.leasesFound} leases and ${result.releasesFound} releases still stored, ${rejected} waiters rejected`,
    `seed ${result.seed}: ${verdict}`,
  ].join("\n");
}
