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
  otherModeError,
  shuttingDownError,
  TIMEOUT_MS_TRY,
  WAITERS_PER_ACCOUNT_MAX,
  waitTimeoutError,
} from "./domain.ts";
import { EXPIRY_RETRY_MS, LeaseExpiry } from "./expiry.ts";
import { type AcquireRequest, type Grant, type Handover, Holder, Lock, Waiter } from "./lock.ts";
import { LockTable } from "./lock-table.ts";
import type { HeldLock, LockPage, LockStatus } from "./schema.ts";
import { FencingSequence, type LockStore } from "./store.ts";

/** Waiters that get a shared lock in one unit of work. When a writer leaves, a thousand readers may follow it. */
export const GRANTS_PER_UNIT_MAX = 100;

/**
 * The operations of locks. Changes run within units of work, one after another, so that an exclusive lock never has two
 * holders and waiters are served in the order of their requests, over both modes. A release or an expiry grants the lock to
 * the next waiters in the same unit.
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
    this.expiry = new LeaseExpiry({ ...deps, expire: (tx, holder) => this.end(tx, holder) });
    this.recover();
  }

  /**
   * Grants a lock that is free, or shared by a request for a shared one; refreshes the lease if the request has a holder's
   * token; or adds the request to the queue.
   *
   * @throws ApiError `conflict` if its token holds the lock in the other mode; `timeout` when the lock is not free and the
   *   request does not wait; `rate_limit_exceeded` when the queue is full; `service_unavailable` when the server is stopping
   *   and the lock is held.
   */
  acquire(tx: Tx, request: AcquireRequest): Grant | Waiter {
    if (request.signal.aborted) throw connectionClosedError();
    const lock = this.table.ofProject(request.projectRef).get(request.key);
    if (lock === undefined) return this.grantNew(tx, request);
    const holder = holderOf(lock, request.token);
    if (holder !== undefined) {
      if (lock.mode !== request.mode) throw otherModeError(lock.key, lock.mode);
      return { holder, lease: this.refresh(tx, holder, request.ttlMs), reentrant: true };
    }
    if (lock.admits(request.mode) && lock.firstWaiter() === undefined) return this.grant(tx, lock, request);
    if (this.isStopping) throw shuttingDownError();
    if (request.timeoutMs === TIMEOUT_MS_TRY) throw waitTimeoutError(lock.key, request.timeoutMs);
    const waiter = new Waiter(request);
    lock.enqueue(tx, waiter);
    this.countWaiter(tx, waiter);
    tx.afterCommit(() => waiter.watch(this.deps.clock, this.disconnects, () => this.leave(lock, waiter)));
    return waiter;
  }

  /** Removes a waiter that gave up. Requests for a shared lock may have waited for it only. */
  private leave(lock: Lock, waiter: Waiter): void {
    lock.removeWaiter(waiter);
    const next = lock.firstWaiter();
    if (next !== undefined && lock.admits(next.request.mode)) this.grantSoon(lock);
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
    this.end(tx, this.held(projectRef, key, token));
  }

  /**
   * Sets the time that a holder has left, from now on: longer or shorter. Never acquires a free lock.
   * @throws ApiError `not_found` if it is free, `forbidden` if another token holds it.
   */
  extend(
    tx: Tx,
    projectRef: number,
    key: string,
    { token, ttl }: { readonly token: string; readonly ttl: number },
  ): Lease {
    return this.refresh(tx, this.held(projectRef, key, token), ttl);
  }

  /** @throws ApiError `not_found` if the lock is free, `forbidden` if another token holds it. */
  private held(projectRef: number, key: string, token: string): Holder {
    const lock = this.table.ofProject(projectRef).get(key);
    const name = `The lock ${echoed(key)}`;
    if (lock === undefined)
      throw new ApiError(
        "not_found",
        `${name} is not held: it was released, has expired, or was never acquired.`,
      );
    const holder = holderOf(lock, token);
    if (holder === undefined)
      throw new ApiError(
        "forbidden",
        `${name} has another token. Use the token that its holder got from acquire.`,
      );
    return holder;
  }

  /** Returns a lock's state. */
  status(projectRef: number, key: string): LockStatus {
    const lock = this.table.ofProject(projectRef).get(key);
    if (lock === undefined) return { locked: false, queue_depth: 0, ttl_remaining: null };
    const { mode, holders, queueDepth: queue_depth } = lock;
    const ttl_remaining = Math.max(...holders.map((holder) => this.expiry.remainingMs(holder)));
    return { locked: true, queue_depth, ttl_remaining, mode, holders: holders.length };
  }

  /** Returns a page of a project's held locks, by key and fencing token: one row for each holder. */
  list(projectRef: number, limit: number, cursor = ""): LockPage {
    // Keys have no dot. Without one, the cursor is of a version that had one holder a lock.
    const [afterKey = "", afterToken = Number.POSITIVE_INFINITY] = cursor.split(".");
    const page: HeldLock[] = [];
    for (const lock of this.table.inOrder(projectRef, afterKey)) {
      const rows = heldLockViews(lock);
      const after = lock.key === afterKey ? Number(afterToken) : 0;
      page.push(...rows.filter(({ fencing_token }) => fencing_token > after));
      if (page.length > limit) break;
    }
    const locks = page.slice(0, limit);
    const last = locks.at(-1);
    if (page.length <= limit || last === undefined) return { locks };
    return { locks, cursor: `${last.key}.${last.fencing_token}` };
  }

  /** Iterates over a project's held locks as they are stored, also while locks come and go. */
  *rows(projectRef: number) {
    for (const { key, mode, holders } of this.table.inOrder(projectRef, "")) {
      for (const { lease } of [...holders]) {
        if (lease === null) continue;
        const { token, fencing_token, expires_at } = lease;
        yield { fencing_token, key, token, expires_at, mode };
      }
    }
  }

  /** Returns the number of a project's held locks and of requests waiting for them. */
  counts(projectRef: number): { held: number; waiting: number } {
    const locks = this.table.ofProject(projectRef);
    let waiting = 0;
    for (const { queueDepth } of locks.values()) waiting += queueDepth;
    return { held: locks.size, waiting };
  }

  /**
   * Ends the hold with this fencing token.
   * @throws ApiError `not_found` if the lock is free, `conflict` if no holder has the fencing token.
   */
  forceRelease(tx: Tx, projectRef: number, key: string, fencingToken: number): void {
    const lock = this.table.ofProject(projectRef).get(key);
    const name = `The lock ${echoed(key)}`;
    if (lock === undefined) throw new ApiError("not_found", `${name} is not held.`);
    const holder = lock.holders.find(({ lease }) => lease?.fencing_token === fencingToken);
    if (holder === undefined) {
      const newest = lock.holders.at(-1)?.lease?.fencing_token;
      throw new ApiError(
        "conflict",
        `${name} now has another holder with the fencing token ${newest}. List the locks to see its holders.`,
      );
    }
    tx.audit({
      summary: `Lock ${key} released by force`,
      target: { type: "lock", id: key },
      before: { fencing_token: fencingToken },
      after: null,
    });
    this.end(tx, holder);
  }

  /** Returns the number of held locks of a project. */
  count(projectRef: number): number {
    return this.table.ofProject(projectRef).size;
  }

  /** Rejects the waiters of a deleted project. Its held locks expire, or {@link removeLocks} removes them. */
  rejectProjectWaiters(tx: Tx, projectRef: number): void {
    for (const lock of this.table.ofProject(projectRef).values()) {
      // Most locks: a project can have a hundred thousand.
      if (lock.queueDepth === 0) continue;
      const waiters = lock.dequeueMatching(tx);
      tx.afterCommit(() => {
        const error = new ApiError("forbidden", "The project of this key has been deleted.");
        for (const waiter of waiters) waiter.reject(error);
      });
    }
  }

  /** Removes at most `rowsMax` holders of locks of a deleted project. Returns the number removed. */
  removeLocks(tx: Tx, projectRef: number, rowsMax: number): number {
    const holders: Holder[] = [];
    for (const lock of this.table.ofProject(projectRef).values()) {
      if (holders.length >= rowsMax) break;
      holders.push(...lock.holders);
    }
    const removed = holders.slice(0, rowsMax);
    for (const holder of removed) this.end(tx, holder);
    return removed.length;
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
    for (const { project_ref, key, token, fencing_token, mode, ...row } of store.unexpired(now)) {
      const lock = this.table.ofProject(project_ref).get(key) ?? new Lock(project_ref, key);
      lock.mode = mode;
      const holder = new Holder(lock);
      const expires_at = Math.min(row.expires_at, latest);
      holder.lease = { token, fencing_token, expires_at, durationMs: expires_at - now };
      lock.holders.push(holder);
      this.table.add(lock);
      this.expiry.schedule(holder);
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

  /** Adds a holder. The lock admits its mode. */
  private grant(tx: Tx, lock: Lock, { token, ttlMs, mode }: AcquireRequest): Grant {
    const lease: Lease = {
      token: token ?? this.deps.ids.uuidV4(),
      fencing_token: this.fencing.next(tx),
      expires_at: tx.now + ttlMs,
      durationMs: ttlMs,
    };
    const holder = new Holder(lock);
    const modeBefore = lock.mode;
    lock.mode = mode;
    lock.holders.push(holder);
    tx.onRollback(() => {
      lock.mode = modeBefore;
      removeHolder(holder);
    });
    this.setLease(tx, holder, lease);
    const { projectRef, key } = lock;
    this.deps.store.insert(tx, lease.fencing_token, projectRef, key, lease.token, lease.expires_at, mode);
    return { holder, lease, reentrant: false };
  }

  /** Gives a holder a new lease of `ttlMs` from now, with the same tokens. */
  private refresh(tx: Tx, holder: Holder, ttlMs: number): Lease {
    if (holder.lease === null) throw new Error("only a holder refreshes its lock");
    const refreshed = { ...holder.lease, expires_at: tx.now + ttlMs, durationMs: ttlMs };
    this.setLease(tx, holder, refreshed);
    this.deps.store.refresh(tx, refreshed.expires_at, refreshed.fencing_token);
    return refreshed;
  }

  /** Ends a hold and grants the lock to the next active waiters. Without holders, the lock is free. */
  private end(tx: Tx, holder: Holder): void {
    const { lock, lease } = holder;
    if (lease !== null) this.deps.store.remove(tx, lease.fencing_token);
    this.setLease(tx, holder, null);
    removeHolder(holder);
    tx.onRollback(() => lock.holders.push(holder));
    this.grantToWaiters(tx, lock);
    if (lock.holders.length > 0) return;
    this.table.remove(lock);
    tx.onRollback(() => this.table.add(lock));
  }

  /** Grants a lock to its first waiters, as long as it admits them. */
  private grantToWaiters(tx: Tx, lock: Lock): void {
    let byToken: ReadonlyMap<string, ReadonlySet<Waiter>> | null = null;
    for (let grants = 0; ; grants += 1) {
      const next = lock.firstWaiter();
      if (next === undefined || !lock.admits(next.request.mode)) return;
      if (grants === GRANTS_PER_UNIT_MAX) {
        tx.afterCommit(() => this.grantSoon(lock));
        return;
      }
      const { token } = next.request;
      // Once for all grants: each would compare its token with those of all waiters.
      if (token !== null) byToken ??= lock.waitersByToken();
      lock.dequeue(tx);
      const granted = this.grant(tx, lock, next.request);
      const handover: Handover = { lease: granted.lease, pending: 1, isAccepted: false };
      tx.afterCommit(() => next.grant({ ...granted, handover }));
      // No other request can have a token that is generated just now.
      const sameToken = token === null ? undefined : byToken?.get(token);
      if (sameToken !== undefined && sameToken.size > 1)
        this.grantDuplicates(tx, granted, handover, sameToken);
    }
  }

  /** Grants a lock to its first waiters in a unit of work of its own. */
  private grantSoon(lock: Lock): void {
    if (lock.isGranting || this.isStopping) return;
    lock.isGranting = true;
    const { writer, clock, log } = this.deps;
    const granting = writer
      .submit((tx) => {
        lock.isGranting = false;
        this.grantToWaiters(tx, lock);
      })
      .catch((error) => {
        lock.isGranting = false;
        if (this.isStopping) return;
        log.warn("a lock could not be granted to its waiters, retrying", { error: errorText(error) });
        clock.after(EXPIRY_RETRY_MS, () => this.grantSoon(lock));
      });
    clock.track(granting);
  }

  /**
   * Grants the lock to waiters with the new holder's token: they are repetitions of its request. In the other mode they
   * are rejected.
   */
  private grantDuplicates(
    tx: Tx,
    { holder }: Grant,
    handover: Handover,
    repetitions: ReadonlySet<Waiter>,
  ): void {
    const { lock } = holder;
    const duplicates = lock.dequeueMatching(tx, (waiter) => repetitions.has(waiter));
    for (const duplicate of duplicates) {
      if (duplicate.request.mode !== lock.mode) {
        const error = otherModeError(lock.key, lock.mode);
        tx.afterCommit(() => duplicate.reject(error));
        continue;
      }
      const refreshed = this.refresh(tx, holder, duplicate.request.ttlMs);
      handover.lease = refreshed;
      handover.pending += 1;
      tx.afterCommit(() => duplicate.grant({ holder, lease: refreshed, reentrant: true, handover }));
    }
  }

  /** Sets a holder's lease and schedules its expiry after the commit. */
  private setLease(tx: Tx, holder: Holder, lease: Lease | null): void {
    const before = holder.lease;
    holder.lease = lease;
    this.deps.changes.inProject(tx, holder.lock.projectRef, "latch", holder.lock.key);
    tx.onRollback(() => {
      holder.lease = before;
    });
    tx.afterCommit(() => this.expiry.schedule(holder));
  }

  /** Passes the lock on if no waiter accepted the grant. A holder that has refreshed its lease meanwhile keeps it. */
  private async releaseUnused({ holder, handover }: Grant): Promise<void> {
    if (handover === undefined) return;
    handover.pending -= 1;
    if (handover.isAccepted || handover.pending > 0) return;
    await this.deps.writer.submit((tx) => {
      if (holder.lease === handover.lease) this.end(tx, holder);
    });
  }
}

function heldLockViews({ key, mode, holders, queueDepth: queue_depth }: Lock): HeldLock[] {
  const rows = holders.flatMap(({ lease }) => {
    if (lease === null) return [];
    const { fencing_token, expires_at, durationMs } = lease;
    return [{ key, fencing_token, acquired_at: expires_at - durationMs, expires_at, queue_depth, mode }];
  });
  return rows.sort((a, b) => a.fencing_token - b.fencing_token);
}

/** Returns the holder with this token. */
function holderOf({ holders }: Lock, token: string | null): Holder | undefined {
  if (token === null) return undefined;
  return holders.find(({ lease }) => lease !== null && isTokenOf(lease, token));
}

function removeHolder(holder: Holder): void {
  const { holders } = holder.lock;
  const index = holders.indexOf(holder);
  if (index >= 0) holders.splice(index, 1);
}

/** Compares a token with the lease's in constant time. */
function isTokenOf(lease: Lease, token: string | null): boolean {
  return token !== null && equalInConstantTime(token, lease.token);
}
