import { ApiError, echoed } from "../../kernel/errors.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { HeapEntry } from "../../kernel/time/timer-heap.ts";
import { type Lease, WAITERS_PER_LOCK_MAX } from "./domain.ts";
import type { Waiter } from "./waiter.ts";

const NO_WAITERS: ReadonlySet<Waiter> = new Set();

/**
 * A held lock. Its lease is stored in a row; the queue and the timer are only in memory.
 *
 * The queue is first come, first served. Waiters are added and granted within units of work. They leave (deadline, closed
 * connection) at any time between two batches, so that during a unit all waiters in the queue are active.
 */
export class Lock {
  /** Null before the first grant within its unit of work, and after the lock is free. */
  lease: Lease | null = null;
  /** The lease's entry in the timer heap. */
  expiry: HeapEntry<Lock> | null = null;
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

const NO_LOCKS: ReadonlyMap<string, Lock> = new Map();

/** The held locks, by project and key. A free lock has no entry, because no data about it is stored. */
export class LockTable {
  private readonly projects = new Map<number, Map<string, Lock>>();

  /** Returns the locks of a project, by key. */
  ofProject(projectRef: number): ReadonlyMap<string, Lock> {
    return this.projects.get(projectRef) ?? NO_LOCKS;
  }

  /** Iterates over all held locks. */
  *all(): IterableIterator<Lock> {
    for (const locks of this.projects.values()) yield* locks.values();
  }

  /** Adds a lock. */
  add(lock: Lock): void {
    const locks = this.projects.get(lock.projectRef) ?? new Map<string, Lock>();
    this.projects.set(lock.projectRef, locks.set(lock.key, lock));
  }

  /** Removes a lock that has become free. */
  remove(lock: Lock): void {
    const locks = this.projects.get(lock.projectRef);
    locks?.delete(lock.key);
    if (locks?.size === 0) this.projects.delete(lock.projectRef);
  }
}
