import { existsSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { openCommitLog } from "../cluster/cluster.ts";
import { type CommitLog, EngineUnavailable } from "../cluster/commit-log.ts";
import { nodeStatePath } from "../cluster/node-folder.ts";
import { UsageError } from "../config/command-line.ts";
import { flagsGiven } from "../config/sources.ts";
import { resolveClusterConfig } from "../config.ts";
import { StartupError } from "../kernel/errors.ts";
import { lockFolder } from "../kernel/storage/folder-lock.ts";
import { dataFilesOf } from "../kernel/storage/folders.ts";
import { createSystemClock } from "../kernel/time/clock.ts";
import type { Arguments } from "./arguments.ts";
import { print, printJson, printTable } from "./output.ts";

/** A node whose last report is older is not running. */
const REPORT_AGE_MS_MAX = 10_000;

/** `ninefold cluster status`: 0 if a node leads, otherwise 1. */
export async function clusterStatus(args: Arguments): Promise<number> {
  const { cluster } = resolveClusterConfig(flagsGiven(args.line));
  return withLog(openCommitLog(cluster), async (log) => {
    const [leader, range, reports] = [await log.leader(), await log.range(), await log.nodes()];
    const logId = await log.identity();
    const now = createSystemClock().now();
    const nodes = reports.map(({ id, advertise, applied, synced, at }) => ({
      id,
      advertise,
      role: id === leader?.id ? "leader" : isRunning(at, now) ? "follower" : "absent",
      applied,
      synced,
      lag: Math.max(0, (range?.last ?? 0) - applied),
      reported_at: at,
    }));
    const epoch = leader?.epoch ?? null;
    if (args.has("--json"))
      printJson({ cell: cluster.cell, log_id: logId, epoch, leader, log: range, nodes });
    else {
      const entries = range === null ? "empty" : `entries ${range.first} to ${range.last}`;
      print(
        `Cell ${cluster.cell}: ${epoch === null ? "no node leads" : `epoch ${epoch}`}, log: ${entries}, log id: ${logId ?? "none"}\n\n`,
      );
      printTable([
        ["NODE", "ROLE", "APPLIED", "ON DISK", "LAG"],
        ...nodes.map(({ id, advertise, role, applied, synced, lag }) => [
          advertise ?? id,
          role,
          String(applied),
          String(synced),
          String(lag),
        ]),
      ]);
    }
    return leader === null ? 1 : 0;
  });
}

/** `ninefold cluster forget NODE`: the log is no longer kept for a node that is not running. */
export async function clusterForget(args: Arguments): Promise<number> {
  const { cluster } = resolveClusterConfig(flagsGiven(args.line));
  const [name = ""] = args.words;
  return withLog(openCommitLog(cluster), async (log) => {
    const found = (await log.nodes()).filter(({ id, advertise }) => name === id || name === advertise);
    if (found.length === 0) throw new StartupError(`No node ${name}. ninefold cluster status lists them.`);
    const now = createSystemClock().now();
    if (found.some(({ at }) => isRunning(at, now)))
      throw new StartupError(`${name} is running: stop it first.`);
    for (const { id } of found) await log.forget(id);
    print(`Forgot ${name}. If it starts again, it copies what it lacks.\n`);
    return 0;
  });
}

/** `ninefold cluster hand-over`: asks the leader; the log says when another node leads. */
export async function clusterHandOver(args: Arguments): Promise<number> {
  const { cluster } = resolveClusterConfig(flagsGiven(args.line));
  return withLog(openCommitLog(cluster), async (log) => {
    const leader = await log.leader();
    if (leader === null) throw new StartupError("No node leads now.");
    await log.askToHandOver(leader.epoch);
    print(`Asked ${leader.advertise ?? leader.id} to let another node lead.\n`);
    return 0;
  });
}

/** `ninefold cluster reset-log --accept`: the next start of this node begins a new log. */
export async function clusterResetLog(args: Arguments): Promise<number> {
  if (!args.has("--accept"))
    throw new UsageError(
      "cluster reset-log needs --accept: what other nodes have and this one has not is lost.",
    );
  const { cluster, dataFolder } = resolveClusterConfig(flagsGiven(args.line));
  const files = dataFilesOf(resolve(dataFolder));
  if (!existsSync(files.database)) throw new StartupError(`${files.database} does not exist.`);
  const release = lockFolder(files.lock);
  try {
    return await withLog(openCommitLog(cluster), async (log) => {
      if ((await log.leader()) !== null) throw new StartupError("A node leads: stop all nodes first.");
      await log.reset();
      rmSync(nodeStatePath(files.database), { force: true });
      print("The commit log is empty. Start this node first: it begins a new log from its data.\n");
      return 0;
    });
  } finally {
    release();
  }
}

function isRunning(reportedAt: number, now: number): boolean {
  return now - reportedAt < REPORT_AGE_MS_MAX;
}

async function withLog(log: CommitLog, work: (log: CommitLog) => Promise<number>): Promise<number> {
  try {
    await log.prepare();
    return await work(log);
  } catch (error) {
    throw error instanceof EngineUnavailable ? new StartupError(error.message) : error;
  } finally {
    log.close();
  }
}
