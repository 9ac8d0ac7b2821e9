import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { errorText, StartupError } from "../kernel/errors.ts";
import type { ListenOptions } from "../kernel/http/http.ts";
import type { MonitoringAccess } from "../kernel/http/system-routes.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Logger } from "../kernel/log.ts";
import { extraAuthorities } from "../kernel/outbound/authorities.ts";
import { findMasterKey, obtainMasterKey } from "../kernel/secrets/master-key.ts";
import { createVault } from "../kernel/secrets/vault.ts";
import { dataFilesOf } from "../kernel/storage/folders.ts";
import { ENTRY_KEY_PURPOSE, type Entry, encodeEntry } from "../kernel/storage/replication/entry.ts";
import type { EntrySource } from "../kernel/storage/replication/entry-source.ts";
import { type Cancel, realDelay, realTimeout } from "../kernel/time/clock.ts";
import { BASE_PATH, BaseServer, fetchBase } from "./base.ts";
import { type ClusterNode, type CommitLog, EngineUnavailable, type NodeReport } from "./commit-log.ts";
import { EtcdLog } from "./engines/etcd.ts";
import { PostgresLog } from "./engines/postgres.ts";
import { ENGINE_RETRY_MS, Follower, type Lead } from "./follower.ts";
import type { Leadership } from "./leadership.ts";
import { Membership, placeOf } from "./membership.ts";
import { NodeFolder } from "./node-folder.ts";
import { declareNodeMetrics } from "./node-metrics.ts";
import { REAL_TIME } from "./node-time.ts";
import { type ClusterSettings, engineAddress, isPlainAndPublic } from "./settings.ts";
import { StandbyServer } from "./standby.ts";

/** Purpose of the key with which nodes prove that they belong to a cell. */
export const NODE_KEY_PURPOSE = "ninefold cluster v1";
/** Newest entries that are never trimmed: a follower that restarts reads them instead of a new copy. */
export const ENTRIES_KEPT_MIN = 1_000;
/** How often a leader reports, trims the log, and looks whether it is asked to hand over. */
const LOOK_MS = 2_000;
/** Bytes of the log since the last trim at which a warning is logged. */
const UNTRIMMED_BYTES_WARNED = 512 * 1024 * 1024;

/** The engine of a cluster. */
export function openCommitLog(settings: ClusterSettings): CommitLog {
  const address = engineAddress(settings);
  return address.engine === "etcd"
    ? new EtcdLog(address, settings.cell, extraAuthorities(settings.extraCaPath))
    : new PostgresLog({ urls: address.urls, isTrusted: settings.isTrusted }, settings.cell);
}

/** What a node needs to take part. */
export interface ClusterParts {
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
    private readonly parts: {
      readonly cell: string;
      readonly node: ClusterNode;
      readonly log: CommitLog;
      readonly membership: Membership;
      readonly base: BaseServer;
      readonly entryKey: Uint8Array;
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

  /** How the server listens. */
  get listenOptions() {
    const serveBase = (request: Request): Promise<Response> => this.parts.base.respond(request);
    return { gate: this.leadership, nodeRoutes: { [BASE_PATH]: serveBase } };
  }

  /** Sends every batch to the log from now on. */
  replicate({ entries, db, metrics }: Pick<Kernel, "entries" | "db" | "metrics">): Replication {
    if (entries === null) throw new Error("the kernel makes no entries");
    const replication = new Replication({
      ...this.parts,
      leadership: this.leadership,
      entries,
      logPath: db.logPath,
    });
    declareNodeMetrics(metrics, () => ({
      isLeading: this.leadership.isTrusted,
      epoch: this.leadership.epoch,
      seq: entries.position.seq,
      lag: replication.lag,
    }));
    return replication;
  }
}

/**
 * Follows until this node leads. Null when it was stopped before.
 *
 * @throws StartupError when the engine, the master key or the folder do not fit.
 */
export async function waitToLead(parts: ClusterParts): Promise<LeadingNode | null> {
  const { settings, folder, masterKey, logger, now } = parts;
  const files = dataFilesOf(folder);
  const log = openCommitLog(settings);
  await log.prepare();
  const isFirst = await isEmpty(log);
  const place = { given: masterKey, path: files.masterKey };
  if (!isFirst && findMasterKey(place) === null)
    throw new StartupError(
      `All nodes of a cell need the same master key: copy ${files.masterKey} of another node, or set NINEFOLD_MASTER_KEY.`,
    );
  const nodeFolder = new NodeFolder(files.database, parts.newId);
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
    processId: parts.newId(),
    place: placeOf(folder),
    schema: parts.schema,
    logger,
    time: REAL_TIME,
    now,
  });
  const follower = new Follower({
    log,
    node,
    cell,
    folder: nodeFolder,
    membership,
    key: entryKey,
    schema: parts.schema,
    leaseMs,
    logger,
    fetchBase: (leader, id, watch) => fetchBase(access, { leader, log: id }, nodeFolder.copyPath, watch),
    time: REAL_TIME,
    now,
    newLogId: () => parts.newId().replaceAll("-", ""),
  });
  const standby = new StandbyServer(parts.listen, follower, parts.metricsAccess);
  if (settings.advertise !== null && isPlainAndPublic(settings.advertise))
    logger.warn(
      "--advertise names an unencrypted URL on a public network, where requests and keys of clients can be read: use https",
      { advertise: settings.advertise },
    );
  logger.info("this node follows", { cell: settings.cell, port: standby.port, node: node.id });
  const stop = (): void => follower.stop();
  parts.stopped.then(stop, stop);
  try {
    const lead = await follower.follow();
    if (lead === null) {
      log.close();
      return null;
    }
    const isLeading = (): boolean => lead.leadership.isTrusted;
    const base = new BaseServer({ folder, node, log: lead.seal.log, key: nodeKey, cell, isLeading, now });
    return new LeadingNode(lead, { cell, node, log, membership, base, entryKey, logger });
  } finally {
    await standby.stop();
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

/** How a leader and its cluster are. */
export interface ClusterStatus {
  readonly cell: string;
  readonly epoch: number;
  /** Last entry of the commit log on this node. */
  readonly seq: number;
  /** Whether this node can confirm now that it leads. */
  readonly isTrusted: boolean;
  /** The other nodes, as they reported last. */
  readonly nodes: readonly NodeReport[];
}

interface ReplicationParts {
  readonly cell: string;
  readonly node: ClusterNode;
  readonly log: CommitLog;
  readonly leadership: Leadership;
  readonly entries: EntrySource;
  readonly membership: Membership;
  readonly base: BaseServer;
  readonly entryKey: Uint8Array;
  /** The write-ahead log of the database. */
  readonly logPath: string;
  readonly logger: Logger;
}

/** Sends each batch of a leader to the log, and trims the log. */
export class Replication {
  /** Resolves when an operator asks this node to let another one lead. */
  readonly askedToHandOver: Promise<void>;
  private readonly handOverAsked: () => void;
  private cancelLook: Cancel = () => undefined;
  private bytesSinceTrim = 0;
  private hasWarned = false;
  private isStopped = false;
  private reports: readonly NodeReport[] = [];

  constructor(private readonly parts: ReplicationParts) {
    ({ promise: this.askedToHandOver, resolve: this.handOverAsked } = Promise.withResolvers<void>());
    parts.entries.onEntry((entry) => this.send(entry));
    this.look();
  }

  /** Entries that no second node has on its disk. */
  get lag(): number {
    const best = Math.max(0, ...this.reports.map(({ synced }) => synced));
    return Math.max(0, this.parts.entries.position.seq - best);
  }

  get status(): ClusterStatus {
    const { entries, leadership, cell } = this.parts;
    const { epoch, seq } = entries.position;
    return { cell, epoch, seq, isTrusted: leadership.isTrusted, nodes: this.reports };
  }

  /** Waits for what is being sent, and lets another node lead. */
  async finish(): Promise<void> {
    this.isStopped = true;
    this.cancelLook();
    this.parts.base.close();
    await this.parts.leadership.handOver();
    this.parts.log.close();
  }

  private send(entry: Entry): void {
    const { entries, leadership, entryKey } = this.parts;
    const parts = [...encodeEntry(entry, entryKey)];
    for (const part of parts) this.bytesSinceTrim += part.length;
    entries.confirmation = leadership.append({ seq: entry.seq, epoch: entry.epoch, parts });
  }

  private look(): void {
    this.cancelLook = realTimeout(LOOK_MS, () => {
      this.trim()
        .then(() => this.lookForRequests())
        .catch((error: unknown) => {
          if (error instanceof StartupError) this.parts.leadership.end(error.message);
          else this.parts.logger.debug("the log was not trimmed", { error: errorText(error) });
        })
        .finally(() => {
          if (!this.isStopped) this.look();
        });
    });
  }

  private async lookForRequests(): Promise<void> {
    const { log, leadership } = this.parts;
    if (await log.isAskedToHandOver(leadership.epoch)) this.handOverAsked();
  }

  private async trim(): Promise<void> {
    const { log, membership, entries, logger } = this.parts;
    const { seq } = entries.position;
    await this.sync();
    const own = { applied: seq, synced: seq };
    await membership.report(own);
    this.reports = await membership.others();
    const copies = [own, ...this.reports].map(({ synced }) => synced).sort((a, b) => b - a);
    // Two disks have everything that is trimmed; a node that is alone has its own.
    const through = Math.min(copies[1] ?? seq, seq - ENTRIES_KEPT_MIN);
    const range = await log.range();
    if (range !== null && through >= range.first) {
      await log.trim(through);
      this.bytesSinceTrim = 0;
      this.hasWarned = false;
    } else if (this.bytesSinceTrim > UNTRIMMED_BYTES_WARNED && !this.hasWarned) {
      this.hasWarned = true;
      logger.warn("the commit log grows: no second node has its entries on disk", {
        bytes: this.bytesSinceTrim,
      });
    }
  }

  /** Everything that is committed is on this disk afterwards: in the write-ahead log, or in the file. */
  private async sync(): Promise<void> {
    await using file = await open(this.parts.logPath, "r");
    await file.datasync();
  }
}
