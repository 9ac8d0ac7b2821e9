import type { HeapEntry } from "../../kernel/heap.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Lease } from "./domain.ts";
import { WaitQueue } from "./queue.ts";

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
