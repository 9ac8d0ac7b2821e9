import { headerError } from "../../../kernel/outbound/headers.ts";
import { replaySignature } from "../../../kernel/outbound/signing.ts";
import { laneName } from "../../../kernel/scheduler/dispatcher.ts";
import type { LaneLimits } from "../../../kernel/scheduler/lane-groups.ts";
import type { Job, JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { type BucketActor, type Buckets, type CatchDeps, isSending } from "../buckets/buckets.ts";
import { afterTry, isDelivered } from "../domain.ts";
import { eventIdOf } from "../ids.ts";
import { type EventHeaders, readHeaders } from "../ingestion/event-headers.ts";
import { isProvidersOwn, PRESETS, type Preset } from "../ingestion/presets.ts";
import type { EventRow, PayloadRow } from "../store.ts";
import { attemptOf, problemOf, type Tried } from "./attempts.ts";

/** Longest wait for a target's answer. */
export const FORWARD_TIMEOUT_MS = 15_000;
/** Bytes of the answer's body that are read, so that its connection can be used again; far fewer are kept. */
export const ANSWER_BYTES_MAX = 64 * 1024;
/** Buckets that forward at once; with the events of each, and their bodies of a mebibyte, what memory has to hold. */
export const FORWARDING_BUCKETS_MAX = 32;
/** Events go one by one, so that they arrive in their order. When at least this many are pending, the target is too slow for that... */
export const BEHIND_FROM_EVENTS = 100;
/** ...and this many are under way at once, unless they are a backlog, whose order is promised. */
export const EVENTS_AT_ONCE_MAX = 4;
/** Retries under way at once. */
export const RETRIES_AT_ONCE_MAX = 32;
/** What one account may take of both: one with many targets leaves places for others. */
export const ACCOUNT_SHARE = 1 / 2;
/** Targets that do not answer leave places for those that do. */
export const LANES: LaneLimits = { perLane: 8, perSlowLane: 2, slowTotal: 16, ownerShare: ACCOUNT_SHARE };
/** Pending events looked at for one turn: those that wait for a retry are passed over. */
const LOOK_AHEAD = 16;
/** Buckets taken up in one unit of work at the start. */
const RESUME_SLICE = 200;

/** One job per bucket that has something to forward: it makes the first try of each event. */
const FORWARD = "catch.forward";
/** One job per event whose try has failed and that is to be tried again. */
const RETRY = "catch.retry";

/** How a try to forward an event can end. */
const OUTCOMES = ["delivered", "retry", "failed"] as const;

/** Sends the exact bytes of an event, signed, to the target that its bucket has now. One try. */
export async function forward(
  deps: Pick<CatchDeps, "outbound" | "accounts" | "clock" | "vault" | "secrets">,
  bucket: BucketActor,
  { sequence, provider, received_at }: Pick<EventRow, "sequence" | "provider" | "received_at">,
  { headers, body }: PayloadRow,
): Promise<Tried> {
  const { outbound, accounts, clock, vault, secrets } = deps;
  const at = clock.now();
  const seconds = String(Math.floor(at / 1000));
  const eventId = eventIdOf(sequence);
  const received = readHeaders(headers, vault, bucket.id);
  const preset = bucket.settings.preset ?? (provider === null ? null : PRESETS[provider]);
  // Two sets of them would be none: a receiver checks one.
  const signed = isStandard(received)
    ? Object.fromEntries(STANDARD_HEADERS.map((name) => [name, received[name] ?? ""]))
    : await secrets.headers(bucket.project_ref, eventId, at, body);
  const outcome = await outbound.send({
    account: bucket.account_ref,
    method: "POST",
    // Taken away since the look at the bucket: no URL, and so no answer.
    url: bucket.target_url ?? "",
    requireHttps: true,
    headers: {
      ...originalHeaders(preset, received),
      "X-Svc-Signature": replaySignature(accounts.signingKey(bucket.account_ref), seconds, body),
      "X-Svc-Event-Id": eventId,
      "X-Svc-Timestamp": String(received_at),
      "User-Agent": "Svc-Relay/1.0",
      ...signed,
    },
    body,
    timeoutMs: FORWARD_TIMEOUT_MS,
    bodyBytesMax: ANSWER_BYTES_MAX,
    keepsBody: true,
    longerBody: "truncate",
    redirectsMax: 0,
    reuseConnection: true,
  });
  return { at, outcome };
}

/** The content type and the provider's headers, as far as they can be sent: anybody may have written them. */
function originalHeaders(preset: Preset | null, received: EventHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(received).filter(
      ([name, value]) =>
        (name === "content-type" || (preset !== null && isProvidersOwn(preset, name))) &&
        headerError(name, value) === null,
    ),
  );
}

const STANDARD_HEADERS = ["webhook-id", "webhook-timestamp", "webhook-signature"];

/** Whether the sender signed by Standard Webhooks itself, in headers that can be sent on. */
function isStandard(received: EventHeaders): boolean {
  return STANDARD_HEADERS.every((name) => received[name] && headerError(name, received[name]) === null);
}

/** How far the first tries of a bucket have come. When the bucket goes live again, another object takes its place. */
interface Progress {
  /** Events up to this number have been tried, or wait for a retry of their own. */
  through: number;
  /** Events up to this number go one by one: they are a backlog, whose order is promised. */
  orderedThrough: number;
}

/**
 * Sends the pending events of live buckets to their targets. An event is first tried in its turn; when that fails
 * it gets a job of its own for the retries, and the next one has its turn. What is pending in a live bucket is the
 * durable truth: a start takes it up again, so a crash may repeat a try and loses none.
 */
export class Forwarder {
  /** Buckets whose job is in the table, by reference. */
  private readonly progress = new Map<number, Progress>();
  private readonly outcomes;

  constructor(
    private readonly deps: CatchDeps,
    private readonly buckets: Buckets,
  ) {
    this.outcomes = deps.metrics.counters(
      { name: "ninefold_webhook_forwards_total", help: "Tries to forward a webhook, by how they ended." },
      "outcome",
      OUTCOMES,
    );
    buckets.onLive = (tx, bucket) => this.wentLive(tx, bucket);
    deps.scheduler.register(FORWARD, {
      concurrency: FORWARDING_BUCKETS_MAX,
      lanes: LANES,
      run: (job) => this.makeTurn(job),
    });
    deps.scheduler.register(RETRY, {
      concurrency: RETRIES_AT_ONCE_MAX,
      lanes: LANES,
      run: (job) => this.retry(job),
    });
  }

  /** A pending event came into a bucket. */
  arrived(tx: Tx, bucket: BucketActor): void {
    if (!isSending(bucket) || this.progress.has(bucket.ref)) return;
    this.begin(tx, bucket, { through: this.deps.sequence.last - 1, orderedThrough: 0 });
  }

  /** A bucket has gone live: what is pending in it is forwarded in its order. */
  private wentLive(tx: Tx, bucket: BucketActor): void {
    const running = this.progress.get(bucket.ref);
    const again = { through: 0, orderedThrough: this.deps.sequence.last };
    if (running === undefined) {
      if (bucket.pending > 0) this.begin(tx, bucket, again);
      return;
    }
    this.progress.set(bucket.ref, again);
    tx.onRollback(() => this.progress.set(bucket.ref, running));
  }

  /** Takes up what the last process left. To be called before the scheduler starts. */
  async resume(): Promise<void> {
    const { store, sequence, writer } = this.deps;
    for (let after = 0; ; ) {
      const rows = store.toForward(after, RESUME_SLICE);
      const last = rows.at(-1);
      if (last === undefined) return;
      await writer.submit((tx) => {
        for (const { ref } of rows) {
          const bucket = this.buckets.withRef(ref);
          if (bucket !== undefined) this.begin(tx, bucket, { through: 0, orderedThrough: sequence.last });
        }
      });
      after = last.ref;
    }
  }

  private begin(tx: Tx, bucket: BucketActor, progress: Progress): void {
    this.progress.set(bucket.ref, progress);
    tx.onRollback(() => this.progress.delete(bucket.ref));
    this.enqueue(tx, bucket);
  }

  private enqueue(tx: Tx, bucket: BucketActor): void {
    this.deps.scheduler.enqueue(tx, FORWARD, String(bucket.ref), tx.now, {}, laneOf(bucket));
  }

  /** Tries the next event of a bucket, or the next few. */
  private async makeTurn(job: Job): Promise<JobOutcome> {
    const ref = Number(job.key);
    const bucket = this.buckets.withRef(ref);
    const progress = this.progress.get(ref);
    if (bucket === undefined || !isSending(bucket) || progress === undefined)
      return { record: (tx) => this.goOn(tx, ref) };
    const { rows, through } = this.nextTurn(bucket, progress);
    const tries = await Promise.all(rows.map((row) => this.send(bucket, row)));
    return {
      record: (tx) => {
        for (const [index, row] of rows.entries()) this.record(tx, row, tries[index]);
        const before = { through: progress.through };
        progress.through = through;
        tx.onRollback(() => Object.assign(progress, before));
        this.goOn(tx, ref);
      },
    };
  }

  /** The next event to try, or a few; those that wait for a retry are passed over. */
  private nextTurn(bucket: BucketActor, progress: Progress): { rows: EventRow[]; through: number } {
    const { events } = this.deps;
    const atOnce = bucket.pending < BEHIND_FROM_EVENTS ? 1 : EVENTS_AT_ONCE_MAX;
    const rows: EventRow[] = [];
    let { through } = progress;
    for (const sequence of events.pendingAfter(bucket.ref, bucket.provider, through, LOOK_AHEAD)) {
      if (rows.length >= (sequence <= progress.orderedThrough ? 1 : atOnce)) break;
      through = sequence;
      const row = events.find(bucket.ref, sequence);
      if (row !== null && row.retry_at === null) rows.push(row);
    }
    return { rows, through };
  }

  /** Ends a bucket's job or begins the next turn, in the unit of work that removes the job of the last one. */
  private goOn(tx: Tx, ref: number): void {
    const progress = this.progress.get(ref);
    if (progress === undefined) return;
    const bucket = this.buckets.withRef(ref);
    const { events } = this.deps;
    if (
      bucket !== undefined &&
      isSending(bucket) &&
      events.pendingAfter(ref, bucket.provider, progress.through, 1).length > 0
    ) {
      this.enqueue(tx, bucket);
      return;
    }
    this.progress.delete(ref);
    tx.onRollback(() => this.progress.set(ref, progress));
  }

  /** Tries an event again. */
  private async retry(job: Job): Promise<JobOutcome> {
    const { bucket: ref, sequence } = job.payload as { bucket: number; sequence: number };
    const bucket = this.buckets.withRef(ref);
    const row = this.pending(ref, sequence);
    if (bucket === undefined || row === null) return {};
    if (!isSending(bucket)) return { record: (tx) => this.leaveToBacklog(tx, row) };
    const tried = await this.send(bucket, row);
    return { record: (tx) => this.record(tx, row, tried) };
  }

  /** In a paused bucket an event waits with the others, until that goes live. */
  private leaveToBacklog(tx: Tx, { bucket_ref, sequence }: EventRow): void {
    const row = this.pending(bucket_ref, sequence);
    if (row === null) return;
    this.deps.events.setTried(tx, { ...row, retry_at: null });
    // Gone live since the job looked: the first tries have perhaps passed it by already.
    const bucket = this.buckets.withRef(bucket_ref);
    if (bucket !== undefined && isSending(bucket)) this.wentLive(tx, bucket);
  }

  /** The event, unless a replay, a deletion or another try has settled it. */
  private pending(ref: number, sequence: number): EventRow | null {
    const row = this.deps.events.find(ref, sequence);
    return row?.status === "pending" ? row : null;
  }

  /** Undefined when the event has been deleted since the look at it. */
  private async send(bucket: BucketActor, row: EventRow): Promise<Tried | undefined> {
    const payload = this.deps.events.payload(row.sequence);
    return payload === null ? undefined : forward(this.deps, bucket, row, payload);
  }

  /** Records a try. */
  private record(tx: Tx, { bucket_ref, sequence }: EventRow, tried: Tried | undefined): void {
    const { events, scheduler } = this.deps;
    const bucket = this.buckets.withRef(bucket_ref);
    const row = events.find(bucket_ref, sequence);
    if (bucket === undefined || row === null || tried === undefined) return;
    events.addAttempt(tx, sequence, attemptOf("forward", tried));
    // A replay or another try may have settled it.
    if (row.status !== "pending") return;
    const { outcome } = tried;
    const attempts = row.attempts + 1;
    const response_status = outcome.answered ? outcome.status : null;
    const { status, retryInMs } = afterTry(attempts, isDelivered(response_status));
    const delivered = status === "delivered";
    const retry_at = retryInMs === undefined ? null : tx.now + retryInMs;
    events.setTried(tx, {
      ...row,
      status,
      attempts,
      response_status,
      retry_at,
      error: problemOf(outcome),
      delivered_at: delivered ? tx.now : null,
    });
    tx.afterCommit(() => this.outcomes[status === "pending" ? "retry" : status].add());
    if (retry_at === null) {
      this.buckets.count(tx, bucket, "pending", status);
      return;
    }
    this.deps.changes.inProject(tx, bucket.project_ref, "catch", bucket.id);
    // Takes the place of the retry that has just been made: its own outcome then removes nothing.
    const payload = { bucket: bucket_ref, sequence };
    scheduler.enqueue(tx, RETRY, eventIdOf(sequence), retry_at, payload, laneOf(bucket));
  }
}

/** The lane of a bucket's jobs: its account's, to its target's host. */
export function laneOf({ account_ref, target_url }: BucketActor): string {
  return laneName(account_ref, URL.parse(target_url ?? "")?.host ?? "");
}
