import { monotonicMs } from "../clock.ts";

/** Longest that a unit of work waits for company: about the time of the fsync that it may save. */
export const GATHER_MS_MAX = 0.3;
/** Every so many batches one waits its full time, to find out whether more clients have come. */
const PROBE_EVERY = 32;

/**
 * Decides how long a batch waits for company before its commit.
 *
 * Clients that were just answered tend to come back at once. Committing as soon as anything is queued would
 * split them into two halves that take turns, and so pay twice as many fsyncs; so a batch waits for as many
 * units as the last ones had, and a little while at most. A lone client never waits for anybody, but for one
 * batch in {@link PROBE_EVERY}.
 */
export class Gather {
  private wanted = 1;
  private batches = 0;

  /** `now`: a monotonic clock in milliseconds. */
  constructor(private readonly now: () => number = monotonicMs) {}

  /** A batch begins to form. Returns whether, with so many units queued, it is to be committed. */
  begin(): (queued: number) => boolean {
    const deadline = this.now() + GATHER_MS_MAX;
    const wanted = this.batches % PROBE_EVERY === PROBE_EVERY - 1 ? Number.POSITIVE_INFINITY : this.wanted;
    return (queued) => queued >= wanted || this.now() >= deadline;
  }

  /** A batch of so many units is committed. */
  end(units: number): void {
    this.batches += 1;
    this.wanted = Math.max(1, units);
  }
}
