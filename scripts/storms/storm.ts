import { join } from "node:path";
import { createRandom } from "../crashes/random.ts";
import { type Command, type Launch, ServerProcess } from "../processes/server-process.ts";
import { type Counts, type Sea, StormClient } from "./client.ts";
import { Target } from "./target.ts";
import { Resource, Witness } from "./witness.ts";

/** How a storm is made. */
export interface Storm {
  readonly command: Command;
  /** A folder of its own; the data folder is made in it. */
  readonly folder: string;
  readonly seconds: number;
  readonly clients: number;
  readonly keys: number;
  /** Ends of the server, each followed by a start. */
  readonly kills: number;
  readonly seed: number;
}

/** What a storm came to. */
export interface StormResult extends Counts {
  readonly seed: number;
  readonly grants: number;
  readonly kills: number;
  /** Writes of holders whose lease had ended, refused by their fencing token. */
  readonly staleWrites: number;
  /** Leases that were found again after an end of the server. */
  readonly leasesKept: number;
  readonly releasesKept: number;
  readonly problems: readonly string[];
}

/** Every so many ends of the server one is in order; the others are kill -9. */
const IN_ORDER_EVERY = 4;
/** Leases that end sooner than this after a restart are left out of the comparison. */
const LEASE_MARGIN_MS = 100;

/** Runs a storm. */
export async function runStorm(storm: Storm): Promise<StormResult> {
  let server: ServerProcess | null = null;
  let key = "";
  const target = new Target(() => key);
  const sea: Sea = {
    target,
    witness: new Witness(),
    resource: new Resource(),
    random: createRandom(storm.seed),
    keys: Array.from({ length: storm.keys }, (_, index) => `storm:${index}`),
    counts: { dropped: 0, timeouts: 0, turnedAway: 0, oversleeps: 0, refreshes: 0 },
    over: false,
  };
  const kept = { leases: 0, releases: 0 };
  const clients = Array.from({ length: storm.clients }, (_, id) => new StormClient(sea, id).run());
  // A client with a fault of its own ends the storm at once.
  const faults = Promise.all(clients);
  try {
    for (let life = 0; life <= storm.kills; life += 1) {
      server = await ServerProcess.start(launchOf(storm));
      key = server.key ?? key;
      await compare(sea, server.url, kept);
      target.attach(server.url);
      await Promise.race([Bun.sleep((storm.seconds * 1000) / (storm.kills + 1)), faults]);
      if (life === storm.kills) sea.over = true;
      await endLife(sea, server, life);
    }
    target.attach("http://127.0.0.1:9");
    await faults;
  } finally {
    if (server !== null && !server.ended) await server.stop("SIGKILL");
  }
  return resultOf(storm, sea, kept);
}

function launchOf(storm: Storm): Launch {
  const args = ["--port", "0", "--data", join(storm.folder, "data"), "--log-level", "warn"];
  return { command: storm.command, args };
}

async function endLife(sea: Sea, server: ServerProcess, life: number): Promise<void> {
  sea.target.expectEnd();
  const inOrder = sea.over || life % IN_ORDER_EVERY === IN_ORDER_EVERY - 1;
  const code = await server.stop(inOrder ? "SIGTERM" : "SIGKILL");
  if (inOrder && code !== 0) sea.witness.note(`the server ended with exit code ${code} when told to stop`);
  if (server.log !== "") sea.witness.note(`the server's log: ${server.log.trim()}`);
  sea.witness.newLife();
}

/** Before the clients come back: what was answered before the end must hold. */
async function compare(sea: Sea, url: string, kept: { leases: number; releases: number }): Promise<void> {
  const { target, witness } = sea;
  const connection = await target.open(url);
  for (const grant of witness.releases()) {
    const answer = await target.ask(connection, `${grant.key}/release`, { token: grant.token });
    if (answer.status === 200) witness.note(`${grant.key}: an acknowledged release is lost`);
    kept.releases += 1;
  }
  for (const grant of witness.holders(LEASE_MARGIN_MS)) {
    // A refresh would change what is compared: the wrong token asks, and is told whether the lock is held.
    const stranger = await target.ask(connection, `${grant.key}/release`, { token: "stranger" });
    if (stranger.status !== 403) witness.note(`${grant.key}: an acknowledged grant is lost`);
    kept.leases += 1;
  }
  connection.close();
}

function resultOf(
  storm: Storm,
  sea: Sea,
  kept: { readonly leases: number; readonly releases: number },
): StormResult {
  const { witness, resource, counts } = sea;
  return {
    ...counts,
    seed: storm.seed,
    grants: witness.grants,
    kills: storm.kills,
    staleWrites: resource.refused,
    leasesKept: kept.leases,
    releasesKept: kept.releases,
    problems: witness.problems,
  };
}

/** A storm as a few lines. */
export function describeStorm(result: StormResult): string {
  const { grants, kills, dropped, timeouts, turnedAway, oversleeps, refreshes, staleWrites, problems } =
    result;
  const verdict =
    problems.length === 0 ? "one holder at a time, in order, nothing lost" : `${problems.length} PROBLEMS`;
  return [
    `${grants} grants, ${refreshes} refreshes, ${timeouts} timeouts, ${dropped} dropped connections`,
    `${oversleeps} holders slept past their lease, ${staleWrites} of their writes refused by fencing token`,
    `${kills} ends of the server: ${result.leasesKept} leases and ${result.releasesKept} releases found again, ${turnedAway} waiters turned away`,
    `seed ${result.seed}: ${verdict}`,
  ].join("\n");
}
