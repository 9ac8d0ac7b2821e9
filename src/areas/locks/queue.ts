import type { Tx } from "../../kernel/storage/tx.ts";
import { queueFull, WAITERS_PER_LOCK_MAX } from "./domain.ts";
import type { Waiter } from "./waiter.ts";

/**
 * The waiters of one lock, first come first served. Waiters join and are taken within units of work; they leave
 * (deadline, closed connection) at any time between two batches, so whoever stands here when a unit runs is alive.
 */
export class WaitQueue {
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
