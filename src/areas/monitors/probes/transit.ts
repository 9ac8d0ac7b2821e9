import { LruMap } from "../../../kernel/limits/lru-map.ts";
import { MINUTE_MS } from "../../../kernel/time/units.ts";

/** Every line takes some time, and times of results are shown in seconds. */
const DELAY_MS_MIN = 1_000;
/** The clocks of two machines differ by some 10 ms more or less after this time. */
const WINDOW_MS = 10 * MINUTE_MS;
/** Processes of a probe that are remembered: a request of one that has ended may still arrive. */
const RUNS_MAX = 4;

/** When a request was sent, as its sender says. */
export interface Sent {
  /** Identifies the process. */
  readonly run?: string | undefined;
  /** By the monotonic clock of the process, in milliseconds. */
  readonly sent_ms?: number | undefined;
}

/** Differences between the clocks of the server and of a process, each with the time of the fastest request. */
interface Run {
  least: number;
  /** That of the window before. */
  leastBefore: number;
  since: number;
}

/** How long requests of a probe are on their way: a line that fails for a time may deliver them later. */
export class TransitTimes {
  private readonly runs = new LruMap<string, Run>(RUNS_MAX);

  /**
   * The time in milliseconds that a request took longer than the fastest one lately of the same process; 0 below a second, and
   * for one that does not say when it was sent. `now`: its receipt, by the monotonic clock of the server.
   */
  delayOf({ run, sent_ms: sentMs }: Sent, now: number): number {
    if (run === undefined || sentMs === undefined) return 0;
    const difference = now - sentMs;
    const known = this.runs.get(run) ?? { least: difference, leastBefore: difference, since: now };
    this.runs.set(run, known);
    if (now - known.since >= WINDOW_MS)
      Object.assign(known, { least: difference, leastBefore: known.least, since: now });
    known.least = Math.min(known.least, difference);
    const delayMs = difference - Math.min(known.least, known.leastBefore);
    return delayMs < DELAY_MS_MIN ? 0 : delayMs;
  }
}
