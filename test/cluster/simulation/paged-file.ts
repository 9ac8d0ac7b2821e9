import type { Disk } from "../../../src/cluster/disk.ts";
import { PAGE_BYTES } from "../../../src/kernel/storage/replication/entry.ts";
import type { StoredPosition } from "../../../src/kernel/storage/replication/position.ts";

/** Pages of the simulated database: the first one has its position, each of the others an account. */
export const PAGES = 4;
/** Where SQLite keeps the number of migrations. */
const SCHEMA_AT = 60;
const CONTENT_AT = 100;
const SALT_BYTES = 4;
/** Page, pages of the file (0: the commit goes on), salt, check sum of this frame and those before it. */
const HEADER_BYTES = 16;
const FRAME_BYTES = HEADER_BYTES + PAGE_BYTES;

/** The content of a page: whatever JSON says. */
export function pageOf(content: unknown, schema = 0): Uint8Array {
  const page = Buffer.alloc(PAGE_BYTES);
  page.writeUInt32BE(schema, SCHEMA_AT);
  const text = Buffer.from(JSON.stringify(content));
  page.writeUInt16BE(text.length, CONTENT_AT);
  page.set(text, CONTENT_AT + 2);
  return page;
}

/** What {@link pageOf} was called with; null for a page without content. */
export function contentOf<T>(page: Uint8Array): T | null {
  const bytes = Buffer.from(page.buffer, page.byteOffset, page.length);
  const length = bytes.length < CONTENT_AT + 2 ? 0 : bytes.readUInt16BE(CONTENT_AT);
  if (length === 0) return null;
  return JSON.parse(bytes.toString("utf8", CONTENT_AT + 2, CONTENT_AT + 2 + length)) as T;
}

/** The commits in a write-ahead log, the pages of each; and where the last one begins. */
interface Scan {
  readonly commits: Map<number, Uint8Array>[];
  readonly endsAt: number;
  readonly lastBeginsAt: number;
  readonly salt: number;
  readonly check: number;
}

function scan(disk: Disk, database: string): Scan {
  const commits: Map<number, Uint8Array>[] = [];
  const nothing = { commits, endsAt: SALT_BYTES, lastBeginsAt: SALT_BYTES, salt: 0, check: 0 };
  if (!disk.exists(`${database}-wal`)) return nothing;
  const file = disk.open(`${database}-wal`, false);
  const head = Buffer.alloc(SALT_BYTES);
  if (disk.read(file, head, 0) < SALT_BYTES) return nothing;
  const salt = head.readUInt32BE(0);
  const found = { ...nothing, salt };
  let pages = new Map<number, Uint8Array>();
  let check = 0;
  for (let at = SALT_BYTES; ; at += FRAME_BYTES) {
    const frame = Buffer.alloc(FRAME_BYTES);
    if (disk.read(file, frame, at) < FRAME_BYTES || frame.readUInt32BE(8) !== salt) return found;
    check = checkOf(frame, check);
    if (check !== frame.readUInt32BE(12)) return found;
    pages.set(frame.readUInt32BE(0), frame.subarray(HEADER_BYTES));
    if (frame.readUInt32BE(4) === 0) continue;
    commits.push(pages);
    pages = new Map();
    found.lastBeginsAt = found.endsAt;
    found.endsAt = at + FRAME_BYTES;
    found.check = check;
  }
}

function checkOf(frame: Buffer, before: number): number {
  return Bun.hash.xxHash32(frame.subarray(HEADER_BYTES), (before ^ frame.readUInt32BE(0)) >>> 0);
}

/** Moves the log into the database, as a checkpoint does: what is moved is synced before. */
export function moveLog(disk: Disk, database: string): void {
  const { commits } = scan(disk, database);
  if (commits.length === 0) return;
  disk.sync(disk.open(`${database}-wal`, false));
  moveCommits(disk, database, commits);
}

function moveCommits(disk: Disk, database: string, commits: readonly Map<number, Uint8Array>[]): void {
  const file = disk.open(database, false);
  for (const pages of commits)
    for (const [page, content] of pages) disk.write(file, content, (page - 1) * PAGE_BYTES);
  disk.sync(file);
}

/** Removes the last commit from the log. False: there is none, or it was moved. */
export function cutLast(disk: Disk, database: string): boolean {
  const { commits, lastBeginsAt } = scan(disk, database);
  const first = commits.at(-1)?.get(1);
  if (first === undefined) return false;
  const moved = Buffer.alloc(PAGE_BYTES);
  disk.read(disk.open(database, false), moved, 0);
  if (moved.equals(first)) return false;
  const log = disk.open(`${database}-wal`, false);
  disk.truncate(log, lastBeginsAt);
  disk.sync(log);
  return true;
}

/** All pages as SQLite would show them. */
export function readPages(disk: Disk, database: string): Uint8Array[] {
  const file = disk.open(database, false);
  const pages = Array.from({ length: disk.size(file) / PAGE_BYTES }, (_, index) => {
    const page = Buffer.alloc(PAGE_BYTES);
    disk.read(file, page, index * PAGE_BYTES);
    return page as Uint8Array;
  });
  for (const commit of scan(disk, database).commits)
    for (const [page, content] of commit) pages[page - 1] = content;
  return pages;
}

export function readPosition(disk: Disk, database: string): StoredPosition | null {
  return contentOf<StoredPosition>(readPages(disk, database)[0] ?? new Uint8Array());
}

/** The database of a leader: a file, and a write-ahead log that is not synced with each commit. */
export class PagedFile {
  /** The pages with everything that was committed. */
  readonly pages: Uint8Array[];
  private readonly log: number;
  private endsAt = SALT_BYTES;
  private check = 0;
  private salt: number;
  /** Commits that stand in the log alone. */
  private commits: Map<number, Uint8Array>[] = [];
  private cutTo: { readonly endsAt: number; readonly check: number } | null = null;

  constructor(
    private readonly disk: Disk & { syncFolder(): void },
    private readonly path: string,
    schema: number,
    random: () => number,
  ) {
    if (!disk.exists(path)) {
      const file = disk.open(path, true);
      const first = Buffer.alloc(PAGE_BYTES);
      first.writeUInt32BE(schema, SCHEMA_AT);
      disk.write(file, first, 0);
      disk.truncate(file, PAGES * PAGE_BYTES);
      disk.sync(file);
      disk.syncFolder();
    }
    disk.settle(path);
    this.pages = readPages(disk, path);
    this.salt = random();
    const isNew = !disk.exists(`${path}-wal`);
    this.log = disk.open(`${path}-wal`, isNew);
    if (isNew) disk.syncFolder();
  }

  /** Appends a commit to the log. @throws Error if the disk is full; then nothing was committed. */
  commit(pages: Map<number, Uint8Array>): void {
    const before = { endsAt: this.endsAt, check: this.check };
    try {
      this.append(pages);
    } catch (error) {
      [this.endsAt, this.check] = [before.endsAt, before.check];
      throw error;
    }
    this.cutTo = before;
    this.commits.push(pages);
    for (const [page, content] of pages) this.pages[page - 1] = content;
  }

  private append(pages: Map<number, Uint8Array>): void {
    const { disk, log } = this;
    if (this.endsAt === SALT_BYTES) {
      const head = Buffer.alloc(SALT_BYTES);
      head.writeUInt32BE(this.salt);
      disk.write(log, head, 0);
    }
    let left = pages.size;
    for (const [page, content] of pages) {
      left -= 1;
      const frame = Buffer.alloc(FRAME_BYTES);
      frame.writeUInt32BE(page, 0);
      frame.writeUInt32BE(left === 0 ? PAGES : 0, 4);
      frame.writeUInt32BE(this.salt, 8);
      frame.set(content, HEADER_BYTES);
      this.check = checkOf(frame, this.check);
      frame.writeUInt32BE(this.check, 12);
      disk.write(log, frame, this.endsAt);
      this.endsAt += FRAME_BYTES;
    }
  }

  /** Everything that is committed is durable afterwards. */
  sync(): void {
    this.disk.sync(this.log);
  }

  /** Moves what is confirmed into the file. `hasUnconfirmed`: the last commit is not. */
  checkpoint(hasUnconfirmed: boolean): void {
    this.sync();
    moveCommits(this.disk, this.path, hasUnconfirmed ? this.commits.slice(0, -1) : this.commits);
    if (hasUnconfirmed) return;
    this.commits = [];
    this.endsAt = SALT_BYTES;
    this.check = 0;
    this.salt = (this.salt + 1) >>> 0;
    this.cutTo = null;
  }

  /** Undoes the last commit in the log, before the process ends. */
  abandonLast(): void {
    if (this.cutTo === null) return;
    this.disk.truncate(this.log, this.cutTo.endsAt);
    this.disk.sync(this.log);
  }
}
