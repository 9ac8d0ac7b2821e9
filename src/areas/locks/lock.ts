import type { Cancel, Clock } from "../../kernel/clock.ts";
import type { ApiError } from "../../kernel/errors.ts";
import type { HeapEntry } from "../../kernel/heap.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { clientGone, type Lease, queueFull, WAITERS_PER_LOCK_MAX, waitTimedOut } from "./domain.ts";

// A lock has a queue of waiters, each of which waits for a lock: neither can be said without the others.

/** A lock that is held. Its row is the lease; the waiters and the timer are in memory alone. */
export class Lock {
  /** Null before the first grant within its unit of work, and once it is free and out of the table. */
  lease: Lease | null = null;
  /** Where its lease stands among those that end. */
  expiry: HeapEntry<Lock> | null = null;
  private waiters: WaitQueue | null = null;

  constructor(
    readonly projectRef: number,
    readonly key: string,
  ) {}

  /** Requests that wait for it. */
  get queueDepth(): number {
    return this.waiters?.depth ?? 0;
  }

  /** Its queue, made for the first waiter: most locks never have one. */
  get queue(): WaitQueue {
    this.waiters ??= new WaitQueue();
    return this.waiters;
  }

  /** Its queue if there is anyone in it. */
  get waitingQueue(): WaitQueue | null {
    return this.queueDepth > 0 ? this.waiters : null;
  }
}

/** A lock that a request has got. */
export interface Granted {
  readonly lock: Lock;
  readonly lease: Lease;
  /** Whether the request's token held the lock already. */
  readonly reentrant: boolean;
  /** Of waiters: what they got the lock with. */
  readonly handover?: Handover;
}

/** A lock's passing to the next waiter, and to the repeats of its request: it stands when one of them gets its answer. */
export interface Handover {
  /** The lease that the last of them got. */
  lease: Lease;
  /** Waiters of which it is not known yet whether they get their answer. */
  undecided: number;
  /** Whether one gets it. */
  taken: boolean;
}

/** A request for a lock. */
export interface AcquireRequest {
  readonly projectRef: number;
  readonly key: string;
  readonly ttlMs: number;
  readonly timeoutMs: number;
  /** The token that the lock is to have, and that makes the request one of the holder's when it has it already. */
  readonly token: string | null;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

/**
 * A request that waits in a queue. It ends once: granted, at its deadline, when its client goes away, or when it
 * is turned away.
 */
export class Waiter {
  private readonly end = Promise.withResolvers<Granted>();
  private ended = false;
  private cancelDeadline: Cancel = () => {};
  private stopListening: Cancel = () => {};

  constructor(readonly request: AcquireRequest) {
    // It may end before anyone looks; that is no defect.
    this.end.promise.catch(() => {});
  }

  /** Whether it still wants the lock: not past its deadline, not turned away, its client still there. */
  get alive(): boolean {
    return !this.ended && !this.request.signal.aborted;
  }

  /** Resolves with the grant. @throws ApiError `timeout`, or what it was turned away with. */
  get outcome(): Promise<Granted> {
    return this.end.promise;
  }

  /** Begins to watch the deadline and the connection. `leave` takes it out of its queue. */
  watch(clock: Clock, leave: () => void): void {
    if (this.ended) return;
    const { signal, key, timeoutMs } = this.request;
    const endWith = (error: ApiError): void => {
      leave();
      this.refuse(error);
    };
    const clientLeft = (): void => endWith(clientGone());
    signal.addEventListener("abort", clientLeft, { once: true });
    this.stopListening = () => signal.removeEventListener("abort", clientLeft);
    this.cancelDeadline = clock.after(timeoutMs, () => endWith(waitTimedOut(key, timeoutMs)));
  }

  /** Hands over the lock, once the grant is durable. */
  grant(granted: Granted): void {
    this.settle();
    this.end.resolve(granted);
  }

  /** Turns it away. */
  refuse(error: ApiError): void {
    this.settle();
    this.end.reject(error);
  }

  private settle(): void {
    this.ended = true;
    this.cancelDeadline();
    this.stopListening();
  }
}

/**
 * The waiters of one lock, first come first served. Waiters join and are taken within units of work; they leave
 * (deadline, closed connection) at any time between two batches, so whoever stands here when a unit runs is alive.
 */
class WaitQueue {
  // A set keeps the order of insertion, and whoever leaves leaves in constant time.
  private waiters = new Set<Waiter>();

  get depth(): number {
    return this.waiters.size;
  }

  /** Adds a waiter at the end. @throws ApiError `rate_limit_exceeded` when the queue is full. */
  join(tx: Tx, waiter: Waiter): void {
    if (this.waiters.size >= WAITERS_PER_LOCK_MAX) throw queueFull(waiter.request.key);
    this.waiters.add(waiter);
    tx.onRollback(() => this.waiters.delete(waiter));
  }

  /** Takes a waiter out, wherever it stands. */
  leave(waiter: Waiter): void {
    this.waiters.delete(waiter);
  }

  /** Takes the first living waiter; undefined when there is none. */
  takeNext(tx: Tx): Waiter | undefined {
    for (const waiter of this.waiters) {
      this.waiters.delete(waiter);
      if (!waiter.alive) continue;
      tx.onRollback(() => {
        this.waiters = new Set([waiter, ...this.waiters]);
      });
      return waiter;
    }
    return undefined;
  }

  /** Takes every living waiter that fits, in order. */
  takeAll(tx: Tx, fits: (waiter: Waiter) => boolean): Waiter[] {
    const before = this.waiters;
    const taken = [...before].filter((waiter) => waiter.alive && fits(waiter));
    if (taken.length === 0) return taken;
    this.waiters = before.difference(new Set(taken));
    tx.onRollback(() => {
      this.waiters = before;
    });
    return taken;
  }

  /** Takes everyone out, between two batches. */
  clear(): Waiter[] {
    const all = [...this.waiters];
    this.waiters.clear();
    return all;
  }
}

/**
 * The locks that are held, by project and key. A free lock is none: unlike other actors, there is nothing to read
 * again from the file, so nothing idle is kept, and a release is the end of the actor.
 */
export class LockTable {
  private readonly projects = new Map<number, Map<string, Lock>>();

  find(projectRef: number, key: string): Lock | undefined {
    return this.projects.get(projectRef)?.get(key);
  }

  /** Locks held in a project. */
  count(projectRef: number): number {
    return this.projects.get(projectRef)?.size ?? 0;
  }

  /** The locks of a project. */
  ofProject(projectRef: number): Iterable<Lock> {
    return this.projects.get(projectRef)?.values() ?? [];
  }

  /** Every lock that is held. */
  *all(): IterableIterator<Lock> {
    for (const locks of this.projects.values()) yield* locks.values();
  }

  /** Puts a lock in its place, for the life of a unit of work's outcome. */
  add(tx: Tx, lock: Lock): void {
    this.put(lock);
    tx.onRollback(() => this.remove(lock));
  }

  /** Takes a lock out that has become free. */
  drop(tx: Tx, lock: Lock): void {
    this.remove(lock);
    tx.onRollback(() => this.put(lock));
  }

  /** Puts a lock in its place that a start has read. */
  put(lock: Lock): void {
    const locks = this.projects.get(lock.projectRef);
    if (locks === undefined) this.projects.set(lock.projectRef, new Map([[lock.key, lock]]));
    else locks.set(lock.key, lock);
  }

  private remove(lock: Lock): void {
    const locks = this.projects.get(lock.projectRef);
    locks?.delete(lock.key);
    if (locks?.size === 0) this.projects.delete(lock.projectRef);
  }
}
