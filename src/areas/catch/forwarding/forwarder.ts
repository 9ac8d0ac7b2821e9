import { slices } from "../../../kernel/background/time-slices.ts";
import { LOCAL_RETRY_MS } from "../../../kernel/outbound/attempt.ts";
import {
  type Attempt,
  type AttemptStep,
  attemptWebhook,
  deliver,
  type SendingDeps,
  type WebhookRequest,
} from "../../../kernel/outbound/delivery.ts";
import { hopsHeader } from "../../../kernel/outbound/hops.ts";
import { replaySignature } from "../../../kernel/outbound/signing.ts";
import type { LaneLimits } from "../../../kernel/scheduler/lane-groups.ts";
import type { Job, JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import {
  type BucketActor,
  type Buckets,
  hasTargets,
  isSending,
  type Recipient,
  type SharedDeps,
} from "../buckets/buckets.ts";
import { afterForward } from "../domain.ts";
import { readHeaders } from "../event-headers.ts";
import { eventIdOf } from "../event-ids.ts";
import type { EventRow, StoredPayload } from "../store.ts";
import { attemptOf, forwardedRequest, standardHeadersOf } from "./exchange.ts";
import type { FailureNotices } from "./failure-notices.ts";
import { FORWARD, type ForwardJobs, laneOf, type Progress } from "./jobs.ts";
import type { Targets } from "./targets.ts";

/** Buckets that forward concurrently. With the concurrent events of each, of up to 1 MiB, this limits memory. */
export const FORWARDING_BUCKETS_MAX = 32;
/** Events are sent one by one, in order. When at least this many are pending, the target is too slow for that... */
export const BEHIND_FROM_EVENTS = 100;
/** ...and this many are sent concurrently, except for a backlog, which is always sent in order. */
export const CONCURRENT_EVENTS_MAX = 4;
/** Concurrent retries. */
export const CONCURRENT_RETRIES_MAX = 32;
/** Share of both that one account may use, however many targets it has. */
export const ACCOUNT_SHARE = 1 / 2;
/** Slow targets must not occupy the slots of others. */
export const LANES: LaneLimits = { perLane: 8, perSlowLane: 2, slowTotal: 16, ownerShare: ACCOUNT_SHARE };
/** Pending events read for one run: those that wait for a retry are skipped. */
const EVENTS_READ_AHEAD = 16;
/** Events of a backlog that are queued for endpoints in one unit of work: up to a hundred deliveries. */
const EVENTS_QUEUED = 10;
/** Buckets resumed in one unit of work when the server starts. */
const RESUME_SLICE = 200;

/** One job per event that waits for a retry. */
const RETRY = "catch.retry";

/** Outcomes of an attempt. */
const OUTCOMES = ["delivered", "retry", "failed"] as const;

/** What an event is sent with. */
type ForwardDeps = SendingDeps &
  Pick<SharedDeps, "accounts" | "vault" | "secrets"> & {
    readonly events: Pick<SharedDeps["events"], "way">;
    readonly large: Pick<SharedDeps["large"], "bodyOf">;
  };
type ForwardedEvent = Pick<EventRow, "sequence" | "provider" | "received_at">;

/** Sends an event, signed, once, to the current target of its bucket. */
export function forward(
  deps: ForwardDeps,
  bucket: BucketActor,
  event: ForwardedEvent,
  payload: StoredPayload,
): Promise<Attempt> {
  return attemptWebhook(deps, forwardRequest(deps, bucket, event, payload));
}

function forwardRequest(
  deps: ForwardDeps,
  bucket: BucketActor,
  event: ForwardedEvent,
  payload: StoredPayload,
): WebhookRequest {
  const { accounts, vault, secrets } = deps;
  const { sequence, received_at } = event;
  const key = accounts.signingKey(bucket.account_ref);
  const eventId = eventIdOf(sequence);
  const received = readHeaders(payload.headers, vault, bucket.id);
  const { method, below, headers, body } = forwardedRequest(deps, bucket, event, received, payload);
  const signed = body ?? "";
  return {
    account: bucket.account_ref,
    method,
    // Without a target, which was removed in the meantime, the request fails.
    url: bucket.target_url ?? "",
    below,
    requireHttps: true,
    custom: headers,
    headers: async (now) => {
      // Together, so that a body in pieces is read once for all signatures.
      const [signature, standard] = await Promise.all([
        key === null ? null : replaySignature(key, String(Math.floor(now / 1000)), signed),
        // A receiver checks only one set of these headers.
        standardHeadersOf(received) ?? secrets.headers(bucket.project_ref, eventId, now, signed),
      ]);
      return {
        ...(signature === null ? {} : { "X-Svc-Signature": signature }),
        "X-Svc-Event-Id": eventId,
        "X-Svc-Timestamp": String(received_at),
        ...("user-agent" in headers ? {} : { "User-Agent": "Svc-Relay/1.0" }),
        ...hopsHeader(received),
        ...standard,
      };
    },
    body,
  };
}

/** The endpoints that accept a new event, and the targets among which they were found. */
export interface MatchedTargets {
  readonly targets: BucketActor["settings"]["targets"];
  readonly recipients: readonly Recipient[];
}

/**
 * Forwards the pending events of live buckets to their targets. The first attempts are made in order; when one fails,
 * the event gets a separate job for its retries, and the next event follows. The status `pending` is the durable
 * state: a start resumes these events, and a crash may repeat an attempt but loses none.
 */
export class Forwarder {
  private readonly outcomes;

  constructor(
    private readonly deps: SharedDeps,
    private readonly buckets: Buckets,
    private readonly jobs: ForwardJobs,
    private readonly targets: Targets,
    private readonly failures: FailureNotices,
  ) {
    this.outcomes = deps.metrics.counters(
      { name: "ninefold_webhook_forwards_total", help: "Attempts to forward a webhook, by outcome." },
      "outcome",
      OUTCOMES,
    );
    deps.scheduler.register(FORWARD, {
      concurrency: FORWARDING_BUCKETS_MAX,
      lanes: LANES,
      run: (job) => this.sendNext(job),
    });
    deps.scheduler.register(RETRY, {
      concurrency: CONCURRENT_RETRIES_MAX,
      lanes: LANES,
      run: (job) => this.retry(job),
    });
  }

  /** Schedules the forwarding of a new event, or stores its deliveries to the endpoints that accept it. */
  arrived(tx: Tx, bucket: BucketActor, matched: MatchedTargets | null): void {
    if (!isSending(bucket) || this.jobs.progressOf(bucket.ref) !== undefined) return;
    // Otherwise the targets were changed since they were matched.
    if (matched !== null && matched.targets === bucket.settings.targets) {
      const row = this.deps.events.find(bucket.ref, this.deps.sequence.last);
      if (row !== null) this.targets.queue(tx, bucket, row, matched.recipients);
      return;
    }
    this.jobs.beginNewest(tx, bucket);
  }

  /** Resumes forwarding after a restart. Call it before the scheduler starts. */
  async resume(): Promise<void> {
    const { store, writer } = this.deps;
    for (let after = 0; ; ) {
      const rows = store.toForward(after, RESUME_SLICE);
      const last = rows.at(-1);
      if (last === undefined) return;
      await writer.submit((tx) => {
        for (const { ref } of rows) {
          const bucket = this.buckets.withRef(ref);
          if (bucket !== undefined) this.jobs.beginBacklog(tx, bucket);
        }
      });
      after = last.ref;
    }
  }

  /** Sends the next event of a bucket, or the next few. */
  private async sendNext(job: Job): Promise<JobOutcome> {
    const ref = Number(job.key);
    const bucket = this.buckets.withRef(ref);
    const progress = this.jobs.progressOf(ref);
    if (bucket === undefined || !isSending(bucket) || progress === undefined)
      return { record: (tx) => this.continueOrEnd(tx, ref) };
    if (hasTargets(bucket)) return this.queueNext(bucket, progress);
    const { rows, through } = this.nextEvents(bucket, progress);
    const outcomes = await Promise.all(rows.map((row) => this.send(bucket, row)));
    return {
      record: (tx) => {
        for (const { record } of outcomes) record?.(tx);
        const before = { through: progress.through };
        progress.through = through;
        tx.onRollback(() => Object.assign(progress, before));
        this.continueOrEnd(tx, ref);
      },
    };
  }

  /** Stores the deliveries of the next events to endpoints, in order. */
  private async queueNext(bucket: BucketActor, progress: Progress): Promise<JobOutcome> {
    const { events } = this.deps;
    const { targets } = bucket.settings;
    const { rows, through } = this.nextEvents(bucket, progress, EVENTS_QUEUED);
    const matched: (readonly [EventRow, readonly Recipient[]])[] = [];
    for (const row of rows) {
      if (slices.isOver) await slices.next();
      const payload = events.payload(row.sequence);
      const { headers, body } = payload ?? { headers: "{}", body: new Uint8Array() };
      const event = { event_type: row.event_type, headers, body };
      matched.push([row, await this.targets.matching(bucket, event)]);
    }
    return {
      record: (tx) => {
        const { ref } = bucket;
        const now = this.buckets.withRef(ref);
        const isCurrent = this.jobs.progressOf(ref) === progress && now?.settings.targets === targets;
        if (now !== undefined && isCurrent && isSending(now)) {
          for (const [{ sequence }, recipients] of matched) {
            // Replayed or deleted in the meantime.
            const row = this.pending(ref, sequence);
            if (row?.retry_at === null) this.targets.queue(tx, now, row, recipients);
          }
          const before = { through: progress.through };
          progress.through = through;
          tx.onRollback(() => Object.assign(progress, before));
        }
        this.continueOrEnd(tx, ref);
      },
    };
  }

  /** The next events to send, at most `most`; those that wait for a retry, or are queued for endpoints, are skipped. */
  private nextEvents(
    bucket: BucketActor,
    progress: Progress,
    most: number = bucket.pending < BEHIND_FROM_EVENTS ? 1 : CONCURRENT_EVENTS_MAX,
  ): { rows: EventRow[]; through: number } {
    const { events } = this.deps;
    // A backlog is queued for endpoints several events at a time: that keeps its order.
    const orderedMax = hasTargets(bucket) ? most : 1;
    const rows: EventRow[] = [];
    let { through } = progress;
    for (const sequence of events.pendingAfter(bucket.ref, bucket.provider, through, EVENTS_READ_AHEAD)) {
      if (rows.length >= (sequence <= progress.orderedThrough ? orderedMax : most)) break;
      through = sequence;
      const row = events.find(bucket.ref, sequence);
      if (row !== null && row.retry_at === null) rows.push(row);
    }
    return { rows, through };
  }

  /** Ends a bucket's job or creates the next one, in the unit of work that removes the current one. */
  private continueOrEnd(tx: Tx, ref: number): void {
    const progress = this.jobs.progressOf(ref);
    if (progress === undefined) return;
    const bucket = this.buckets.withRef(ref);
    const { events } = this.deps;
    if (
      bucket !== undefined &&
      isSending(bucket) &&
      events.pendingAfter(ref, bucket.provider, progress.through, 1).length > 0
    )
      this.jobs.continue(tx, bucket);
    else this.jobs.end(tx, ref);
  }

  private async retry(job: Job): Promise<JobOutcome> {
    const { bucket: ref, sequence } = job.payload as { bucket: number; sequence: number };
    const bucket = this.buckets.withRef(ref);
    const row = this.pending(ref, sequence);
    if (bucket === undefined || row === null) return {};
    if (!isSending(bucket) || hasTargets(bucket)) return { record: (tx) => this.returnToBacklog(tx, row) };
    return this.send(bucket, row);
  }

  /** Returns an event of a paused bucket to the backlog, until the bucket goes live. */
  private returnToBacklog(tx: Tx, { bucket_ref, sequence }: EventRow): void {
    const row = this.pending(bucket_ref, sequence);
    const bucket = this.buckets.withRef(bucket_ref);
    // A replay has queued it for endpoints.
    if (row === null || (bucket !== undefined && this.targets.isQueued(bucket, sequence))) return;
    this.deps.events.setAttempt(tx, { ...row, retry_at: null });
    // The bucket went live, or got targets, in the meantime: the first attempts may already be past this event.
    if (bucket !== undefined && isSending(bucket)) this.jobs.wentLive(tx, bucket);
  }

  /** The event if it is still pending. */
  private pending(ref: number, sequence: number): EventRow | null {
    const row = this.deps.events.find(ref, sequence);
    return row?.status === "pending" ? row : null;
  }

  /** Makes the next attempt of an event. Its job is not run again: {@link enqueueRetry} creates the one of a retry. */
  private async send(bucket: BucketActor, row: EventRow): Promise<Pick<JobOutcome, "record">> {
    const payload = this.deps.events.payload(row.sequence);
    // Deleted in the meantime.
    if (payload === null) return {};
    const attempts = row.attempts + 1;
    const { record } = await deliver(this.deps, forwardRequest(this.deps, bucket, row, payload), {
      attempts: row.attempts,
      next: (result) => {
        const step = afterForward(bucket.settings.waits, attempts, result, this.deps.ids.fraction());
        return step.kind === "retry" ? { ...step, kind: "requeue" } : step;
      },
      postponed: (tx) => this.postpone(tx, row),
      record: (tx, attempt, step) => this.record(tx, row, attempt, step),
    });
    return { record };
  }

  private record(tx: Tx, { bucket_ref, sequence }: EventRow, attempt: Attempt, step: AttemptStep): void {
    const { events, changes } = this.deps;
    const bucket = this.buckets.withRef(bucket_ref);
    const row = events.find(bucket_ref, sequence);
    if (bucket === undefined || row === null) return;
    events.addAttempt(tx, sequence, attemptOf("forward", attempt));
    // A replay or another attempt may have finished it.
    if (row.status !== "pending" || this.targets.isQueued(bucket, sequence)) return;
    const isFinal = step.kind === "delivered" || step.kind === "failed";
    const attempted: EventRow = {
      ...row,
      status: isFinal ? step.kind : "pending",
      attempts: row.attempts + 1,
      response_status: attempt.result.status,
      retry_at: isFinal ? null : step.at,
      error: step.kind === "delivered" ? null : step.error,
      delivered_at: step.kind === "delivered" ? tx.now : null,
    };
    events.setAttempt(tx, attempted);
    tx.afterCommit(() => this.outcomes[isFinal ? step.kind : "retry"].add());
    if (isFinal) {
      this.buckets.count(tx, bucket, "pending", step.kind);
      if (step.kind === "failed") this.failures.notify(tx, bucket, attempted);
      return;
    }
    changes.inProject(tx, bucket.project_ref, "catch", bucket.id);
    this.enqueueRetry(tx, bucket, sequence, step.at);
  }

  /** Repeats an attempt that this server had no capacity for. */
  private postpone(tx: Tx, { bucket_ref, sequence }: EventRow): void {
    const bucket = this.buckets.withRef(bucket_ref);
    const row = this.pending(bucket_ref, sequence);
    if (bucket === undefined || row === null) return;
    const retry_at = tx.now + LOCAL_RETRY_MS;
    this.deps.events.setAttempt(tx, { ...row, retry_at });
    this.enqueueRetry(tx, bucket, sequence, retry_at);
  }

  /** Replaces the job of the current retry, whose outcome then removes nothing. */
  private enqueueRetry(tx: Tx, bucket: BucketActor, sequence: number, at: number): void {
    const payload = { bucket: bucket.ref, sequence };
    this.deps.scheduler.enqueue(tx, RETRY, eventIdOf(sequence), at, payload, laneOf(bucket));
  }
}
