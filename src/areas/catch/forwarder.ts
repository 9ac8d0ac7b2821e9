import { type LaneLimits, laneName } from "../../kernel/scheduler/dispatcher.ts";
import type { Job, JobOutcome, Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import type { Bucket } from "./bucket.ts";
import type { Buckets } from "./buckets.ts";
import type { WebhookCounts } from "./counts.ts";
import type { Delivery, DeliveryResult } from "./delivery.ts";
import { afterTry, isDelivered } from "./domain.ts";
import { type EventSequence, eventIdOf } from "./event-id.ts";
import { decodeProvider, decodeStatus, type EventRow, type EventStore } from "./event-store.ts";
import type { BucketStore } from "./store.ts";

/** Buckets that forward at once; with the events of each, and their bodies of a mebibyte, what memory has to hold. */
export const FORWARDING_BUCKETS_MAX = 32;
/** Events go one by one, so that they arrive in their order. When at least so many are pending, the target is too slow for that... */
export const BEHIND_FROM_EVENTS = 100;
/** ...and this many are under way at once, unless they are a backlog, whose order is promised. */
export const EVENTS_AT_ONCE_MAX = 4;
/** Retries under way at once. */
export const RETRIES_AT_ONCE_MAX = 32;
/** Of both, what one account may take: one with many targets leaves places for others. */
export const ACCOUNT_SHARE = 1 / 2;
/** Targets that do not answer leave places for those that do. */
const LANES: LaneLimits = { perLane: 8, perSlowLane: 2, slowTotal: 16, ownerShare: ACCOUNT_SHARE };
/** Pending events looked at for one turn: those that wait for a retry are passed over. */
const LOOK_AHEAD = 16;
/** Buckets taken up in one unit of work at the start. */
const RESUME_SLICE = 200;

/** One job per bucket that has something to forward: it makes the first try of each event. */
const FORWARD = "catch.forward";
/** One job per event whose try has failed and that is to be tried again. */
const RETRY = "catch.retry";

/** A try that was made, and is not recorded yet. */
interface Try {
  readonly sequence: number;
  readonly result: DeliveryResult;
}

/** How far the first tries of a bucket have come. Another object takes its place when the bucket goes live anew. */
interface Progress {
  /** Events up to this number have been tried, or wait for a retry of their own. */
  through: number;
  /** Events up to this number go one by one: they are a backlog, whose order is promised. */
  orderedThrough: number;
}

/** What the forwarder is built on. */
export interface ForwarderDeps {
  readonly store: BucketStore;
  readonly buckets: Buckets;
  readonly events: EventStore;
  readonly sequence: EventSequence;
  readonly delivery: Delivery;
  readonly scheduler: Scheduler;
  readonly writer: Writer;
  readonly counts: WebhookCounts;
}

/**
 * Sends the pending events of live buckets to their targets. An event is first tried in its turn; when that fails
 * it gets a job of its own for the retries, and the next one has its turn. What is pending in a live bucket is the
 * durable truth: a start begins with it anew, so a crash may repeat a try and loses none.
 */
export class Forwarder {
  /** Buckets whose job is in the table, by reference. */
  private readonly progress = new Map<number, Progress>();

  constructor(private readonly deps: ForwarderDeps) {
    deps.scheduler.register(FORWARD, {
      concurrency: FORWARDING_BUCKETS_MAX,
      lanes: LANES,
      run: (job) => this.forward(job),
    });
    deps.scheduler.register(RETRY, {
      concurrency: RETRIES_AT_ONCE_MAX,
      lanes: LANES,
      run: (job) => this.retry(job),
    });
  }

  /** A pending event came into a bucket. */
  arrived(tx: Tx, bucket: Bucket): void {
    if (!bucket.live || this.progress.has(bucket.ref)) return;
    const last = this.deps.sequence.last;
    this.begin(tx, bucket, { through: last - 1, orderedThrough: 0 });
  }

  /** A bucket has gone live: what is pending in it is forwarded in its order. */
  wentLive(tx: Tx, bucket: Bucket): void {
    const running = this.progress.get(bucket.ref);
    const anew = { through: 0, orderedThrough: this.deps.sequence.last };
    if (running === undefined) {
      if (bucket.counts.pending > 0) this.begin(tx, bucket, anew);
      return;
    }
    this.progress.set(bucket.ref, anew);
    tx.onRollback(() => this.progress.set(bucket.ref, running));
  }

  /** Takes up what the last process left. Before the scheduler starts. */
  async resume(): Promise<void> {
    const { store, buckets, sequence, writer } = this.deps;
    for (let after = 0; ; ) {
      const refs = store.refsToForward(after, RESUME_SLICE);
      const last = refs.at(-1);
      if (last === undefined) return;
      await writer.submit((tx) => {
        for (const ref of refs) {
          const bucket = buckets.withRef(ref);
          if (bucket !== undefined) this.begin(tx, bucket, { through: 0, orderedThrough: sequence.last });
        }
      });
      after = last;
    }
  }

  private begin(tx: Tx, bucket: Bucket, progress: Progress): void {
    this.progress.set(bucket.ref, progress);
    tx.onRollback(() => this.progress.delete(bucket.ref));
    this.enqueue(tx, bucket);
  }

  private enqueue(tx: Tx, bucket: Bucket): void {
    this.deps.scheduler.enqueue(tx, FORWARD, String(bucket.ref), tx.now, {}, laneOf(bucket));
  }

  /** Tries the next event of a bucket, or the next few. */
  private async forward(job: Job): Promise<JobOutcome> {
    const ref = Number(job.key);
    const bucket = this.deps.buckets.withRef(ref);
    const progress = this.progress.get(ref);
    if (bucket?.live !== true || progress === undefined) return { record: (tx) => this.goOn(tx, ref) };
    const turn = this.nextTurn(bucket, progress);
    const results = await Promise.all(turn.rows.map((row) => this.send(bucket, row)));
    return {
      record: (tx) => {
        for (const result of results) this.record(tx, ref, result);
        this.advance(tx, progress, turn.through);
        this.goOn(tx, ref);
      },
    };
  }

  /** The next event to try, or a few; those that wait for a retry are passed over. */
  private nextTurn(bucket: Bucket, progress: Progress): { rows: EventRow[]; through: number } {
    const { events } = this.deps;
    const atOnce = bucket.counts.pending < BEHIND_FROM_EVENTS ? 1 : EVENTS_AT_ONCE_MAX;
    const rows: EventRow[] = [];
    let { through } = progress;
    for (const sequence of events.pendingAfter(bucket.ref, through, LOOK_AHEAD)) {
      if (rows.length >= (sequence <= progress.orderedThrough ? 1 : atOnce)) break;
      through = sequence;
      const row = events.find(bucket.ref, sequence);
      if (row !== null && row.retry_at === null) rows.push(row);
    }
    return { rows, through };
  }

  private advance(tx: Tx, progress: Progress, through: number): void {
    const before = progress.through;
    progress.through = through;
    tx.onRollback(() => {
      progress.through = before;
    });
  }

  /** Ends a bucket's job or begins the next turn, in the unit of work that removes the job of the last one. */
  private goOn(tx: Tx, ref: number): void {
    const { buckets, events } = this.deps;
    const progress = this.progress.get(ref);
    if (progress === undefined) return;
    const bucket = buckets.withRef(ref);
    if (bucket?.live === true && events.pendingAfter(ref, progress.through, 1).length > 0) {
      this.enqueue(tx, bucket);
      return;
    }
    this.progress.delete(ref);
    tx.onRollback(() => this.progress.set(ref, progress));
  }

  /** Tries an event again, unless something else has become of it. */
  private async retry(job: Job): Promise<JobOutcome> {
    const { bucket: ref, sequence } = job.payload as { bucket: number; sequence: number };
    const { buckets, events } = this.deps;
    const bucket = buckets.withRef(ref);
    const row = events.find(ref, sequence);
    if (bucket === undefined || row === null || decodeStatus(row.status) !== "pending") return {};
    if (!bucket.live) return { record: (tx) => this.leaveToBacklog(tx, ref, sequence) };
    const result = await this.send(bucket, row);
    return { record: (tx) => this.record(tx, ref, result) };
  }

  /** In a paused bucket an event waits with the others, until that goes live. */
  private leaveToBacklog(tx: Tx, ref: number, sequence: number): void {
    const { events, buckets } = this.deps;
    const row = events.find(ref, sequence);
    if (row === null || decodeStatus(row.status) !== "pending") return;
    const { attempts, response_status: responseStatus, error } = row;
    const waiting = {
      status: "pending",
      attempts,
      responseStatus,
      error,
      deliveredAt: null,
      retryAt: null,
    } as const;
    events.setDelivery(tx, ref, sequence, waiting);
    // Gone live since the job looked: the first tries have perhaps passed it by already.
    const bucket = buckets.withRef(ref);
    if (bucket?.live === true) this.wentLive(tx, bucket);
  }

  private async send(bucket: Bucket, row: EventRow): Promise<Try> {
    const { sequence, received_at: receivedAt } = row;
    const payload = this.deps.events.payload(sequence);
    // Deleted since it was looked at: then there is nothing to record either.
    if (payload === null) return { sequence, result: { answered: false, error: "the event was deleted" } };
    const event = { sequence, provider: decodeProvider(row.provider), receivedAt, payload };
    return { sequence, result: await this.deps.delivery.send(bucket, event) };
  }

  /** Records a try of an event that is still pending; a replay or a deletion may have come first. */
  private record(tx: Tx, ref: number, { sequence, result }: Try): void {
    const { events, buckets, scheduler } = this.deps;
    const bucket = buckets.withRef(ref);
    const row = events.find(ref, sequence);
    if (bucket === undefined || row === null || decodeStatus(row.status) !== "pending") return;
    const attempts = row.attempts + 1;
    const next = afterTry(attempts, result.answered && isDelivered(result.status));
    const retryAt = next.status === "pending" ? tx.now + next.retryInMs : null;
    events.setDelivery(tx, ref, sequence, {
      status: next.status,
      attempts,
      responseStatus: result.answered ? result.status : null,
      error: errorOf(next.status === "delivered", result),
      deliveredAt: next.status === "delivered" ? tx.now : null,
      retryAt,
    });
    const { forwarded } = this.deps.counts;
    tx.afterCommit(() => forwarded[next.status === "pending" ? "retry" : next.status].add());
    if (next.status !== "pending") buckets.count(tx, bucket, "pending", next.status);
    if (retryAt !== null) {
      const key = eventIdOf(sequence);
      // Takes the place of the retry that has just been made: its own outcome then removes nothing.
      scheduler.enqueue(tx, RETRY, key, retryAt, { bucket: ref, sequence }, laneOf(bucket));
    }
  }
}

/** The lane of a bucket's jobs: its account's, to its target's host. */
function laneOf({ accountRef, targetUrl }: Bucket): string {
  return laneName(accountRef, new URL(targetUrl).host);
}

function errorOf(delivered: boolean, result: DeliveryResult): string | null {
  if (delivered) return null;
  return result.answered ? `the target answered with status ${result.status}` : result.error;
}
