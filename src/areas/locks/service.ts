import { ApiError, echoed, errorText } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { equalInConstantTime } from "../../kernel/secrets/key-format.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { nextNetworkTurn } from "../../kernel/time/clock.ts";
import { Disconnects } from "./disconnects.ts";
import {
  connectionClosedError,
  DURATION_MS_MAX,
  type Lease,
  shuttingDownError,
  WAITERS_PER_ACCOUNT_MAX,
} from "./domain.ts";
import { LeaseExpiry } from "./expiry.ts";
import { type AcquireRequest, type Grant, type Handover, Lock, Waiter } from "./lock.ts";
import { LockTable } from "./lock-table.ts";
import type { HeldLock, LockPage, LockStatus } from "./schema.ts";
import { FencingSequence, type LockStore } from "./store.ts";

/**
 * The operations of locks. Changes run within units of work, one after another, so that a lock never has two holders and
 * waiters are served in the order of their requests. A release or an expiry grants the lock to the next waiter in the same
 * unit.
 */
export class LockService {
  private readonly table = new LockTable();
  private readonly fencing: FencingSequence;
  private readonly expiry: LeaseExpiry;
  private readonly disconnects = new Disconnects();
  /** Number of waiting requests, by account. */
  private readonly waitersByAccount = new Map<number, number>();
  private isStopping = false;

  constructor(
    private readonly deps: Pick<Kernel, "writer" | "clock" | "ids" | "log" | "changes"> & {
      readonly store: LockStore;
    },
  ) {
    this.fencing = new FencingSequence(deps.store);
    this.expiry = new LeaseExpiry({ ...deps, expire: (tx, lock) => this.grantToNext(tx, lock) });
    this.recover();
  }

  /**
   * Grants a free lock, refreshes the lease if the request has the holder's token, or adds the request to the queue.
   *
   * @throws ApiError `rate_limit_exceeded` when the queue is full; `service_unavailable` when the server is stopping
   *   and the lock is held.
   */
  acquire(tx: Tx, request: AcquireRequest): Grant | Waiter {
    if (request.signal.aborted) throw connectionClosedError();
    const lock = this.table.ofProject(request.projectRef).get(request.key);
    if (lock === undefined) return this.grantNew(tx, request);
    const { lease } = lock;
    if (lease !== null && isTokenOf(lease, request.token)) {
      return this.refresh(tx, lock, lease, request.ttlMs);
    }
    if (this.isStopping) throw shuttingDownError();
    const waiter = new Waiter(request);
    lock.enqueue(tx, waiter);
    this.countWaiter(tx, waiter);
    tx.afterCommit(() => waiter.watch(this.deps.clock, this.disconnects, () => lock.removeWaiter(waiter)));
    return waiter;
  }

  /** Counts a waiter for its account until it settles. @throws ApiError `rate_limit_exceeded` at the limit. */
  private countWaiter(tx: Tx, waiter: Waiter): void {
    const { accountRef } = waiter.request;
    const count = this.waitersByAccount.get(accountRef) ?? 0;
    if (count >= WAITERS_PER_ACCOUNT_MAX) {
      throw new ApiError(
        "rate_limit_exceeded",
        `${WAITERS_PER_ACCOUNT_MAX} requests of this account already wait for locks. Retry later.`,
        { retryAfterSeconds: 1 },
      );
    }
    this.waitersByAccount.set(accountRef, count + 1);
    let isCounted = true;
    const stopCounting = (): void => {
      if (!isCounted) return;
      isCounted = false;
      const left = (this.waitersByAccount.get(accountRef) ?? 1) - 1;
      if (left > 0) this.waitersByAccount.set(accountRef, left);
      else this.waitersByAccount.delete(accountRef);
    };
    waiter.onSettled = stopCounting;
    tx.onRollback(stopCounting);
  }

  /**
   * Waits until a waiter is granted its lock. If `assertStillAllowed` then throws, the lock passes to the next waiter.
   *
   * @throws ApiError `timeout` at the deadline, `service_unavailable` when the server stops, and errors of
   *   `assertStillAllowed`.
   */
  async wait(waiter: Waiter, assertStillAllowed: () => void = () => {}): Promise<Grant> {
    const granted = await waiter.outcome;
    // The connection may have closed during the commit, which is visible only after the next network event.
    await nextNetworkTurn();
    try {
      if (waiter.request.signal.aborted) throw connectionClosedError();
      assertStillAllowed();
      if (granted.handover !== undefined) granted.handover.isAccepted = true;
      return granted;
    } catch (error) {
      await this.releaseUnused(granted);
      throw error;
    }
  }

  /** Releases a lock. @throws ApiError `not_found` if it is free, `forbidden` if another token holds it. */
  release(tx: Tx, projectRef: number, key: string, token: string): void {
    const lock = this.table.ofProject(projectRef).get(key);
    const name = `The lock ${echoed(key)}`;
    if (lock === undefined || lock.lease === null)
      throw new ApiError(
        "not_found",
        `${name} is not held: it was released, has expired, or was never acquired.`,
      );
    if (!isTokenOf(lock.lease, token))
      throw new ApiError(
        "forbidden",
        `${name} has another token. Release it with the token that its holder got from acquire.`,
      );
    this.grantToNext(tx, lock);
  }

  /** Returns a lock's state. */
  status(projectRef: number, key: string): LockStatus {
    const lock = this.table.ofProject(projectRef).get(key);
    if (lock === undefined) return { locked: false, queue_depth: 0, ttl_remaining: null };
    return { locked: true, queue_depth: lock.queueDepth, ttl_remaining: this.expiry.remainingMs(lock) };
  }

  /** Returns a page of a project's held locks, by key. */
  list(projectRef: number, limit: number, cursor = ""): LockPage {
    const held = [...this.table.ofProject(projectRef).values()].filter(({ key }) => key > cursor);
    const page = held.sort((a, b) => (a.key < b.key ? -1 : 1)).slice(0, limit + 1);
    const locks = page.slice(0, limit).flatMap((lock) => heldLockView(lock));
    const last = locks.at(-1);
    return page.length > limit && last !== undefined ? { locks, cursor: last.key } : { locks };
  }

  /** Returns a project's held locks as they are stored. */
  rows(projectRef: number) {
    return [...this.table.ofProject(projectRef).values()].flatMap(({ key, lease }) => {
      if (lease === null) return [];
      const { token, fencing_token, expires_at } = lease;
      return [{ fencing_token, key, token, expires_at }];
    });
  }

  /** Returns the number of a project's held locks and of requests waiting for them. */
  counts(projectRef: number): { held: number; waiting: number } {
    const locks = this.table.ofProject(projectRef);
    let waiting = 0;
    for (const { queueDepth } of locks.values()) waiting += queueDepth;
    return { held: locks.size, waiting };
  }

  /**
   * Releases a lock by force if its holder has this fencing token.
   * @throws ApiError `not_found` if it is free, `conflict` if it has another holder.
   */
  forceRelease(tx: Tx, projectRef: number, key: string, fencingToken: number): void {
    const lock = this.table.ofProject(projectRef).get(key);
    const name = `The lock ${echoed(key)}`;
    if (lock === undefined || lock.lease === null) throw new ApiError("not_found", `${name} is not held.`);
    const { fencing_token } = lock.lease;
    if (fencing_token !== fencingToken) {
      throw new ApiError(
        "conflict",
        `${name} now has another holder with the fencing token ${fencing_token}.`,
      );
    }
    tx.audit({
      summary: `Lock ${key} released by force`,
      target: { type: "lock", id: key },
      before: { fencing_token },
      after: null,
    });
    this.grantToNext(tx, lock);
  }

  /** Returns the number of held locks of a project. */
  count(projectRef: number): number {
    return this.table.ofProject(projectRef).size;
  }

  /** Rejects the waiters of a deleted project. Its held locks expire, or {@link removeLocks} removes them. */
  rejectProjectWaiters(tx: Tx, projectRef: number): void {
    for (const lock of this.table.ofProject(projectRef).values()) {
      const waiters = lock.dequeueMatching(tx);
      tx.afterCommit(() => {
        const error = new ApiError("forbidden", "The project of this key has been deleted.");
        for (const waiter of waiters) waiter.reject(error);
      });
    }
  }

  /** Removes at most `locksMax` locks of a deleted project. Returns the number removed. */
  removeLocks(tx: Tx, projectRef: number, locksMax: number): number {
    const locks = [...this.table.ofProject(projectRef).values()].slice(0, locksMax);
    for (const lock of locks) this.free(tx, lock);
    return locks.length;
  }

  /** Rejects all waiters and all new ones, because the server is stopping. */
  rejectWaiters(): void {
    this.isStopping = true;
    for (const lock of this.table.all()) {
      for (const waiter of lock.clearWaiters()) waiter.reject(shuttingDownError());
    }
  }

  /** Stops the expiry of leases at the end of the process. */
  finish(): void {
    this.expiry.stop();
  }

  /**
   * Restores the held locks, each with its remaining time. The time is limited to the maximum TTL, because the wall clock
   * may have been ahead. Locks that expired meanwhile are free.
   */
  private recover(): void {
    const { store, writer, clock, log } = this.deps;
    const now = clock.now();
    const latest = now + DURATION_MS_MAX;
    for (const { project_ref, key, token, fencing_token, ...row } of store.unexpired(now)) {
      const lock = new Lock(project_ref, key);
      const expires_at = Math.min(row.expires_at, latest);
      lock.lease = { token, fencing_token, expires_at, durationMs: expires_at - now };
      this.table.add(lock);
      this.expiry.schedule(lock);
    }
    // Only older grants: after the wall clock is set back, a newer one could appear expired at `now`.
    const through = store.fencingReservedThrough();
    writer
      .submit((tx) => {
        store.removeExpired(tx, now, through);
        store.capExpiry(tx, latest, latest, through);
      })
      .catch((error) =>
        log.warn("expired locks could not be removed from the database", { error: errorText(error) }),
      );
  }

  private grantNew(tx: Tx, request: AcquireRequest): Grant {
    const lock = new Lock(request.projectRef, request.key);
    this.table.add(lock);
    tx.onRollback(() => this.table.remove(lock));
    return this.grant(tx, lock, request);
  }

  private grant(tx: Tx, lock: Lock, { token, ttlMs }: AcquireRequest): Grant {
    const lease: Lease = {
      token: token ?? this.deps.ids.uuidV4(),
      fencing_token: this.fencing.next(tx),
      expires_at: tx.now + ttlMs,
      durationMs: ttlMs,
    };
    this.setLease(tx, lock, lease);
    const { projectRef, key } = lock;
    this.deps.store.insert(tx, lease.fencing_token, projectRef, key, lease.token, lease.expires_at);
    return { lock, lease, reentrant: false };
  }

  private refresh(tx: Tx, lock: Lock, lease: Lease, ttlMs: number): Grant {
    const refreshed = { ...lease, expires_at: tx.now + ttlMs, durationMs: ttlMs };
    this.setLease(tx, lock, refreshed);
    this.deps.store.refresh(tx, refreshed.expires_at, lease.fencing_token);
    return { lock, lease: refreshed, reentrant: true };
  }

  /** Ends the lease and grants the lock to the next active waiter. Without one, the lock is free. */
  private grantToNext(tx: Tx, lock: Lock): void {
    const next = lock.dequeue(tx);
    if (next === undefined) {
      this.free(tx, lock);
      return;
    }
    if (lock.lease !== null) this.deps.store.remove(tx, lock.lease.fencing_token);
    const granted = this.grant(tx, lock, next.request);
    const handover: Handover = { lease: granted.lease, pending: 1, isAccepted: false };
    tx.afterCommit(() => next.grant({ ...granted, handover }));
    // No other request can have a token that was generated just now.
    if (next.request.token !== null) this.grantDuplicates(tx, granted, handover);
  }

  /** Grants the lock to waiters with the new holder's token: they are repetitions of its request. */
  private grantDuplicates(tx: Tx, { lock, lease }: Grant, handover: Handover): void {
    const duplicates = lock.dequeueMatching(tx, ({ request }) => isTokenOf(lease, request.token));
    for (const duplicate of duplicates) {
      const granted = this.refresh(tx, lock, handover.lease, duplicate.request.ttlMs);
      handover.lease = granted.lease;
      handover.pending += 1;
      tx.afterCommit(() => duplicate.grant({ ...granted, handover }));
    }
  }

  private free(tx: Tx, lock: Lock): void {
    if (lock.lease !== null) this.deps.store.remove(tx, lock.lease.fencing_token);
    this.setLease(tx, lock, null);
    this.table.remove(lock);
    tx.onRollback(() => this.table.add(lock));
  }

  /** Sets a lock's lease and schedules its expiry after the commit. */
  private setLease(tx: Tx, lock: Lock, lease: Lease | null): void {
    const before = lock.lease;
    lock.lease = lease;
    this.deps.changes.inProject(tx, lock.projectRef, "latch", lock.key);
    tx.onRollback(() => {
      lock.lease = before;
    });
    tx.afterCommit(() => this.expiry.schedule(lock));
  }

  /** Passes the lock on if no waiter accepted the grant. A holder that has refreshed its lease meanwhile keeps it. */
  private async releaseUnused({ lock, handover }: Grant): Promise<void> {
    if (handover === undefined) return;
    handover.pending -= 1;
    if (handover.isAccepted || handover.pending > 0) return;
    await this.deps.writer.submit((tx) => {
      if (lock.lease === handover.lease) this.grantToNext(tx, lock);
    });
  }
}

function heldLockView({ key, lease, queueDepth: queue_depth }: Lock): HeldLock[] {
  if (lease === null) return [];
  const { fencing_token, expires_at, durationMs } = lease;
  return [{ key, fencing_token, acquired_at: expires_at - durationMs, expires_at, queue_depth }];
}

/** Compares a token with the lease's in constant time. */
function isTokenOf(lease: Lease, token: string | null): boolean {
  return token !== null && equalInConstantTime(token, lease.token);
}
