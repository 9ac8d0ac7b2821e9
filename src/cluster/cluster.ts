import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import type { ConfirmedLog } from "../archive/continuation.ts";
import { StartupError } from "../kernel/errors.ts";
import { WriteProbe } from "../kernel/health/readiness.ts";
import type { ListenOptions } from "../kernel/http/http.ts";
import type { MonitoringAccess } from "../kernel/http/system-routes.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Logger } from "../kernel/log.ts";
import { extraAuthorities } from "../kernel/outbound/authorities.ts";
import { findMasterKey, obtainMasterKey } from "../kernel/secrets/master-key.ts";
import { createVault } from "../kernel/secrets/vault.ts";
import { dataFilesOf, syncFolder, syncPath } from "../kernel/storage/folders.ts";
import { ENTRY_KEY_PURPOSE } from "../kernel/storage/replication/entry.ts";
import { type Clock, monotonicMs, realDelay } from "../kernel/time/clock.ts";
import { BASE_PATH, BaseServer, fetchBase } from "./base.ts";
import { ClockComparison, continuedClock } from "./clock-comparison.ts";
import { type ClusterNode, type CommitLog, EngineUnavailable, LogTrimmed } from "./commit-log.ts";
import { EtcdLog } from "./engines/etcd.ts";
import { PostgresLog } from "./engines/postgres.ts";
import { ENGINE_RETRY_MS, Follower, type Lead } from "./follower.ts";
import type { Leadership } from "./leadership.ts";
import { Membership, placeOf } from "./membership.ts";
import { NodeFolder } from "./node-folder.ts";
import { declareLeaderMetrics, declareNodeMetrics } from "./node-metrics.ts";
import { REAL_TIME } from "./node-time.ts";
import { Replication } from "./replication.ts";
import { type ClusterSettings, engineAddress, isPlainAndPublic } from "./settings.ts";
import { StandbyServer } from "./standby.ts";

/** Purpose of the key with which nodes prove that they belong to a cell. */
export const NODE_KEY_PURPOSE = "ninefold cluster v1";

/** The engine of a cluster. */
export function openCommitLog(settings: ClusterSettings): CommitLog {
  const address = engineAddress(settings);
  return address.engine === "etcd"
    ? new EtcdLog(address, settings.cell, extraAuthorities(settings.extraCaPath))
    : new PostgresLog({ urls: address.urls, isTrusted: settings.isTrusted }, settings.cell);
}

/** What a node needs to take part. */
export interface ClusterDeps {
  readonly settings: ClusterSettings;
  readonly folder: string;
  /** The configured master key; null for the one in the data folder. */
  readonly masterKey: string | null;
  readonly schema: number;
  readonly logger: Logger;
  readonly listen: ListenOptions;
  readonly metricsAccess: MonitoringAccess;
  readonly now: () => number;
  readonly newId: () => string;
  /** Follows until this settles. */
  readonly stopped: Promise<unknown>;
}

/** This process as the leader of a cluster. */
export class LeadingNode {
  readonly leadership: Leadership;

  constructor(
    private readonly lead: Lead,
    private readonly deps: {
      readonly cell: string;
      readonly node: ClusterNode;
      readonly log: CommitLog;
      readonly membership: Membership;
      readonly base: BaseServer;
      readonly entryKey: Uint8Array;
      readonly leaseMs: number;
      /** Changes of the leader that this process has seen, with its own. */
      readonly elections: number;
      /** Milliseconds by which the clock of the leader before this one is ahead. */
      readonly differenceMs: number;
      readonly logger: Logger;
    },
  ) {
    this.leadership = lead.leadership;
  }

  /** How the kernel is opened. The engine has what was acknowledged, so this disk may be behind. */
  get kernelOptions() {
    const { leadership, seal } = this.lead;
    return { durability: "normal", makesEntries: true, continuesFrom: seal, gate: leadership } as const;
  }

  /** The clock of a leader: it continues that of the one before. */
  clockOf(clock: Clock): Clock {
    const { differenceMs } = this.deps;
    return differenceMs === 0 ? clock : continuedClock(clock, differenceMs);
  }

  /** How the server listens. */
  get listenOptions() {
    const serveBase = (request: Request): Promise<Response> => this.deps.base.respond(request);
    return { gate: this.leadership, nodeRoutes: { [BASE_PATH]: serveBase } };
  }

  /** From what the archive of this leader continues that of the leader before it. */
  get confirmedLog(): ConfirmedLog {
    const { seal } = this.lead;
    const read: ConfirmedLog["read"] = async (from, max) => {
      try {
        return await this.deps.log.read(from, max);
      } catch (error) {
        if (error instanceof LogTrimmed) return null;
        throw error;
      }
    };
    return { id: seal.log, seal, read };
  }

  /** Sends every batch to the log from now on. */
  replicate({
    entries,
    db,
    writer,
    metrics,
  }: Pick<Kernel, "entries" | "db" | "writer" | "metrics">): Replication {
    if (entries === null) throw new Error("the kernel makes no entries");
    const { leadership, deps, lead } = this;
    // No entry has what a start writes into a new file: a power cut must not undo it.
    if (entries.origin === null) {
      for (const path of [db.path, db.logPath]) syncPath(path);
      syncFolder(dirname(db.path));
    }
    const probe = new WriteProbe(db, writer);
    const replication = new Replication({
      ...deps,
      leadership,
      entries,
      logId: lead.seal.log,
      syncLog: () => syncFile(db.logPath),
      time: REAL_TIME,
      probe: () => probe.run(),
      commits: writer.stats,
    });
    declareNodeMetrics(metrics, {
      errors: deps.log.errors,
      elections: () => deps.elections,
      place: () => ({
        role: leadership.isTrusted ? "leader" : "suspended",
        epoch: leadership.epoch,
        seq: entries.position.seq,
        lag: replication.lag,
      }),
    });
    declareLeaderMetrics(metrics, leadership, replication);
    return replication;
  }
}

/**
 * Follows until this node leads. Null when it was stopped before.
 *
 * @throws StartupError when the engine, the master key or the folder do not fit.
 */
export async function waitToLead(deps: ClusterDeps): Promise<LeadingNode | null> {
  const { settings, folder, masterKey, logger, now } = deps;
  const files = dataFilesOf(folder);
  const log = openCommitLog(settings);
  const nodeFolder = new NodeFolder(files.database, deps.newId);
  await prepare(log, nodeFolder.hasJoined, logger);
  const place = { configured: masterKey, path: files.masterKey };
  if (findMasterKey(place) === null && !(await isEmpty(log)))
    throw new StartupError(
      `All nodes of a cell need the same master key: copy ${files.masterKey} of another node, or set NINEFOLD_MASTER_KEY.`,
    );
  const node = { id: nodeFolder.id, advertise: settings.advertise };
  const databaseExists = existsSync(files.database);
  const vault = createVault(obtainMasterKey({ ...place, databaseExists, durability: "full" }));
  const entryKey = vault.derive(ENTRY_KEY_PURPOSE);
  const nodeKey = vault.derive(NODE_KEY_PURPOSE);
  const { cell, extraCaPath, leaseMs } = settings;
  const access = { id: node.id, key: nodeKey, cell, extraCaPath, now };
  const membership = new Membership({
    log,
    node,
    processId: deps.newId(),
    place: placeOf(folder),
    schema: deps.schema,
    logger,
    time: REAL_TIME,
    now,
  });
  const comparison = new ClockComparison(monotonicMs);
  const follower = new Follower({
    log,
    node,
    cell,
    folder: nodeFolder,
    membership,
    comparison,
    key: entryKey,
    schema: deps.schema,
    leaseMs,
    logger,
    fetchBase: (leader, id, watch) => fetchBase(access, { leader, log: id }, nodeFolder.copyPath, watch),
    time: REAL_TIME,
    now,
    newLogId: () => deps.newId().replaceAll("-", ""),
  });
  const standby = new StandbyServer(deps.listen, follower, deps.metricsAccess, log.errors);
  if (settings.advertise !== null && isPlainAndPublic(settings.advertise))
    logger.warn(
      "--advertise names an unencrypted URL on a public network, where requests and keys of clients can be read: use https",
      { advertise: settings.advertise },
    );
  logger.info("this node follows", { cell: settings.cell, port: standby.port, node: node.id });
  const stop = (): void => follower.stop();
  deps.stopped.then(stop, stop);
  try {
    const lead = await follower.follow();
    if (lead === null) {
      log.close();
      return null;
    }
    const isLeading = (): boolean => lead.leadership.isTrusted;
    const base = new BaseServer({ folder, node, log: lead.seal.log, key: nodeKey, cell, isLeading, now });
    const { elections } = follower;
    const { differenceMs } = comparison;
    if (differenceMs !== 0)
      logger.warn(
        "the clock of this node differs from that of the leader before it, whose time it continues and slowly approaches its own: synchronize " +
          "the clocks (NTP)",
        { ahead_ms: -differenceMs },
      );
    return new LeadingNode(lead, {
      cell,
      node,
      log,
      membership,
      base,
      entryKey,
      leaseMs,
      elections,
      logger,
      differenceMs,
    });
  } finally {
    await standby.stop();
  }
}

async function syncFile(path: string): Promise<void> {
  await using file = await open(path, "r");
  await file.datasync();
}

/** Checks the engine. A node that has taken part before may start while it is away: it waits for it. */
async function prepare(log: CommitLog, hasJoined: boolean, logger: Logger): Promise<void> {
  try {
    await log.prepare();
  } catch (error) {
    if (!(error instanceof EngineUnavailable)) throw error;
    if (!hasJoined) throw new StartupError(error.message);
    logger.warn("the commit log cannot be reached: this node waits for it", { error: error.message });
  }
}

/** Whether a log has no entries. The engine could be reached before, so this waits while it cannot. */
async function isEmpty(log: CommitLog): Promise<boolean> {
  for (;;) {
    try {
      return (await log.range()) === null;
    } catch (error) {
      if (!(error instanceof EngineUnavailable)) throw error;
      await realDelay(ENGINE_RETRY_MS);
    }
  }
}
