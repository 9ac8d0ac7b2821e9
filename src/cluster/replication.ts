import { errorText, StartupError } from "../kernel/errors.ts";
import type { Logger } from "../kernel/log.ts";
import { type Entry, encodeEntry } from "../kernel/storage/replication/entry.ts";
import type { EntrySource } from "../kernel/storage/replication/entry-source.ts";
import type { Cancel } from "../kernel/time/clock.ts";
import type { BaseServer } from "./base.ts";
import {
  type CommitLog,
  type EngineSpace,
  EngineUnavailable,
  type LogRange,
  LogTrimmed,
  type NodeReport,
} from "./commit-log.ts";
import type { Leadership } from "./leadership.ts";
import { type Membership, REPORT_MS } from "./membership.ts";
import type { NodeTime } from "./node-time.ts";

/** Newest entries that are never trimmed: a follower that restarts reads them instead of a new copy. */
const ENTRIES_KEPT_MIN = 1_000;
/** Bytes of entries that are kept for nodes that do not have them: what an outage of an hour leaves at 70 KB/s. */
const BYTES_KEPT_MAX = 256 * 1024 * 1024;
/**
 * Looks at the reports of the others after which it is known whether one of them runs: its second report may come just after the
 * second look.
 */
const LOOKS_MIN = 3;
/** Part of an engine's quota that entries may take: etcd needs as much again until it has compacted them. */
const QUOTA_PART_MAX = 0.25;

/** How a leader and its cluster are. */
export interface ClusterStatus {
  readonly cell: string;
  /** Id of the log. */
  readonly log: string;
  readonly epoch: number;
  /** Last entry of the commit log on this node. */
  readonly seq: number;
  /** Whether this node can confirm now that it leads. */
  readonly isTrusted: boolean;
  /** Space of the engine, as it was seen last. */
  readonly space: EngineSpace | null;
  /** The other nodes, as they reported last. */
  readonly nodes: readonly NodeReport[];
}

/** What the replication of a leader needs. */
export interface ReplicationDeps {
  readonly cell: string;
  readonly log: CommitLog;
  readonly leadership: Leadership;
  readonly membership: Membership;
  readonly base: Pick<BaseServer, "logFirst" | "close">;
  readonly entries: Pick<EntrySource, "position" | "onEntry" | "rejectBatches" | "confirmation">;
  readonly entryKey: Uint8Array;
  /** Id of the log. */
  readonly logId: string;
  readonly leaseMs: number;
  /** Everything that is committed is on this disk when it resolves: in the write-ahead log, or in the file. */
  readonly syncLog: () => Promise<void>;
  /** Writes something. Resolves to null, or to why that is not possible now. Called only after a commit has failed. */
  readonly probe: () => Promise<string | null>;
  /** The state of the last commit. */
  readonly commits: { readonly failing: string | null };
  readonly logger: Logger;
  readonly time: NodeTime;
}

/** Sends each batch of a leader to the log, trims the log, and notices when another node should lead. */
export class Replication {
  /** Resolves when an operator asks this node to let another one lead. */
  readonly askedToHandOver: Promise<void>;
  /** All entries through this one are archived, or need not be. */
  archivedThrough: () => number = () => Number.POSITIVE_INFINITY;
  private readonly handOverAsked: () => void;
  private cancelLook: Cancel = () => undefined;
  /** Bytes of the entries that this leader has appended since the log was trimmed last. */
  private bytesSinceTrim = 0;
  /** Bytes of the newest entries of this leader, at least the last {@link ENTRIES_KEPT_MIN}. */
  private readonly newestBytes: number[] = [];
  /** The nodes for which the log is not kept any longer, by id. */
  private readonly leftBehind = new Set<string>();
  private hasWarnedOfSpace = false;
  private problem: string | null = null;
  private isStopped = false;
  private reports: readonly NodeReport[] = [];
  private space: EngineSpace | null = null;
  private successorsNow = 0;
  /** How often the reports of the others were read. */
  private looks = 0;
  /** An entry that the log had confirmed at the last look; 0: none. */
  private confirmedSeq = 0;
  /** The last entry before which the engine was found to have lost some; 0: it has lost none. */
  private lostThrough = 0;
  /** Since when nothing could be committed (monotonic); null: it can. */
  private failingSince: number | null = null;

  constructor(private readonly deps: ReplicationDeps) {
    ({ promise: this.askedToHandOver, resolve: this.handOverAsked } = Promise.withResolvers<void>());
    deps.leadership.hasSuccessor = () => this.hasSuccessor;
    deps.leadership.onEnded = () => deps.entries.rejectBatches("this node does not lead any more");
    deps.entries.onEntry((entry) => this.send(entry));
    this.look();
  }

  /** Entries that no second node has on its disk. */
  get lag(): number {
    const best = Math.max(0, ...this.reports.map(({ synced }) => synced));
    return Math.max(0, this.deps.entries.position.seq - best);
  }

  /** Other nodes that could lead. */
  get successors(): number {
    return this.successorsNow;
  }

  /** The first two reports of a node tell whether it runs: a leader that has seen fewer lets others lead. */
  private get hasSuccessor(): boolean {
    return this.successorsNow > 0 || this.looks < LOOKS_MIN;
  }

  /** Space of the engine, as it was seen last. */
  get engineSpace(): EngineSpace | null {
    return this.space;
  }

  get status(): ClusterStatus {
    const { entries, leadership, cell, logId: log } = this.deps;
    const { epoch, seq } = entries.position;
    const { isTrusted } = leadership;
    return { cell, log, epoch, seq, isTrusted, space: this.space, nodes: this.reports };
  }

  /** Waits for what is being sent, and lets another node lead. */
  async finish(): Promise<void> {
    this.endLooks();
    await this.deps.leadership.handOver();
    this.deps.log.close();
  }

  /** Ends without waiting for what is being sent, and lets another node lead: nothing is committed or appended any more. */
  async close(): Promise<void> {
    this.endLooks();
    await this.deps.leadership.resign();
  }

  private endLooks(): void {
    this.isStopped = true;
    this.cancelLook();
    this.deps.base.close();
  }

  private send(entry: Entry): void {
    const { entries, leadership, entryKey } = this.deps;
    const parts = [...encodeEntry(entry, entryKey)];
    const bytes = parts.reduce((sum, { length }) => sum + length, 0);
    this.bytesSinceTrim += bytes;
    this.newestBytes.push(bytes);
    if (this.newestBytes.length > 2 * ENTRIES_KEPT_MIN) this.newestBytes.splice(0, ENTRIES_KEPT_MIN);
    entries.confirmation = leadership.append({ seq: entry.seq, epoch: entry.epoch, parts });
  }

  private look(): void {
    this.cancelLook = this.deps.time.after(REPORT_MS, () => {
      Promise.all([this.lookAtDisk(), this.lookAtLog()])
        .catch((error: unknown) => this.note(error))
        .finally(() => {
          if (!this.isStopped) this.look();
        });
    });
  }

  /** A leader that cannot write lets a node lead that can. */
  private async lookAtDisk(): Promise<void> {
    const { commits, probe, leadership, leaseMs, time } = this.deps;
    const problem = commits.failing === null ? null : await probe();
    if (problem === null) {
      this.failingSince = null;
      return;
    }
    this.failingSince ??= time.monotonic();
    if (this.hasSuccessor && time.monotonic() - this.failingSince >= leaseMs)
      await leadership.giveUp(problem);
  }

  private async lookAtLog(): Promise<void> {
    const { base, log, leadership, membership, entries } = this.deps;
    const { seq } = entries.position;
    await this.deps.syncLog();
    // An engine without space takes no report, and lets the log be trimmed.
    const failure = await membership.report({ applied: seq, synced: seq }).catch((error: unknown) => error);
    if (failure instanceof StartupError) throw failure;
    this.reports = await membership.others();
    this.looks += 1;
    const range = await log.range();
    this.successorsNow = this.reports.filter((node) => membership.couldLead(node, range)).length;
    this.space = await log.space();
    await this.lookForGap(range, seq);
    if (range !== null) {
      base.logFirst = Math.max(range.first, this.lostThrough + 1);
      await this.trim(range, seq);
    }
    if (failure !== undefined) throw failure;
    if (await log.isAskedToHandOver(leadership.epoch)) this.handOverAsked();
    this.note(null);
  }

  /** An engine that was restored from a snapshot has lost what it had confirmed. The leader has it, and others copy its database. */
  private async lookForGap(range: LogRange | null, seq: number): Promise<void> {
    const { log, leadership, logger } = this.deps;
    const known = this.confirmedSeq;
    this.confirmedSeq = Math.max(known, seq - leadership.unconfirmed);
    if (known === 0 || (range !== null && known < range.first)) return;
    const isThere = await log.read(known, 1).then(
      ([entry]) => entry !== undefined,
      (error: unknown) => {
        if (!(error instanceof LogTrimmed)) throw error;
        return false;
      },
    );
    if (isThere || this.lostThrough >= known) return;
    // A copy that was made before ends where the log does not continue.
    this.lostThrough = seq;
    logger.error(
      "the engine has lost entries of the commit log that it had confirmed, such as after a restore of a snapshot: this node leads and has " +
        "them, and the other nodes copy its database. Until they have, do not stop it",
      { entry: known, last: range?.last ?? 0 },
    );
  }

  /**
   * Deletes the entries that every node has on its disk, and the archive. Nodes that are too far behind, such as one that is off for
   * long, copy the database instead, and the archive gets a new base: an engine without space would stop the leader.
   */
  private async trim({ first }: LogRange, seq: number): Promise<void> {
    const newest = seq - this.entriesKept;
    // The log is of no use to a node that lacks what was before its beginning.
    const needing = this.reports.filter(({ synced }) => synced >= first - 1);
    // The last archived entry stays: it proves to the next leader that the archive is of this log.
    const archived = this.archivedThrough() - 1;
    const needed = Math.min(newest, archived, ...needing.map(({ synced }) => synced));
    const isFull = this.isOverLimit;
    const through = isFull ? newest : needed;
    if (isFull) this.warnOfNodesBehind(through);
    if (through < first) return;
    await this.deps.log.trim(through);
    this.deps.base.logFirst = through + 1;
    this.bytesSinceTrim = 0;
    for (const { id, synced } of this.reports) if (synced >= through) this.leftBehind.delete(id);
  }

  /** Bytes that the entries may take. */
  private get bytesMax(): number {
    const quota = this.space?.quota ?? null;
    return quota === null ? BYTES_KEPT_MAX : Math.min(BYTES_KEPT_MAX, quota * QUOTA_PART_MAX);
  }

  /** Whether the entries take more than they may, or the whole engine more than twice as much. */
  private get isOverLimit(): boolean {
    const { used = 0, quota = null } = this.space ?? {};
    return this.bytesSinceTrim > this.bytesMax || (quota !== null && used > quota * QUOTA_PART_MAX * 2);
  }

  /** How many of the newest entries are never trimmed: fewer, where they are large. */
  private get entriesKept(): number {
    let bytes = 0;
    for (let count = 0; count < Math.min(ENTRIES_KEPT_MIN, this.newestBytes.length); count += 1) {
      bytes += this.newestBytes.at(-1 - count) ?? 0;
      if (bytes > this.bytesMax / 2) return Math.max(1, count);
    }
    return ENTRIES_KEPT_MIN;
  }

  private warnOfNodesBehind(through: number): void {
    for (const { id, advertise, synced } of this.reports) {
      if (synced >= through || this.leftBehind.has(id)) continue;
      this.leftBehind.add(id);
      this.deps.logger.warn(
        "the commit log is no longer kept for a node. It copies the database when it is back; until then this is the only " +
          "machine with all data, if no other node has it. If the node is gone for good: ninefold cluster forget",
        { node: advertise ?? id, entry: synced },
      );
    }
  }

  /** Logs a problem with the log once, however often it is met before another one, or none. */
  private note(error: unknown): void {
    const { leadership, logger } = this.deps;
    if (error instanceof StartupError) {
      leadership.end(error.message);
      return;
    }
    const isFull = error instanceof EngineUnavailable && error.kind === "no_space";
    const problem = error === null ? null : errorText(error);
    if (problem !== null && problem !== this.problem && !leadership.isEnded)
      logger.warn("the commit log could not be looked after", { error: problem });
    if (isFull && !this.hasWarnedOfSpace) leadership.noteFullEngine();
    this.hasWarnedOfSpace = isFull;
    this.problem = problem;
  }
}
