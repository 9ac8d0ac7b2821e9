import { Histogram } from "./instruments.ts";

/** Upper limits in milliseconds, each a quarter above the one before: what is read off them is at most that much too high. */
const BOUNDS_MS = Array.from({ length: 56 }, (_, index) => Math.round(25 * 1.25 ** index) / 100);
const SERVER_ERROR = 500;
const P99 = 0.99;

/** The requests of a minute. */
export interface TakenLoad {
  readonly requests: number;
  /** Responses with a status of 500 or above. */
  readonly errors: number;
  /** 99th percentile of the durations, in milliseconds; null without a request. */
  readonly p99Ms: number | null;
}

/** Counts the requests of the current minute, all operations together. */
export class MinuteLoad {
  private durations = new Histogram(BOUNDS_MS);
  private errors = 0;

  /** Counts a completed request. */
  count(status: number, durationMs: number): void {
    if (status >= SERVER_ERROR) this.errors += 1;
    this.durations.observe(durationMs);
  }

  /** The requests since the last call. */
  take(): TakenLoad {
    const { durations, errors } = this;
    this.durations = new Histogram(BOUNDS_MS);
    this.errors = 0;
    return { requests: durations.count, errors, p99Ms: durations.quantile(P99) };
  }
}
