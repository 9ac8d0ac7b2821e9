import {
  assertBelowRunLimit,
  Bulk,
  bulkRequest,
  type Candidate,
  countMatching,
  isRunning,
  type Matching,
  newRun,
  type Part,
  PER_SECOND,
  runView,
  skippedOf,
} from "../../../kernel/bulk/bulk.ts";
import { isPrefixedId, prefixedId } from "../../../kernel/data/uuid.ts";
import { ApiError, invalidField, rejectionBy } from "../../../kernel/errors.ts";
import { laneName } from "../../../kernel/scheduler/dispatcher.ts";
import type { LaneOptions } from "../../../kernel/scheduler/lane-groups.ts";
import type { Job, JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull, timestampOf } from "../../../kernel/time/date-time.ts";
import { type BucketActor, type Buckets, hasTargets, type SharedDeps } from "../buckets/buckets.ts";
import {
  assertSending,
  type EventStatus,
  isAboutSubscription,
  isDelivered,
  knownProvider,
  mebibytesOf,
  type Provider,
} from "../domain.ts";
import { eventIdOf, sequenceOf } from "../event-ids.ts";
import type { EventService } from "../events/events.ts";
import { FORWARDING_BUCKETS_MAX, LANES } from "../forwarding/forwarder.ts";
import { hostOf } from "../forwarding/jobs.ts";
import type { EventRow } from "../store.ts";
import type { CatchReplay, ReplayBody } from "./schema.ts";
import type { ReplayRow, ReplayStore } from "./store.ts";

/** The job of a bulk replay, which queues some events in each run. */
const REPLAYS = "catch.replays";
/** The job of each queued event. */
const REPLAY = "catch.replay";
/** Marks the destination of a lane as a bucket. Lanes that earlier versions stored go to hosts. */
const BUCKET_MARK = "#";
/** The operation whose credits are charged for each event. */
const CHARGED_AS = "catch.events.replay";

/** Events whose deliveries, and bytes of bodies, that are looked at in one step: a few milliseconds. */
const LOOKED_EVENTS_MAX = 200;
const LOOKED_BYTES_MAX = 256 * 1024;

/** Filters of a bulk replay. */
interface Filters {
  readonly since: number | null;
  readonly until: number | null;
  readonly status: EventStatus | null;
  readonly provider: Provider | null;
  readonly event_type: string | null;
  /** Numbers of the chosen events, ascending; null for any. */
  readonly sequences: readonly number[] | null;
  /** The endpoint that is sent what it never got; missing in replays to all targets. */
  readonly endpoint?: string;
  /** The newest event at the start: later ones are not replayed. */
  readonly last: number;
}

interface Found extends Matching {
  /** Number of events that are omitted because of an invalid signature. */
  readonly invalid: number;
}

/** The job's payload for a queued event. */
interface QueuedEvent {
  readonly account: number;
  readonly bucket: number;
  readonly sequence: number;
  readonly replay: string;
  /** Credits that were charged for it; missing for 1. */
  readonly cost?: number;
  /** The endpoint that never got it; missing in replays to all targets. */
  readonly endpoint?: string;
}

/** Replays many events of a bucket. */
export class Replays {
  private readonly bulk: Bulk<ReplayRow>;

  constructor(
    private readonly deps: SharedDeps & { readonly replays: ReplayStore },
    private readonly buckets: Buckets,
    private readonly service: EventService,
  ) {
    this.bulk = new Bulk(deps, {
      job: REPLAYS,
      find: ({ key, payload }) => {
        const { bucket } = payload as { bucket: number };
        return buckets.withRef(bucket) === undefined ? null : deps.replays.find(bucket, key);
      },
      look: (row, part) => this.matching(row.bucket_ref, JSON.parse(row.filters) as Filters, part),
      prepare: async () => null,
      sendOne: (tx, row, ref) => this.queueEvent(tx, row, ref),
      insert: (tx, row) => deps.replays.insert(tx, row),
      update: (tx, row) => deps.replays.update(tx, row),
      removeExcess: (tx, row, storedMax) => deps.replays.removeExcess(tx, row.bucket_ref, storedMax),
      walked: (tx, row) => this.settle(tx, row),
    });
    deps.scheduler.register(REPLAY, {
      concurrency: FORWARDING_BUCKETS_MAX,
      lanes: { ...LANES, termsOf: (destination) => this.laneTerms(destination) },
      run: (job) => this.replayOne(job),
    });
  }

  /** The events of a bucket are sent one by one, oldest first. All buckets with the same target share the slots of its host. */
  private laneTerms(destination: string): LaneOptions | null {
    if (!destination.startsWith(BUCKET_MARK)) return null;
    const bucket = this.buckets.withRef(Number(destination.slice(BUCKET_MARK.length)));
    return { group: bucket === undefined ? destination : hostOf(bucket), slots: () => 1 };
  }

  /**
   * Starts a bulk replay, or counts what it would send.
   * @throws ApiError, from its parts: `catch.bucket_not_found`, `validation_error`, `catch.provider_unsupported`,
   * `bucket_paused`, `conflict` without a target or when too many run.
   */
  start(projectRef: number, bucketId: string, body: ReplayBody) {
    const { per_second = PER_SECOND, dry_run, ...filter } = body;
    return bulkRequest({
      dry_run,
      claim: () => {
        const bucket = this.buckets.ofProject(projectRef, bucketId);
        const filters = this.filtersOf(bucket, body);
        if (dry_run !== true) this.assertReady(bucket, filters);
        return { bucket, filters };
      },
      count: ({ bucket, filters }) => this.countMatching(bucket.ref, filters),
      start: (tx, { filters }, found, matched) => {
        // The bucket may have been updated or deleted during the count.
        const bucket = this.buckets.ofProject(projectRef, bucketId);
        this.assertReady(bucket, filters);
        const replay_id = prefixedId("rpl", this.deps.ids.uuidV7());
        const row: ReplayRow = {
          ...newRun(tx.now, filters, per_second, found),
          replay_id,
          bucket_ref: bucket.ref,
          invalid: found.invalid,
          delivered: 0,
          failed: 0,
          queued: 0,
        };
        this.bulk.begin(tx, row, replay_id, { bucket: bucket.ref });
        const after = { ...filter, ...matched, per_second };
        tx.audit({ ...about(row, bucket, "started"), before: null, after });
        return { replay_id };
      },
    });
  }

  /** @throws ApiError `catch.bucket_not_found`, `not_found` */
  read(projectRef: number, bucketId: string, replayId: string): CatchReplay {
    const bucket = this.buckets.ofProject(projectRef, bucketId);
    return replayView(bucket, this.find(bucket, replayId));
  }

  /** Stops a running bulk replay; queued events are still sent. @throws ApiError as {@link read} */
  stop(tx: Tx, projectRef: number, bucketId: string, replayId: string): CatchReplay {
    const bucket = this.buckets.ofProject(projectRef, bucketId);
    const row = this.find(bucket, replayId);
    if (!isRunning(row)) {
      tx.audit(null);
      return replayView(bucket, row);
    }
    const after = { status: "cancelled", taken_up: row.resent };
    tx.audit({ ...about(row, bucket, "stopped"), before: { status: "running" }, after });
    return replayView(bucket, this.bulk.cancel(tx, row));
  }

  private find(bucket: BucketActor, replayId: string): ReplayRow {
    const row = isPrefixedId("rpl", replayId) ? this.deps.replays.find(bucket.ref, replayId) : null;
    if (row === null)
      throw new ApiError("not_found", "There is no replay with this replay_id in this bucket.");
    return row;
  }

  /** @throws ApiError `bucket_paused`, `conflict` */
  private assertReady(bucket: BucketActor, { endpoint }: Filters): void {
    assertSending(bucket);
    if (endpoint !== undefined && !this.deps.endpoints.isLive(bucket.project_ref, endpoint))
      throw new ApiError("conflict", "This endpoint is paused or disabled: set its state to live first.");
    assertBelowRunLimit(this.deps.replays.running(bucket.ref), "replays of this bucket");
  }

  private filtersOf(bucket: BucketActor, body: ReplayBody): Filters {
    const { since, until, status = null, event_type = null, event_ids, endpoint_id } = body;
    const isTarget = bucket.settings.targets.some((target) => target.endpoint_id === endpoint_id);
    if (endpoint_id !== undefined && !isTarget)
      throw invalidField("endpoint_id", "must be the id of an endpoint that is a target of the bucket");
    const others = [since, until, body.status, body.provider, body.event_type];
    if (event_ids !== undefined && others.some((value) => value !== undefined))
      throw invalidField("event_ids", "cannot be combined with other filters: it selects the events");
    const provider = knownProvider(body.provider);
    return {
      since: since === undefined ? null : timestampOf("since", since),
      until: until === undefined ? null : timestampOf("until", until),
      status,
      provider,
      event_type,
      last: this.deps.events.lastOf(bucket.ref),
      sequences: event_ids === undefined ? null : sequencesOf(event_ids),
      ...(endpoint_id === undefined ? {} : { endpoint: endpoint_id }),
    };
  }

  private async countMatching(bucketRef: number, filters: Filters): Promise<Found> {
    let invalid = 0;
    const found = await countMatching((part) =>
      this.matching(bucketRef, filters, part, () => {
        invalid += 1;
      }),
    );
    return { ...found, invalid };
  }

  /** Matching events after a number. Events with invalid signatures are counted and never sent. */
  private matching(
    bucketRef: number,
    filters: Filters,
    { after, limit, matchesMax }: Part,
    onInvalid: () => void = () => undefined,
  ): Candidate[] {
    const missed = this.missedOf(bucketRef, filters);
    const found: Candidate[] = [];
    let matches = 0;
    for (const row of this.rowsAfter(bucketRef, filters, after, limit)) {
      const isIncluded =
        row.sequence <= filters.last && isMatching(row, filters) && !isAboutSubscription(row.provider, row);
      const isInvalid = row.verification === "invalid";
      if (isIncluded && isInvalid) onInvalid();
      const isMatch = isIncluded && !isInvalid && missed.has(row);
      if (isMatch) matches += 1;
      found.push({ ref: row.sequence, matches: isMatch ? 1 : 0 });
      if (matches === matchesMax || missed.isEnough()) break;
    }
    return found;
  }

  /** Whether the endpoint of a replay never got an event; any event, if it goes to all targets. */
  private missedOf(bucketRef: number, { endpoint }: Filters) {
    const bucket = endpoint === undefined ? undefined : this.buckets.withRef(bucketRef);
    let events = 0;
    let bytes = 0;
    return {
      has: (row: EventRow): boolean => {
        if (bucket === undefined || endpoint === undefined) return true;
        events += 1;
        const recipient = this.service.missedBy(bucket, endpoint, row, (length) => {
          bytes += length;
        });
        return recipient !== null;
      },
      isEnough: (): boolean => events >= LOOKED_EVENTS_MAX || bytes >= LOOKED_BYTES_MAX,
    };
  }

  private rowsAfter(bucketRef: number, { sequences }: Filters, after: number, limit: number): EventRow[] {
    const { events } = this.deps;
    if (sequences === null) return events.after(bucketRef, after, limit);
    return sequences
      .filter((sequence) => sequence > after)
      .flatMap((sequence) => events.find(bucketRef, sequence) ?? []);
  }

  /** Charges and queues an event. Its job records the outcome. */
  private queueEvent(
    tx: Tx,
    row: ReplayRow,
    sequence: number,
  ): "sent" | "skipped" | "no-credits" | "disabled" {
    const { charger, accounts, events, scheduler, endpoints } = this.deps;
    const { endpoint } = JSON.parse(row.filters) as Filters;
    const bucket = this.buckets.withRef(row.bucket_ref);
    if (bucket !== undefined && endpoint !== undefined && !endpoints.isEnabled(bucket.project_ref, endpoint))
      return "disabled";
    // Deleted in the meantime.
    const event = bucket === undefined ? null : events.find(bucket.ref, sequence);
    if (bucket === undefined || event === null) return "skipped";
    const cost = mebibytesOf(event.payload_bytes);
    const rejection = rejectionBy(() =>
      charger.charge(tx, accounts.account(bucket.account_ref), CHARGED_AS, cost),
    );
    if (rejection !== null) return "no-credits";
    const payload: QueuedEvent = {
      account: bucket.account_ref,
      bucket: bucket.ref,
      sequence,
      replay: row.replay_id,
      ...(cost === 1 ? {} : { cost }),
      ...(endpoint === undefined ? {} : { endpoint }),
    };
    const key = `${row.replay_id}/${eventIdOf(sequence)}`;
    scheduler.enqueue(
      tx,
      REPLAY,
      key,
      tx.now,
      payload,
      laneName(bucket.account_ref, BUCKET_MARK + bucket.ref),
    );
    return "sent";
  }

  private async replayOne({ payload }: Job): Promise<JobOutcome> {
    const queued = payload as QueuedEvent;
    const bucket = this.buckets.withRef(queued.bucket);
    if (bucket?.live === true && hasTargets(bucket)) return this.queueOne(bucket, queued);
    const attempt = bucket?.live === true ? await this.service.replayOnce(bucket, queued.sequence) : null;
    return {
      record: (tx) => {
        const outcome = attempt?.attempt.outcome;
        const isAccepted = outcome?.answered === true && isDelivered(outcome.status);
        if (attempt !== null) this.service.recordAttempt(tx, attempt.replay, attempt.attempt);
        if (!isAccepted)
          this.deps.charger.refund(
            tx,
            this.deps.accounts.account(queued.account),
            CHARGED_AS,
            queued.cost ?? 1,
          );
        this.count(tx, queued, isAccepted ? "delivered" : "failed");
      },
    };
  }

  /** Stores the deliveries of an event to endpoints. Without one, the replay of the event failed and is free of charge. */
  private async queueOne(bucket: BucketActor, queued: QueuedEvent): Promise<JobOutcome> {
    const { charger, accounts } = this.deps;
    const replay = this.service.stored(bucket, queued.sequence);
    const { endpoint } = queued;
    const accepting = replay === null || endpoint !== undefined ? [] : await this.service.matching(replay);
    return {
      record: (tx) => {
        let deliveries = 0;
        // Delivered by another request in the meantime.
        const missing =
          replay === null || endpoint === undefined
            ? null
            : this.service.missedBy(bucket, endpoint, replay.row);
        const recipients = missing === null ? accepting : [missing];
        // Without the credits, nothing is stored.
        rejectionBy(() => {
          if (replay !== null) deliveries = this.service.replayToEndpoints(tx, replay, recipients).length;
        });
        const isQueued = deliveries > 0;
        if (!isQueued) charger.refund(tx, accounts.account(queued.account), CHARGED_AS, queued.cost ?? 1);
        this.count(tx, queued, isQueued ? "queued" : "failed");
      },
    };
  }

  private count(tx: Tx, { bucket, replay }: QueuedEvent, outcome: "delivered" | "failed" | "queued"): void {
    const row = this.deps.replays.find(bucket, replay);
    if (row !== null) this.settle(tx, { ...row, [outcome]: row[outcome] + 1 });
  }

  /** Stores a replay, which is done when all queued events are finished. */
  private settle(tx: Tx, row: ReplayRow): void {
    const isOver = row.after_ref >= row.through_ref && row.delivered + row.failed + row.queued === row.resent;
    if (isRunning(row) && isOver) this.bulk.complete(tx, row);
    else this.deps.replays.update(tx, row);
  }
}

function isMatching(row: EventRow, { since, until, status, provider, event_type }: Filters): boolean {
  return (
    (since === null || row.received_at >= since) &&
    (until === null || row.received_at < until) &&
    (status === null || row.status === status) &&
    (provider === null || row.provider === provider) &&
    (event_type === null || row.event_type === event_type)
  );
}

/** The numbers of event ids, ascending and unique. @throws ApiError `validation_error` */
function sequencesOf(eventIds: readonly string[]): number[] {
  const found = eventIds.map((id) => {
    const sequence = sequenceOf(id);
    if (sequence === null) throw invalidField("event_ids", "must be a list of ids of events");
    return sequence;
  });
  return [...new Set(found)].sort((a, b) => a - b);
}

function about({ replay_id }: ReplayRow, bucket: BucketActor, what: string) {
  return { summary: `Replay of bucket ${bucket.id} ${what}`, target: { type: "replay", id: replay_id } };
}

function replayView(bucket: BucketActor, row: ReplayRow): CatchReplay {
  const { replay_id, delivered, failed, queued, invalid, finished_at } = row;
  return {
    replay_id,
    bucket_id: bucket.id,
    ...runView(row),
    delivered,
    failed,
    queued,
    skipped: invalid + skippedOf(row),
    created_at: isoTime(row.created_at),
    finished_at: isoTimeOrNull(finished_at),
  };
}
