import { LruMap } from "../limits/lru-map.ts";
import type { Tx } from "../storage/tx.ts";

/** Called with a suspension, or its end, in its unit of work. */
export type SuspensionListener = (tx: Tx, accountRef: number) => void;

/** Reactivations that are remembered: operators end a few at a time, and only the last minutes matter. */
const REACTIVATIONS_MAX = 1_024;

/**
 * Accounts for which nothing runs: no monitors, pings, alerts, schedules, deliveries or buckets. Nothing of theirs is
 * deleted. The scheduler keeps the jobs in their lanes waiting; other code checks here. Held in memory.
 */
export class SuspendedAccounts {
  private refs = new Set<number>();
  private readonly listeners: SuspensionListener[] = [];
  private readonly endListeners: SuspensionListener[] = [];
  private readonly reactivatedAt = new LruMap<number, number>(REACTIVATIONS_MAX);

  /** Sets the accounts that are suspended at the start. */
  load(refs: Iterable<number>): void {
    this.refs = new Set(refs);
  }

  has(accountRef: number): boolean {
    return this.refs.has(accountRef);
  }

  /** Notes that an account is suspended, or no longer is. */
  set(tx: Tx, accountRef: number, suspended: boolean): void {
    const was = this.refs.has(accountRef);
    if (was === suspended) return;
    this.put(accountRef, suspended);
    tx.onRollback(() => this.put(accountRef, was));
    if (!suspended) this.reactivatedAt.set(accountRef, tx.now);
    for (const listener of suspended ? this.listeners : this.endListeners) listener(tx, accountRef);
  }

  /** The end of the last suspension of an account since the start, epoch milliseconds; 0 without one. */
  activeSince(accountRef: number): number {
    return this.reactivatedAt.get(accountRef) ?? 0;
  }

  /** Forgets an account that is removed. */
  forget(accountRef: number): void {
    this.refs.delete(accountRef);
  }

  /** Calls `listener` with each account that is suspended from now on. */
  onSuspended(listener: SuspensionListener): void {
    this.listeners.push(listener);
  }

  /** Calls `listener` with each account that is no longer suspended. */
  onReactivated(listener: SuspensionListener): void {
    this.endListeners.push(listener);
  }

  private put(accountRef: number, suspended: boolean): void {
    if (suspended) this.refs.add(accountRef);
    else this.refs.delete(accountRef);
  }
}
