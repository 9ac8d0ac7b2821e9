import { SLICE_MS, slices, type TimeSlices } from "../../../kernel/background/time-slices.ts";
import { contentText } from "../../../kernel/data/content.ts";
import { monotonicMs } from "../../../kernel/time/clock.ts";
import { contentHeadersOf, plainHeaders } from "../event-headers.ts";
import type { Pieces } from "../large/pieces.ts";
import type { EventFilter, EventRow, EventStore, PayloadRow } from "../store.ts";

/** Events that one request searches: a full bucket of the largest tier takes twenty requests. */
export const SEARCHED_EVENTS_MAX = 5_000;
/** Longest search of one request, including waits for other requests. The next page continues. */
export const SEARCH_MS_MAX = 200;
/** Minimum slices of a search: results among a bucket's newest events must not depend on the load of the server. */
export const SLICES_MIN = 5;
/** Bytes of a body that are searched. */
const SEARCHED_BYTES_MAX = 1024 * 1024;
/** Rows of events that are read in one step, without payloads. */
const ROWS_PER_STEP = 100;

export interface SearchTerms {
  readonly bucketRef: number;
  readonly filter: EventFilter;
  /** Text to find; null for any event that matches the filters. */
  readonly text: string | null;
  /** Other filters. */
  readonly matches: (row: EventRow) => boolean;
  /** Lowest number of an event. */
  readonly from: number;
  /** Number below which events are searched. */
  readonly before: number;
  /** Maximum number of results. */
  readonly limit: number;
}

export interface Found {
  readonly rows: readonly EventRow[];
  /** The last number that was searched; null when all were. */
  readonly through: number | null;
  /** Whether time or events ran out before the page was full. */
  readonly isPartial: boolean;
}

/** Searches events without an index, newest first, in slices. */
export class EventSearch {
  constructor(
    private readonly events: Pick<EventStore, "page" | "payload">,
    private readonly large: Pick<Pieces, "startOf">,
    /** Monotonic clock, in milliseconds. */
    private readonly elapsed: () => number = monotonicMs,
    private readonly timeSlices: TimeSlices = slices,
  ) {}

  /** Finds the newest events that contain a text. It searches at least {@link SLICES_MIN} events: every page makes progress. */
  async find(terms: SearchTerms, signal: AbortSignal): Promise<Found> {
    const end = this.elapsed() + SEARCH_MS_MAX;
    const run = new SearchRun(this.events, this.large, terms);
    let slices = 0;
    do {
      await this.timeSlices.next();
      const sliceEnd = this.elapsed() + SLICE_MS;
      while (run.step() && this.elapsed() < sliceEnd);
      slices += 1;
    } while (!run.isOver && (slices < SLICES_MIN || this.elapsed() < end) && !signal.aborted);
    return run.found();
  }
}

/** The progress of a search. */
class SearchRun {
  private readonly text: string | null;
  private readonly rows: EventRow[] = [];
  private ahead: EventRow[] = [];
  private through: number;
  private searched = 0;
  private isAtEnd = false;

  constructor(
    private readonly events: Pick<EventStore, "page" | "payload">,
    private readonly large: Pick<Pieces, "startOf">,
    private readonly terms: SearchTerms,
  ) {
    this.text = terms.text === null ? null : terms.text.toLowerCase();
    this.through = terms.before;
  }

  get isOver(): boolean {
    return this.isAtEnd || this.isFull || this.searched >= SEARCHED_EVENTS_MAX;
  }

  private get isFull(): boolean {
    return this.rows.length >= this.terms.limit;
  }

  /** Searches the next event. Returns whether there may be more. */
  step(): boolean {
    const row = this.next();
    if (row === undefined) return false;
    this.searched += 1;
    this.through = row.sequence;
    if (this.terms.matches(row) && this.hasText(row)) this.rows.push(row);
    return !this.isOver;
  }

  private hasText({ sequence }: EventRow): boolean {
    if (this.text === null) return true;
    const payload = this.events.payload(sequence);
    if (payload === null) return false;
    if (payload.upload === null) return hasText(payload, this.text);
    const body = this.large.startOf(payload.upload, SEARCHED_BYTES_MAX);
    return hasText({ headers: payload.headers, body }, this.text);
  }

  found(): Found {
    const { rows } = this;
    if (this.isAtEnd || this.next() === undefined) return { rows, through: null, isPartial: false };
    return { rows, through: this.through, isPartial: !this.isFull };
  }

  /** The next event, without consuming it. */
  private next(): EventRow | undefined {
    const { bucketRef, filter, from } = this.terms;
    while (this.ahead[0] !== undefined && this.ahead[0].sequence >= this.through) this.ahead.shift();
    if (this.ahead.length === 0)
      this.ahead = this.events.page(bucketRef, filter, this.through, ROWS_PER_STEP);
    if (this.ahead[0] !== undefined && this.ahead[0].sequence < from) this.ahead = [];
    this.isAtEnd = this.ahead.length === 0;
    return this.ahead[0];
  }
}

/**
 * Whether a request contains a text in its headers or in its decoded body. `text` is in lower case, and short: 1 MiB takes 5 ms then,
 * whatever its content, and a few more with a coding.
 */
function hasText({ headers, body }: PayloadRow, text: string): boolean {
  return (
    plainHeaders(headers).toLowerCase().includes(text) ||
    contentText(body, contentHeadersOf(headers))?.toLowerCase().includes(text) === true
  );
}
