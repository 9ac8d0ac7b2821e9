import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ninefold } from "../../../src/client/index.ts";
import { dataFilesOf } from "../../../src/kernel/storage/folders.ts";
import type { RoundStore } from "../archive/bench.ts";
import type { Cleanup } from "../processes/cleanup.ts";
import { freePorts } from "../processes/ports.ts";
import type { Command } from "../processes/server-process.ts";
import { CellArchive } from "./cell-archive.ts";
import { createAccount, FailoverClient, type Findings, Journal } from "./clients.ts";
import { DISTURBANCES, type Disturbance, type Disturbed, disturb, LEADER_MS_MAX } from "./disturbances.ts";
import { type EngineName, startEngine } from "./engines.ts";
import { Replay } from "./replay.ts";
import { leaderOf, SupervisedNode } from "./supervised-node.ts";

const CLIENTS = 4;
const NODES = 2;
/** Load between two disturbances. */
const QUIET_MS = 500;
/** The load must never meet a limit: what is tested here is what survives. */
const CONFIG = "[tiers.scale]\nrequests_per_minute = 1000000000\n";
const MASTER_KEY_BYTES = 32;

/** How a run is made. */
export interface FailoverRun {
  readonly command: Command;
  readonly engine: EngineName;
  readonly leaseSeconds: number;
  /** How often each is done; none without a number. */
  readonly counts: Partial<Readonly<Record<Disturbance, number>>>;
  /** Where the leader archives; without one nowhere. */
  readonly archive?: RoundStore;
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
  /** Bytes in which the leader's file at the end is not what the log makes of its file at the beginning. */
  readonly differing: number;
  /** What differs between the leader's file at the end and what its archive restores; empty without an archive. */
  readonly unarchived: readonly string[];
}

/** Starts an engine, two nodes and four clients, disturbs the leader again and again, and compares. */
export async function runFailovers(run: FailoverRun, cleanup: Cleanup): Promise<FailoverResult> {
  const engine = await startEngine(cleanup, run.engine);
  const folder = cleanup.folder("failover");
  const configPath = join(folder, "ninefold.toml");
  writeFileSync(configPath, CONFIG);
  const masterKey = Buffer.from(crypto.getRandomValues(new Uint8Array(MASTER_KEY_BYTES))).toString("hex");
  const { command, leaseSeconds } = run;
  const archive =
    run.archive === undefined ? null : new CellArchive(run.archive, masterKey, join(folder, "restored.db"));
  const launch = { command, folder, commitLog: engine.url, leaseSeconds, masterKey, configPath, archive };
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
  const replay = new Replay({ ...launch, path: join(folder, "replay.db") });
  await replay.begin();
  let isOver = false;
  const working = Promise.all(clients.map((client) => client.run(() => !isOver)));
  const [client] = clients as [FailoverClient];
  const cluster = {
    leaseMs: leaseSeconds * 1000,
    nodes,
    engine,
    journal,
    client,
    store: run.archive ?? null,
  };
  const disturbed = disturbAll(run, cluster).finally(() => {
    isOver = true;
  });
  const [times] = await Promise.all([Promise.race([disturbed, working.then(() => disturbed)]), working]);
  for (const client of clients) await client.verify();
  const last = await leaderOf(nodes, LEADER_MS_MAX);
  await archive?.settled(last.url, first.key ?? "");
  await stopAll(nodes, last);
  const { database } = dataFilesOf(last.folder);
  const differing = await replay.differingBytes(database);
  const unarchived = (await archive?.differences(database)) ?? [];
  const { acknowledged, reads, locks, findings } = journal;
  findings.problems.push(...nodes.flatMap(({ failures }) => failures));
  return { ...findings, acknowledged, reads, locks, times, differing, unarchived };
}

/** Stops the leader last: another node would lead then, and archive. */
async function stopAll(nodes: readonly SupervisedNode[], leader: SupervisedNode): Promise<void> {
  for (const node of [...nodes.filter((node) => node !== leader), leader]) await node.stop();
}

/** How long each disturbance took until the next change was acknowledged. */
type Times = Readonly<Record<Disturbance, number[]>>;

async function disturbAll({ counts, report }: FailoverRun, cluster: Disturbed): Promise<Times> {
  const { nodes, journal } = cluster;
  const times: Times = { kills: [], pauses: [], "engine-kills": [], majorities: [], splits: [], uploads: [] };
  for (const [index, kind] of spread(counts).entries()) {
    await inTime(journal.nextAcknowledged());
    await Bun.sleep(QUIET_MS);
    const leader = await leaderOf(nodes, LEADER_MS_MAX, true);
    const ms = Math.round(await inTime(disturb(kind, leader, cluster)));
    times[kind].push(ms);
    report?.(`${index + 1}: ${kind} (${leader.name} led), the next change after ${ms} ms`);
  }
  await inTime(journal.nextAcknowledged());
  await leaderOf(nodes, LEADER_MS_MAX);
  return times;
}

/** Each kind so often, spread evenly. */
function spread(counts: FailoverRun["counts"]): Disturbance[] {
  return DISTURBANCES.flatMap((kind) => {
    const count = counts[kind] ?? 0;
    return Array.from({ length: count }, (_, index) => ({ kind, at: (index + 0.5) / count }));
  })
    .sort((left, right) => left.at - right.at)
    .map(({ kind }) => kind);
}

/** @throws Error when a cluster does not recover. */
async function inTime(acknowledged: Promise<number>): Promise<number> {
  const ms = await Promise.race([acknowledged, Bun.sleep(LEADER_MS_MAX)]);
  if (ms === undefined) throw new Error(`no change was acknowledged within ${LEADER_MS_MAX} ms`);
  return ms;
}

/** Whether nothing is wrong. */
export function isClean({ problems, differing, unarchived }: FailoverResult): boolean {
  return problems.length + differing + unarchived.length === 0;
}
