import { slices } from "../../../kernel/background/time-slices.ts";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import { ConnectionSlots } from "../../../kernel/http/access/connection-slots.ts";
import type { Call } from "../../../kernel/http/requests/call.ts";
import { monotonicMs, realDelay, realTimeout } from "../../../kernel/time/clock.ts";
import type { BucketActor, Buckets, SharedDeps } from "../buckets/buckets.ts";
import { knownProvider } from "../domain.ts";
import { eventIdOf, sequenceOf } from "../event-ids.ts";
import type { EventService } from "../events/events.ts";
import type { CaughtEvent } from "../schema.ts";
import type { EventRow } from "../store.ts";
import { STREAM_LIMIT, type StreamPage, type StreamQuery, WAIT_MS } from "./schema.ts";

/** Requests that wait at one bucket: a team's laptops, and requests that a proxy has not closed yet. */
export const WAITING_PER_BUCKET_MAX = 8;
/** Requests that wait at all buckets, at most a quarter of them per account. */
export const WAITING_MAX = 256;
/** Retry time when too many requests wait. */
const RETRY_AFTER_SECONDS = 1;
/** Time in which further events join the first one: this saves requests under load. */
const GATHER_MS = 20;
/** Characters of JSON after which a page ends. A longer event is the only one of its page. */
export const PAGE_LENGTH_MAX = 4 * 1024 * 1024;
/** Rows of events that are read in one step, without payloads. */
const ROWS_PER_STEP = 100;
/** The cursor before the first event. */
const BEGINNING = "beginning";

type EventFilter = (row: EventRow) => boolean;

/** The events of a response, and its position. */
class Page {
  readonly events: CaughtEvent[] = [];
  private length = 0;
  private isCut = false;

  constructor(
    private readonly limit: number,
    /** The last event that was read; 0 before the first. */
    public through: number,
  ) {}

  get isFull(): boolean {
    return this.isCut || this.events.length >= this.limit;
  }

  /** Adds an event if it fits. */
  add(event: CaughtEvent, sequence: number): void {
    this.length += JSON.stringify(event).length;
    this.isCut = this.length > PAGE_LENGTH_MAX;
    if (this.isCut && this.events.length > 0) return;
    this.events.push(event);
    this.through = sequence;
  }

  get response(): StreamPage {
    return { events: this.events, cursor: this.through === 0 ? BEGINNING : eventIdOf(this.through) };
  }
}

/** Returns the events of a bucket in order, and lets requests wait for the next one. */
export class EventStream {
  private readonly waiting = new Map<number, number>();
  private readonly places = new ConnectionSlots({
    slotsMax: WAITING_MAX,
    held: "waiting requests",
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
  private readonly ended = new AbortController();

  constructor(
    private readonly deps: Pick<SharedDeps, "events" | "changes">,
    private readonly buckets: Buckets,
    private readonly service: EventService,
  ) {}

  /** Responds to all waiting requests and accepts no others, because the server stops. */
  stop(): void {
    this.ended.abort();
  }

  /**
   * The events after a position, or the next ones. A response without events is free of charge.
   * @throws ApiError `catch.bucket_not_found`, `catch.provider_unsupported`, `validation_error`, `rate_limit_exceeded` when
   * too many wait, `service_unavailable` when the server stops.
   */
  async poll(call: Call, bucketId: string, query: StreamQuery): Promise<StreamPage> {
    const { limit = STREAM_LIMIT, wait_ms = WAIT_MS } = query;
    const matches = filterOf(query);
    const projectRef = call.caller.project.ref;
    const bucket = this.buckets.ofProject(projectRef, bucketId);
    const page = new Page(limit, this.positionOf(bucket, query.after));
    const read = () => this.read(this.buckets.ofProject(projectRef, bucketId), matches, page);
    await read();
    if (page.events.length === 0 && wait_ms > 0) {
      await this.wait(call, bucket, wait_ms, async () => {
        await read();
        return page.events.length > 0;
      });
      // The key may have been revoked during the wait.
      call.reauthorize();
      if (!page.isFull && page.events.length > 0) {
        await realDelay(GATHER_MS);
        await read();
      }
    }
    if (page.events.length === 0 || call.request.signal.aborted) return page.response;
    return call.read(() => page.response);
  }

  private positionOf(bucket: BucketActor, after: string): number {
    if (after === BEGINNING) return 0;
    if (after === "now") return this.deps.events.lastOf(bucket.ref);
    const sequence = sequenceOf(after);
    if (sequence === null) throw invalidField("after", "must be an event's id, now or beginning");
    return sequence;
  }

  /** Continues a page from its position, in slices. */
  private async read(bucket: BucketActor, matches: EventFilter, page: Page): Promise<void> {
    for (;;) {
      const rows = this.deps.events.after(bucket.ref, page.through, ROWS_PER_STEP);
      for (const row of rows) {
        if (slices.isOver) await slices.next();
        const event = matches(row) ? this.service.ofRow(bucket, row) : null;
        if (event === null) page.through = row.sequence;
        else page.add(event, row.sequence);
        if (page.isFull) return;
      }
      if (rows.length < ROWS_PER_STEP) return;
    }
  }

  /** Waits until `read` finds an event, the time is over, or the client disconnects. */
  private async wait(
    call: Call,
    bucket: BucketActor,
    waitMs: number,
    read: () => Promise<boolean>,
  ): Promise<void> {
    const leave = this.join(bucket);
    const { signal } = call.request;
    const end = monotonicMs() + waitMs;
    let changed = Promise.withResolvers<void>();
    const wake = () => changed.resolve();
    const ignore = this.deps.changes.listen(
      { accountRef: bucket.account_ref, projectRef: bucket.project_ref },
      (area, id) => {
        if (area === "catch" && (id === null || id === bucket.id)) wake();
      },
    );
    const endings = [signal, this.ended.signal];
    for (const ending of endings) ending.addEventListener("abort", wake, { once: true });
    const cancel = realTimeout(waitMs, wake);
    call.setIdleTimeout(0);
    try {
      // The first call finds events that arrived in the meantime.
      while (!(await read()) && monotonicMs() < end && !signal.aborted) {
        this.assertNotStopping();
        await changed.promise;
        changed = Promise.withResolvers<void>();
      }
    } finally {
      cancel();
      ignore();
      for (const ending of endings) ending.removeEventListener("abort", wake);
      leave();
    }
  }

  private assertNotStopping(): void {
    if (!this.ended.signal.aborted) return;
    throw new ApiError("service_unavailable", "The server is shutting down. Retry the request.");
  }

  /** Counts a waiting request. Returns a function that ends the wait. */
  private join({ ref, account_ref }: BucketActor): () => void {
    const waiting = this.waiting.get(ref) ?? 0;
    if (waiting >= WAITING_PER_BUCKET_MAX) {
      const message = `${waiting} requests already wait at this bucket. Retry later, or with wait_ms=0.`;
      throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds: RETRY_AFTER_SECONDS });
    }
    const release = this.places.take(account_ref);
    this.waiting.set(ref, waiting + 1);
    return () => {
      release();
      const left = (this.waiting.get(ref) ?? 1) - 1;
      if (left === 0) this.waiting.delete(ref);
      else this.waiting.set(ref, left);
    };
  }
}

/** The filter of a query. @throws ApiError `catch.provider_unsupported` */
function filterOf(query: StreamQuery): EventFilter {
  const provider = knownProvider(query.provider);
  const { verification, event_type } = query;
  return (row) =>
    (provider === null || row.provider === provider) &&
    (event_type === undefined || row.event_type === event_type) &&
    (verification === undefined || row.verification === verification);
}
