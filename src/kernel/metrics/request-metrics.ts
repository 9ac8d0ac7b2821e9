import { Histogram } from "./instruments.ts";
import type { Metrics, Sample } from "./metrics.ts";
import { MinuteLoad } from "./minute-load.ts";

/**
 * Upper limits in seconds: from a read out of memory over a commit (some milliseconds) to what waits for a network.
 * Requests for a lock may wait 15 minutes; beyond a minute it does not matter how long.
 */
const DURATION_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

/** The operation of requests that reach no endpoint. */
const NO_OPERATION = "none";

/** Every status in use; anything else is counted as `other`. */
const STATUSES: readonly number[] = [
  ...[200, 201, 202, 204, 400, 401, 402, 403, 404, 408, 409, 413, 429, 500, 503],
];
const OTHER_SLOT = STATUSES.length;
const SLOT_BY_STATUS = new Uint8Array(600).fill(OTHER_SLOT);
for (const [slot, status] of STATUSES.entries()) SLOT_BY_STATUS[status] = slot;

/** Statuses whose series exist from the start, so that alerts can calculate increases. */
const ALWAYS_THERE: ReadonlySet<number> = new Set([500, 503]);

/** What is counted of the requests of one operation, from its first request on. */
interface Seen {
  readonly duration: Histogram;
  /** Responses by {@link SLOT_BY_STATUS}. */
  readonly counts: Float64Array;
}

/** Counts the requests of one operation. */
export class OperationRequests {
  private seen: Seen | null = null;

  constructor(
    readonly operation: string,
    private readonly all: RequestMetrics,
  ) {}

  /** Counts a completed request. */
  answered(status: number, durationMs: number): void {
    this.seen ??= {
      duration: new Histogram(DURATION_BUCKETS),
      counts: new Float64Array(STATUSES.length + 1),
    };
    const { counts, duration } = this.seen;
    const slot = SLOT_BY_STATUS[status] ?? OTHER_SLOT;
    counts[slot] = (counts[slot] as number) + 1;
    duration.observe(durationMs / 1000);
    this.all.count(status, durationMs);
  }

  /** Null before the first request. */
  get duration(): Histogram | null {
    return this.seen?.duration ?? null;
  }

  /** The number of responses by status. */
  byStatus(): Sample[] {
    const { operation, seen } = this;
    const samples: Sample[] = [];
    for (let slot = 0; slot <= OTHER_SLOT; slot += 1) {
      const status = STATUSES[slot];
      const value = seen?.counts[slot] ?? 0;
      if (value === 0 && !(status !== undefined && ALWAYS_THERE.has(status))) continue;
      samples.push({ labels: { operation, status: String(status ?? "other") }, value });
    }
    return samples;
  }
}

/** Counts requests, by operation: each endpoint has its place from its declaration on, and looks nothing up. */
export class RequestMetrics {
  /** Requests that reach no endpoint. */
  readonly unrouted: OperationRequests;
  private readonly operations: OperationRequests[] = [];
  /** Called before the first request of each endpoint, and before every request that no endpoint serves. */
  onArrival: () => void = () => undefined;
  /** The requests since it was last taken. */
  readonly recent = new MinuteLoad();
  private completed = 0;

  constructor() {
    this.unrouted = this.of(NO_OPERATION);
  }

  /** The place of a newly declared endpoint. */
  of(operation: string): OperationRequests {
    const requests = new OperationRequests(operation, this);
    this.operations.push(requests);
    return requests;
  }

  /** Completed requests of all operations. */
  get answered(): number {
    return this.completed;
  }

  /** Counts a completed request of any operation. */
  count(status: number, durationMs: number): void {
    this.completed += 1;
    this.recent.count(status, durationMs);
  }

  /** Makes them part of `GET /metrics`. */
  declareIn(metrics: Metrics): void {
    metrics.declare({
      name: "ninefold_http_requests_total",
      type: "counter",
      help: "Completed requests, by operation and status.",
      labels: ["operation", "status"],
      samples: () => this.operations.flatMap((requests) => requests.byStatus()),
    });
    metrics.declare({
      name: "ninefold_http_request_duration_seconds",
      type: "histogram",
      help: "Time from the head of a request to its response, including the arrival of its body. Operations without requests are omitted.",
      labels: ["operation"],
      samples: () =>
        this.operations.flatMap(({ operation, duration }) =>
          duration === null ? [] : { labels: { operation }, value: duration },
        ),
    });
  }
}
