import { SLICE_MS, slices, type TimeSlices } from "../../../kernel/background/time-slices.ts";
import { monotonicMs } from "../../../kernel/time/clock.ts";
import { plainHeaders } from "../ingestion/event-headers.ts";
import type { EventFilter, EventRow, EventStore, PayloadRow } from "../store.ts";

/** Events that one request looks at: a full bucket of the largest tier takes twenty of them. */
export const SEARCHED_EVENTS_MAX = 5_000;
/** How long one request looks, waits for others included. What is left is for the next page. */
export const SEARCH_MS_MAX = 200;
/** Slices that every search has, however busy the machine is: what is found among a bucket's newest events shall not depend on it. */
export const SLICES_MIN = 5;
/** Events whose small rows are read at once. */
const ROWS_AT_ONCE = 100;

/** What is looked for, and from where on. */
export interface SearchTerms {
  readonly bucketRef: number;
  readonly filter: EventFilter;
  /** Null: any event that is wanted. */
  readonly text: string | null;
  /** What else an event must be. */
  readonly wanted: (row: EventRow) => boolean;
  /** Only events of this number or a larger one. */
  readonly from: number;
  /** Only events below this number. */
  readonly before: number;
  /** Events that are found at most. */
  readonly limit: number;
}

/** What a search has found. */
export interface Found {
  readonly rows: readonly EventRow[];
  /** The last number that was looked at; null when all have been. */
  readonly through: number | null;
  /** Whether time or events ran out before the page was full. */
  readonly isPartial: boolean;
}

/** Looks for events that no index leads to, and for texts in them, newest first, a slice at a time. */
export class EventSearch {
  constructor(
    private readonly events: Pick<EventStore, "page" | "payload">,
    /** Milliseconds of a clock that goes on while a search works. */
    private readonly elapsed: () => number = monotonicMs,
    private readonly timeSlices: TimeSlices = slices,
  ) {}

  /** Finds the newest events that have a text. At least {@link SLICES_MIN} events are looked at, so that pages always get on. */
  async find(terms: SearchTerms, signal: AbortSignal): Promise<Found> {
    const end = this.elapsed() + SEARCH_MS_MAX;
    const look = new Look(this.events, terms);
    let slices = 0;
    do {
      await this.timeSlices.next();
      const sliceEnd = this.elapsed() + SLICE_MS;
      while (look.step() && this.elapsed() < sliceEnd);
      slices += 1;
    } while (!look.isOver && (slices < SLICES_MIN || this.elapsed() < end) && !signal.aborted);
    return look.found();
  }
}

/** How far a search has come. */
class Look {
  private readonly text: string | null;
  private readonly rows: EventRow[] = [];
  private ahead: EventRow[] = [];
  private through: number;
  private looked = 0;
  private isAtEnd = false;

  constructor(
    private readonly events: Pick<EventStore, "page" | "payload">,
    private readonly terms: SearchTerms,
  ) {
    this.text = terms.text === null ? null : terms.text.toLowerCase();
    this.through = terms.before;
  }

  get isOver(): boolean {
    return this.isAtEnd || this.isFull || this.looked >= SEARCHED_EVENTS_MAX;
  }

  private get isFull(): boolean {
    return this.rows.length >= this.terms.limit;
  }

  /** Looks at the next event. Returns whether there may be another one to look at. */
  step(): boolean {
    const row = this.next();
    if (row === undefined) return false;
    this.looked += 1;
    this.through = row.sequence;
    if (this.terms.wanted(row) && this.hasText(row)) this.rows.push(row);
    return !this.isOver;
  }

  private hasText({ sequence }: EventRow): boolean {
    if (this.text === null) return true;
    const payload = this.events.payload(sequence);
    return payload !== null && hasText(payload, this.text);
  }

  found(): Found {
    const { rows } = this;
    if (this.isAtEnd || this.next() === undefined) return { rows, through: null, isPartial: false };
    return { rows, through: this.through, isPartial: !this.isFull };
  }

  /** The next event; a second call gives the same one until it has been looked at. */
  private next(): EventRow | undefined {
    const { bucketRef, filter, from } = this.terms;
    while (this.ahead[0] !== undefined && this.ahead[0].sequence >= this.through) this.ahead.shift();
    if (this.ahead.length === 0) this.ahead = this.events.page(bucketRef, filter, this.through, ROWS_AT_ONCE);
    if (this.ahead[0] !== undefined && this.ahead[0].sequence < from) this.ahead = [];
    this.isAtEnd = this.ahead.length === 0;
    return this.ahead[0];
  }
}

/**
 * Whether a request has a text in its headers or in its body, which is taken for UTF-8. `wanted` is in lower case, and short:
 * a mebibyte takes 5 ms then, whatever stands in it.
 */
function hasText({ headers, body }: PayloadRow, wanted: string): boolean {
  return (
    plainHeaders(headers).toLowerCase().includes(wanted) ||
    Buffer.from(body.buffer, body.byteOffset, body.length).toString("utf8").toLowerCase().includes(wanted)
  );
}
