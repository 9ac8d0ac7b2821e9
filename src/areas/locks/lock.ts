import { ApiError, echoed } from "../../kernel/errors.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Cancel, Clock } from "../../kernel/time/clock.ts";
import type { HeapEntry } from "../../kernel/time/timer-heap.ts";
import type { Disconnects } from "./disconnects.ts";
import {
  connectionClosedError,
  HOLDERS_PER_LOCK_MAX,
  type Lease,
  type LockMode,
  WAITERS_PER_LOCK_MAX,
  waitTimeoutError,
} from "./domain.ts";

const NO_WAITERS: ReadonlySet<Waiter> = new Set();

/** One holder of a lock: one in the mode `exclusive`, up to {@link HOLDERS_PER_LOCK_MAX} in the mode `shared`. */
export class Holder {
  /** Replaced by a refresh. Null after the holder has lost or released the lock. */
  lease: Lease | null = null;
  /** The lease's entry in the timer heap. */
  expiry: HeapEntry<Holder> | null = null;

  constructor(readonly lock: Lock) {}
}

/**
 * A held lock. The lease of each holder is stored in a row; the queue and the timers are only in memory.
 *
 * The queue is first come, first served. Waiters are added and granted within units of work. They leave (deadline, closed
 * connection) at any time between two batches, so that during a unit all waiters in the queue are active.
 */
export class Lock {
  /** Mode of all holders. */
  mode: LockMode = "exclusive";
  /** Empty before the first grant within its unit of work, and after the lock is free. */
  readonly holders: Holder[] = [];
  /** Whether a unit of work is queued that grants the lock to waiters. */
  isGranting = false;
  // A set keeps the order of insertion and removes in constant time. Most locks never have a waiter.
  private waiters: Set<Waiter> | null = null;

  constructor(
    readonly projectRef: number,
    readonly key: string,
  ) {}

  /** Number of waiting requests. */
  get queueDepth(): number {
    return this.waiters?.size ?? 0;
  }

  /** Whether a request of this mode may hold the lock next to the present holders. */
  admits(mode: LockMode): boolean {
    if (this.holders.length === 0) return true;
    return mode === "shared" && this.mode === "shared" && this.holders.length < HOLDERS_PER_LOCK_MAX;
  }

  /** The first active waiter; undefined when there is none. */
  firstWaiter(): Waiter | undefined {
    for (const waiter of this.waiters ?? NO_WAITERS) if (waiter.isActive) return waiter;
    return undefined;
  }

  /** The waiters with a token, by their tokens. */
  waitersByToken(): Map<string, Set<Waiter>> {
    const byToken = new Map<string, Set<Waiter>>();
    for (const waiter of this.waiters ?? NO_WAITERS) {
      const { token } = waiter.request;
      if (token === null) continue;
      const sameToken = byToken.get(token);
      if (sameToken === undefined) byToken.set(token, new Set([waiter]));
      else sameToken.add(waiter);
    }
    return byToken;
  }

  /** Adds a waiter to the queue. @throws ApiError `rate_limit_exceeded` when the queue is full. */
  enqueue(tx: Tx, waiter: Waiter): void {
    if (this.queueDepth >= WAITERS_PER_LOCK_MAX) {
      throw new ApiError(
        "rate_limit_exceeded",
        `Queue full: ${WAITERS_PER_LOCK_MAX} requests already wait for the lock ${echoed(this.key)}. Retry later.`,
        { retryAfterSeconds: 1 },
      );
    }
    this.waiters ??= new Set();
    this.waiters.add(waiter);
    tx.onRollback(() => this.removeWaiter(waiter));
  }

  /** Removes a waiter from the queue, whatever its position. */
  removeWaiter(waiter: Waiter): void {
    this.waiters?.delete(waiter);
  }

  /** Removes and returns the first active waiter; undefined when there is none. */
  dequeue(tx: Tx): Waiter | undefined {
    for (const waiter of this.waiters ?? NO_WAITERS) {
      this.removeWaiter(waiter);
      if (!waiter.isActive) continue;
      tx.onRollback(() => {
        this.waiters = new Set([waiter, ...(this.waiters ?? NO_WAITERS)]);
      });
      return waiter;
    }
    return undefined;
  }

  /** Removes and returns all active waiters that match, in order. */
  dequeueMatching(tx: Tx, matches: (waiter: Waiter) => boolean = () => true): Waiter[] {
    const before = this.waiters ?? NO_WAITERS;
    const matching = [...before].filter((waiter) => waiter.isActive && matches(waiter));
    if (matching.length === 0) return matching;
    this.waiters = before.difference(new Set(matching));
    tx.onRollback(() => {
      this.waiters = new Set(before);
    });
    return matching;
  }

  /** Removes and returns all waiters. Call it only between two batches. */
  clearWaiters(): ReadonlySet<Waiter> {
    const all = this.waiters ?? NO_WAITERS;
    this.waiters = null;
    return all;
  }
}

/** A request for a lock. */
export interface AcquireRequest {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly key: string;
  readonly ttlMs: number;
  /** 0: do not wait. */
  readonly timeoutMs: number;
  readonly mode: LockMode;
  /** Token for the lock. If it is the holder's token, the request refreshes the holder's lease. Null: generate one. */
  readonly token: string | null;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** A lock that was granted to a request. */
export interface Grant {
  readonly holder: Holder;
  readonly lease: Lease;
  /** Whether the request's token already held the lock. */
  readonly reentrant: boolean;
  /** Set for waiters. */
  readonly handover?: Handover;
}

/**
 * The grant of a lock to the next waiter and to the duplicates of its request. The lock passes on unless at least one of
 * them accepts it.
 */
export interface Handover {
  /** Lease of the last duplicate. */
  lease: Lease;
  /** Number of waiters that have neither accepted nor declined yet. */
  pending: number;
  /** Whether one waiter has accepted. */
  isAccepted: boolean;
}

/**
 * A request in a lock's queue. It settles once: granted, timed out, disconnected or rejected.
 */
export class Waiter {
  private readonly result = Promise.withResolvers<Grant>();
  /** Resolves with the grant. @throws ApiError `timeout`, or the error of {@link reject}. */
  readonly outcome = this.result.promise;
  private isSettled = false;
  private cancelDeadline: Cancel = () => {};
  /** Called once, when the waiter settles. */
  onSettled: () => void = () => {};
  private removeAbortListener: Cancel = () => {};

  constructor(readonly request: AcquireRequest) {
    // The waiter may settle before the outcome is awaited, which is not an unhandled rejection.
    this.outcome.catch(() => {});
  }

  /** Whether the waiter can still be granted the lock. */
  get isActive(): boolean {
    return !this.isSettled && !this.request.signal.aborted;
  }

  /** Starts the deadline and watches the connection. `leave` removes the waiter from its queue. */
  watch(clock: Clock, disconnects: Disconnects, leave: () => void): void {
    if (this.isSettled) return;
    const { signal, key, timeoutMs } = this.request;
    const fail = (error: ApiError): void => {
      leave();
      this.reject(error);
    };
    const onDisconnect = (): void => disconnects.add(() => fail(connectionClosedError()));
    signal.addEventListener("abort", onDisconnect, { once: true });
    this.removeAbortListener = () => signal.removeEventListener("abort", onDisconnect);
    this.cancelDeadline = clock.after(timeoutMs, () => fail(waitTimeoutError(key, timeoutMs)));
  }

  /** Grants the lock. Call it after the grant is durable. */
  grant(grant: Grant): void {
    this.settle();
    this.result.resolve(grant);
  }

  /** Rejects the request. */
  reject(error: ApiError): void {
    this.settle();
    this.result.reject(error);
  }

  private settle(): void {
    if (!this.isSettled) this.onSettled();
    this.isSettled = true;
    this.cancelDeadline();
    this.removeAbortListener();
  }
}
