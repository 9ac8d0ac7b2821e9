import type { Kernel } from "../../../kernel/kernel.ts";
import type { StoppedProjects } from "../../../kernel/projects/stopped-projects.ts";
import type { JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { MeterBook } from "../book.ts";
import type { MeterPorts } from "../ports.ts";
import type { MeterStore } from "../store.ts";

const JOB = "meter.due";
/** The job waits so long, so that it does much at once. Whoever reads or changes a meter does not wait for it. */
const LATE_MS = 30_000;
/** Meters in one unit of work: a few milliseconds. */
const METERS_PER_UNIT = 250;

/** One job for all meters: it ends the holds that are over and makes the refills that are due, where nobody came before it. */
export class DueWork {
  /** When the job is due; infinity where that is not known. */
  private plannedFor = Number.POSITIVE_INFINITY;

  constructor(
    private readonly store: MeterStore,
    private readonly book: MeterBook,
    private readonly stopped: StoppedProjects,
    private readonly projects: Pick<MeterPorts["projects"], "accountOf">,
    private readonly kernel: Pick<Kernel, "scheduler" | "writer" | "changes">,
  ) {
    kernel.scheduler.register(JOB, { concurrency: 1, run: () => this.run() });
  }

  /** Plans the job for something of a moment that was just written. */
  plan(tx: Tx, moment: number): void {
    if (moment + LATE_MS >= this.plannedFor) return;
    const before = this.plannedFor;
    // The job that stands in the table is replaced: it may have been for something earlier.
    const isKnown = before !== Number.POSITIVE_INFINITY;
    const dueAt = Math.max(tx.now, isKnown ? moment : this.firstMoment()) + LATE_MS;
    this.plannedFor = dueAt;
    tx.onRollback(() => {
      this.plannedFor = before;
    });
    this.kernel.scheduler.enqueue(tx, JOB, "", dueAt, {});
  }

  private firstMoment(): number {
    const moments = [this.store.holds.firstEnd(), this.store.terms.firstPlan()].filter((at) => at > 0);
    return Math.min(...moments);
  }

  private async run(): Promise<JobOutcome> {
    this.plannedFor = Number.POSITIVE_INFINITY;
    // By a clock that is not trusted, refills stay due: what is found next would be the same.
    while (
      (await this.kernel.writer.submit((tx) => this.settleSome(tx))) &&
      this.kernel.scheduler.clockTrust.isTrusted
    );
    const record = (tx: Tx): void => {
      const first = this.firstMoment();
      if (first < Number.POSITIVE_INFINITY) this.plan(tx, first);
    };
    return { record };
  }

  /** Returns whether there may be more. */
  private settleSome(tx: Tx): boolean {
    const over = this.store.holds.overBy(tx.now, METERS_PER_UNIT);
    const due = this.store.terms.plansDue(tx.now, METERS_PER_UNIT);
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
    // The rows of a deleted project go by themselves; nothing is added to them.
    if (this.stopped.has(projectRef)) return this.store.terms.removePlan(tx, ref) > 0;
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
