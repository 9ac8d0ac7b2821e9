import type { Disk } from "../../../src/cluster/disk.ts";
import type { StoredPosition } from "../../../src/kernel/storage/replication/position.ts";
import { cutLast, moveLog, readPosition } from "./paged-file.ts";
import type { Random } from "./world.ts";

const SECTOR_BYTES = 512;

/** A change that is not synced: bytes that were written, or the end of the file. */
type Change = { readonly at: number; readonly bytes: Uint8Array } | { readonly length: number };

/** A file: what programs see, and what a power cut leaves. */
class StoredFile {
  private seen = Buffer.alloc(0);
  private kept = Buffer.alloc(0);
  private length = 0;
  private keptLength = 0;
  private changes: Change[] = [];

  get size(): number {
    return this.length;
  }

  read(bytes: Uint8Array, at: number): number {
    const count = Math.max(0, Math.min(bytes.length, this.length - at));
    bytes.set(this.seen.subarray(at, at + count));
    return count;
  }

  write(bytes: Uint8Array, at: number): void {
    const change = { at, bytes: bytes.slice() };
    this.changes.push(change);
    [this.seen, this.length] = changed(this.seen, this.length, change);
  }

  truncate(length: number): void {
    if (length === this.length) return;
    this.changes.push({ length });
    [this.seen, this.length] = changed(this.seen, this.length, { length });
  }

  sync(): void {
    for (const change of this.changes) this.keep(change);
    this.changes = [];
  }

  /** A power cut: each change since the last sync is there, is not, or is there in part. */
  loseUnsynced(random: Random): void {
    for (const change of this.changes) {
      if (random.chance(0.4)) continue;
      if ("bytes" in change && random.chance(0.3)) {
        const sectors = random.between(0, Math.floor(change.bytes.length / SECTOR_BYTES));
        this.keep({ at: change.at, bytes: change.bytes.subarray(0, sectors * SECTOR_BYTES) });
      } else this.keep(change);
    }
    this.changes = [];
    this.seen = Buffer.from(this.kept);
    this.length = this.keptLength;
  }

  private keep(change: Change): void {
    [this.kept, this.keptLength] = changed(this.kept, this.keptLength, change);
  }
}

/** Applies a change to bytes that have room for more than their length. */
function changed(
  bytes: Buffer<ArrayBuffer>,
  length: number,
  change: Change,
): [bytes: Buffer<ArrayBuffer>, length: number] {
  if ("length" in change) {
    const grown = withRoom(bytes, change.length);
    if (change.length < length) grown.fill(0, change.length, length);
    return [grown, change.length];
  }
  if (change.bytes.length === 0) return [bytes, length];
  const end = change.at + change.bytes.length;
  const grown = withRoom(bytes, end);
  grown.set(change.bytes, change.at);
  return [grown, Math.max(length, end)];
}

function withRoom(bytes: Buffer<ArrayBuffer>, length: number): Buffer<ArrayBuffer> {
  if (length <= bytes.length) return bytes;
  const grown = Buffer.alloc(Math.max(length, bytes.length * 2));
  grown.set(bytes);
  return grown;
}

/** A disk in memory, which loses and tears in a power cut what was not synced. */
export class SimulatedDisk implements Disk {
  /** Whether nothing can be written. */
  isFull = false;
  private names = new Map<string, StoredFile>();
  private keptNames = new Map<string, StoredFile>();
  private readonly files: StoredFile[] = [];

  constructor(private readonly random: Random) {}

  /** The power fails and comes back. */
  cutPower(): void {
    for (const [path, file] of this.names)
      if (this.keptNames.get(path) !== file && this.random.chance(0.5)) this.keptNames.set(path, file);
    for (const path of this.keptNames.keys())
      if (!this.names.has(path) && this.random.chance(0.5)) this.keptNames.delete(path);
    this.names = new Map(this.keptNames);
    for (const file of this.names.values()) file.loseUnsynced(this.random);
  }

  /** A copy of all files, as `cp` makes it of a machine that is off. */
  copyTo(other: SimulatedDisk): void {
    for (const [path, file] of this.names) {
      const bytes = Buffer.alloc(file.size);
      file.read(bytes, 0);
      const copy = other.open(path, true);
      other.write(copy, bytes, 0);
      other.sync(copy);
    }
    other.syncFolder();
  }

  /** Removes all files. */
  empty(): void {
    this.names.clear();
    this.keptNames.clear();
  }

  exists(path: string): boolean {
    return this.names.has(path);
  }

  list(folder: string): string[] {
    const prefix = `${folder}/`;
    return [...this.names.keys()]
      .filter((path) => path.startsWith(prefix))
      .map((path) => path.slice(prefix.length));
  }

  readText(path: string): string | null {
    const file = this.names.get(path);
    if (file === undefined) return null;
    const bytes = Buffer.alloc(file.size);
    file.read(bytes, 0);
    return bytes.toString("utf8");
  }

  writeText(path: string, text: string): void {
    this.assertRoom();
    const file = new StoredFile();
    file.write(Buffer.from(text), 0);
    file.sync();
    this.names.set(path, file);
    this.syncFolder();
  }

  open(path: string, create: boolean): number {
    let file = this.names.get(path);
    if (create) {
      this.assertRoom();
      file = new StoredFile();
      this.names.set(path, file);
    }
    if (file === undefined) throw new Error(`ENOENT: no such file, open '${path}'`);
    this.files.push(file);
    return this.files.length - 1;
  }

  size(file: number): number {
    return this.at(file).size;
  }

  read(file: number, bytes: Uint8Array, at: number): number {
    return this.at(file).read(bytes, at);
  }

  write(file: number, bytes: Uint8Array, at: number): void {
    this.assertRoom();
    this.at(file).write(bytes, at);
  }

  truncate(file: number, bytes: number): void {
    this.at(file).truncate(bytes);
  }

  sync(file: number): void {
    this.at(file).sync();
  }

  close(_file: number): void {}

  rename(from: string, to: string): void {
    const file = this.names.get(from);
    if (file === undefined) throw new Error(`ENOENT: no such file, rename '${from}'`);
    this.names.delete(from);
    this.names.set(to, file);
    this.syncFolder();
  }

  remove(path: string): void {
    this.names.delete(path);
  }

  settle(database: string): void {
    moveLog(this, database);
    if (!this.exists(`${database}-wal`)) return;
    const log = this.open(`${database}-wal`, false);
    this.truncate(log, 0);
    this.sync(log);
  }

  positionIn(database: string): StoredPosition | null {
    return readPosition(this, database);
  }

  cutLastCommit(database: string): boolean {
    return cutLast(this, database);
  }

  /** The names of files are durable afterwards. */
  syncFolder(): void {
    this.keptNames = new Map(this.names);
  }

  private assertRoom(): void {
    if (this.isFull) throw new Error("ENOSPC: no space left on device");
  }

  private at(file: number): StoredFile {
    const found = this.files[file];
    if (found === undefined) throw new Error(`EBADF: bad file descriptor ${file}`);
    return found;
  }
}
