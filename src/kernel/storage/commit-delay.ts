import { monotonicMs } from "../time/clock.ts";

/** Longest that a unit of work waits for company on a fast disk: about the time of the fsync that it may save. */
export const COMMIT_DELAY_MS = 0.3;
/** Longest on a slow one, as a part of what a commit takes there: who is late waits for a whole further commit. */
export const COMMIT_DELAY_PART = 0.25;
/** Longest of all: a disk that stalls is no reason to wait. */
export const COMMIT_DELAY_MS_MAX = 5;
/** Of the time that commits are expected to take, how much the last one is. */
const LAST_COMMIT_PART = 0.125;
/** Every so many batches one waits its full time, to find out whether more clients have come. */
const PROBE_EVERY = 32;

/**
 * Decides how long a batch waits for company before its commit.
 *
 * Clients that just got a response often send the next request immediately. Committing as soon as anything is queued would
 * split them into two halves that take turns, and so pay twice as many fsyncs; so a batch waits for as many
 * units as the last one had, and a little while at most: longer where commits take longer. A lone client never waits
 * for anybody, but for one batch in {@link PROBE_EVERY}.
 */
export class CommitDelay {
  private wanted = 1;
  private batches = 0;
  private commitMs = 0;

  /** `now`: a monotonic clock in milliseconds. */
  constructor(private readonly now: () => number = monotonicMs) {}

  /** A batch begins to form. Returns whether, with so many units queued, it is to be committed. */
  begin(): (queued: number) => boolean {
    const deadline = this.now() + this.longestMs();
    const wanted = this.batches % PROBE_EVERY === PROBE_EVERY - 1 ? Number.POSITIVE_INFINITY : this.wanted;
    return (queued) => queued >= wanted || this.now() >= deadline;
  }

  /** A batch of so many units was committed, and that took so long. */
  end(units: number, tookMs: number): void {
    this.batches += 1;
    this.wanted = Math.max(1, units);
    this.commitMs += (tookMs - this.commitMs) * LAST_COMMIT_PART;
  }

  private longestMs(): number {
    return Math.min(COMMIT_DELAY_MS_MAX, Math.max(COMMIT_DELAY_MS, this.commitMs * COMMIT_DELAY_PART));
  }
}
