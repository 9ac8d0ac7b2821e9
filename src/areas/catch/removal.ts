import { type Clock, monotonicMs, realDelay } from "../../kernel/clock.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import type { JobOutcome, Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import type { Tiers } from "../../kernel/tiers.ts";
import type { BucketActor, Buckets } from "./buckets.ts";
import type { EventStore, RemovableRow } from "./event-store.ts";
import type { BucketAccounts } from "./ports.ts";
import type { BucketStore, OldestEvent } from "./store.ts";

/** Events removed in one unit of work: one or two milliseconds of the writer's time. */
export const REMOVAL_SLICE_ROWS = 50;
/** Bytes of payload after which a slice ends: freeing a mebibyte takes about as long as fifty small rows. */
export const REMOVAL_SLICE_BYTES = 1024 * 1024;
/**
 * Events removed with one that came in. One keeps a full bucket at its maximum; more let it shrink to a smaller one
 * after a change of tier.
 */
export const TRIM_ROWS_MAX = 4;
/** After a slice, the disk is left to others for this many times as long as the slice took. */
const PAUSE_FACTOR = 2;
/** Buckets looked at in one go by the hourly clean-up. */
const BUCKETS_PER_LOOK = 100;

/** The job that removes a deleted bucket's events. */
const REMOVE_BUCKET = "catch.remove-bucket";
/** Hourly, and not at the full hour, when most other work begins. */
const RETENTION_SCHEDULE = "7 * * * *";
const HOUR_MS = 60 * 60 * 1000;

/** What a slice removed. */
interface Slice {
  readonly removed: number;
  /** Whether there was more to remove. */
  readonly more: boolean;
}

/** Removes events, a slice at a time, with pauses in which other requests run. */
export class Removal {
  private stopping = false;

  constructor(
    private readonly deps: {
      readonly store: BucketStore;
      readonly events: EventStore;
      readonly buckets: Buckets;
      readonly accounts: BucketAccounts;
      readonly tiers: Tiers;
      readonly scheduler: Scheduler;
      readonly writer: Writer;
      readonly clock: Clock;
    },
  ) {
    deps.scheduler.register(REMOVE_BUCKET, {
      // One at a time: two would load the disk twice as much.
      concurrency: 1,
      run: (job) => this.removeBucket(Number(job.key), job.dueAt),
    });
    deps.scheduler.recurring("catch.retention", RETENTION_SCHEDULE, () => this.retain());
  }

  /** Deletes the oldest events of a bucket that has passed its maximum. */
  trim(tx: Tx, bucket: BucketActor): void {
    const excess = bucket.events - this.eventsMax(bucket.accountRef);
    if (excess <= 0) return;
    const rows = this.deps.events.oldestOf(bucket.ref, Math.min(excess, TRIM_ROWS_MAX));
    for (const row of rows) this.remove(tx, bucket, row);
  }

  /** Enqueues the removal of a bucket's events, in the unit of work that deletes it. */
  enqueue(tx: Tx, bucketRef: number): void {
    this.deps.scheduler.enqueue(tx, REMOVE_BUCKET, String(bucketRef), tx.now, {});
  }

  /** Removes a bucket's events received before a time. Returns how many there were. */
  removeBefore(bucket: BucketActor, before: number): Promise<number> {
    return this.inSlices(() => this.removeOldest(bucket.id, (rows) => receivedBefore(rows, before)));
  }

  /** Removes at most `rowsMax` events of a bucket that has been deleted, and the bucket when none are left. */
  private removeRowsOf(tx: Tx, bucketRef: number, rowsMax: number): Slice {
    const { events, store } = this.deps;
    const rows = withinBytes(events.oldestOf(bucketRef, Math.min(rowsMax, REMOVAL_SLICE_ROWS)));
    for (const { sequence } of rows) events.delete(tx, bucketRef, sequence);
    if (rows.length > 0) return { removed: rows.length, more: true };
    store.delete(tx, bucketRef);
    return { removed: 1, more: false };
  }

  /** Ends after the slice under way; the next start goes on with deleted buckets. */
  stop(): void {
    this.stopping = true;
  }

  /** The buckets of a project. */
  resources(): ProjectResources {
    const { store, buckets } = this.deps;
    return {
      name: "buckets",
      count: (projectRef) => store.idsOfProject(projectRef).length,
      projectDeleted(tx, projectRef) {
        for (const bucket of buckets.listOfProject(projectRef)) buckets.markDeleted(tx, bucket);
      },
      removeRows: (tx, projectRef, rowsMax) => {
        const bucketRef = store.anyRefOfProject(projectRef);
        if (bucketRef === null) return 0;
        this.removeRowsOf(tx, bucketRef, rowsMax);
        // A slice has bounds of its own: it may be short although there is more.
        return store.anyRefOfProject(projectRef) === null ? rowsMax - 1 : rowsMax;
      },
    };
  }

  private eventsMax(accountRef: number): number {
    const { accounts, tiers } = this.deps;
    return tiers[accounts.account(accountRef).tier].eventsPerBucket;
  }

  private remove(tx: Tx, bucket: BucketActor, row: RemovableRow): void {
    this.deps.events.delete(tx, bucket.ref, row.sequence);
    this.deps.buckets.count(tx, bucket, row.status, null);
  }

  /** One slice of a bucket's oldest events. `toGo`: how many of those found are to go. */
  private removeOldest(
    bucketId: string,
    toGo: (found: readonly RemovableRow[], bucket: BucketActor) => number,
  ): Promise<Slice> {
    return this.deps.writer.submit((tx) => {
      const bucket = this.deps.buckets.find(bucketId);
      if (bucket === undefined) return { removed: 0, more: false };
      const found = this.deps.events.oldestOf(bucket.ref, REMOVAL_SLICE_ROWS);
      const wanted = found.slice(0, toGo(found, bucket));
      const rows = withinBytes(wanted);
      for (const row of rows) this.remove(tx, bucket, row);
      return {
        removed: rows.length,
        more: rows.length < wanted.length || rows.length === REMOVAL_SLICE_ROWS,
      };
    });
  }

  private async inSlices(slice: () => Promise<Slice>): Promise<number> {
    for (let total = 0; ; ) {
      const startedAt = monotonicMs();
      const { removed, more } = await slice();
      total += removed;
      if (!more || this.stopping) return total;
      await realDelay(PAUSE_FACTOR * (monotonicMs() - startedAt));
    }
  }

  private async removeBucket(bucketRef: number, dueAt: number): Promise<JobOutcome> {
    await this.inSlices(() =>
      this.deps.writer.submit((tx) =>
        this.isDeleted(bucketRef)
          ? this.removeRowsOf(tx, bucketRef, REMOVAL_SLICE_ROWS)
          : { removed: 0, more: false },
      ),
    );
    return this.stopping ? { retryAt: dueAt, attempt: 0 } : {};
  }

  /** False when the bucket was removed with its project: after a restart its reference may be another bucket's. */
  private isDeleted(bucketRef: number): boolean {
    const id = this.deps.store.idOf(bucketRef);
    return id !== null && this.deps.buckets.find(id) === undefined;
  }

  /** Goes over all buckets: removes what is past its time, and what a smaller tier has no room for. */
  private async retain(): Promise<void> {
    for (let after = 0; ; ) {
      const buckets = this.deps.store.oldestEvents(after, BUCKETS_PER_LOOK);
      for (const bucket of buckets) await this.retainIn(bucket);
      const last = buckets.at(-1);
      if (last === undefined || this.stopping) return;
      after = last.ref;
      await realDelay(0);
    }
  }

  private async retainIn({ id, account_ref, events, oldest_at }: OldestEvent): Promise<void> {
    const { accounts, tiers, clock } = this.deps;
    const { eventRetentionHours, eventsPerBucket } = tiers[accounts.account(account_ref).tier];
    const before = clock.now() - eventRetentionHours * HOUR_MS;
    if (oldest_at === null || (oldest_at >= before && events <= eventsPerBucket)) return;
    await this.inSlices(() =>
      this.removeOldest(id, (found, bucket) =>
        Math.max(receivedBefore(found, before), bucket.events - eventsPerBucket),
      ),
    );
  }
}

/** How many of a bucket's oldest events, in the order of their receipt, came before a time. */
function receivedBefore(oldest: readonly RemovableRow[], before: number): number {
  const end = oldest.findIndex(({ received_at }) => received_at >= before);
  return end < 0 ? oldest.length : end;
}

/** The first rows that a slice has room for: at least one, whatever its size. */
function withinBytes(rows: readonly RemovableRow[]): RemovableRow[] {
  let bytes = 0;
  const kept: RemovableRow[] = [];
  for (const row of rows) {
    bytes += row.payload_bytes;
    if (kept.length > 0 && bytes > REMOVAL_SLICE_BYTES) break;
    kept.push(row);
  }
  return kept;
}
