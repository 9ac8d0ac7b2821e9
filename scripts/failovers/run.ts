import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ninefold } from "../../src/client/index.ts";
import type { Cleanup } from "../processes/cleanup.ts";
import { freePorts } from "../processes/ports.ts";
import type { Command } from "../processes/server-process.ts";
import { createAccount, FailoverClient, type Findings, Journal } from "./clients.ts";
import { type Engine, type EngineName, startEngine } from "./engines.ts";
import { leaderOf, SupervisedNode } from "./supervised-node.ts";

const CLIENTS = 4;
const NODES = 2;
/** A pause lasts so much longer than the lease. */
const PAUSE_FACTOR = 2;
/** Load between two disturbances. */
const QUIET_MS = 500;
/** Some node leads within this time, also on a busy machine. */
const LEADER_MS_MAX = 60_000;
/** The load must never meet a limit: what is tested here is what survives. */
const CONFIG = "[tiers.scale]\nrequests_per_minute = 1000000000\n";
const MASTER_KEY_BYTES = 32;

/** How a run is made. */
export interface FailoverRun {
  readonly command: Command;
  readonly engine: EngineName;
  readonly leaseSeconds: number;
  /** Kills of the leader. */
  readonly kills: number;
  /** SIGSTOP of the leader for longer than its lease, then SIGCONT. */
  readonly pauses: number;
  /** Kills of the engine's node that orders changes. */
  readonly engineKills?: number;
  /** Called after each disturbance. */
  readonly report?: (text: string) => void;
}

/** What a run came to. */
export interface FailoverResult extends Findings {
  readonly acknowledged: number;
  readonly reads: number;
  readonly locks: number;
  /** Milliseconds from each disturbance to the first acknowledged change that was sent after it. */
  readonly times: Times;
}

/** Starts an engine, two nodes and four clients, disturbs the leader again and again, and compares. */
export async function runFailovers(run: FailoverRun, cleanup: Cleanup): Promise<FailoverResult> {
  const engine = await startEngine(cleanup, run.engine);
  const folder = cleanup.folder("failover");
  const configPath = join(folder, "ninefold.toml");
  writeFileSync(configPath, CONFIG);
  const masterKey = Buffer.from(crypto.getRandomValues(new Uint8Array(MASTER_KEY_BYTES))).toString("hex");
  const { command, leaseSeconds } = run;
  const launch = { command, folder, commitLog: engine.url, leaseSeconds, masterKey, configPath };
  const nodes = freePorts(NODES).map(
    (port, index) => new SupervisedNode(`n${index + 1}`, port, launch, cleanup),
  );
  const first = await leaderOf(nodes, LEADER_MS_MAX);
  const urls = nodes.map(({ url }) => url);
  const operator = new Ninefold({ url: first.url, apiKey: first.key });
  const journal = new Journal();
  const clients: FailoverClient[] = [];
  const locksKey = await createAccount(operator, "locks");
  for (let index = 1; index <= CLIENTS; index += 1)
    clients.push(await FailoverClient.create(`client-${index}`, journal, urls, operator, locksKey));
  let isOver = false;
  const working = Promise.all(clients.map((client) => client.run(() => !isOver)));
  const disturbed = disturb(run, nodes, engine, journal).finally(() => {
    isOver = true;
  });
  const [times] = await Promise.all([Promise.race([disturbed, working.then(() => disturbed)]), working]);
  for (const client of clients) await client.verify();
  const { acknowledged, reads, locks, findings } = journal;
  findings.problems.push(...nodes.flatMap(({ failures }) => failures));
  return { ...findings, acknowledged, reads, locks, times };
}

/** What is done to a cluster, and how long each took until the next change was acknowledged. */
type Disturbance = "kill" | "pause" | "engine";
type Times = Readonly<Record<Disturbance, number[]>>;

async function disturb(
  { kills, pauses, engineKills = 0, leaseSeconds, report }: FailoverRun,
  nodes: readonly SupervisedNode[],
  engine: Engine,
  journal: Journal,
): Promise<Times> {
  const times: Times = { kill: [], pause: [], engine: [] };
  for (const [index, disturbance] of spread({ kill: kills, pause: pauses, engine: engineKills }).entries()) {
    await inTime(journal.nextAcknowledged());
    await Bun.sleep(QUIET_MS);
    const leader = await leaderOf(nodes, LEADER_MS_MAX, true);
    const acknowledged = journal.nextAcknowledged();
    if (disturbance === "kill") await leader.kill();
    else if (disturbance === "pause") {
      leader.pause();
      await Bun.sleep(leaseSeconds * 1000 * PAUSE_FACTOR);
      leader.resume();
    } else {
      const node = await engine.leader();
      await node.kill();
      node.start();
      await node.ready();
    }
    const ms = Math.round(await inTime(acknowledged));
    times[disturbance].push(ms);
    report?.(`${index + 1}: ${disturbance} (${leader.name} led), the next change after ${ms} ms`);
  }
  await inTime(journal.nextAcknowledged());
  await leaderOf(nodes, LEADER_MS_MAX);
  return times;
}

/** Each kind so often, spread evenly. */
function spread(counts: Readonly<Record<Disturbance, number>>): Disturbance[] {
  return Object.entries(counts)
    .flatMap(([kind, count]) =>
      Array.from({ length: count }, (_, index) => ({ kind: kind as Disturbance, at: (index + 0.5) / count })),
    )
    .sort((one, other) => one.at - other.at)
    .map(({ kind }) => kind);
}

/** @throws Error when a cluster does not recover. */
async function inTime(acknowledged: Promise<number>): Promise<number> {
  const ms = await Promise.race([acknowledged, Bun.sleep(LEADER_MS_MAX)]);
  if (ms === undefined) throw new Error(`no change was acknowledged within ${LEADER_MS_MAX} ms`);
  return ms;
}

/** Whether nothing is wrong. */
export function isClean({ lost, doubled, staleReads, fencing, problems }: Findings): boolean {
  return lost + doubled + staleReads + fencing + problems.length === 0;
}
