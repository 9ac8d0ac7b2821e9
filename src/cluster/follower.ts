import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { errorText, StartupError } from "../kernel/errors.ts";
import type { Logger } from "../kernel/log.ts";
import { syncFolder, syncPath, writeDurably } from "../kernel/storage/folders.ts";
import { OfflineDatabase, settleFile } from "../kernel/storage/offline.ts";
import {
  applyEntry,
  decodeEntry,
  encodeEntry,
  InvalidEntry,
  PAGE_BYTES,
} from "../kernel/storage/replication/entry.ts";
import { type Position, positionIn } from "../kernel/storage/replication/position.ts";
import { type Cancel, monotonicMs, realDelay, realTimeout } from "../kernel/time/clock.ts";
import {
  type ClusterNode,
  type CommitLog,
  EngineUnavailable,
  type Leader,
  LogTrimmed,
  PlaceTaken,
} from "./commit-log.ts";
import { Leadership } from "./leadership.ts";

/** Entries that are read at a time. */
const PAGE_ENTRIES = 100;
/**
 * Longest wait before the log and the lease are looked at, when nothing wakes the follower. A node must lead within a second after
 * a lease has ended: etcd itself may notice the end half a second late, and a start takes up to 0.3 s.
 */
const LOOK_MS = 200;
/** What was applied is synced and noted this often. */
const SYNC_MS = 1_000;
/** Leases for which a node whose last change is not in the log lets others lead. */
const OTHERS_FIRST_LEASES = 2;
/** Pause after the engine could not be reached. */
export const ENGINE_RETRY_MS = 500;
/** Where SQLite keeps `user_version`, big-endian: the number of migrations. */
const SCHEMA_AT = 60;

/** What a follower needs. */
export interface FollowerParts {
  readonly log: CommitLog;
  readonly node: ClusterNode;
  readonly databasePath: string;
  /** For {@link decodeEntry}. */
  readonly key: Uint8Array;
  /** Migrations that this program knows. */
  readonly schema: number;
  readonly leaseMs: number;
  readonly logger: Logger;
  /** Copies the leader's database into a file. */
  readonly fetchBase: (leader: Leader, target: string) => Promise<void>;
  /** Wall clock, epoch milliseconds. */
  readonly now: () => number;
}

/** Becoming the leader: the place in the log from which this process continues. */
export interface Lead {
  readonly leadership: Leadership;
  /** Of the entry that began the epoch. */
  readonly seal: Position;
}

/** What `follower.json` stores: which node this folder is, and how far its file is. */
interface FollowerState {
  readonly id: string;
  /** Whether this folder has ever had its place in the log: then an empty log is one that was lost. */
  readonly joined: boolean;
  /** Everything up to here is in the file and synced; null while the file itself says where it is. */
  readonly synced: Position | null;
}

/** The path of the state of a data folder. */
export function followerStatePath(databasePath: string): string {
  return join(dirname(databasePath), "follower.json");
}

/** Reads the state of a folder; one with a new identity if there is none. */
export function readFollowerState(databasePath: string, newId: () => string): FollowerState {
  const path = followerStatePath(databasePath);
  if (existsSync(path)) return JSON.parse(readFileSync(path, "utf8")) as FollowerState;
  const state = { id: newId(), joined: false, synced: null };
  writeState(path, state);
  return state;
}

function writeState(path: string, state: FollowerState): void {
  writeDurably(path, `${JSON.stringify(state)}\n`);
}

/** Copies the log into the file of this node, until the node leads. No connection to the database is open meanwhile. */
export class Follower {
  private file: number | null = null;
  private applied: Position | null = null;
  private synced: Position | null = null;
  private leaderNow: Leader | null = null;
  private lastSeq = 0;
  private syncedAt = 0;
  private isStopped = false;
  private wake: () => void = () => undefined;
  private hasNewerSchema = false;
  private problem: string | null = null;
  private lookedAt = Number.NEGATIVE_INFINITY;
  private waitingSince: number | null = null;
  private state: FollowerState;

  constructor(private readonly parts: FollowerParts) {
    this.state = readFollowerState(parts.databasePath, () => parts.node.id);
  }

  /** The node that leads, as far as is known. */
  get leader(): Leader | null {
    return this.leaderNow;
  }

  /** Entries of the log that are not applied yet. */
  get lag(): number {
    return Math.max(0, this.lastSeq - (this.applied?.seq ?? 0));
  }

  get position(): Position | null {
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
   * @throws StartupError if the folder's data or its master key do not belong to the log.
   */
  async follow(): Promise<Lead | null> {
    const cancel = this.parts.log.watch(1, () => this.wake());
    try {
      while (!this.isStopped) {
        try {
          const lead = await this.step();
          if (lead !== null) return lead;
        } catch (error) {
          if (error instanceof StartupError) throw error;
          if (error instanceof InvalidEntry)
            throw new StartupError(`The commit log cannot be read: ${error.message}.`);
          if (error instanceof LogTrimmed) {
            this.parts.logger.warn("the log does not go back to this node's data: a new copy is fetched", {
              reason: error.message,
            });
            this.discard();
            continue;
          }
          this.note(errorText(error));
          await realDelay(ENGINE_RETRY_MS);
        }
      }
      return null;
    } finally {
      cancel();
      this.closeFile();
    }
  }

  /** Logs a problem once, however often it is met before another one, or none. */
  private note(problem: string | null): void {
    if (problem !== null && problem !== this.problem)
      this.parts.logger.warn("the commit log cannot be followed now", { error: problem });
    this.problem = problem;
  }

  /** Does what can be done now. Returns the lead when this node has got it. */
  private async step(): Promise<Lead | null> {
    const { log, node } = this.parts;
    if (monotonicMs() - this.lookedAt >= LOOK_MS) {
      this.leaderNow = await log.leader();
      this.lookedAt = monotonicMs();
    }
    if (this.applied === null && !(await this.establish())) {
      await this.pause(LOOK_MS);
      return null;
    }
    if (await this.applyNew()) return null;
    this.note(null);
    const isFree = this.leaderNow === null || this.leaderNow.id === node.id;
    if (isFree && this.canLead()) {
      const lead = await this.tryToLead();
      if (lead !== null) return lead;
    }
    this.syncSometimes();
    await this.pause(LOOK_MS);
    return null;
  }

  /** Finds the place of the file in the log, or fetches a file that has one. False: there is nothing to begin with yet. */
  private async establish(): Promise<boolean> {
    const { databasePath, log, logger } = this.parts;
    const range = await log.range();
    if (!existsSync(databasePath)) {
      if (range !== null) return this.fetch();
      if (this.state.joined) throw lostLog();
      this.applied = { epoch: 0, seq: 0 };
      return true;
    }
    const own = this.state.synced ?? this.positionOfFile();
    if (range === null) {
      if (this.state.joined) throw lostLog();
      this.applied = own ?? { epoch: 0, seq: 0 };
      return true;
    }
    if (own === null)
      throw new StartupError(
        "The commit log has data of its own, and this folder has others: start with an empty folder, or name another --cell.",
      );
    if (own.seq < range.first) throw new LogTrimmed(`the log begins at entry ${range.first}`);
    const [entry] = own.seq > range.last ? [] : await log.read(own.seq, 1);
    if (entry?.epoch === own.epoch) {
      this.applied = own;
      this.synced = own;
      return true;
    }
    // A batch that was committed here, and never confirmed to anybody, because the log does not have it.
    if (own.seq === range.last + 1) return this.awaitOthers(own);
    const aside = `${databasePath}.diverged-${this.parts.now()}`;
    logger.warn("this node has a change that the log does not have: its database is set aside", {
      file: aside,
      seq: own.seq,
    });
    this.setAside(aside);
    return this.fetch();
  }

  /**
   * The last batch of this node was not appended before its process ended. Another node leads soon, and decides that the batch
   * never was. If none does, no other node has the data: then it is kept, which it may be, since its outcome is unknown.
   */
  private async awaitOthers(own: Position): Promise<boolean> {
    const { log, node, leaseMs, key, logger } = this.parts;
    this.waitingSince ??= monotonicMs();
    this.note("this node has a change that the log does not have: another node is to lead");
    const isFree = this.leaderNow === null || this.leaderNow.id === node.id;
    if (!isFree || monotonicMs() - this.waitingSince < OTHERS_FIRST_LEASES * leaseMs) return false;
    const epoch = await log.tryLead(node, leaseMs, own.epoch + 1);
    if (epoch === null) return false;
    // Its pages are only here: the other nodes copy the database.
    const entry = { ...own, at: 0, isSeal: false, filePages: 0, payload: new Uint8Array() };
    await log.append({ ...own, parts: [...encodeEntry(entry, key)] });
    logger.warn(
      "no other node leads: the last change of this node is kept, and other nodes copy its database",
      { seq: own.seq },
    );
    return false;
  }

  private async fetch(): Promise<boolean> {
    const { databasePath, fetchBase, log, logger, node } = this.parts;
    const leader = this.leaderNow;
    if (leader === null || leader.id === node.id || leader.advertise === null) {
      this.note(
        "there is no leader to copy the database from: start the node that has the data, with --advertise",
      );
      return false;
    }
    const part = `${databasePath}.base`;
    rmSync(part, { force: true });
    await fetchBase(leader, part);
    const position = positionOf(part);
    const [entry] = position === null ? [] : await log.read(position.seq, 1);
    if (position === null || entry?.epoch !== position.epoch)
      throw new Error("the copy of the leader's database has no place in the log yet");
    syncPath(part);
    this.keep({ joined: true, synced: position });
    renameSync(part, databasePath);
    syncFolder(dirname(databasePath));
    this.applied = position;
    this.synced = position;
    logger.info("the database was copied from the leader", { leader: leader.advertise, seq: position.seq });
    return true;
  }

  /** Applies what was appended. Whether there was something. */
  private async applyNew(): Promise<boolean> {
    const { log, key, databasePath } = this.parts;
    const from = (this.applied?.seq ?? 0) + 1;
    const entries = await log.read(from, PAGE_ENTRIES);
    if (entries.length === 0) return false;
    if (!existsSync(databasePath)) throw new LogTrimmed("there is no database yet");
    this.lastSeq = Math.max(this.lastSeq, entries.at(-1)?.seq ?? 0);
    // From here on the file does not say where it is: pages of an entry may be missing after a crash.
    if (this.file === null) {
      this.keep({ joined: true, synced: this.applied });
      this.file = openSync(databasePath, "r+");
    }
    for (const { seq, epoch, parts } of entries) {
      const entry = decodeEntry(parts, key);
      if (entry.seq !== seq || entry.epoch !== epoch)
        throw new InvalidEntry("an entry is at another place than its own");
      if (entry.filePages === 0) throw new LogTrimmed(`only the leader's database has entry ${seq}`);
      applyEntry(this.file, entry);
      this.applied = { epoch, seq };
    }
    this.syncSometimes();
    return true;
  }

  /** Whether this program knows the schema of the file. */
  private canLead(): boolean {
    const { databasePath, schema, logger } = this.parts;
    if (!existsSync(databasePath)) return true;
    const found = schemaOf(databasePath);
    if (found > schema && !this.hasNewerSchema)
      logger.warn("the leader runs a newer version: this node follows, and leads when it was upgraded", {
        schema: found,
        known: schema,
      });
    this.hasNewerSchema = found > schema;
    return !this.hasNewerSchema;
  }

  private async tryToLead(): Promise<Lead | null> {
    const { log, node, leaseMs, logger } = this.parts;
    const since = monotonicMs();
    const epoch = await log.tryLead(node, leaseMs, (this.applied?.epoch ?? 0) + 1);
    if (epoch === null) return null;
    const leadership = new Leadership({ log, node, epoch, leaseMs, logger, since });
    try {
      const seal = await this.seal(leadership);
      this.sync();
      this.closeFile();
      // The file says where it is, from its next batch on.
      this.keep({ joined: true, synced: null });
      logger.info("this node leads", { epoch, seq: seal.seq });
      return { leadership, seal };
    } catch (error) {
      leadership.close();
      await log.release(node, epoch).catch(() => undefined);
      throw error;
    }
  }

  /** Takes the place after the last entry: nobody with an earlier epoch can append from then on. */
  private async seal(leadership: Leadership): Promise<Position> {
    const { key, log, databasePath } = this.parts;
    const { epoch } = leadership;
    for (;;) {
      while (await this.applyNew());
      // Paused since it got the lease: its seal would only depose the node that leads now.
      if ((this.applied?.epoch ?? 0) > epoch) throw new EngineUnavailable("another node leads");
      const seq = (this.applied?.seq ?? 0) + 1;
      const filePages = existsSync(databasePath) ? pagesOf(databasePath) : 0;
      const entry = { epoch, seq, at: 0, isSeal: true, filePages, payload: new Uint8Array() };
      try {
        await log.append({ seq, epoch, parts: [...encodeEntry(entry, key)] });
        return { epoch, seq };
      } catch (error) {
        if (!(error instanceof PlaceTaken)) throw error;
      }
    }
  }

  private syncSometimes(): void {
    if (monotonicMs() - this.syncedAt < SYNC_MS) return;
    this.sync();
    const { applied, synced, parts } = this;
    const report = {
      ...parts.node,
      applied: applied?.seq ?? 0,
      synced: synced?.seq ?? 0,
      schema: parts.schema,
      at: parts.now(),
    };
    parts.log.report(report).catch(() => undefined);
  }

  private sync(): void {
    this.syncedAt = monotonicMs();
    if (this.file === null || this.applied === null || this.applied.seq === this.synced?.seq) return;
    fdatasyncSync(this.file);
    this.synced = this.applied;
    this.keep({ joined: true, synced: this.applied });
  }

  private keep(change: Partial<FollowerState>): void {
    this.state = { ...this.state, ...change };
    writeState(followerStatePath(this.parts.databasePath), this.state);
  }

  /** The place that the file itself names, with what its log adds. */
  private positionOfFile(): Position | null {
    const { databasePath } = this.parts;
    settleFile(databasePath);
    return positionOf(databasePath);
  }

  /** Keeps one database aside: the newest. */
  private setAside(path: string): void {
    const { databasePath } = this.parts;
    this.closeFile();
    const folder = dirname(databasePath);
    for (const old of new Bun.Glob("ninefold.db.diverged-*").scanSync(folder)) rmSync(join(folder, old));
    renameSync(databasePath, path);
    for (const suffix of ["-wal", "-shm"]) rmSync(databasePath + suffix, { force: true });
    this.keep({ synced: null });
    this.applied = null;
  }

  /** Forgets the file, which is older than the log: the next step fetches another. */
  private discard(): void {
    const { databasePath } = this.parts;
    if (existsSync(databasePath)) this.setAside(`${databasePath}.diverged-${this.parts.now()}`);
    this.applied = null;
  }

  private closeFile(): void {
    if (this.file === null) return;
    fdatasyncSync(this.file);
    closeSync(this.file);
    this.file = null;
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.isStopped) return resolve();
      const cancel: Cancel = realTimeout(ms, resolve);
      this.wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

function lostLog(): StartupError {
  return new StartupError(
    "The commit log is empty, but this folder has taken part in it: the engine has lost its data. On the node with the newest " +
      "data, run: ninefold cluster reset-log --accept",
  );
}

function positionOf(path: string): Position | null {
  using db = OfflineDatabase.read(path);
  return positionIn(db);
}

function pagesOf(path: string): number {
  const file = openSync(path, "r");
  try {
    return fstatSync(file).size / PAGE_BYTES;
  } finally {
    closeSync(file);
  }
}

function schemaOf(path: string): number {
  const file = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(4);
    readSync(file, bytes, 0, 4, SCHEMA_AT);
    return bytes.readUInt32BE(0);
  } finally {
    closeSync(file);
  }
}
