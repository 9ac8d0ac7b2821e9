import type { Kernel } from "../../../kernel/kernel.ts";
import type { StoppedProjects } from "../../../kernel/projects/stopped-projects.ts";
import type { JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { MeterBook } from "../book.ts";
import type { MeterDeps } from "../ports.ts";
import type { MeterStore } from "../store.ts";

const JOB = "meter.due";
/** Delay of the job, so that it processes many meters together. Requests apply due work of their meter without it. */
const JOB_DELAY_MS = 30_000;
/** Meters per unit of work, a few milliseconds. */
const METERS_PER_UNIT = 250;

/** Job that applies due expiries and refills of meters without requests. There is one for all meters. */
export class DueWork {
  /** Due time of the job; infinity if unknown. */
  private scheduledFor = Number.POSITIVE_INFINITY;

  constructor(
    private readonly store: MeterStore,
    private readonly book: MeterBook,
    private readonly stopped: StoppedProjects,
    private readonly projects: Pick<MeterDeps["projects"], "accountOf">,
    private readonly kernel: Pick<Kernel, "scheduler" | "writer" | "changes">,
  ) {
    kernel.scheduler.register(JOB, { concurrency: 1, run: () => this.run() });
  }

  /** Schedules the job for an expiry or refill at a time that was just stored. */
  schedule(tx: Tx, time: number): void {
    if (time + JOB_DELAY_MS >= this.scheduledFor) return;
    const before = this.scheduledFor;
    // The stored job is replaced, so that its due time must not become later than the earliest.
    const isKnown = before !== Number.POSITIVE_INFINITY;
    const dueAt = Math.max(tx.now, isKnown ? time : this.firstDueTime()) + JOB_DELAY_MS;
    this.scheduledFor = dueAt;
    tx.onRollback(() => {
      this.scheduledFor = before;
    });
    this.kernel.scheduler.enqueue(tx, JOB, "", dueAt, {});
  }

  private firstDueTime(): number {
    const moments = [this.store.holds.firstExpiry(), this.store.plans.firstPlan()].filter((at) => at > 0);
    return Math.min(...moments);
  }

  private async run(): Promise<JobOutcome> {
    this.scheduledFor = Number.POSITIVE_INFINITY;
    // With an untrusted clock, refills stay due, so that the next batch would be the same.
    while (
      (await this.kernel.writer.submit((tx) => this.settleBatch(tx))) &&
      this.kernel.scheduler.clockTrust.isTrusted
    );
    const record = (tx: Tx): void => {
      const first = this.firstDueTime();
      if (first < Number.POSITIVE_INFINITY) this.schedule(tx, first);
    };
    return { record };
  }

  /** Settles a batch of meters. Returns whether more may be due. */
  private settleBatch(tx: Tx): boolean {
    const over = this.store.holds.expiredHolds(tx.now, METERS_PER_UNIT);
    const due = this.store.plans.plansDue(tx.now, METERS_PER_UNIT);
    let settled = 0;
    for (const ref of new Set([...over, ...due].map(({ meter_ref }) => meter_ref))) {
      if (this.settle(tx, ref)) settled += 1;
    }
    return settled > 0 && Math.max(over.length, due.length) === METERS_PER_UNIT;
  }

  private settle(tx: Tx, ref: number): boolean {
    const place = this.store.place(ref);
    if (place === null) return false;
    const { project_ref: projectRef, meter_id: meterId } = place;
    // The rows of a deleted project are removed elsewhere; only its plan is stopped here.
    if (this.stopped.has(projectRef)) return this.store.plans.removePlan(tx, ref) > 0;
    if (this.isSuspended(projectRef)) {
      // A wrong clock may have skipped years: the plan stays due until the clock is trusted.
      if (this.kernel.scheduler.clockTrust.isTrusted) this.book.skipRefills(tx, { projectRef, meterId });
    } else this.book.current(tx, { projectRef, meterId });
    this.kernel.changes.inProject(tx, projectRef, "meter", meterId);
    return true;
  }

  private isSuspended(projectRef: number): boolean {
    const account = this.projects.accountOf(projectRef);
    return account !== null && this.kernel.scheduler.suspended.has(account);
  }
}
