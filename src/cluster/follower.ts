import { errorText, StartupError } from "../kernel/errors.ts";
import type { Logger } from "../kernel/log.ts";
import { decodeEntry, type Entry, encodeEntry, InvalidEntry } from "../kernel/storage/replication/entry.ts";
import { epochAbove, type LogPosition, type StoredPosition } from "../kernel/storage/replication/position.ts";
import type { CopyWatch } from "./base.ts";
import type { ClockComparison } from "./clock-comparison.ts";
import {
  type ClusterNode,
  type CommitLog,
  EngineUnavailable,
  type Leader,
  type LoggedEntry,
  type LogRange,
  LogTrimmed,
  type NodeReport,
  PlaceTaken,
} from "./commit-log.ts";
import { Leadership } from "./leadership.ts";
import { type Membership, type NodeState, REPORT_MS } from "./membership.ts";
import type { NodeFolder } from "./node-folder.ts";
import { type NodeTime, sleptMs } from "./node-time.ts";

/** Entries that are read at a time. */
const PAGE_ENTRIES = 100;
/**
 * Longest wait before the log and the lease are looked at, when nothing wakes the follower. A node must lead within a second after
 * a lease has ended: etcd itself may notice the end half a second late, and a start takes up to 0.3 s.
 */
const LOOK_MS = 200;
/** What was applied is synced and noted this often. */
const SYNC_MS = 1_000;
/** Leases for which a node lets others lead whose last change is not in the log, or that could not serve. */
const OTHERS_FIRST_LEASES = 2;
/** Pause after the engine could not be reached. */
export const ENGINE_RETRY_MS = 500;
/** A copy that was of no use is not requested again immediately for so long after it. */
const COPY_PAUSE_MS = 60_000;
const NOTHING: LogPosition = { log: null, epoch: 0, seq: 0 };

/** What a follower needs. */
export interface FollowerDeps {
  readonly log: CommitLog;
  readonly node: ClusterNode;
  readonly cell: string;
  readonly folder: NodeFolder;
  readonly membership: Pick<Membership, "register" | "report" | "others">;
  /** Compares the leader's clock with this one's. */
  readonly comparison: ClockComparison;
  /** For {@link decodeEntry}. */
  readonly key: Uint8Array;
  /** Migrations that this program knows. */
  readonly schema: number;
  readonly leaseMs: number;
  readonly logger: Logger;
  /** Copies the leader's database into the folder's {@link NodeFolder.copyPath}. `log` is the id of the log. */
  readonly fetchBase: (leader: Leader, log: string, watch: CopyWatch) => Promise<StoredPosition>;
  readonly time: NodeTime;
  /** Wall clock, epoch milliseconds. */
  readonly now: () => number;
  /** A random id of a log. */
  readonly newLogId: () => string;
}

/** Becoming the leader: the place in the log from which this process continues. */
export interface Lead {
  readonly leadership: Leadership;
  /** Of the entry that began the epoch. */
  readonly seal: LogPosition & { readonly log: string };
}

/** Copies the log into the file of this node, until the node leads. No connection to the database is open meanwhile. */
export class Follower {
  private applied: LogPosition | null = null;
  /** Whether the log was empty when the place of the file was determined: it is determined again when somebody begins it. */
  private isFirst = false;
  /** Position of a copy in progress: the log is kept from there on. */
  private copying: LogPosition | null = null;
  /** Id of the log that the engine has; null: it has none. */
  private identity: string | null = null;
  private leaderNow: Leader | null = null;
  private lastSeq = 0;
  private syncedAt = Number.NEGATIVE_INFINITY;
  private isStopped = false;
  private isRegistered = false;
  private wake: () => void = () => undefined;
  private hasNewerSchema = false;
  private problem: string | null = null;
  private lookedAt = Number.NEGATIVE_INFINITY;
  private waitingSince: number | null = null;
  /** Why this process must end. */
  private failure: StartupError | null = null;

  private readonly begunAt: number;
  private electionsSeen = 0;
  /** When the reports of the others were read last, by the monotonic clock, and what the leader's said of its own time; 0: nothing. */
  private reportsSeenAt = Number.NEGATIVE_INFINITY;
  private leaderReportedAt = 0;
  private lastEpoch = 0;
  private copiedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly deps: FollowerDeps) {
    this.begunAt = deps.time.monotonic();
  }

  /** Changes of the leader that this process has seen, with its own. */
  get elections(): number {
    return this.electionsSeen;
  }

  /** The node that leads, as far as is known. */
  get leader(): Leader | null {
    return this.leaderNow;
  }

  /** Entries of the log that are not applied yet; null without a database. */
  get lag(): number | null {
    return this.applied === null ? null : Math.max(0, this.lastSeq - this.applied.seq);
  }

  get position(): LogPosition | null {
    return this.applied;
  }

  /** Ends {@link follow}. */
  stop(): void {
    this.isStopped = true;
    this.wake();
  }

  /**
   * Follows until this node leads; null when it was stopped.
   *
   * @throws StartupError if the folder's data or its master key do not belong to the log, or another process has the identity
   *   of this node.
   */
  async follow(): Promise<Lead | null> {
    const { folder, log, logger, time } = this.deps;
    const cancel = log.watch(1, () => this.wake());
    let isOver = false;
    void this.reportUntil(() => isOver || this.isStopped);
    try {
      while (!this.isStopped) {
        if (this.failure !== null) throw this.failure;
        try {
          const lead = await this.step();
          if (lead !== null) return lead;
        } catch (error) {
          if (error instanceof StartupError) throw error;
          if (error instanceof InvalidEntry)
            throw new StartupError(`The commit log cannot be read: ${error.message}.`);
          if (error instanceof LogTrimmed) {
            this.note(`a new copy of the database is needed: ${error.message}`);
            this.applied = null;
            // The leader offers a copy for a while: when that was of no use, a better one may take some time.
            if (time.monotonic() - this.copiedAt < COPY_PAUSE_MS) await this.pause(ENGINE_RETRY_MS);
            await this.tryToFetch();
            continue;
          }
          this.note(errorText(error));
          await time.delay(ENGINE_RETRY_MS);
        }
      }
      return null;
    } catch (error) {
      logger.debug("the node does not follow any more", { error: errorText(error) });
      throw error;
    } finally {
      isOver = true;
      cancel();
      folder.close();
    }
  }

  /** Logs a problem once, however often it is met before another one, or none. */
  private note(problem: string | null): void {
    if (problem !== null && problem !== this.problem)
      this.deps.logger.warn("the commit log cannot be followed now", { error: problem });
    this.problem = problem;
  }

  /** Does what can be done now. Returns the lead when this node has got it. */
  private async step(): Promise<Lead | null> {
    const { log, membership, node, time } = this.deps;
    if (!this.isRegistered) {
      await membership.register(this.reported);
      this.isRegistered = true;
    }
    if (time.monotonic() - this.lookedAt >= LOOK_MS) {
      const leader = await log.leader();
      if (leader !== null && leader.epoch !== this.lastEpoch) {
        this.lastEpoch = leader.epoch;
        this.electionsSeen += 1;
      }
      this.leaderNow = leader;
      this.lookedAt = time.monotonic();
    }
    if (this.applied === null && !(await this.establish())) {
      await this.pause(LOOK_MS);
      return null;
    }
    if (await this.applyNew()) return null;
    this.note(null);
    const isFree = this.leaderNow === null || this.leaderNow.id === node.id;
    if (isFree && !this.letsOthersLead() && this.canLead()) {
      const lead = await this.tryToLead();
      if (lead !== null) return lead;
    }
    this.syncSometimes();
    await this.pause(LOOK_MS);
    return null;
  }

  /** Finds the place of the file in the log, or fetches a file that has one. False: there is nothing to begin with yet. */
  private async establish(): Promise<boolean> {
    const { folder, log } = this.deps;
    const range = await log.range();
    this.identity = await log.identity();
    if (range === null) {
      if (folder.hasJoined) throw lostLog(folder.databasePath);
      this.isFirst = true;
      return this.begin((folder.hasDatabase ? folder.position() : null) ?? NOTHING);
    }
    await this.assertReadable(range);
    this.assertIsOurs(folder.log);
    const begun = folder.begins === null ? null : await this.positionBegun(range, folder.begins);
    if (begun !== null) return this.begin(begun);
    if (!folder.hasDatabase) return this.fetch();
    const position = folder.position();
    if (position === null)
      throw new StartupError(
        `The commit log of the cell ${this.deps.cell} has data of its own, and this folder has others: start with an empty folder, ` +
          "or name another --cell. To continue with the data of this folder, such as after a restore, stop all nodes and run ninefold " +
          "cluster reset-log --accept here.",
      );
    if (position.log === null) await this.proveFormer(range);
    else this.assertIsOurs(position.log);
    if (position.seq < range.first)
      throw new LogTrimmed(`the log begins at entry ${range.first}, after this node's ${position.seq}`);
    const there = position.seq > range.last ? null : await this.entryAt(position.seq);
    if (there !== null && there.epoch === position.epoch && there.log === position.log) {
      await this.assertHasNothingLost(position, range);
      return this.begin(position);
    }
    if (!(await this.isOwnBatch(position, range))) throw this.isAhead(position, range);
    if (folder.cutUnconfirmed()) {
      this.deps.logger.info("the last change of this node was not confirmed to any client, and is undone", {
        seq: position.seq,
      });
      return this.establish();
    }
    if (position.seq > range.last) return this.awaitOthers(position);
    throw new LogTrimmed(
      `this node has a change at entry ${position.seq} that the log does not have, and that was not confirmed to any client`,
    );
  }

  /**
   * What a follower has applied since it last synced is in its file after a crash, and applied again. If the log has lost it
   * meanwhile, nobody applies it again: then the file has what the log has not, although its noted place is in the log.
   * @throws StartupError
   */
  private async assertHasNothingLost(noted: LogPosition, range: LogRange): Promise<void> {
    const stored = this.deps.folder.hasFollowed ? this.storedAfterCrash() : null;
    if (stored === null || stored.log !== noted.log || stored.seq <= noted.seq) return;
    const there = stored.seq > range.last ? null : await this.entryAt(stored.seq);
    if (there?.epoch !== stored.epoch) throw this.isAhead(stored, range);
  }

  /** What the file says; null where it cannot be read before what was being applied is applied again. */
  private storedAfterCrash(): StoredPosition | null {
    try {
      return this.deps.folder.stored();
    } catch (error) {
      this.deps.logger.info("the database is read after the entry that was being applied", {
        error: errorText(error),
      });
      return null;
    }
  }

  /** Follows from this place of the log on, at which the file is. */
  private begin(position: LogPosition): true {
    this.deps.folder.accept(position);
    this.applied = position;
    return true;
  }

  /** Opens the newest entry: a node with another master key must not take part, even with an empty folder. */
  private async assertReadable({ last }: LogRange): Promise<void> {
    let entry: Entry | null;
    try {
      entry = await this.entryAt(last);
    } catch (error) {
      if (!(error instanceof InvalidEntry)) throw error;
      throw new StartupError(
        `The newest entry of the commit log of the cell ${this.deps.cell} cannot be opened (${error.message}). All nodes of a cell ` +
          "need the same master key: copy master.key of another node, or set NINEFOLD_MASTER_KEY. If this is another cell, set --cell.",
      );
    }
    // Trimmed meanwhile, or of the last version.
    if (entry !== null && entry.log !== null && entry.log !== this.identity)
      throw new StartupError(
        `The engine says that the commit log of the cell ${this.deps.cell} is ${this.identity ?? "not identified"}, but its newest entry ` +
          `is of the log ${entry.log}: somebody has changed the engine's data. Restore it, or stop all nodes and run ninefold cluster ` +
          "reset-log --accept on the one with the newest data.",
      );
  }

  /** @throws StartupError if this is the id of another log than the engine's. */
  private assertIsOurs(log: string | null): void {
    if (log === null || log === this.identity) return;
    const { cell, folder } = this.deps;
    throw new StartupError(
      `${folder.databasePath} belongs to the commit log ${log}, and the commit log of the cell ${cell} is ` +
        `${this.identity ?? "not identified yet"}. Nothing was changed. Set the --cell that the folder belongs to; or, if its data is not ` +
        "needed because the log was re-created, move follower.json and all files whose names begin with ninefold.db to another " +
        "folder, and start the node: it copies the database from the leader.",
    );
  }

  /**
   * A file from before logs had an identity. Its last entry must be that of the log, with the millisecond in which it was
   * written.
   */
  private async proveFormer({ first, last }: LogRange): Promise<void> {
    const { cell, folder } = this.deps;
    const stored = folder.stored();
    const isThere = stored !== null && stored.seq >= first && stored.seq <= last;
    const entry = isThere ? await this.entryAt(stored.seq) : null;
    if (entry !== null && entry.epoch === stored?.epoch && entry.at === stored.at) return;
    throw new StartupError(
      `${folder.databasePath} was written before commit logs had an identity, and its last entry (${stored?.seq ?? "none"}) is not in ` +
        `the commit log of the cell ${cell} (entries ${first} to ${last}): it may belong to another cell. Nothing was changed. If it belongs ` +
        "to this one, move follower.json and all files whose names begin with ninefold.db to another folder, and start the node: it " +
        "copies the database from the leader.",
    );
  }

  private isAhead({ epoch, seq }: LogPosition, { first, last }: LogRange): StartupError {
    return new StartupError(
      `This node is at entry ${seq} of epoch ${epoch}, which the commit log of the cell ${this.deps.cell} does not have (it has the entries ` +
        `${first} to ${last}): the engine has lost what it had confirmed, such as after a restore of a snapshot. Nothing was changed. ` +
        "Restore the newest data of the engine; or stop all nodes, and run ninefold cluster reset-log --accept on the one with the " +
        "newest data.",
    );
  }

  /**
   * Whether a place that the log does not have is one batch that this node has committed as the leader, and that was confirmed to
   * nobody. What it had followed was in the log, and so was everything before that batch.
   */
  private async isOwnBatch({ epoch, seq }: LogPosition, { first, last }: LogRange): Promise<boolean> {
    if (this.deps.folder.hasFollowed || seq > last + 1) return false;
    return seq <= first || (await this.entryAt(seq - 1))?.epoch === epoch;
  }

  /**
   * The place before the first change of a log that this folder has begun, if its file has no change of it: there is none yet, or
   * a power cut has undone all. Null: it is another log, or the file says where it is.
   */
  private async positionBegun({ first }: LogRange, epoch: number): Promise<LogPosition | null> {
    const { folder, log } = this.deps;
    const entries = (await log.read(first, PAGE_ENTRIES)).map((logged) => this.decoded(logged));
    const changedAt = entries.findIndex(({ isSeal }) => !isSeal);
    const end = changedAt < 0 ? entries.at(-1) : entries[changedAt - 1];
    if (end === undefined || entries[0]?.epoch !== epoch) return null;
    const isUnchanged = folder.hasDatabase && !folder.hasFollowed && folder.stored()?.log !== end.log;
    if (changedAt < 0 ? entries.length === PAGE_ENTRIES : !isUnchanged) return null;
    return { log: end.log, epoch: end.epoch, seq: end.seq };
  }

  /** An entry of the log; null if there is none any more. @throws InvalidEntry */
  private async entryAt(seq: number): Promise<Entry | null> {
    try {
      const [found] = await this.deps.log.read(seq, 1);
      return found === undefined ? null : this.decoded(found);
    } catch (error) {
      if (error instanceof LogTrimmed) return null;
      throw error;
    }
  }

  private decoded({ seq, epoch, parts }: LoggedEntry): Entry {
    const entry = decodeEntry(parts, this.deps.key);
    if (entry.seq !== seq || entry.epoch !== epoch)
      throw new InvalidEntry("an entry is at another place than its own");
    return entry;
  }

  /**
   * The last batch of this node was not appended before its process ended. Another node leads soon, and decides that the batch
   * never was. If none does, no other node has the data: then it is kept, which it may be, since its outcome is unknown.
   */
  private async awaitOthers(position: LogPosition): Promise<boolean> {
    const { log, node, leaseMs, key, logger, time } = this.deps;
    this.waitingSince ??= time.monotonic();
    this.note("this node has a change that the log does not have: another node is to lead");
    const isFree = this.leaderNow === null || this.leaderNow.id === node.id;
    if (!isFree || time.monotonic() - this.waitingSince < OTHERS_FIRST_LEASES * leaseMs) return false;
    const epoch = await log.tryLead(node, leaseMs, position.epoch + 1);
    if (epoch === null) return false;
    // Its pages are only here: the other nodes copy the database.
    const entry = { ...position, at: 0, isSeal: false, filePages: 0, payload: new Uint8Array() };
    await log.append({ ...position, parts: [...encodeEntry(entry, key)] });
    logger.warn(
      "no other node leads: the last change of this node is kept, and other nodes copy its database",
      { seq: position.seq },
    );
    return false;
  }

  /** Copies the database although there is one, which stays until the copy is complete. */
  private async tryToFetch(): Promise<void> {
    const { log, time } = this.deps;
    try {
      this.leaderNow = await log.leader();
      this.identity = await log.identity();
      if (!(await this.fetch())) await this.pause(LOOK_MS);
    } catch (error) {
      if (error instanceof StartupError) throw error;
      this.note(errorText(error));
      await time.delay(ENGINE_RETRY_MS);
    }
  }

  private async fetch(): Promise<boolean> {
    const { fetchBase, folder, log, logger, node } = this.deps;
    const { identity, leaderNow: leader } = this;
    if (leader === null || leader.id === node.id || leader.advertise === null) {
      this.note(
        "there is no leader to copy the database from: start the node that has the data, with --advertise",
      );
      return false;
    }
    if (identity === null) {
      this.note(
        "the leader runs an older version, from which no database can be copied: upgrade it, after another node that has a database",
      );
      return false;
    }
    const { advertise } = leader;
    const isWanted = async (): Promise<boolean> => {
      this.leaderNow = await log.leader().catch(() => leader);
      return !this.isStopped && this.leaderNow?.epoch === leader.epoch;
    };
    try {
      const position = await fetchBase(leader, identity, {
        isWanted,
        onBegun: (begun) => {
          this.copying = begun;
          logger.info("the database is copied from the leader", { leader: advertise, seq: begun.seq });
        },
        onProgress: (bytes, total) =>
          logger.info("the database is being copied", { leader: advertise, bytes, total }),
        onInterrupted: (reason) => this.note(reason),
      });
      const entry = await this.entryAt(position.seq);
      if (entry === null || entry.epoch !== position.epoch || entry.log !== position.log)
        throw new Error("the copy of the leader's database has no place in the log any more, or not yet");
      const { epoch, seq } = position;
      folder.replace({ log: position.log, epoch, seq });
      this.applied = { log: position.log, epoch, seq };
      this.copiedAt = this.deps.time.monotonic();
      logger.info("the database was copied from the leader", { leader: advertise, seq });
      this.note(null);
      return true;
    } finally {
      this.copying = null;
    }
  }

  /** Applies what was appended. Whether there was something. */
  private async applyNew(): Promise<boolean> {
    const { comparison, folder, log, now } = this.deps;
    const before = this.applied ?? NOTHING;
    const entries = await log.read(before.seq + 1, PAGE_ENTRIES);
    if (entries.length === 0) return false;
    const seenAt = now();
    if (this.isFirst) {
      this.isFirst = false;
      this.applied = null;
      throw new EngineUnavailable("the log has been begun meanwhile");
    }
    this.lastSeq = Math.max(this.lastSeq, entries.at(-1)?.seq ?? 0);
    for (const logged of entries) {
      const entry = this.decoded(logged);
      await this.assertContinues(entry);
      // Nobody but the leader of an epoch writes what follows its entries.
      if (entry.epoch !== this.applied?.epoch) await this.assertIsInLog(this.applied ?? NOTHING);
      if (!folder.hasDatabase) throw new LogTrimmed("there is no database yet");
      if (entry.filePages === 0) throw new LogTrimmed(`only the leader's database has entry ${entry.seq}`);
      folder.apply(entry, this.applied ?? NOTHING);
      if (!entry.isSeal) comparison.note(entry.epoch, entry.at, seenAt);
      this.applied = { log: entry.log, epoch: entry.epoch, seq: entry.seq };
    }
    this.syncSometimes();
    return true;
  }

  /** Whether an entry is of the log that this node follows: entries without an id come before the first one that has one. */
  private async assertContinues({ log, seq }: Entry): Promise<void> {
    const applied = this.applied?.log ?? null;
    if (log === applied) return;
    if (applied === null) {
      if (log !== this.identity) this.identity = await this.deps.log.identity();
      if (log === this.identity) return;
    }
    throw new StartupError(
      `Entry ${seq} of the commit log of the cell ${this.deps.cell} is of the log ${log ?? "without an id"}, and this node follows the log ` +
        `${applied ?? this.identity ?? "without an id"}: somebody has changed the engine's data. Nothing of it was applied. Restore the engine's ` +
        "data, or stop all nodes and run ninefold cluster reset-log --accept on the one with the newest data.",
    );
  }

  /**
   * An engine that has lost entries, such as one that was promoted or restored, gives their places to others: then the file has what
   * the log has not, and nothing that follows belongs to it.
   */
  private async assertIsInLog(place: LogPosition): Promise<void> {
    const there = place.seq === 0 ? place : await this.entryAt(place.seq);
    if (there?.epoch === place.epoch) return;
    const range = await this.deps.log.range();
    if (range === null && this.isFirst) return;
    if (range === null) throw lostLog(this.deps.folder.databasePath);
    if (place.seq < range.first)
      throw new LogTrimmed(`the log begins at entry ${range.first}, after this node's ${place.seq}`);
    throw this.isAhead(place, range);
  }

  /** Whether this node could not serve when it led, and others may be able to. */
  private letsOthersLead(): boolean {
    const { folder, leaseMs, time } = this.deps;
    return folder.hasGivenUp && time.monotonic() - this.begunAt < OTHERS_FIRST_LEASES * leaseMs;
  }

  /** Whether this program knows the schema of the file. */
  private canLead(): boolean {
    const { folder, schema, logger } = this.deps;
    if (!folder.hasDatabase) return true;
    const found = folder.schema;
    if (found > schema && !this.hasNewerSchema)
      logger.warn("the leader runs a newer version: this node follows, and leads when it was upgraded", {
        schema: found,
        known: schema,
      });
    this.hasNewerSchema = found > schema;
    return !this.hasNewerSchema;
  }

  private async tryToLead(): Promise<Lead | null> {
    const { folder, log, node, leaseMs, logger, time, now } = this.deps;
    const [before, slept] = [time.monotonic(), sleptMs(time)];
    const epoch = await log.tryLead(node, leaseMs, epochAbove(this.applied?.epoch ?? 0, now()));
    if (epoch === null) return null;
    this.electionsSeen += 1;
    // The lease goes on while this machine sleeps.
    const since = before - (sleptMs(time) - slept);
    const onGivenUp = (): void => this.noteGivenUp();
    const leadership = new Leadership({ log, node, epoch, leaseMs, logger, since, time, onGivenUp });
    try {
      const identity = await this.identify();
      if (this.isFirst) folder.noteBeginning(identity, epoch);
      const seal = { ...(await this.seal(leadership, identity)), log: identity };
      this.sync();
      folder.handOver(identity);
      logger.info("this node leads", { epoch, seq: seal.seq, log: identity });
      return { leadership, seal };
    } catch (error) {
      leadership.close();
      await log.release(node, epoch).catch(() => undefined);
      throw error;
    }
  }

  /** On a full disk it cannot be noted: then the lease was released, if the engine could be reached. */
  private noteGivenUp(): void {
    try {
      this.deps.folder.noteGivenUp();
    } catch (error) {
      this.deps.logger.warn("it could not be noted that this node lets others lead", {
        error: errorText(error),
      });
    }
  }

  /** Id of the log. It is made by the first leader: of the log, or of this version. */
  private async identify(): Promise<string> {
    const { log, newLogId } = this.deps;
    this.identity = (await log.identity()) ?? (await log.identify(newLogId()));
    // An empty log may continue the data of a folder that was in another one.
    if ((await log.range()) !== null) this.assertIsOurs(this.applied?.log ?? null);
    return this.identity;
  }

  /** Takes the place after the last entry: nobody with an earlier epoch can append from then on. */
  private async seal(leadership: Leadership, id: string): Promise<LogPosition> {
    const { key, log, folder } = this.deps;
    const { epoch } = leadership;
    for (;;) {
      while (await this.applyNew());
      // Paused since it got the lease: its seal would only depose the node that leads now.
      if ((this.applied?.epoch ?? 0) > epoch) throw new EngineUnavailable("another node leads");
      await this.assertIsInLog(this.applied ?? NOTHING);
      const seq = (this.applied?.seq ?? 0) + 1;
      const position = { log: id, epoch, seq };
      const entry = { ...position, at: 0, isSeal: true, filePages: folder.pages, payload: new Uint8Array() };
      try {
        await log.append({ seq, epoch, parts: [...encodeEntry(entry, key)] });
        return position;
      } catch (error) {
        if (!(error instanceof PlaceTaken)) throw error;
      }
    }
  }

  private syncSometimes(): void {
    if (this.deps.time.monotonic() - this.syncedAt >= SYNC_MS) this.sync();
  }

  private sync(): void {
    this.syncedAt = this.deps.time.monotonic();
    if (this.applied !== null) this.deps.folder.sync(this.applied);
  }

  private get reported(): NodeState {
    return { applied: this.applied?.seq ?? 0, synced: (this.copying ?? this.deps.folder.synced)?.seq ?? 0 };
  }

  /** Reports how far this node is, also while it copies a database. */
  private async reportUntil(isOver: () => boolean): Promise<void> {
    const { membership, time } = this.deps;
    while (!isOver()) {
      await time.delay(REPORT_MS);
      if (isOver() || !this.isRegistered) continue;
      try {
        await membership.report(this.reported);
        this.compareClocks(await membership.others());
      } catch (error) {
        // Any other error is met by the next step, too.
        if (!(error instanceof StartupError)) continue;
        this.failure = error;
        this.wake();
        return;
      }
    }
  }

  private compareClocks(reports: readonly NodeReport[]): void {
    const { comparison, time, now } = this.deps;
    const { leaderNow: leader, reportsSeenAt } = this;
    this.reportsSeenAt = time.monotonic();
    const report = reports.find(({ id }) => id === leader?.id);
    const known = this.leaderReportedAt;
    this.leaderReportedAt = report?.at ?? 0;
    // One that was not there at the last look.
    if (leader === null || report === undefined || known === 0 || known === report.at) return;
    comparison.note(leader.epoch, report.at, now(), this.reportsSeenAt - reportsSeenAt);
    this.deps.logger.debug("compared with the clock of the leader", { ahead_ms: -comparison.differenceMs });
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.isStopped) return resolve();
      const cancel = this.deps.time.after(ms, resolve);
      this.wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

function lostLog(databasePath: string): StartupError {
  return new StartupError(
    `The commit log is empty, but ${databasePath} has taken part in it: the engine has lost its data. On the node with the newest ` +
      "data, run: ninefold cluster reset-log --accept",
  );
}
