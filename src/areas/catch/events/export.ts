import { slices, type TimeSlices } from "../../../kernel/background/time-slices.ts";
import { firstSequenceAt } from "../ids.ts";
import type { EventRow, EventStore } from "../store.ts";

/** Bytes of a page: the largest event, written out, takes 7.4 MiB of it. */
export const EXPORT_BYTES_MAX = 8 * 1024 * 1024;
/** Events of a page: as many small ones as take a fraction of a second. */
export const EXPORT_EVENTS_MAX = 10_000;
/** Events whose small rows are read at once. */
const ROWS_AT_ONCE = 100;

/** Which events are wanted. */
interface ExportTerms {
  readonly bucketRef: number;
  /** Epoch milliseconds. */
  readonly since: number;
  /** Epoch milliseconds; infinite for no end. */
  readonly until: number;
  /** Only events after this number. */
  readonly after: number;
}

/** A page of an export: its lines, and the number of its last event; null where there is nothing after it. */
interface ExportPage {
  readonly text: string;
  readonly through: number | null;
}

/** Writes a page of a bucket's events, oldest first, a slice at a time. `line`: an event as JSON; null where it is gone. */
export async function exportPage(
  events: Pick<EventStore, "after">,
  { bucketRef, since, until, after }: ExportTerms,
  line: (row: EventRow) => string | null,
  signal: AbortSignal,
  timeSlices: TimeSlices = slices,
): Promise<ExportPage> {
  const end = firstSequenceAt(until);
  const lines: string[] = [];
  let bytes = 0;
  // What is left of a number that was given to no event: the first is wanted too.
  let through = Math.max(after, firstSequenceAt(since) - 1);
  while (!signal.aborted) {
    const rows = events.after(bucketRef, through, ROWS_AT_ONCE);
    for (const row of rows) {
      if (row.sequence >= end) return { text: lines.join(""), through: null };
      if (timeSlices.isOver) await timeSlices.next();
      const text = line(row);
      const size = text === null ? 0 : Buffer.byteLength(text);
      const isFull = bytes + size > EXPORT_BYTES_MAX || lines.length >= EXPORT_EVENTS_MAX;
      if (lines.length > 0 && isFull) return { text: lines.join(""), through };
      if (text !== null) lines.push(text);
      bytes += size;
      through = row.sequence;
    }
    if (rows.length < ROWS_AT_ONCE) break;
  }
  return { text: lines.join(""), through: null };
}
