import { monotonicMs, realTimeout } from "../../kernel/clock.ts";

/** How long results wait for others when many come in. */
const WINDOW_MS = 50;
/** Results within one window from which on they wait: 200 a second. */
const BUSY_RESULTS = 10;

/**
 * Lets the results of many checks share a commit. Nobody minds a result that comes 50 ms later; some hundred commits
 * a second less leave the disk to the requests.
 */
export class CommitWindow {
  private waiting: (() => void)[] = [];
  private endsAt = 0;
  private results = 0;
  private resultsBefore = 0;

  /** Undefined while there is little to do; else a promise that resolves at the end of the window. */
  join(): Promise<void> | undefined {
    const now = monotonicMs();
    if (now >= this.endsAt) {
      this.resultsBefore = now < this.endsAt + WINDOW_MS ? this.results : 0;
      this.results = 0;
      this.endsAt = now + WINDOW_MS;
    }
    this.results += 1;
    if (Math.max(this.results, this.resultsBefore) <= BUSY_RESULTS) return undefined;
    return new Promise((resolve) => {
      if (this.waiting.length === 0) realTimeout(this.endsAt - now, () => this.release());
      this.waiting.push(resolve);
    });
  }

  private release(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}
