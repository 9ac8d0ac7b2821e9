import { Counter, Histogram } from "../metrics/instruments.ts";
import { Dispatcher, type Placed } from "./dispatcher.ts";
import type { JobPosition, JobStore } from "./job-store.ts";
import type { LaneLimits } from "./lane-groups.ts";

/** Positions read in one step: well below a millisecond, so that requests are served in between. */
export const POSITIONS_PER_STEP = 500;

/** What remains to be read after a step. */
export type NextStep =
  /** More jobs may be due: another step is needed. */
  | "at-once"
  /** All due jobs are known; this is the time of the next one, null when there is none. */
  | number
  | null;

/**
 * Finds the due jobs of a kind in the order of their due times, without reading them all. The front is how far the due
 * times have been read. Behind it, lanes without space have left jobs in the table: a search reads that stretch again
 * once there is space.
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
    if (dueAt <= this.front.dueAt) this.front = momentBegins(dueAt);
  }

  /** A job's slot is free: see {@link Dispatcher.release}. */
  release(job: Placed, slow: boolean | null): void {
    const from = this.dispatcher.release(job, slow);
    if (from !== null) this.searchFrom(from);
  }

  /** Whether to read on when a slot becomes free. */
  get wantsStep(): boolean {
    return this.search !== null || this.paused;
  }

  /** Reads the next jobs, a limited number. */
  step(now: number): NextStep {
    this.paused = !this.dispatcher.hasCapacity;
    if (this.paused) return null;
    const searched = this.stepSearch();
    const passed = this.stepFront(now);
    if (!searched || !passed) return "at-once";
    return this.store.earliestAfter(this.kind, now)?.dueAt ?? null;
  }

  /** Returns whether everything up to `now` has been read. */
  private stepFront(now: number): boolean {
    // The wall clock was set back: what lies between was read before that.
    if (this.front.dueAt > now) return this.search === null;
    const found = this.store.positions(this.kind, this.front, now, POSITIONS_PER_STEP);
    for (const position of found) {
      this.front = position;
      if (this.dispatcher.offer(position)) this.searchFrom(position.dueAt);
    }
    if (found.length === POSITIONS_PER_STEP) return false;
    this.front = momentEnds(now);
    return this.search === null;
  }

  /** Returns whether the search is over. */
  private stepSearch(): boolean {
    if (this.search === null) return true;
    const found = this.store.positions(this.kind, this.search, this.front.dueAt, POSITIONS_PER_STEP);
    for (const position of found) {
      this.search = position;
      this.dispatcher.offerLeft(position);
      if (!this.dispatcher.isSearching) break;
    }
    if (found.length < POSITIONS_PER_STEP) this.dispatcher.endSearch();
    if (!this.dispatcher.isSearching) this.search = null;
    return this.search === null;
  }

  private searchFrom(dueAt: number): void {
    if (this.search === null || dueAt <= this.search.dueAt) this.search = momentBegins(dueAt);
  }
}

function momentBegins(dueAt: number): JobPosition {
  return { dueAt, lane: "", id: -1 };
}

/** After every job of this time: no lane's name begins with the highest character. */
function momentEnds(dueAt: number): JobPosition {
  return { dueAt, lane: "\u{10ffff}", id: Number.MAX_SAFE_INTEGER };
}

/** Upper limits of the lateness histogram, in seconds. */
const LATENESS_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200];

/** What is counted of the jobs of a kind. */
export class JobCounts {
  /** Seconds from a job's due time to its start. */
  readonly lateness = new Histogram(LATENESS_BUCKETS);
  /** Runs whose outcome has been recorded: the job is done, it will run again, or its handler failed. */
  readonly runs = { done: new Counter(), again: new Counter(), defect: new Counter() };
}

/** The jobs of a kind at a time. */
export interface JobsNow {
  readonly kind: string;
  /** Null for a kind that is not registered: its jobs wait for a start that knows it. */
  readonly counts: JobCounts | null;
  /** Jobs that are not running, due or not. */
  readonly waiting: number;
  readonly running: number;
  /** Waiting jobs that are due, {@link DUE_COUNTED_MAX} at most. */
  due(): number;
  /** How long the most overdue job has waited, in seconds; 0 when none is overdue. */
  overdueSeconds(): number;
}

/** Largest count of due jobs of each kind: it takes some hundred microseconds. */
export const DUE_COUNTED_MAX = 10_000;
