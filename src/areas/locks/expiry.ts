import { errorText } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Cancel } from "../../kernel/time/clock.ts";
import { TimerHeap } from "../../kernel/time/timer-heap.ts";
import type { Lease } from "./domain.ts";
import type { Lock } from "./lock.ts";

/**
 * Leases that expire in one unit of work. When many expire together, for example after a suspension of the machine, requests
 * run between the units, and the writer's queue does not fill.
 */
export const EXPIRIES_PER_UNIT_MAX = 250;
/** Delay after a failed commit (full disk), in milliseconds. Until then the locks stay held. */
export const EXPIRY_RETRY_MS = 1_000;

/**
 * Expires leases by the monotonic clock, so that setting the wall clock shortens no lease. A single timer runs for the
 * earliest expiry: a timer per lock would need more memory than the locks.
 */
export class LeaseExpiry {
  private readonly heap = new TimerHeap<Lock>();
  private armedFor = Number.POSITIVE_INFINITY;
  private cancelTimer: Cancel = () => {};
  private due: { readonly lock: Lock; readonly lease: Lease }[] = [];
  private isRunning = false;
  private isStopped = false;

  constructor(
    private readonly deps: Pick<Kernel, "clock" | "writer" | "log"> & {
      /** Frees a lock, or grants it to the next waiter. */
      readonly expire: (tx: Tx, lock: Lock) => void;
    },
  ) {}

  /** Schedules the expiry of a lock's current lease and cancels that of the previous one. */
  schedule(lock: Lock): void {
    if (lock.expiry !== null) this.heap.cancel(lock.expiry);
    lock.expiry = null;
    if (lock.lease === null || this.isStopped) return;
    lock.expiry = this.heap.push(this.deps.clock.monotonic() + lock.lease.durationMs, lock);
    if (lock.expiry.due < this.armedFor) this.arm();
  }

  /** Returns the milliseconds until a lock's lease expires; 0 while the expiry is being committed. */
  remainingMs(lock: Lock): number {
    return lock.expiry === null ? 0 : Math.max(0, Math.ceil(lock.expiry.due - this.deps.clock.monotonic()));
  }

  /** Stops all expiries at the end of the process. Held locks stay in the database. */
  stop(): void {
    this.isStopped = true;
    this.due = [];
    this.cancelTimer();
  }

  private arm(): void {
    this.cancelTimer();
    const due = this.heap.earliest();
    this.armedFor = due ?? Number.POSITIVE_INFINITY;
    if (due === undefined) return;
    this.cancelTimer = this.deps.clock.after(Math.max(0, due - this.deps.clock.monotonic()), () =>
      this.collectDue(),
    );
  }

  private collectDue(): void {
    const now = this.deps.clock.monotonic();
    for (let lock = this.heap.takeDue(now); lock !== undefined; lock = this.heap.takeDue(now)) {
      lock.expiry = null;
      if (lock.lease !== null) this.due.push({ lock, lease: lock.lease });
    }
    this.arm();
    this.start();
  }

  private start(): void {
    if (this.due.length > 0 && !this.isRunning) this.deps.clock.track(this.run());
  }

  private async run(): Promise<void> {
    this.isRunning = true;
    try {
      while (this.due.length > 0) {
        const slice = this.due.slice(0, EXPIRIES_PER_UNIT_MAX);
        await this.deps.writer.submit((tx) => {
          for (const { lock, lease } of slice) {
            // A lock that was released, refreshed or granted again meanwhile has another lease.
            if (lock.lease === lease) this.deps.expire(tx, lock);
          }
        });
        this.due.splice(0, slice.length);
      }
    } catch (error) {
      if (this.isStopped) return;
      this.deps.log.warn("expired locks could not be released, retrying", { error: errorText(error) });
      this.deps.clock.after(EXPIRY_RETRY_MS, () => this.start());
    } finally {
      this.isRunning = false;
    }
  }
}
