import { slices, type TimeSlices } from "../../../kernel/background/time-slices.ts";
import { firstSequenceAt } from "../event-ids.ts";
import type { EventRow, EventStore } from "../store.ts";

/** Bytes of a page: the largest event takes 7.4 MiB as JSON. */
export const EXPORT_BYTES_MAX = 8 * 1024 * 1024;
/** Events of a page: small ones take a fraction of a second. */
export const EXPORT_EVENTS_MAX = 10_000;
/** Rows of events that are read in one step, without payloads. */
const ROWS_PER_STEP = 100;

interface ExportTerms {
  readonly bucketRef: number;
  /** Epoch milliseconds. */
  readonly since: number;
  /** Epoch milliseconds; infinity for no end. */
  readonly until: number;
  /** Only events after this number. */
  readonly after: number;
}

/** A page of an export. `through`: the number of its last event; null on the last page. */
interface ExportPage {
  readonly text: string;
  readonly through: number | null;
}

/** Renders a page of a bucket's events, oldest first, in slices. `line`: renders an event; null when it is deleted. */
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
  // The number before the first one of this time: the first event is included.
  let through = Math.max(after, firstSequenceAt(since) - 1);
  while (!signal.aborted) {
    const rows = events.after(bucketRef, through, ROWS_PER_STEP);
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
    if (rows.length < ROWS_PER_STEP) break;
  }
  return { text: lines.join(""), through: null };
}
