import { laneName } from "../../../kernel/scheduler/dispatcher.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { BucketActor, EventForwarding, SharedDeps } from "../buckets/buckets.ts";

/** One job per bucket with pending events: it makes the first attempt of each event, or stores its deliveries to endpoints. */
export const FORWARD = "catch.forward";

/** The progress of a bucket's first attempts. It is replaced when the bucket goes live again. */
export interface Progress {
  /** Events up to this number were attempted, or wait for a retry. */
  through: number;
  /** Events up to this number are a backlog, which is sent one by one, in order. */
  readonly orderedThrough: number;
}

/** The jobs of the first attempts, and their progress in memory. */
export class ForwardJobs implements EventForwarding {
  /** By reference of the bucket. */
  private readonly progress = new Map<number, Progress>();

  constructor(private readonly deps: Pick<SharedDeps, "scheduler" | "sequence">) {}

  /** The progress of a bucket; undefined when it has no job. */
  progressOf(bucketRef: number): Progress | undefined {
    return this.progress.get(bucketRef);
  }

  /** Schedules the forwarding of the pending events of a bucket that went live, or has other targets, in order. */
  wentLive(tx: Tx, bucket: BucketActor): void {
    const running = this.progress.get(bucket.ref);
    if (running === undefined) {
      if (bucket.pending > 0) this.beginBacklog(tx, bucket);
      return;
    }
    this.progress.set(bucket.ref, { through: 0, orderedThrough: this.deps.sequence.last });
    tx.onRollback(() => this.progress.set(bucket.ref, running));
  }

  /** Creates the job of a bucket whose pending events are all a backlog. */
  beginBacklog(tx: Tx, bucket: BucketActor): void {
    this.begin(tx, bucket, { through: 0, orderedThrough: this.deps.sequence.last });
  }

  /** Creates the job of a bucket whose newest event is the only one to send. */
  beginNewest(tx: Tx, bucket: BucketActor): void {
    this.begin(tx, bucket, { through: this.deps.sequence.last - 1, orderedThrough: 0 });
  }

  /** Creates the next job of a bucket, in the unit of work that removes the current one. */
  continue(tx: Tx, bucket: BucketActor): void {
    this.deps.scheduler.enqueue(tx, FORWARD, String(bucket.ref), tx.now, {}, laneOf(bucket));
  }

  /** Ends the progress of a bucket, in the unit of work that removes its job. */
  end(tx: Tx, bucketRef: number): void {
    const progress = this.progress.get(bucketRef);
    if (progress === undefined) return;
    this.progress.delete(bucketRef);
    tx.onRollback(() => this.progress.set(bucketRef, progress));
  }

  private begin(tx: Tx, bucket: BucketActor, progress: Progress): void {
    this.progress.set(bucket.ref, progress);
    tx.onRollback(() => this.progress.delete(bucket.ref));
    this.continue(tx, bucket);
  }
}

/** The lane of a bucket's jobs: its account and its target's host. */
export function laneOf(bucket: BucketActor): string {
  return laneName(bucket.account_ref, hostOf(bucket));
}

/** The host of a bucket's `target_url`; empty without one. */
export function hostOf({ target_url }: Pick<BucketActor, "target_url">): string {
  return URL.parse(target_url ?? "")?.host ?? "";
}
