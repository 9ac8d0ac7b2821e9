/** The unit in which a system caches and writes the content of files. */
export const PAGE_BYTES = 4_096;

/** A change of a file's content that may not be on the disk yet. */
type Change =
  | { readonly at: number; readonly offset: number; readonly bytes: Uint8Array }
  | { readonly at: number; readonly size: number };

/** Changes of one page since it was last written to the disk completely. */
interface Page {
  changes: Change[];
  /**
   * Whether the next sync writes it. After a failed sync the system considers its pages written: their content can be
   * read until the power cut, and reaches the disk only when the page is changed and synced again.
   */
  dirty: boolean;
}

/** Chooses which unsynced content is on the disk. */
export interface Choice {
  /** Size in bytes of the pieces in which a page reaches the disk. */
  readonly pieceBytes: number;
  /** One of the states of a piece, from the oldest possible (0) to the newest (`states` - 1). */
  pick(states: number): number;
}

/** No unsynced content is on the disk. */
export const DROPPED: Choice = { pieceBytes: PAGE_BYTES, pick: () => 0 };
/** All content is there, as a process reads it after another one was killed. */
export const KEPT: Choice = { pieceBytes: PAGE_BYTES, pick: (states) => states - 1 };

/** The content of one file, on the disk and in the page cache. Times are numbers of notes. */
export class DiskFile {
  private disk: Buffer = Buffer.alloc(0);
  private diskSize = 0;
  private readonly pages = new Map<number, Page>();
  private cuts: { readonly at: number; readonly size: number }[] = [];
  private sizes: { readonly at: number; readonly size: number }[] = [];
  private size = 0;

  write(at: number, offset: number, bytes: Uint8Array): void {
    this.change({ at, offset, bytes }, offset, offset + bytes.length);
    if (offset + bytes.length > this.size) this.resize(at, offset + bytes.length);
  }

  cut(at: number, size: number): void {
    const cut = { at, size };
    this.cuts.push(cut);
    if (size < this.size) this.change(cut, size, Math.max(this.size, this.diskSize));
    this.resize(at, size);
  }

  /** A sync that began at `begun` has succeeded. */
  synced(begun: number): void {
    for (const [number, page] of this.pages) {
      if (!page.dirty) continue;
      const written = page.changes.filter(({ at }) => at < begun);
      this.writePage(number, written);
      page.changes = page.changes.slice(written.length);
      if (page.changes.length === 0) this.pages.delete(number);
    }
    this.cuts = this.cuts.filter(({ at }) => at >= begun);
    this.diskSize = this.sizes.findLast(({ at }) => at < begun)?.size ?? this.diskSize;
    this.sizes = this.sizes.filter(({ at }) => at >= begun);
  }

  /** A sync that began at `begun` has failed. */
  syncFailed(begun: number): void {
    for (const page of this.pages.values()) page.dirty = page.changes.some(({ at }) => at >= begun);
  }

  /** Whether something is not certainly on the disk. */
  get isPending(): boolean {
    return this.pages.size > 0 || this.sizes.length > 0;
  }

  /** The content of the file after a power cut, with a choice for all unsynced content. */
  contentAfter(choice: Choice): Buffer {
    const cutsDone = choice.pick(this.cuts.length + 1);
    const firstUndone = this.cuts[cutsDone]?.at ?? Number.POSITIVE_INFINITY;
    let size = cutsDone === 0 ? this.diskSize : (this.cuts[cutsDone - 1]?.size ?? 0);
    const pieces: { readonly start: number; readonly bytes: Buffer }[] = [];
    for (const [number, page] of this.pages) {
      // A write after an extension of the file is lost without the extension, and truncated content is lost.
      const until = page.changes.findIndex((change) => "size" in change && change.at >= firstUndone);
      const newest = until < 0 ? page.changes.length : until;
      const oldest = 1 + page.changes.findLastIndex((change, at) => "size" in change && at < newest);
      for (let start = number * PAGE_BYTES; start < (number + 1) * PAGE_BYTES; start += choice.pieceBytes) {
        const state = oldest + choice.pick(newest - oldest + 1);
        const bytes = this.pieceOf(start, choice.pieceBytes, page.changes.slice(0, state));
        pieces.push({ start, bytes });
        size = Math.max(size, endOf(page.changes.slice(oldest, state), start, start + choice.pieceBytes));
      }
    }
    const content = Buffer.alloc(size);
    this.disk.copy(content, 0, 0, Math.min(size, this.diskSize));
    for (const { start, bytes } of pieces) if (start < size) bytes.copy(content, start);
    return content;
  }

  private change(change: Change, start: number, end: number): void {
    for (let number = Math.floor(start / PAGE_BYTES); number * PAGE_BYTES < end; number += 1) {
      const page = this.pages.get(number) ?? { changes: [], dirty: true };
      page.changes.push(change);
      page.dirty = true;
      this.pages.set(number, page);
    }
  }

  private resize(at: number, size: number): void {
    this.size = size;
    this.sizes.push({ at, size });
  }

  private writePage(number: number, changes: readonly Change[]): void {
    const start = number * PAGE_BYTES;
    if (this.disk.length < start + PAGE_BYTES) {
      const larger = Buffer.alloc(Math.max(start + PAGE_BYTES, this.disk.length * 2));
      this.disk.copy(larger);
      this.disk = larger;
    }
    this.pieceOf(start, PAGE_BYTES, changes).copy(this.disk, start);
  }

  private pieceOf(start: number, size: number, changes: readonly Change[]): Buffer {
    const piece = Buffer.alloc(size);
    this.disk.subarray(start, start + size).copy(piece);
    for (const change of changes) {
      if ("size" in change) piece.fill(0, Math.min(size, Math.max(0, change.size - start)));
      else overlay(piece, start, change);
    }
    return piece;
  }
}

function overlay(piece: Buffer, start: number, change: { offset: number; bytes: Uint8Array }): void {
  const from = Math.max(0, start - change.offset);
  const to = Math.min(change.bytes.length, start + piece.length - change.offset);
  if (from < to) piece.set(change.bytes.subarray(from, to), change.offset + from - start);
}

/** Size of the file after the writes among these changes, within one piece of it. */
function endOf(changes: readonly Change[], start: number, end: number): number {
  let reach = 0;
  for (const change of changes) {
    if ("size" in change) continue;
    const to = Math.min(end, change.offset + change.bytes.length);
    if (change.offset < end && to > start) reach = Math.max(reach, to);
  }
  return reach;
}
