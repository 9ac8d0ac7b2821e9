import { ApiError, echoed, errorText } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Cancel, Clock } from "../../kernel/time/clock.ts";
import { type HeapEntry, TimerHeap } from "../../kernel/time/timer-heap.ts";
import { clientGone, type Lease, WAITERS_PER_LOCK_MAX, waitTimedOut } from "./domain.ts";
import type { HangUps } from "./hang-ups.ts";

const NOBODY: ReadonlySet<Waiter> = new Set();

/**
 * A lock that is held. Its row is the lease; the waiters and the timer are in memory alone.
 *
 * Its waiters are served first come first served. They join and are taken within units of work; they leave (deadline,
 * closed connection) at any time between two batches, so all that stand here when a unit runs are alive.
 */
export class Lock {
  /** Null before the first grant within its unit of work, and once it is free and out of the table. */
  lease: Lease | null = null;
  /** Where its lease stands among those that end. */
  expiry: HeapEntry<Lock> | null = null;
  // A set keeps the order of insertion, and is left in constant time. Most locks never have a waiter.
  private waiters: Set<Waiter> | null = null;

  constructor(
    readonly projectRef: number,
    readonly key: string,
  ) {}

  /** Requests that wait for it. */
  get queueDepth(): number {
    return this.waiters?.size ?? 0;
  }

  /** Adds a waiter at the end. @throws ApiError `rate_limit_exceeded` when the queue is full. */
  join(tx: Tx, waiter: Waiter): void {
    if (this.queueDepth >= WAITERS_PER_LOCK_MAX) {
      throw new ApiError(
        "rate_limit_exceeded",
        `Queue full: ${WAITERS_PER_LOCK_MAX} requests wait for the lock ${echoed(this.key)} already. Try again later.`,
        { retryAfterSeconds: 1 },
      );
    }
    this.waiters ??= new Set();
    this.waiters.add(waiter);
    tx.onRollback(() => this.leave(waiter));
  }

  /** Takes a waiter out, wherever it stands. */
  leave(waiter: Waiter): void {
    this.waiters?.delete(waiter);
  }

  /** Takes the first living waiter; undefined when there is none. */
  takeNext(tx: Tx): Waiter | undefined {
    for (const waiter of this.waiters ?? NOBODY) {
      this.leave(waiter);
      if (!waiter.alive) continue;
      tx.onRollback(() => {
        this.waiters = new Set([waiter, ...(this.waiters ?? NOBODY)]);
      });
      return waiter;
    }
    return undefined;
  }

  /** Takes every living waiter that fits, in order. */
  takeAll(tx: Tx, fits: (waiter: Waiter) => boolean = () => true): Waiter[] {
    const before = this.waiters ?? NOBODY;
    const taken = [...before].filter((waiter) => waiter.alive && fits(waiter));
    if (taken.length === 0) return taken;
    this.waiters = before.difference(new Set(taken));
    tx.onRollback(() => {
      this.waiters = new Set(before);
    });
    return taken;
  }

  /** Takes everyone out, between two batches. */
  clear(): ReadonlySet<Waiter> {
    const all = this.waiters ?? NOBODY;
    this.waiters = null;
    return all;
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
  readonly accountRef: number;
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
  /** Resolves with the grant. @throws ApiError `timeout`, or what it was turned away with. */
  readonly outcome = this.end.promise;
  private ended = false;
  private cancelDeadline: Cancel = () => {};
  /** Called once, when it waits no longer. */
  onEnd: () => void = () => {};
  private stopListening: Cancel = () => {};

  constructor(readonly request: AcquireRequest) {
    // It may end before anyone looks; that is no defect.
    this.outcome.catch(() => {});
  }

  /** Whether it still wants the lock: not past its deadline, not turned away, its client still there. */
  get alive(): boolean {
    return !this.ended && !this.request.signal.aborted;
  }

  /** Begins to watch the deadline and the connection. `leave` takes it out of its queue. */
  watch(clock: Clock, hangUps: HangUps, leave: () => void): void {
    if (this.ended) return;
    const { signal, key, timeoutMs } = this.request;
    const endWith = (error: ApiError): void => {
      leave();
      this.refuse(error);
    };
    const clientLeft = (): void => hangUps.add(() => endWith(clientGone()));
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
    if (!this.ended) this.onEnd();
    this.ended = true;
    this.cancelDeadline();
    this.stopListening();
  }
}

const NO_LOCKS: ReadonlyMap<string, Lock> = new Map();

/**
 * The locks that are held, by project and key. A free lock is none: unlike other actors, there is nothing to read
 * again from the file, so nothing idle is kept, and a release is the end of the actor.
 */
export class LockTable {
  private readonly projects = new Map<number, Map<string, Lock>>();

  /** The locks of a project, by key. */
  ofProject(projectRef: number): ReadonlyMap<string, Lock> {
    return this.projects.get(projectRef) ?? NO_LOCKS;
  }

  /** Every lock that is held. */
  *all(): IterableIterator<Lock> {
    for (const locks of this.projects.values()) yield* locks.values();
  }

  /** Puts a lock in its place. */
  put(lock: Lock): void {
    const locks = this.projects.get(lock.projectRef) ?? new Map<string, Lock>();
    this.projects.set(lock.projectRef, locks.set(lock.key, lock));
  }

  /** Takes out a lock that has become free. */
  remove(lock: Lock): void {
    const locks = this.projects.get(lock.projectRef);
    locks?.delete(lock.key);
    if (locks?.size === 0) this.projects.delete(lock.projectRef);
  }
}

/**
 * Leases ended in one unit of work. When very many end at once, as after a long pause of the machine, requests get
 * their turn in between, and the writer's queue does not fill.
 */
export const EXPIRIES_PER_UNIT_MAX = 250;
/** Wait after a commit that failed (a full disk); until then the locks stay held. */
export const EXPIRY_RETRY_MS = 1_000;

/**
 * Ends leases on time by the monotonic clock: setting the wall clock shortens no lease. One timer waits for the
 * earliest end; a timer per lock would take more memory than the locks.
 */
export class Expiry {
  private readonly ends = new TimerHeap<Lock>();
  private armedFor = Number.POSITIVE_INFINITY;
  private cancelTimer: Cancel = () => {};
  private due: { readonly lock: Lock; readonly lease: Lease }[] = [];
  private running = false;
  private stopped = false;

  constructor(
    private readonly deps: Pick<Kernel, "clock" | "writer" | "log"> & {
      /** Frees a lock, or gives it to the next waiter. */
      readonly end: (tx: Tx, lock: Lock) => void;
    },
  ) {}

  /** Times the end of a lock's lease instead of the one before. */
  watch(lock: Lock): void {
    if (lock.expiry !== null) this.ends.cancel(lock.expiry);
    lock.expiry = null;
    if (lock.lease === null || this.stopped) return;
    lock.expiry = this.ends.push(this.deps.clock.monotonic() + lock.lease.lastsMs, lock);
    if (lock.expiry.due < this.armedFor) this.arm();
  }

  /** Whole milliseconds until a lock's lease ends; 0 while its end is being committed. */
  remainingMs(lock: Lock): number {
    return lock.expiry === null ? 0 : Math.max(0, Math.ceil(lock.expiry.due - this.deps.clock.monotonic()));
  }

  /** Ends no more leases. For the end of the process: what is held stays in the file. */
  stop(): void {
    this.stopped = true;
    this.due = [];
    this.cancelTimer();
  }

  private arm(): void {
    this.cancelTimer();
    const due = this.ends.earliest();
    this.armedFor = due ?? Number.POSITIVE_INFINITY;
    if (due === undefined) return;
    this.cancelTimer = this.deps.clock.after(Math.max(0, due - this.deps.clock.monotonic()), () =>
      this.fire(),
    );
  }

  private fire(): void {
    const now = this.deps.clock.monotonic();
    for (let lock = this.ends.takeDue(now); lock !== undefined; lock = this.ends.takeDue(now)) {
      lock.expiry = null;
      if (lock.lease !== null) this.due.push({ lock, lease: lock.lease });
    }
    this.arm();
    this.begin();
  }

  private begin(): void {
    if (this.due.length > 0 && !this.running) this.deps.clock.track(this.run());
  }

  private async run(): Promise<void> {
    this.running = true;
    try {
      while (this.due.length > 0) {
        const some = this.due.slice(0, EXPIRIES_PER_UNIT_MAX);
        await this.deps.writer.submit((tx) => {
          for (const { lock, lease } of some) {
            // A lock that was released, refreshed or handed over since has another lease.
            if (lock.lease === lease) this.deps.end(tx, lock);
          }
        });
        this.due.splice(0, some.length);
      }
    } catch (error) {
      if (this.stopped) return;
      this.deps.log.warn("locks could not be ended at their expiry yet", { error: errorText(error) });
      this.deps.clock.after(EXPIRY_RETRY_MS, () => this.begin());
    } finally {
      this.running = false;
    }
  }
}
