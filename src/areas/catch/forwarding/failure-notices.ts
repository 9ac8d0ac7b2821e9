import { LruMap } from "../../../kernel/limits/lru-map.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { BucketActor, CatchDeps } from "../buckets/buckets.ts";
import { eventIdOf } from "../event-ids.ts";
import type { EventRow } from "../store.ts";

/** Minimum time between two notices of a bucket: a target that is down fails every event. */
export const FAILURE_NOTICE_MS = 15 * 60_000;
/** Buckets in memory, about 1 MB. One beyond it may send a notice early. */
const BUCKETS_REMEMBERED_MAX = 10_000;

/** Notifies of events whose retries ended, in the unit of work that fails the event. */
export class FailureNotices {
  /** Times of the last notices, by bucket, epoch milliseconds. A restart forgets them. */
  private readonly last = new LruMap<number, number>(BUCKETS_REMEMBERED_MAX);

  constructor(private readonly notices: CatchDeps["notices"]) {}

  /** Sends a notice, unless the bucket sent one within {@link FAILURE_NOTICE_MS}. */
  notify(tx: Tx, bucket: BucketActor, row: EventRow): void {
    const before = this.last.get(bucket.ref);
    // One in the future: the clock was set back.
    if (before !== undefined && tx.now >= before && tx.now - before < FAILURE_NOTICE_MS) return;
    this.last.set(bucket.ref, tx.now);
    tx.onRollback(() => {
      if (before === undefined) this.last.delete(bucket.ref);
      else this.last.set(bucket.ref, before);
    });
    const { sequence, event_type, attempts, response_status, error } = row;
    this.notices.failed(tx, {
      accountRef: bucket.account_ref,
      projectRef: bucket.project_ref,
      name: bucket.name ?? bucket.id,
      facts: {
        bucket_id: bucket.id,
        event_id: eventIdOf(sequence),
        event_type,
        attempts,
        response_status,
        error: error ?? "",
      },
    });
  }
}
