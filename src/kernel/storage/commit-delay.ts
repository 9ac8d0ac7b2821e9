import { monotonicMs } from "../time/clock.ts";

/** Longest wait of a batch for further units on a fast disk: about the time of the sync that it may save. */
export const COMMIT_DELAY_MS = 0.3;
/** Longest wait on a slow disk, as a share of the commit time: a unit that misses the batch waits for a whole commit. */
export const COMMIT_DELAY_PART = 0.25;
/** Longest wait on any disk. */
export const COMMIT_DELAY_MS_MAX = 5;
/** Weight of the last commit in the average commit time. */
const LAST_COMMIT_PART = 0.125;
/** Every this many batches, one waits the full time, to detect more clients. */
const PROBE_EVERY = 32;

/**
 * Decides how long a batch waits for further units before its commit.
 *
 * Clients that just got a response often send the next request immediately. A commit as soon as anything is queued would
 * split them into two groups that alternate, with twice as many syncs. So a batch waits for as many units as the last one
 * had, and for those that came during its confirmation, for a limited time: as long as a confirmation takes, or a part of a
 * commit's time. A single client only waits in one batch of {@link PROBE_EVERY}.
 */
export class CommitDelay {
  private wanted = 1;
  private batches = 0;
  private commitMs = 0;
  private confirmationMs = 0;

  /** `now`: monotonic time in milliseconds. */
  constructor(private readonly now: () => number = monotonicMs) {}

  /** Begins a batch. The result tells, for a number of queued units, whether the batch still waits. */
  begin(): (queued: number) => boolean {
    const deadline = this.now() + this.longestMs();
    const wanted = this.batches % PROBE_EVERY === PROBE_EVERY - 1 ? Number.POSITIVE_INFINITY : this.wanted;
    return (queued) => queued >= wanted || this.now() >= deadline;
  }

  /** Records a committed batch: its number of units and its duration. */
  end(units: number, tookMs: number): void {
    this.batches += 1;
    this.wanted = Math.max(1, units);
    this.commitMs += (tookMs - this.commitMs) * LAST_COMMIT_PART;
  }

  /** Records the confirmation of that batch: its duration, and the units that are queued at its end. */
  confirmed(queued: number, tookMs: number): void {
    this.wanted += queued;
    this.confirmationMs += (tookMs - this.confirmationMs) * LAST_COMMIT_PART;
  }

  private longestMs(): number {
    const longest = Math.max(COMMIT_DELAY_MS, this.commitMs * COMMIT_DELAY_PART, this.confirmationMs);
    return Math.min(COMMIT_DELAY_MS_MAX, longest);
  }
}
