/** Shorter confirmations are not worth a wait: a timer takes a millisecond. */
export const CONFIRMATION_MS_MIN = 0.5;
/** About what a request takes of the event loop from its arrival to its response. */
export const REQUEST_MS = 0.02;
/** Longest wait on any disk. */
export const COMMIT_DELAY_MS_MAX = 5;
/** Weight of the last confirmation in the average of their durations. */
const LAST_PART = 0.125;

/**
 * Decides how long a batch waits for further units before its commit.
 *
 * Clients that just got a response often send the next request immediately. Without a wait these would miss the batch of those
 * that came during the confirmation, and two groups of clients would alternate, with twice as many syncs. So a batch waits for
 * as many units as were confirmed last and have come meanwhile, at most as long as a confirmation takes. Where the requests
 * themselves take longer than that, two groups keep the processor and the disk busy at the same time, and no batch waits.
 */
export class CommitDelay {
  private wanted = 1;
  private averageMs = 0;

  /** Records the commit and confirmation of a batch: its units, those that are queued at the end, and the duration. */
  confirmed(units: number, queued: number, tookMs: number): void {
    this.wanted = units + queued;
    this.averageMs += (tookMs - this.averageMs) * LAST_PART;
  }

  /** How long a batch waits that has so many units, in milliseconds, unless more come; 0: it begins. */
  waitMs(queued: number): number {
    if (queued >= this.wanted) return 0;
    if (this.averageMs < Math.max(CONFIRMATION_MS_MIN, this.wanted * REQUEST_MS)) return 0;
    return Math.min(COMMIT_DELAY_MS_MAX, Math.max(1, Math.round(this.averageMs)));
  }
}
