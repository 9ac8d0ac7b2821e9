import { removeInSlices } from "../../../kernel/background/removal.ts";
import { BODY_BYTES_MAX } from "../../../kernel/http/operation.ts";
import type { TierLimits } from "../../../kernel/limits/tiers.ts";
import { COUNTED_MAX } from "../../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../../kernel/projects/resources.ts";
import type { JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { realDelay } from "../../../kernel/time/clock.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import { digestOfId } from "../deduplication-store.ts";
import { decodeStatus, type OldestEvent, type RemovableRow } from "../store.ts";
import type { BucketActor, Buckets, SharedDeps } from "./buckets.ts";

/** Events removed in one unit of work: one or two milliseconds of the writer's time. */
export const REMOVAL_SLICE_ROWS = 50;
/** Bytes of payload after which a slice ends: freeing a mebibyte takes about as long as fifty small rows. */
export const REMOVAL_SLICE_BYTES = 1024 * 1024;
/**
 * Events removed with each new one. One keeps a full bucket at its maximum; more let it shrink to a smaller maximum
 * after a change of tier.
 */
export const TRIM_ROWS_MAX = 4;
/** Buckets that the hourly clean-up checks in one step. */
const BUCKETS_PER_STEP = 100;

/** The job that removes a deleted bucket's events. */
const REMOVE_BUCKET = "catch.remove-bucket";

/** Rows that are removed with their bucket: its bulk replays. */
interface OwnedRows {
  /** Removes rows of a bucket, at most `rowsMax`. Returns the number removed. */
  removeOfOwner(tx: Tx, bucketRef: number, rowsMax: number): number;
}

/** Removes events in slices, between which other requests run. */
export class Removal {
  private stopping = false;
  /** Buckets that lose events in the background: at most those of one batch of requests. */
  private readonly trimming = new Set<string>();

  constructor(
    private readonly deps: SharedDeps & { readonly replays: OwnedRows },
    private readonly buckets: Buckets,
  ) {
    deps.scheduler.register(REMOVE_BUCKET, {
      // One at a time, to limit the load of the disk.
      concurrency: 1,
      run: (job) => this.removeBucket(Number(job.key), job.dueAt),
    });
    deps.housekeeping.addPurge({
      name: "catch.forget-seen",
      rowsMax: REMOVAL_SLICE_ROWS,
      remove: (tx, rowsMax) => deps.events.removeExpiredIds(tx, tx.now, rowsMax),
    });
    deps.housekeeping.addRemoval(() => this.retain());
  }

  /** Deletes the oldest events of a bucket above its maximum, and while its account stores too many bytes; never the newest. */
  trim(tx: Tx, bucket: BucketActor): void {
    const { eventsPerBucket, storedEventBytes } = this.limitsOf(bucket.account_ref);
    const excess = eventsIn(bucket) - eventsPerBucket;
    const excessBytes = this.buckets.storedBytesOf(bucket.account_ref) - storedEventBytes;
    if (excess <= 0 && excessBytes <= 0) return;
    const rows = this.deps.events.oldestOf(bucket.ref, TRIM_ROWS_MAX);
    const count = Math.max(Math.min(excess, rows.length), this.beyondBytes(rows, bucket));
    for (const row of rows.slice(0, count)) this.remove(tx, bucket, row);
    const isMoreExpected = count === TRIM_ROWS_MAX && excessBytes > 0;
    if (isMoreExpected) tx.afterCommit(() => this.trimBytesSoon(bucket.id));
  }

  /** How many of a bucket's oldest events must be removed, so that its account stores no more bytes than it may. */
  private beyondBytes(oldest: readonly RemovableRow[], bucket: BucketActor): number {
    let excess =
      this.buckets.storedBytesOf(bucket.account_ref) - this.limitsOf(bucket.account_ref).storedEventBytes;
    let count = 0;
    for (const { payload_bytes } of oldest) {
      if (excess <= 0 || count === eventsIn(bucket) - 1) break;
      excess -= payload_bytes;
      count += 1;
    }
    return count;
  }

  /** Removes in the background what one unit of work did not: a large event may replace many small ones. */
  private trimBytesSoon(bucketId: string): void {
    if (this.trimming.has(bucketId)) return;
    this.trimming.add(bucketId);
    const done = this.removeOldest(bucketId, (found, bucket) => this.beyondBytes(found, bucket));
    this.deps.clock.track(done.catch(() => 0).finally(() => this.trimming.delete(bucketId)));
  }

  /** Deletes a bucket: it ignores further requests, and its events are removed in the background. */
  deleteBucket(tx: Tx, bucket: BucketActor): void {
    this.buckets.markDeleted(tx, bucket);
    this.deps.scheduler.enqueue(tx, REMOVE_BUCKET, String(bucket.ref), tx.now, {});
  }

  /** Removes a bucket's events received before a time. Returns the number removed. */
  removeBefore(bucket: BucketActor, before: number): Promise<number> {
    return this.removeOldest(bucket.id, (rows) => receivedBefore(rows, before));
  }

  /** Removes a slice of a deleted bucket's events, or the bucket when there are none. Returns whether more remains. */
  private removeRowsOf(tx: Tx, bucketRef: number, rowsMax: number): boolean {
    const { events, store } = this.deps;
    const rows = withinBytes(events.oldestOf(bucketRef, Math.min(rowsMax, REMOVAL_SLICE_ROWS)));
    for (const row of rows) this.deleteEvent(tx, bucketRef, row);
    if (rows.length > 0) return true;
    if (this.deps.replays.removeOfOwner(tx, bucketRef, rowsMax) === rowsMax) return true;
    if (events.removeIdsOfBucket(tx, bucketRef, REMOVAL_SLICE_ROWS) === REMOVAL_SLICE_ROWS) return true;
    store.delete(tx, bucketRef);
    return false;
  }

  /** Stops after the current slice; the next start continues with deleted buckets. */
  stop(): void {
    this.stopping = true;
  }

  /** Buckets as resources of projects. */
  resources(): ProjectResources {
    const { store } = this.deps;
    return {
      name: "buckets",
      count: (projectRef) => store.countOfProject(projectRef, COUNTED_MAX),
      projectDeleted: (tx, projectRef) => {
        for (const bucket of this.buckets.listOfProject(projectRef)) this.buckets.markDeleted(tx, bucket);
      },
      removeRows: (tx, projectRef, rowsMax) => {
        const bucket = store.anyOfProject(projectRef);
        if (bucket === null) return 0;
        this.removeRowsOf(tx, bucket.ref, rowsMax);
        // A slice also has a limit of bytes: it may be short although more remains.
        return store.anyOfProject(projectRef) === null ? rowsMax - 1 : rowsMax;
      },
    };
  }

  private limitsOf(accountRef: number): TierLimits {
    const { accounts, tiers } = this.deps;
    return tiers[accounts.account(accountRef).tier];
  }

  private remove(tx: Tx, bucket: BucketActor, row: RemovableRow): void {
    const { events } = this.deps;
    const status = decodeStatus(row.status);
    this.deleteEvent(tx, bucket.ref, row);
    this.buckets.countBytes(tx, bucket, -row.payload_bytes);
    // The sender may still repeat what was not delivered.
    if (status !== "delivered" && row.provider_event_id !== null)
      events.removeReceivedId(tx, bucket.ref, digestOfId(row.provider_event_id), row.sequence);
    this.buckets.count(tx, bucket, status, null);
  }

  /** A body in pieces is removed after the event, in units of work of its own. */
  private deleteEvent(
    tx: Tx,
    bucketRef: number,
    { sequence, payload_bytes }: Pick<RemovableRow, "sequence" | "payload_bytes">,
  ): void {
    const { events, large } = this.deps;
    const upload = payload_bytes > BODY_BYTES_MAX ? events.uploadOf(sequence) : 0;
    events.delete(tx, bucketRef, sequence);
    if (upload > 0) tx.afterCommit(() => large.removeSoon(upload));
  }

  /** Removes a bucket's oldest events. `toGo`: how many of the given events to remove. Returns the number removed. */
  private async removeOldest(
    bucketId: string,
    toGo: (found: readonly RemovableRow[], bucket: BucketActor) => number,
  ): Promise<number> {
    let removed = 0;
    await this.inSlices((tx) => {
      const bucket = this.buckets.find(bucketId);
      if (bucket === undefined) return false;
      const found = this.deps.events.oldestOf(bucket.ref, REMOVAL_SLICE_ROWS);
      const selected = found.slice(0, toGo(found, bucket));
      const rows = withinBytes(selected);
      for (const row of rows) this.remove(tx, bucket, row);
      tx.afterCommit(() => {
        removed += rows.length;
      });
      return rows.length < selected.length || rows.length === REMOVAL_SLICE_ROWS;
    });
    return removed;
  }

  /**
   * Runs a removal in slices; each returns whether more remains. Returns whether all is removed. At least one slice runs:
   * a job that starts while the process stops must make progress, instead of being retried immediately.
   */
  private inSlices(slice: (tx: Tx) => boolean): Promise<boolean> {
    let hasStarted = false;
    const next = () => {
      hasStarted = true;
      return this.deps.writer.submit(slice);
    };
    return removeInSlices(next, () => hasStarted && this.stopping);
  }

  private async removeBucket(bucketRef: number, dueAt: number): Promise<JobOutcome> {
    const done = await this.inSlices(
      (tx) => this.isDeleted(bucketRef) && this.removeRowsOf(tx, bucketRef, REMOVAL_SLICE_ROWS),
    );
    return done ? {} : { retryAt: dueAt, attempt: 0 };
  }

  /** False when the bucket was removed with its project: after a restart, another bucket may have its reference. */
  private isDeleted(bucketRef: number): boolean {
    return this.deps.store.idOf(bucketRef) !== null && this.buckets.withRef(bucketRef) === undefined;
  }

  /** Removes events of all buckets after their retention, and those above the maximum of a smaller tier. */
  private async retain(): Promise<void> {
    for (let after: number | undefined = 0; after !== undefined && !this.stopping; ) {
      const buckets = this.deps.store.oldestEvents(after, BUCKETS_PER_STEP);
      for (const bucket of buckets) await this.retainIn(bucket);
      after = buckets.at(-1)?.ref;
      if (after !== undefined) await realDelay(0);
    }
  }

  private async retainIn({
    id,
    account_ref,
    events,
    oldest_at,
    retention_hours,
  }: OldestEvent): Promise<void> {
    const { eventRetentionHours, eventsPerBucket } = this.limitsOf(account_ref);
    const hours = Math.min(retention_hours ?? eventRetentionHours, eventRetentionHours);
    const before = this.deps.clock.now() - hours * HOUR_MS;
    if (oldest_at === null || (oldest_at >= before && events <= eventsPerBucket)) return;
    await this.removeOldest(id, (found, bucket) =>
      Math.max(receivedBefore(found, before), eventsIn(bucket) - eventsPerBucket),
    );
  }
}

function eventsIn({ pending, delivered, failed }: BucketActor): number {
  return pending + delivered + failed;
}

/** How many of a bucket's oldest events were received before a time. */
function receivedBefore(oldest: readonly RemovableRow[], before: number): number {
  const end = oldest.findIndex(({ received_at }) => received_at >= before);
  return end < 0 ? oldest.length : end;
}

/** The first rows within the limit of bytes: at least one, whatever its size. */
function withinBytes(rows: readonly RemovableRow[]): readonly RemovableRow[] {
  let bytes = 0;
  const end = rows.findIndex(({ payload_bytes }, index) => {
    // Pieces are not removed here.
    bytes += payload_bytes > BODY_BYTES_MAX ? 0 : payload_bytes;
    return index > 0 && bytes > REMOVAL_SLICE_BYTES;
  });
  return end < 0 ? rows : rows.slice(0, end);
}
