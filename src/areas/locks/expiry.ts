import type { Cancel, Clock } from "../../kernel/clock.ts";
import { errorText } from "../../kernel/errors.ts";
import { TimerHeap } from "../../kernel/heap.ts";
import type { Logger } from "../../kernel/log.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import type { Lease } from "./domain.ts";
import type { Lock } from "./lock.ts";

/**
 * Leases ended in one unit of work. When very many end at once, such as after a long stop of the machine, this
 * leaves room between them for requests, and does not fill the writer's queue.
 */
export const EXPIRIES_PER_UNIT_MAX = 250;
/** After a commit that failed (a full disk), the locks stay held this much longer before it is tried again. */
export const EXPIRY_RETRY_MS = 1_000;

/** A lease whose time is over. */
interface Due {
  readonly lock: Lock;
  readonly lease: Lease;
}

/**
 * Ends leases at their time, on the monotonic clock: a wall clock that is set does not shorten anyone's lease. One
 * timer stands at the end of the earliest; a timer for each would weigh more than the locks themselves.
 */
export class Expiry {
  private readonly clock: Clock;
  private readonly writer: Writer;
  private readonly log: Logger;
  /** Frees a lock, or gives it to the next waiter. */
  private readonly end: (tx: Tx, lock: Lock) => void;
  private readonly ends = new TimerHeap<Lock>();
  private armedFor = Number.POSITIVE_INFINITY;
  private cancelTimer: Cancel = () => {};
  private due: Due[] = [];
  private running = false;
  private stopped = false;

  constructor(deps: {
    clock: Clock;
    writer: Writer;
    log: Logger;
    end: (tx: Tx, lock: Lock) => void;
  }) {
    this.clock = deps.clock;
    this.writer = deps.writer;
    this.log = deps.log;
    this.end = deps.end;
  }

  /** Notes a lock's lease, in the place of the one that it had: none, a new one, or another. */
  watch(lock: Lock): void {
    if (lock.expiry !== null) this.ends.cancel(lock.expiry);
    lock.expiry = null;
    if (lock.lease === null || this.stopped) return;
    lock.expiry = this.ends.push(this.clock.monotonic() + lock.lease.lastsMs, lock);
    if (lock.expiry.due < this.armedFor) this.arm();
  }

  /** Whole milliseconds until a lock's lease ends; 0 while its end is being committed. */
  remainingMs(lock: Lock): number {
    return lock.expiry === null ? 0 : Math.max(0, Math.ceil(lock.expiry.due - this.clock.monotonic()));
  }

  /** Ends no lease any more. For the end of the process: what is held stays in the file. */
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
    this.cancelTimer = this.clock.after(Math.max(0, due - this.clock.monotonic()), () => this.fire());
  }

  private fire(): void {
    const now = this.clock.monotonic();
    for (let lock = this.ends.takeDue(now); lock !== undefined; lock = this.ends.takeDue(now)) {
      lock.expiry = null;
      if (lock.lease !== null) this.due.push({ lock, lease: lock.lease });
    }
    this.arm();
    if (this.due.length > 0 && !this.running) this.clock.track(this.run());
  }

  private async run(): Promise<void> {
    this.running = true;
    try {
      while (this.due.length > 0) await this.endSome();
    } catch (error) {
      this.retryLater(error);
    } finally {
      this.running = false;
    }
  }

  private async endSome(): Promise<void> {
    const some = this.due.slice(0, EXPIRIES_PER_UNIT_MAX);
    await this.writer.submit((tx) => {
      for (const { lock, lease } of some) {
        // Released, refreshed or handed over since its timer fired: another lease stands there now.
        if (lock.lease === lease) this.end(tx, lock);
      }
    });
    this.due.splice(0, some.length);
  }

  private retryLater(error: unknown): void {
    if (this.stopped) return;
    this.log.warn("locks could not be ended at their expiry yet", { error: errorText(error) });
    this.clock.after(EXPIRY_RETRY_MS, () => {
      if (!this.running && !this.stopped) this.clock.track(this.run());
    });
  }
}
