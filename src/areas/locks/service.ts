import { ApiError, echoed, errorText } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { equalInConstantTime } from "../../kernel/secrets/key-format.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { nextNetworkTurn } from "../../kernel/time/clock.ts";
import { clientGone, DURATION_MS_MAX, type Lease, stopping, WAITERS_PER_ACCOUNT_MAX } from "./domain.ts";
import { HangUps } from "./hang-ups.ts";
import { type AcquireRequest, Expiry, type Granted, type Handover, Lock, LockTable, Waiter } from "./lock.ts";
import type { HeldLock, LockPage, LockStatus } from "./schema.ts";
import { FencingSequence, type LockStore } from "./store.ts";

/**
 * The use cases of locks. Every change runs within a unit of work, one after another, so a lock never has two
 * holders and waiters are served in the order of their requests. A release or an expiry gives the lock to the next
 * waiter in the same unit.
 */
export class LockService {
  private readonly table = new LockTable();
  private readonly fencing: FencingSequence;
  private readonly expiry: Expiry;
  private readonly hangUps = new HangUps();
  /** Requests that wait, by account. */
  private readonly waitersOf = new Map<number, number>();
  private isStopping = false;

  constructor(
    private readonly deps: Pick<Kernel, "writer" | "clock" | "ids" | "log" | "changes"> & {
      readonly store: LockStore;
    },
  ) {
    this.fencing = new FencingSequence(deps.store);
    this.expiry = new Expiry({ ...deps, end: (tx, lock) => this.handOver(tx, lock) });
    this.recover();
  }

  /**
   * Takes a lock that is free, refreshes one that the request's token holds, or joins the queue.
   *
   * @throws ApiError `rate_limit_exceeded` when the queue is full, `service_unavailable` when the server stops and
   *   the lock is not free.
   */
  acquire(tx: Tx, request: AcquireRequest): Granted | Waiter {
    if (request.signal.aborted) throw clientGone();
    const lock = this.table.ofProject(request.projectRef).get(request.key);
    if (lock === undefined) return this.grantNew(tx, request);
    const { lease } = lock;
    if (lease !== null && isTokenOf(lease, request.token)) {
      return this.refresh(tx, lock, lease, request.ttlMs);
    }
    if (this.isStopping) throw stopping();
    const waiter = new Waiter(request);
    lock.join(tx, waiter);
    this.countWaiter(tx, waiter);
    tx.afterCommit(() => waiter.watch(this.deps.clock, this.hangUps, () => lock.leave(waiter)));
    return waiter;
  }

  /** Counts a waiter of its account until it ends. @throws ApiError `rate_limit_exceeded` beyond the limit. */
  private countWaiter(tx: Tx, waiter: Waiter): void {
    const { accountRef } = waiter.request;
    const count = this.waitersOf.get(accountRef) ?? 0;
    if (count >= WAITERS_PER_ACCOUNT_MAX) {
      throw new ApiError(
        "rate_limit_exceeded",
        `${WAITERS_PER_ACCOUNT_MAX} requests of this account wait for locks already. Try again later.`,
        { retryAfterSeconds: 1 },
      );
    }
    this.waitersOf.set(accountRef, count + 1);
    let isCounted = true;
    const endCount = (): void => {
      if (!isCounted) return;
      isCounted = false;
      const left = (this.waitersOf.get(accountRef) ?? 1) - 1;
      if (left > 0) this.waitersOf.set(accountRef, left);
      else this.waitersOf.delete(accountRef);
    };
    waiter.onEnd = endCount;
    tx.onRollback(endCount);
  }

  /**
   * Waits until a waiter has got its lock. When `assertStillAllowed` throws then, the lock passes on.
   *
   * @throws ApiError `timeout` at its deadline, `service_unavailable` when the server stops, what
   *   `assertStillAllowed` throws.
   */
  async wait(waiter: Waiter, assertStillAllowed: () => void = () => {}): Promise<Granted> {
    const granted = await waiter.outcome;
    // The connection may have closed during the commit; that shows only after a turn of the network.
    await nextNetworkTurn();
    try {
      if (waiter.request.signal.aborted) throw clientGone();
      assertStillAllowed();
      if (granted.handover !== undefined) granted.handover.taken = true;
      return granted;
    } catch (refusal) {
      await this.passOn(granted);
      throw refusal;
    }
  }

  /** Releases a lock. @throws ApiError `not_found` when it is free, `forbidden` when another token holds it. */
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
        `${name} is held with another token. Only the token of its holder releases it.`,
      );
    this.handOver(tx, lock);
  }

  /** A lock's state. */
  status(projectRef: number, key: string): LockStatus {
    const lock = this.table.ofProject(projectRef).get(key);
    if (lock === undefined) return { locked: false, queue_depth: 0, ttl_remaining: null };
    return { locked: true, queue_depth: lock.queueDepth, ttl_remaining: this.expiry.remainingMs(lock) };
  }

  /** A page of a project's locks that are held, by key. */
  list(projectRef: number, limit: number, cursor = ""): LockPage {
    const held = [...this.table.ofProject(projectRef).values()].filter(({ key }) => key > cursor);
    const page = held.sort((a, b) => (a.key < b.key ? -1 : 1)).slice(0, limit + 1);
    const locks = page.slice(0, limit).flatMap((lock) => heldView(lock));
    const last = locks.at(-1);
    return page.length > limit && last !== undefined ? { locks, cursor: last.key } : { locks };
  }

  /** How many are held in a project, and how many requests wait for them. */
  figures(projectRef: number): { held: number; waiting: number } {
    const locks = this.table.ofProject(projectRef);
    let waiting = 0;
    for (const { queueDepth } of locks.values()) waiting += queueDepth;
    return { held: locks.size, waiting };
  }

  /**
   * Takes a lock away from the holder that has this fencing token.
   * @throws ApiError `not_found` when it is free, `conflict` when another holds it by now.
   */
  forceRelease(tx: Tx, projectRef: number, key: string, fencingToken: number): void {
    const lock = this.table.ofProject(projectRef).get(key);
    const name = `The lock ${echoed(key)}`;
    if (lock === undefined || lock.lease === null) throw new ApiError("not_found", `${name} is not held.`);
    const { fencing_token } = lock.lease;
    if (fencing_token !== fencingToken) {
      throw new ApiError(
        "conflict",
        `${name} has another holder by now: its fencing token is ${fencing_token}.`,
      );
    }
    tx.audit({
      summary: `Lock ${key} taken from its holder`,
      target: { type: "lock", id: key },
      before: { fencing_token },
      after: null,
    });
    this.handOver(tx, lock);
  }

  /** Locks now held in a project. */
  count(projectRef: number): number {
    return this.table.ofProject(projectRef).size;
  }

  /** Refuses the waiters of a deleted project. What is held there ends by itself, or by {@link removeLocks}. */
  refuseProject(tx: Tx, projectRef: number): void {
    for (const lock of this.table.ofProject(projectRef).values()) {
      const waiters = lock.takeAll(tx);
      tx.afterCommit(() => {
        const gone = new ApiError("forbidden", "The project of this key has been deleted.");
        for (const waiter of waiters) waiter.refuse(gone);
      });
    }
  }

  /** Removes at most `locksMax` of a deleted project's locks. Returns how many. */
  removeLocks(tx: Tx, projectRef: number, locksMax: number): number {
    const locks = [...this.table.ofProject(projectRef).values()].slice(0, locksMax);
    for (const lock of locks) this.free(tx, lock);
    return locks.length;
  }

  /** Refuses all waiters, and lets no others wait: the server stops. */
  refuseWaiters(): void {
    this.isStopping = true;
    for (const lock of this.table.all()) {
      for (const waiter of lock.clear()) waiter.refuse(stopping());
    }
  }

  /** Ends no more leases: for the end of the process. */
  finish(): void {
    this.expiry.stop();
  }

  /**
   * Goes on with the locks that are held, each for what is left of its time, but no longer than any lock can be held:
   * the wall clock may have been ahead. Locks that expired meanwhile are free.
   */
  private recover(): void {
    const { store, writer, clock, log } = this.deps;
    const now = clock.now();
    const latest = now + DURATION_MS_MAX;
    for (const { project_ref, key, token, fencing_token, ...row } of store.held(now)) {
      const lock = new Lock(project_ref, key);
      const expires_at = Math.min(row.expires_at, latest);
      lock.lease = { token, fencing_token, expires_at, lastsMs: expires_at - now };
      this.table.put(lock);
      this.expiry.watch(lock);
    }
    // Only older grants: after the wall clock is set back, a later one could look expired at `now`.
    const through = store.fencingReservedThrough();
    writer
      .submit((tx) => {
        store.removeExpired(tx, now, through);
        store.shorten(tx, latest, latest, through);
      })
      .catch((error) => log.warn("expired locks stay in the file for now", { error: errorText(error) }));
  }

  private grantNew(tx: Tx, request: AcquireRequest): Granted {
    const lock = new Lock(request.projectRef, request.key);
    this.table.put(lock);
    tx.onRollback(() => this.table.remove(lock));
    return this.grant(tx, lock, request);
  }

  private grant(tx: Tx, lock: Lock, { token, ttlMs }: AcquireRequest): Granted {
    const lease: Lease = {
      token: token ?? this.deps.ids.uuidV4(),
      fencing_token: this.fencing.next(tx),
      expires_at: tx.now + ttlMs,
      lastsMs: ttlMs,
    };
    this.lend(tx, lock, lease);
    const { projectRef, key } = lock;
    this.deps.store.insert(tx, lease.fencing_token, projectRef, key, lease.token, lease.expires_at);
    return { lock, lease, reentrant: false };
  }

  private refresh(tx: Tx, lock: Lock, lease: Lease, ttlMs: number): Granted {
    const refreshed = { ...lease, expires_at: tx.now + ttlMs, lastsMs: ttlMs };
    this.lend(tx, lock, refreshed);
    this.deps.store.refresh(tx, refreshed.expires_at, lease.fencing_token);
    return { lock, lease: refreshed, reentrant: true };
  }

  /** Ends the lease and grants the lock to the next living waiter; without one it is free. */
  private handOver(tx: Tx, lock: Lock): void {
    const next = lock.takeNext(tx);
    if (next === undefined) {
      this.free(tx, lock);
      return;
    }
    if (lock.lease !== null) this.deps.store.remove(tx, lock.lease.fencing_token);
    const granted = this.grant(tx, lock, next.request);
    const handover: Handover = { lease: granted.lease, undecided: 1, taken: false };
    tx.afterCommit(() => next.grant({ ...granted, handover }));
    // Nobody else has a token that was made just now.
    if (next.request.token !== null) this.answerRepeats(tx, granted, handover);
  }

  /** Waiters with the token that has just got the lock are the holder's own request, sent again: reentrant. */
  private answerRepeats(tx: Tx, { lock, lease }: Granted, handover: Handover): void {
    const repeats = lock.takeAll(tx, ({ request }) => isTokenOf(lease, request.token));
    for (const repeat of repeats) {
      const granted = this.refresh(tx, lock, handover.lease, repeat.request.ttlMs);
      handover.lease = granted.lease;
      handover.undecided += 1;
      tx.afterCommit(() => repeat.grant({ ...granted, handover }));
    }
  }

  private free(tx: Tx, lock: Lock): void {
    if (lock.lease !== null) this.deps.store.remove(tx, lock.lease.fencing_token);
    this.lend(tx, lock, null);
    this.table.remove(lock);
    tx.onRollback(() => this.table.put(lock));
  }

  /** Sets a lock's lease; its end is timed once that is durable. */
  private lend(tx: Tx, lock: Lock, lease: Lease | null): void {
    const before = lock.lease;
    lock.lease = lease;
    this.deps.changes.inProject(tx, lock.projectRef, "latch", lock.key);
    tx.onRollback(() => {
      lock.lease = before;
    });
    tx.afterCommit(() => this.expiry.watch(lock));
  }

  /** Gives up a grant that none of its waiters took. A holder who has come back since keeps it. */
  private async passOn({ lock, handover }: Granted): Promise<void> {
    if (handover === undefined) return;
    handover.undecided -= 1;
    if (handover.taken || handover.undecided > 0) return;
    await this.deps.writer.submit((tx) => {
      if (lock.lease === handover.lease) this.handOver(tx, lock);
    });
  }
}

function heldView({ key, lease, queueDepth: queue_depth }: Lock): HeldLock[] {
  if (lease === null) return [];
  const { fencing_token, expires_at, lastsMs } = lease;
  return [{ key, fencing_token, acquired_at: expires_at - lastsMs, expires_at, queue_depth }];
}

/** Whether a token is the lease's, in a time that does not tell how much of it was right. */
function isTokenOf(lease: Lease, token: string | null): boolean {
  return token !== null && equalInConstantTime(token, lease.token);
}
