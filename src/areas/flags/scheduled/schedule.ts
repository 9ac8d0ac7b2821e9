import type { Kernel } from "../../../kernel/kernel.ts";
import { laneName } from "../../../kernel/scheduler/dispatcher.ts";
import type { Job, JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { ScheduledChange } from "./scheduled.ts";
import type { ScheduleRow, ScheduleStore } from "./store.ts";

const JOB = "gate.schedule";
/** Flags whose changes are applied concurrently: each takes about a millisecond of the writer. */
const CONCURRENCY = 16;
/** The part of a lane's name after the account. */
const LANE = "flags";

/** The scheduled changes of flags. Each flag with pending ones has one job, so that its changes apply in their order. */
export class FlagSchedule {
  constructor(
    private readonly store: ScheduleStore,
    private readonly deps: Pick<Kernel, "scheduler" | "clock">,
  ) {}

  /** The changes of a flag in the order of their times. */
  of(flagRef: number): readonly ScheduledChange[] {
    return this.store.ofFlag(flagRef).map(changeOf);
  }

  /** Replaces the changes of a flag. */
  replace(
    tx: Tx,
    flagRef: number,
    before: readonly ScheduledChange[],
    after: readonly ScheduledChange[],
  ): void {
    for (const { id } of before.filter((change) => !after.includes(change)))
      this.store.remove(tx, flagRef, id);
    for (const { id, at, set, error, by, accountRef } of after.filter((change) => !before.includes(change)))
      this.store.insert(tx, {
        flag_ref: flagRef,
        id,
        account_ref: accountRef,
        at,
        change: JSON.stringify(set),
        actor: JSON.stringify(by),
        error,
      });
    const next = firstPending(after);
    if (next === null) this.deps.scheduler.cancel(tx, JOB, String(flagRef));
    else if (next !== firstPending(before)) this.enqueue(tx, flagRef, next);
  }

  /** Marks a change that did not apply; the next one follows. */
  fail(tx: Tx, flagRef: number, { id }: ScheduledChange, error: string): void {
    this.store.fail(tx, error, flagRef, id);
    const next = firstPending(this.of(flagRef));
    if (next !== null) this.enqueue(tx, flagRef, next);
  }

  /** Removes all changes of a deleted flag. */
  removeOf(tx: Tx, flagRef: number): void {
    this.store.removeOfFlag(tx, flagRef);
    this.deps.scheduler.cancel(tx, JOB, String(flagRef));
  }

  /**
   * Begins to apply changes at their times. `apply` either applies one in the unit of work, which {@link replace}s the changes
   * by the others, or calls {@link fail}: both enqueue the job for the next one.
   */
  start(apply: (tx: Tx, flagRef: number, change: ScheduledChange) => void): void {
    this.deps.scheduler.register(JOB, {
      concurrency: CONCURRENCY,
      run: (job) => this.run(job, apply),
    });
  }

  /** Applies the next change: at the start of the server those that were missed, one after another. */
  private async run(
    { key }: Job,
    apply: (tx: Tx, flagRef: number, change: ScheduledChange) => void,
  ): Promise<JobOutcome> {
    const flagRef = Number(key);
    const due = firstPending(this.of(flagRef));
    if (due === null) return {};
    // The clock was set back.
    if (due.at > this.deps.clock.now()) return { retryAt: due.at, attempt: 0 };
    return {
      record: (tx) => {
        // Unless it was cancelled in the meantime.
        if (firstPending(this.of(flagRef))?.id === due.id) apply(tx, flagRef, due);
      },
    };
  }

  private enqueue(tx: Tx, flagRef: number, { at, accountRef }: ScheduledChange): void {
    this.deps.scheduler.enqueue(tx, JOB, String(flagRef), at, null, laneName(accountRef, LANE));
  }
}

function firstPending(changes: readonly ScheduledChange[]): ScheduledChange | null {
  return changes.find(({ error }) => error === null) ?? null;
}

function changeOf({ id, at, change, error, actor, account_ref }: ScheduleRow): ScheduledChange {
  return { id, at, set: JSON.parse(change), error, by: JSON.parse(actor), accountRef: account_ref };
}
