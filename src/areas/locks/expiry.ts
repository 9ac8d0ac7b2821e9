import type { Cancel } from "../../kernel/clock.ts";
import { errorText } from "../../kernel/errors.ts";
import { TimerHeap } from "../../kernel/heap.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Lease } from "./domain.ts";
import type { Lock } from "./lock.ts";

/**
 * Leases ended in one unit of work. When very many end at once, as after a long pause of the machine, requests get
 * their turn in between, and the writer's queue does not fill.
 */
export const EXPIRIES_PER_UNIT_MAX = 250;
/** Wait after a commit that failed (a full disk); until then the locks stay held. */
export const EXPIRY_RETRY_MS = 1_000;

/** A lease that has ended. */
interface Due {
  readonly lock: Lock;
  readonly lease: Lease;
}

/**
 * Ends leases on time by the monotonic clock: setting the wall clock shortens no lease. One timer waits for the
 * earliest end; a timer per lock would take more memory than the locks.
 */
export class Expiry {
  private readonly ends = new TimerHeap<Lock>();
  private armedFor = Number.POSITIVE_INFINITY;
  private cancelTimer: Cancel = () => {};
  private due: Due[] = [];
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
    if (this.due.length > 0 && !this.running) this.deps.clock.track(this.run());
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
    await this.deps.writer.submit((tx) => {
      for (const { lock, lease } of some) {
        // A lock that was released, refreshed or handed over since has another lease.
        if (lock.lease === lease) this.deps.end(tx, lock);
      }
    });
    this.due.splice(0, some.length);
  }

  private retryLater(error: unknown): void {
    if (this.stopped) return;
    this.deps.log.warn("locks could not be ended at their expiry yet", { error: errorText(error) });
    this.deps.clock.after(EXPIRY_RETRY_MS, () => {
      if (!this.running && !this.stopped) this.deps.clock.track(this.run());
    });
  }
}
