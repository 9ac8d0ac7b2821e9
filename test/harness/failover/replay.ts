import { closeSync, openSync, readFileSync, renameSync } from "node:fs";
import { fetchBase, type NodeAccess } from "../../../src/cluster/base.ts";
import { NODE_KEY_PURPOSE, openCommitLog } from "../../../src/cluster/cluster.ts";
import { type CommitLog, EngineUnavailable } from "../../../src/cluster/commit-log.ts";
import { createVault } from "../../../src/kernel/secrets/vault.ts";
import { OfflineDatabase, settleFile } from "../../../src/kernel/storage/offline.ts";
import {
  applyEntry,
  decodeEntry,
  ENTRY_KEY_PURPOSE,
  PAGE_BYTES,
} from "../../../src/kernel/storage/replication/entry.ts";
import { positionIn } from "../../../src/kernel/storage/replication/position.ts";

const PAGE_ENTRIES = 100;
const READ_PAUSE_MS = 100;
const BASE_RETRY_MS = 100;
const LEASE_MS = 1_000;

/** Where a replay gets its data. */
interface ReplaySource {
  readonly commitLog: string;
  /** 64 hex digits. */
  readonly masterKey: string;
  /** File that the replay creates. */
  readonly path: string;
}

/** A copy of the leader's database at the beginning, to which every entry of the log is applied. */
export class Replay {
  private readonly log: CommitLog;
  private readonly key: Uint8Array;
  private readonly nodeKey: Uint8Array;
  private seq = 0;
  private isOver = false;
  private reading: Promise<void> = Promise.resolve();

  constructor(private readonly source: ReplaySource) {
    const { commitLog: url } = source;
    const vault = createVault(Buffer.from(source.masterKey, "hex"));
    this.key = vault.derive(ENTRY_KEY_PURPOSE);
    this.nodeKey = vault.derive(NODE_KEY_PURPOSE);
    this.log = openCommitLog({
      url,
      cell: "main",
      leaseMs: LEASE_MS,
      advertise: null,
      isTrusted: false,
      extraCaPath: null,
    });
  }

  /** Copies the database. From then on entries are applied as they come, since the log is trimmed. */
  async begin(): Promise<void> {
    const { path } = this.source;
    const access = {
      id: "replay",
      key: this.nodeKey,
      cell: "main",
      extraCaPath: null,
      now: () => Date.now(),
    };
    const target = `${path}.base`;
    // The leader may change meanwhile.
    while (!(await this.copyTo(target, access).then(succeeded, failed))) await Bun.sleep(BASE_RETRY_MS);
    this.seq = seqOf(target);
    renameSync(target, path);
    this.reading = this.follow();
    this.reading.catch(() => undefined);
  }

  private async copyTo(target: string, access: NodeAccess): Promise<void> {
    const [leader, log] = [await this.log.leader(), await this.log.identity()];
    if (leader === null || log === null) throw new Error("no node leads");
    await fetchBase(access, { leader, log }, target, {
      isWanted: () => Promise.resolve(!this.isOver),
      onBegun: () => undefined,
      onProgress: () => undefined,
      onInterrupted: () => undefined,
    });
  }

  /**
   * Compares with the file of a node that has ended, at the entry where that file is. Resolves to the number of bytes that
   * differ. @throws Error when the log does not have that entry.
   */
  async differingBytes(databasePath: string): Promise<number> {
    this.isOver = true;
    await this.reading;
    settleFile(databasePath);
    await this.applyThrough(seqOf(databasePath));
    this.log.close();
    return differences(readFileSync(this.source.path), readFileSync(databasePath));
  }

  private async follow(): Promise<void> {
    while (!this.isOver) {
      // Not the newest one: the leader's file may not have it at the end.
      const last = (await this.engine(() => this.log.range()))?.last ?? 0;
      await this.applyThrough(last - 1);
      await Bun.sleep(READ_PAUSE_MS);
    }
  }

  private async applyThrough(seq: number): Promise<void> {
    const file = openSync(this.source.path, "r+");
    try {
      while (this.seq < seq) {
        const max = Math.min(PAGE_ENTRIES, seq - this.seq);
        const entries = await this.engine(() => this.log.read(this.seq + 1, max));
        if (entries.length === 0) throw new Error(`the log has no entry ${this.seq + 1}`);
        for (const { parts, seq: place } of entries) {
          applyEntry(file, decodeEntry(parts, this.key));
          this.seq = place;
        }
      }
    } finally {
      closeSync(file);
    }
  }

  /** Repeats a call while the engine is away, which is what is tested here. */
  private async engine<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof EngineUnavailable)) throw error;
        await Bun.sleep(READ_PAUSE_MS);
      }
    }
  }
}

const succeeded = (): boolean => true;
const failed = (): boolean => false;

function seqOf(path: string): number {
  using db = OfflineDatabase.read(path);
  return positionIn(db)?.seq ?? 0;
}

function differences(one: Buffer, other: Buffer): number {
  let count = Math.abs(one.length - other.length);
  const end = Math.min(one.length, other.length);
  for (let at = 0; at < end; at += PAGE_BYTES) {
    const [left, right] = [one.subarray(at, at + PAGE_BYTES), other.subarray(at, at + PAGE_BYTES)];
    if (left.equals(right)) continue;
    for (const [index, byte] of left.entries()) if (byte !== right[index]) count += 1;
  }
  return count;
}
