import { errorText } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Cancel } from "../../kernel/time/clock.ts";
import { TimerHeap } from "../../kernel/time/timer-heap.ts";
import type { Lease } from "./domain.ts";
import type { Holder } from "./lock.ts";

/**
 * Leases that expire in one unit of work. When many expire together, for example after a suspension of the machine, requests
 * run between the units, and the writer's queue does not fill.
 */
export const EXPIRIES_PER_UNIT_MAX = 250;
/** Delay after a failed commit (full disk), in milliseconds. Until then the locks stay held. */
export const EXPIRY_RETRY_MS = 1_000;

/**
 * Expires leases by the monotonic clock, so that setting the wall clock shortens no lease. A single timer runs for the
 * earliest expiry: a timer per holder would need more memory than the locks.
 */
export class LeaseExpiry {
  private readonly heap = new TimerHeap<Holder>();
  private armedFor = Number.POSITIVE_INFINITY;
  private cancelTimer: Cancel = () => {};
  private due: { readonly holder: Holder; readonly lease: Lease }[] = [];
  private isRunning = false;
  private isStopped = false;

  constructor(
    private readonly deps: Pick<Kernel, "clock" | "writer" | "log"> & {
      /** Ends a hold: the lock is free, or is granted to the next waiters. */
      readonly expire: (tx: Tx, holder: Holder) => void;
    },
  ) {}

  /** Schedules the expiry of a holder's current lease and cancels that of the previous one. */
  schedule(holder: Holder): void {
    if (holder.expiry !== null) this.heap.cancel(holder.expiry);
    holder.expiry = null;
    if (holder.lease === null || this.isStopped) return;
    holder.expiry = this.heap.push(this.deps.clock.monotonic() + holder.lease.durationMs, holder);
    if (holder.expiry.due < this.armedFor) this.arm();
  }

  /** Returns the milliseconds until a holder's lease expires; 0 while the expiry is being committed. */
  remainingMs({ expiry }: Holder): number {
    return expiry === null ? 0 : Math.max(0, Math.ceil(expiry.due - this.deps.clock.monotonic()));
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
    for (let holder = this.heap.takeDue(now); holder !== undefined; holder = this.heap.takeDue(now)) {
      holder.expiry = null;
      if (holder.lease !== null) this.due.push({ holder, lease: holder.lease });
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
          for (const { holder, lease } of slice) {
            // A holder that has released or refreshed its lock meanwhile has another lease, or none.
            if (holder.lease === lease) this.deps.expire(tx, holder);
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
