import { readHeader } from "../kernel/storage/replication/entry.ts";
import type { Position, StoredPosition } from "../kernel/storage/replication/position.ts";
import type { Segment, Tail } from "../kernel/storage/replication/tail.ts";

/** Entries that are read from the commit log at a time: their encoded text is parsed on the event loop. */
const PAGE_ENTRIES = 16;
/** A segment is closed at this size: its entries, which are compressed, are merged in memory. */
const SEGMENT_BYTES = 4 * 1024 * 1024;

/** An entry as a commit log has it. */
interface EncodedEntry {
  readonly seq: number;
  readonly epoch: number;
  readonly parts: readonly Uint8Array[];
}

/** The commit log of a cluster, as the archive of its leader reads it. */
export interface ConfirmedLog {
  /** Id of the log. */
  readonly id: string;
  /** Of the entry with which this leader's epoch began. Everything before it is confirmed. */
  readonly seal: Position;
  /** At most `max` entries from a place on, without gaps; null: they have been deleted from the log. */
  read(from: number, max: number): Promise<readonly EncodedEntry[] | null>;
}

/**
 * Reads what an archive lacks between its end and a leader's own entries into segments, which are not part of the tail yet.
 * Null: the log no longer has it, or has something else at the end of the archive, so that the archive cannot be continued.
 *
 * @throws EngineUnavailable
 */
export async function readMissing(
  log: ConfirmedLog,
  end: StoredPosition,
  through: number,
  tail: Tail,
): Promise<Segment[] | null> {
  const segments: Segment[] = [];
  let isComplete = false;
  try {
    isComplete = await readInto(segments, log, end, through, tail);
    return isComplete ? segments : null;
  } finally {
    if (!isComplete) tail.discard(segments);
  }
}

/** Whether the log has everything. */
async function readInto(
  segments: Segment[],
  log: ConfirmedLog,
  end: StoredPosition,
  through: number,
  tail: Tail,
): Promise<boolean> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  let first = end.seq + 1;
  // The last entry of the archive comes first: it proves that the log is the same.
  for (let next = end.seq; next <= through; ) {
    const entries = await log.read(next, Math.min(PAGE_ENTRIES, through - next + 1));
    if (entries === null || entries.length === 0) return false;
    for (const entry of entries) {
      const isKnown = isOf(entry, log.id, next) && (next > end.seq || entry.epoch === end.epoch);
      if (!isKnown) return false;
      next += 1;
      if (entry.seq === end.seq) continue;
      parts.push(...entry.parts);
      bytes += entry.parts.reduce((sum, { length }) => sum + length, 0);
      if (bytes < SEGMENT_BYTES) continue;
      segments.push(tail.writeSegment(first, parts));
      [parts, bytes, first] = [[], 0, next];
    }
  }
  if (parts.length > 0) segments.push(tail.writeSegment(first, parts));
  return true;
}

/** Whether an entry is at this place of the log and has its pages. One without any says that only a leader's file has them. */
function isOf({ seq, epoch, parts }: EncodedEntry, log: string, place: number): boolean {
  const [part] = parts;
  if (part === undefined || seq !== place) return false;
  const header = readHeader(part);
  return header.seq === seq && header.epoch === epoch && header.log === log && header.filePages > 0;
}
