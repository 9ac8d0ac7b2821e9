import { Dispatcher, type LaneLimits, type Placed } from "./dispatcher.ts";
import type { JobPosition, JobStore } from "./job-store.ts";

/** Positions read in one step: well below a millisecond, so that requests are served in between. */
export const POSITIONS_PER_STEP = 500;

/** What remains to be read after a step. */
export type NextStep =
  /** More jobs may be due: another step is needed. */
  | "at-once"
  /** All due jobs are known; `at` is the time of the next one, null when there is none. */
  | { readonly at: number | null };

/**
 * Finds the due jobs of a kind in the order of their due times, without reading them all. The front is how far the due
 * times have been read. Behind it, lanes without room have left jobs in the table: a search reads that stretch again
 * once there is room.
 */
export class DueJobs {
  readonly dispatcher: Dispatcher;
  private front: JobPosition = momentBegins(Number.MIN_SAFE_INTEGER);
  private search: JobPosition | null = null;
  private paused = false;

  constructor(
    private readonly store: JobStore,
    private readonly kind: string,
    concurrency: number,
    limits?: LaneLimits,
  ) {
    this.dispatcher = new Dispatcher(concurrency, limits);
  }

  /** A job with this due time was put into the table, or back into it. */
  arrived(dueAt: number): void {
    if (dueAt <= this.front.due_at) this.front = momentBegins(dueAt);
  }

  /** A job's place is free: see {@link Dispatcher.release}. */
  release(job: Placed, slow: boolean | null): void {
    const from = this.dispatcher.release(job, slow);
    if (from !== null) this.searchFrom(from);
  }

  /** Whether to read on when a place becomes free. */
  get wantsStep(): boolean {
    return this.search !== null || this.paused;
  }

  /** Reads the next jobs, a limited number. */
  step(now: number): NextStep {
    this.paused = !this.dispatcher.hasRoom;
    if (this.paused) return { at: null };
    const searched = this.stepSearch();
    const passed = this.stepFront(now);
    if (!searched || !passed) return "at-once";
    return { at: this.store.earliestAfter(this.kind, now) };
  }

  /** Returns whether everything up to `now` has been read. */
  private stepFront(now: number): boolean {
    // The wall clock was set back: what lies between was read before that.
    if (this.front.due_at > now) return this.search === null;
    const found = this.store.positions(this.kind, this.front, now, POSITIONS_PER_STEP);
    for (const position of found) {
      this.front = position;
      const { id, due_at: dueAt, lane } = position;
      if (this.dispatcher.offer({ id, dueAt, lane })) this.searchFrom(dueAt);
    }
    if (found.length === POSITIONS_PER_STEP) return false;
    this.front = momentEnds(now);
    return this.search === null;
  }

  /** Returns whether the search is over. */
  private stepSearch(): boolean {
    if (this.search === null) return true;
    const through = this.front.due_at;
    const found = this.store.positions(this.kind, this.search, through, POSITIONS_PER_STEP);
    for (const position of found) {
      this.search = position;
      this.dispatcher.offerLeft({ id: position.id, dueAt: position.due_at, lane: position.lane });
      if (!this.dispatcher.isSearching) break;
    }
    if (found.length < POSITIONS_PER_STEP) this.dispatcher.endSearch();
    if (!this.dispatcher.isSearching) this.search = null;
    return this.search === null;
  }

  private searchFrom(dueAt: number): void {
    if (this.search === null || dueAt <= this.search.due_at) this.search = momentBegins(dueAt);
  }
}

function momentBegins(dueAt: number): JobPosition {
  return { due_at: dueAt, lane: "", id: -1 };
}

/** After every job of this moment: no lane's name begins with the highest character. */
function momentEnds(dueAt: number): JobPosition {
  return { due_at: dueAt, lane: "\u{10ffff}", id: Number.MAX_SAFE_INTEGER };
}
