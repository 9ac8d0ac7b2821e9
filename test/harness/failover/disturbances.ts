import { statSync } from "node:fs";
import { dataFilesOf } from "../../../src/kernel/storage/folders.ts";
import type { RoundStore, StepRequest } from "../archive/bench.ts";
import type { FailoverClient, Journal } from "./clients.ts";
import type { EngineNode } from "./engine-node.ts";
import type { Engine } from "./engines.ts";
import { leaderOf, type SupervisedNode } from "./supervised-node.ts";

/** What is done to a cluster, by the name of its option and of its times. */
export const DISTURBANCES = ["kills", "pauses", "engine-kills", "majorities", "splits", "uploads"] as const;
export type Disturbance = (typeof DISTURBANCES)[number];

/** A pause lasts so much longer than the lease. */
const PAUSE_FACTOR = 2;
/** How long the engine's majority is away, in leases. */
const AWAY_LEASES = 2;
const READ_PAUSE_MS = 100;
/** Time for a change to be committed by a leader whose engine is away. */
const COMMIT_MS = 500;
/** Some node leads within this time, also on a busy machine. */
export const LEADER_MS_MAX = 60_000;

/** A cluster under load. */
export interface Disturbed {
  readonly leaseMs: number;
  readonly nodes: readonly SupervisedNode[];
  readonly engine: Engine;
  readonly journal: Journal;
  readonly client: FailoverClient;
  /** The object store of the archive; null without one. */
  readonly store: RoundStore | null;
}

/**
 * Disturbs a cluster whose leader this is. Resolves to the milliseconds until the next change was acknowledged: since the
 * disturbance, or since its end where nothing can be acknowledged before.
 */
export async function disturb(
  kind: Disturbance,
  leader: SupervisedNode,
  cluster: Disturbed,
): Promise<number> {
  const { journal } = cluster;
  switch (kind) {
    case "kills": {
      const acknowledged = journal.nextAcknowledged();
      await leader.kill();
      return acknowledged;
    }
    case "pauses": {
      const acknowledged = journal.nextAcknowledged();
      leader.pause();
      await Bun.sleep(cluster.leaseMs * PAUSE_FACTOR);
      leader.resume();
      return acknowledged;
    }
    case "engine-kills": {
      const acknowledged = journal.nextAcknowledged();
      const node = await cluster.engine.leader();
      await node.kill();
      await restart([node]);
      return acknowledged;
    }
    case "majorities":
      return majorityAway(cluster);
    case "splits":
      return split(leader, cluster);
    case "uploads":
      return killInUpload(leader, cluster);
  }
}

/** Kills a leader that sends an object to its archive, by turns before and after the store has taken it. */
async function killInUpload(leader: SupervisedNode, { journal, store }: Disturbed): Promise<number> {
  if (store === null) throw new Error("the cell has no archive");
  const { promise: killed, resolve } = Promise.withResolvers<number>();
  const isUpload = ({ method, path }: StepRequest): boolean => method === "PUT" && /\/[eb]\//.test(path);
  store.atStep(isUpload, journal.acknowledged % 2 === 0 ? "before" : "after", () => {
    resolve(journal.nextAcknowledged());
    void leader.kill();
  });
  return killed;
}

/** Nothing is acknowledged without a quorum, and nothing is read after the lease. */
async function majorityAway({ leaseMs, engine, journal, client }: Disturbed): Promise<number> {
  const away = await engine.majority();
  for (const node of away) node.pause();
  const since = performance.now();
  try {
    await Bun.sleep(leaseMs);
    while (performance.now() < since + leaseMs * AWAY_LEASES) {
      const nodes = await client.responding();
      if (nodes > 0) journal.report("withoutQuorum", nodes, "a node responded to a read after the lease");
      await Bun.sleep(READ_PAUSE_MS);
    }
    if (journal.newestSent > since)
      journal.report("withoutQuorum", 1, "a change was acknowledged without a quorum of the engine");
  } finally {
    for (const node of away) node.resume();
  }
  return journal.nextAcknowledged();
}

/** Kills a leader that has committed what the log does not have. It undoes that when it comes back, and copies no database. */
async function split(leader: SupervisedNode, cluster: Disturbed): Promise<number> {
  const { engine, journal, nodes } = cluster;
  const before = databaseIn(leader.folder);
  // Nothing is in flight when the engine goes: that could have reached the log.
  const release = await journal.hold();
  const away = await engine.writers();
  for (const node of away) await node.kill();
  release();
  await Bun.sleep(COMMIT_MS);
  await leader.kill({ staysDown: true });
  const acknowledged = journal.nextAcknowledged();
  await restart(away);
  leader.startAgain();
  await leaderOf(nodes, LEADER_MS_MAX, true);
  if (databaseIn(leader.folder) !== before)
    journal.report("unnoticed", 1, `${leader.name} copied a database instead of undoing its last change`);
  return acknowledged;
}

async function restart(nodes: readonly EngineNode[]): Promise<void> {
  for (const node of nodes) node.start();
  await Promise.all(nodes.map((node) => node.ready()));
}

/** Identity of the database file in a folder. */
function databaseIn(folder: string): number {
  return statSync(dataFilesOf(folder).database).ino;
}
