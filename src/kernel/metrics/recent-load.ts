/** Ticks of the event loop's timer that are remembered: a minute of them. */
const LAGS_MAX = 600;
/** So often is the number of requests looked at. */
const TICKS_PER_SAMPLE = 10;
/** Looks that are remembered: rates are of the last five seconds. */
const SAMPLES_MAX = 5;
const P99 = 0.99;

interface Sample {
  /** Monotonic milliseconds. */
  readonly at: number;
  readonly requests: number;
}

/** The load of the last seconds, where metrics count from the start: for the console. */
export class RecentLoad {
  /** Requests completed since the start; set by the HTTP side. */
  requests: () => number = () => 0;
  private readonly lags = new Float64Array(LAGS_MAX);
  private ticks = 0;
  private requestsSeen = 0;
  private samples: readonly Sample[];

  /** `monotonicNow` in milliseconds. */
  constructor(private readonly monotonicNow: () => number) {
    this.samples = [{ at: monotonicNow(), requests: 0 }];
  }

  /** Call it ten times a second, with how late the call comes, or less often with the `ticks` that the call stands for. */
  tick(lateMs: number, ticks = 1): void {
    const before = Math.floor(this.ticks / TICKS_PER_SAMPLE);
    for (let count = 0; count < ticks; count += 1) {
      this.lags[this.ticks % LAGS_MAX] = lateMs;
      this.ticks += 1;
    }
    if (Math.floor(this.ticks / TICKS_PER_SAMPLE) === before) return;
    const sample = { at: this.monotonicNow(), requests: this.requests() };
    this.samples = [...this.samples, sample].slice(-SAMPLES_MAX);
  }

  /** Whether no request was completed since the last call. */
  isIdle(): boolean {
    const requests = this.requests();
    const isIdle = requests === this.requestsSeen;
    this.requestsSeen = requests;
    return isIdle;
  }

  /** The 99th percentile of the last minute's lags, in milliseconds; 0 before the first. */
  get lagP99Ms(): number {
    const known = this.lags.slice(0, Math.min(this.ticks, LAGS_MAX)).sort();
    return known[Math.ceil(known.length * P99) - 1] ?? 0;
  }

  /** Completed requests per second, over the last five seconds. */
  get requestsPerSecond(): number {
    const [oldest] = this.samples;
    if (oldest === undefined) return 0;
    const seconds = (this.monotonicNow() - oldest.at) / 1000;
    return seconds > 0 ? (this.requests() - oldest.requests) / seconds : 0;
  }
}
