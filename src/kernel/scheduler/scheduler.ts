import { removeInSlices } from "../background/removal.ts";
import { TimeSlices } from "../background/time-slices.ts";
import { errorText, isUnavailable } from "../errors.ts";
import type { Logger } from "../log.ts";
import { SuspendedAccounts } from "../projects/suspended-accounts.ts";
import type { Database } from "../storage/database.ts";
import { ANYONE, type Tx } from "../storage/tx.ts";
import type { Writer } from "../storage/writer.ts";
import { type Cancel, type Clock, monotonicMs, realDelay } from "../time/clock.ts";
import { HOUR_MS } from "../time/units.ts";
import { nextOccurrence } from "./calendar.ts";
import { ClockSetBack } from "./clock-set-back.ts";
import { ClockTrust } from "./clock-trust.ts";
import { lanesOf, ownerOfLane, type Placed } from "./dispatcher.ts";
import { DUE_COUNTED_MAX, DueJobs, JobCounts, type JobsNow } from "./due-jobs.ts";
import { type JobRow, JobStore, type NewJob } from "./job-store.ts";
import type { LaneLimits } from "./lane-groups.ts";

/** A job that fell due. */
export interface Job extends Omit<JobRow, "id" | "payload"> {
  /** As it was enqueued, or as the last retry set it. */
  readonly payload: unknown;
}

/** What becomes of a job that was run: recorded in the unit of work that removes or postpones it. */
export interface JobOutcome {
  /** Records the result. */
  readonly record?: (tx: Tx) => void;
  /** Runs the job again at this time, instead of removing it. */
  readonly retryAt?: number;
  /** Replaces the payload of a job that is run again. */
  readonly payload?: unknown;
  /** How many attempts count for a job that is run again; one more than before when omitted. */
  readonly attempt?: number;
}

/** How a kind of job is run. */
export interface JobKind {
  /** Concurrent jobs of this kind. */
  readonly concurrency: number;
  /** Limits for jobs with a lane. */
  readonly lanes?: LaneLimits;
  /** Whether jobs in lanes of suspended accounts run, instead of waiting until the account is active again. */
  readonly runsSuspended?: boolean;
  /** Does the work. An exception is a defect: it is logged, and the job runs again later. */
  run(job: Job): Promise<JobOutcome>;
}

interface Kind {
  readonly name: string;
  readonly handler: JobKind;
  readonly due: DueJobs;
  readonly counts: JobCounts;
  /** When it is to be looked at next. */
  lookAt: number;
  /** Whether its jobs are started in the next slice. */
  continues: boolean;
}

/** An outcome as it is recorded. */
interface RecordedOutcome extends JobOutcome {
  /** Whether it stands for an exception of the handler. */
  readonly isDefect?: true;
}

/** Decides when work may have effects outside. */
export interface WorkGate {
  /**
   * `account`: whose data it may show; null: anyone's. Undefined: now. @throws ApiError, or rejects, when work must have
   * none.
   */
  pass(account: number | null): Promise<void> | undefined;
  /** Resolves when work may go on. */
  open(): Promise<void>;
}

/** Wait before a job with a defect runs again: doubled each time, up to the second value. */
const DEFECT_RETRY_MS = 1_000;
const DEFECT_RETRY_MAX_MS = HOUR_MS;

/** Wait before a job of a suspended account is looked at again: it runs so much after a reactivation at the latest. */
export const SUSPENDED_MS = 60_000;

/** Wait before an outcome that could not be committed (a full disk) is retried. Real time: the disk is the cause. */
const RECORD_RETRY_MS = 1_000;

/** A clock that is less behind the last stop was set right, as NTP does: no job waits much longer. */
const BEHIND_MS_MIN = 1_000;

/**
 * Longest time that jobs are started in one turn of the event loop, in milliseconds. What they do after their first `await`
 * follows in the same turn, and takes longer than that.
 */
export const START_MS_MAX = 1;

/** A job that takes longer makes its lane a slow one; one that does not makes it a fast one again. */
const SLOW_AFTER_MS = 1_000;
/** Jobs examined in one unit of work of a removal: no index has the owner, and reading a row takes a microsecond. */
const REMOVAL_SCANNED_ROWS = 1_000;
/** Wait before the table is read again after a failure. */
const READ_RETRY_MS = 1_000;
/** How long the end of the process waits for running jobs: one attempt over the network. */
const STOP_GRACE_MS = 10_000;

/**
 * Durable jobs. A job is enqueued in the transaction that causes it, and leaves the table in the transaction that records
 * its outcome: a crash may repeat work, but loses none.
 */
export class Scheduler {
  private readonly store: JobStore;
  private readonly kinds = new Map<string, Kind>();
  private readonly work = new Set<Promise<void>>();
  private readonly calendar = new Map<string, string>();
  private readonly setBack: ClockSetBack;
  private readonly slices = new TimeSlices(START_MS_MAX);
  /** Accounts whose jobs wait. */
  readonly suspended = new SuspendedAccounts();
  /** Whether what has expired by the wall clock may be deleted. */
  readonly clockTrust: ClockTrust;
  private cancelTimer: Cancel | null = null;
  private stopListening: Cancel | null = null;
  private armedFor = Number.POSITIVE_INFINITY;
  private started = false;

  constructor(
    db: Database,
    private readonly writer: Writer,
    private readonly clock: Clock,
    private readonly log: Logger,
    private readonly gate: WorkGate | null = null,
  ) {
    this.store = new JobStore(db);
    this.clockTrust = new ClockTrust(db, writer, clock, log);
    this.setBack = new ClockSetBack({
      store: this.store,
      writer,
      log,
      now: () => clock.now(),
      kinds: () => [...this.kinds.keys()].filter((kind) => !this.calendar.has(kind)),
      moved: (kind, dueAt) => this.arrived(kind, dueAt),
    });
  }

  /** Registers how jobs of a kind are run. After {@link start}, those that wait begin. */
  register(name: string, kind: JobKind): void {
    if (this.kinds.has(name)) throw new Error(`job kind ${name} is registered twice`);
    const due = new DueJobs(this.store, name, kind.concurrency, kind.lanes);
    const counts = new JobCounts();
    const registered: Kind = {
      name,
      handler: kind,
      due,
      counts,
      lookAt: Number.POSITIVE_INFINITY,
      continues: false,
    };
    this.kinds.set(name, registered);
    if (this.started) this.lookAt(registered, this.clock.now());
  }

  /**
   * Registers work that recurs at the times of a cron expression, in UTC. What fell due while the server was down runs once, at the start. Work that resolves to
   * `cut-off` was interrupted by the end of the process, and runs again at the next start. Null: it does not recur, unless it is
   * {@link reschedule}d.
   */
  recurring(name: string, expression: string | null, run: (job: Job) => Promise<unknown>): void {
    this.register(name, {
      concurrency: 1,
      run: async (job) => {
        if (!this.calendar.has(name)) return {};
        if ((await run(job)) === "cut-off") return { retryAt: job.dueAt, attempt: 0 };
        const next = this.calendar.get(name);
        if (next === undefined) return {};
        const payload = { expression: next };
        return { retryAt: nextOccurrence(next, this.clock.now()), payload, attempt: 0 };
      },
    });
    if (expression !== null) this.calendar.set(name, expression);
  }

  /** Changes when registered work recurs; null: not any more. */
  reschedule(tx: Tx, name: string, expression: string | null): void {
    const before = this.calendar.get(name);
    if (expression === null) this.calendar.delete(name);
    else this.calendar.set(name, expression);
    tx.onRollback(() => {
      if (before === undefined) this.calendar.delete(name);
      else this.calendar.set(name, before);
    });
    if (expression === null) this.cancel(tx, name, "");
    else this.plan(tx, name, expression);
  }

  /** Enqueues a job; it replaces one of the same kind and key. `lane`: a {@link laneName}, for {@link JobKind.lanes}. */
  enqueue(tx: Tx, kind: string, key: string, dueAt: number, payload: unknown, lane = ""): void {
    this.insert(tx, { kind, key, dueAt, lane, payload: JSON.stringify(payload) });
  }

  /** Enqueues a job without a key, which cannot be replaced or cancelled, and costs less. */
  enqueueAnonymous(tx: Tx, kind: string, dueAt: number, payload: unknown, lane = ""): void {
    this.insert(tx, { kind, key: null, dueAt, lane, payload: JSON.stringify(payload) });
  }

  private insert(tx: Tx, job: NewJob): void {
    this.clock.wallMoved();
    this.store.insert(tx, job);
    tx.afterCommit(() => this.arrived(job.kind, job.dueAt));
  }

  /** Whether there is a job of a kind with a key. One that is running still is. */
  has(kind: string, key: string): boolean {
    return this.store.find(kind, key) !== null;
  }

  /** When the job of a kind with a key is due, epoch milliseconds; null: there is none. */
  dueAt(kind: string, key: string): number | null {
    return this.store.find(kind, key)?.dueAt ?? null;
  }

  /** Cancels a job. Returns whether it was still there. A job that is running continues. */
  cancel(tx: Tx, kind: string, key: string): boolean {
    return this.store.remove(tx, kind, key);
  }

  /**
   * Removes the jobs in the lanes of an owner, in slices; those that run end by themselves. Returns whether all are
   * removed; false when `isStopping` interrupted it.
   */
  removeLanesOf(owner: number, isStopping: () => boolean): Promise<boolean> {
    const lanes = lanesOf(owner);
    let after = 0;
    const slice = async (): Promise<boolean> => {
      const last = await this.writer.submit((tx) =>
        this.store.removeOfOwner(tx, lanes, after, REMOVAL_SCANNED_ROWS),
      );
      after = last ?? after;
      return last !== null;
    };
    return removeInSlices(slice, isStopping);
  }

  /** Begins to run jobs: first those overdue, in the order of their due times. */
  async start(): Promise<void> {
    this.started = true;
    const moved = this.clock.wallMoved();
    const behind = this.clockTrust.behindLastStop;
    // The jobs in the table were made by a clock that showed as much at the last stop as it does now, or more.
    if (moved !== 0 || behind >= BEHIND_MS_MIN) this.store.wallSet(moved + behind, 0);
    this.stopListening = this.clock.onWallSet((before, now) => this.wallSet(before, now));
    await this.clockTrust.start();
    await this.planCalendar();
    if (behind >= BEHIND_MS_MIN) this.setBackSinceLastStop(moved, behind);
    const now = this.clock.now();
    for (const kind of this.kinds.values()) kind.lookAt = now;
    this.armAt(now);
  }

  /** Starts no more jobs, and waits for running ones, at most `graceMs` of real time. */
  async stop(graceMs: number = STOP_GRACE_MS): Promise<void> {
    this.started = false;
    this.setBack.stop();
    this.stopListening?.();
    this.cancelTimer?.();
    this.armedFor = Number.POSITIVE_INFINITY;
    await Promise.race([Promise.all(this.work), realDelay(graceMs)]);
    await this.clockTrust.stop();
  }

  /** Jobs that are running. */
  get running(): number {
    return this.kinds.values().reduce((sum, { due }) => sum + due.dispatcher.running, 0);
  }

  /** The jobs of every kind now. */
  jobs(): JobsNow[] {
    const names = new Set([...this.kinds.keys(), ...this.store.rows.keys()]);
    return [...names].map((name) => this.jobsOf(name));
  }

  private jobsOf(name: string): JobsNow {
    const now = this.clock.now();
    const kind = this.kinds.get(name);
    const dispatcher = kind?.due.dispatcher;
    const running = dispatcher?.running ?? 0;
    return {
      kind: name,
      counts: kind?.counts ?? null,
      waiting: Math.max(0, (this.store.rows.get(name) ?? 0) - running),
      running,
      // Running jobs are still in the table.
      due: () => Math.max(0, this.store.due(name, now, DUE_COUNTED_MAX + running) - running),
      overdueSeconds: () => Math.max(0, now - (dispatcher?.waitingSince ?? now)) / 1000,
    };
  }

  private planCalendar(): Promise<void> {
    return this.writer.submit((tx) => {
      for (const [name, expression] of this.calendar) this.plan(tx, name, expression);
    });
  }

  /** Setting the wall clock forward counts as time that has passed; setting it back makes no job wait longer. */
  private wallSet(before: number, now: number): void {
    this.store.wallSet(now);
    this.log.warn(now > before ? "the clock was set forward" : "the clock was set back", {
      by_ms: Math.abs(now - before),
    });
    if (now > before) return;
    const planned = this.planCalendar().catch((error) => {
      this.log.error("a recurring job could not be scheduled", { error: errorText(error) });
    });
    this.clock.track(Promise.all([planned, this.setBack.begin()]));
  }

  private setBackSinceLastStop(moved: number, byMs: number): void {
    this.store.wallSet(moved);
    this.log.warn("the clock is behind the last stop of the server", { by_ms: byMs });
    this.clock.track(this.setBack.begin());
  }

  /** The expression is stored with the job, whose next time is calculated anew when it changes. */
  private plan(tx: Tx, name: string, expression: string): void {
    const known = this.store.find(name, "");
    const next = nextOccurrence(expression, tx.now);
    // A later one was planned while the machine's clock was ahead.
    if (known !== null && known.payload === JSON.stringify({ expression }) && known.dueAt <= next) return;
    this.enqueue(tx, name, "", next, { expression });
  }

  private arrived(name: string, dueAt: number): void {
    const kind = this.kinds.get(name);
    // Jobs of an unknown kind wait for a start that knows it.
    if (kind === undefined) return;
    kind.due.arrived(dueAt);
    this.lookAt(kind, dueAt);
  }

  private lookAt(kind: Kind, dueAt: number): void {
    if (dueAt >= kind.lookAt) return;
    kind.lookAt = dueAt;
    this.armAt(dueAt);
  }

  private armAt(dueAt: number): void {
    if (!this.started || dueAt >= this.armedFor) return;
    this.cancelTimer?.();
    this.armedFor = dueAt;
    this.cancelTimer = this.clock.at(dueAt, () => {
      this.armedFor = Number.POSITIVE_INFINITY;
      this.cancelTimer = null;
      this.startDue();
    });
  }

  private startDue(): void {
    if (!this.started) return;
    const now = this.clock.now();
    for (const kind of this.kinds.values()) {
      if (kind.lookAt <= now) this.startDueOf(kind, now);
      if (kind.lookAt < Number.POSITIVE_INFINITY) this.armAt(kind.lookAt);
    }
  }

  private startDueOf(kind: Kind, now: number): void {
    kind.lookAt = Number.POSITIVE_INFINITY;
    if (this.slices.isOver) {
      this.continueLater(kind);
      return;
    }
    const isRead = this.reading(kind, () => {
      const next = kind.due.step(now);
      if (next === "at-once") this.lookAt(kind, now);
      else if (next !== null) this.lookAt(kind, next);
    });
    // Otherwise the jobs that are known would be read from the same table, or the next slice would read it.
    if (isRead) this.placeJobs(kind);
  }

  private placeJobs(kind: Kind): void {
    this.reading(kind, () => {
      while (!this.slices.isOver) {
        const job = kind.due.dispatcher.place();
        if (job === null) return;
        this.startJob(kind, job);
      }
      this.continueLater(kind);
    });
  }

  /** Starts further jobs in a later slice of the event loop: those of one account must not hold up everybody's requests. */
  private continueLater(kind: Kind): void {
    if (kind.continues) return;
    kind.continues = true;
    const next = this.slices.next().then(() => {
      kind.continues = false;
      if (this.started) this.startDueOf(kind, this.clock.now());
    });
    this.clock.track(next);
  }

  /** Reads the table; after a failure it is read again later. Returns whether it succeeded. */
  private reading(kind: Kind, read: () => void): boolean {
    try {
      read();
      return true;
    } catch (error) {
      this.log.error("due jobs could not be read", { kind: kind.name, error: errorText(error) });
      this.lookAt(kind, this.clock.now() + READ_RETRY_MS);
      return false;
    }
  }

  private rowOf(kind: Kind, job: Placed): JobRow | null {
    try {
      return this.store.job(job.id);
    } catch (error) {
      kind.due.release(job, null);
      kind.due.arrived(job.dueAt);
      throw error;
    }
  }

  private startJob(kind: Kind, job: Placed): void {
    const row = this.rowOf(kind, job);
    if (row === null) {
      // Cancelled or replaced since it was found.
      kind.due.release(job, null);
      if (kind.due.wantsStep) this.lookAt(kind, this.clock.now());
      return;
    }
    const startedAt = monotonicMs();
    kind.counts.lateness.observe(Math.max(0, this.clock.now() - row.dueAt) / 1000);
    const work: Promise<void> = this.runJob(row, kind, job.lane).then((dueAgain) => {
      this.work.delete(work);
      kind.due.release(job, monotonicMs() - startedAt > SLOW_AFTER_MS);
      if (dueAgain !== null) this.arrived(row.kind, dueAgain);
      if (!this.started) return;
      // Without a timer, which a manual clock would not run while it waits for another job of this kind.
      if (kind.due.wantsStep) this.startDueOf(kind, this.clock.now());
      else this.placeJobs(kind);
    });
    this.work.add(work);
    this.clock.track(work);
  }

  /** Runs a job and records its outcome. Returns when it is due again, null when it is done. */
  private async runJob(row: JobRow, kind: Kind, lane: string): Promise<number | null> {
    const { key, dueAt, attempt } = row;
    let outcome: RecordedOutcome;
    if (this.gate !== null) await this.gate.open();
    if (kind.handler.runsSuspended !== true && this.isSuspended(lane))
      return this.settle(row, kind, lane, { retryAt: this.clock.now() + SUSPENDED_MS, attempt });
    try {
      const payload: unknown = JSON.parse(row.payload);
      outcome = await kind.handler.run({ kind: kind.name, key, dueAt, attempt, payload });
    } catch (error) {
      outcome = this.afterDefect(row, error);
    }
    this.clock.wallMoved();
    return this.settle(row, kind, lane, outcome);
  }

  private isSuspended(lane: string): boolean {
    const owner = ownerOfLane(lane);
    return owner !== null && this.suspended.has(owner);
  }

  /**
   * Commits an outcome, however long that takes: running the job again would repeat its effects outside.
   * It gives up only at the end of the process, when the job is still in the table.
   */
  private async settle(
    row: JobRow,
    { counts: { runs } }: Kind,
    lane: string,
    first: RecordedOutcome,
  ): Promise<number | null> {
    let outcome = first;
    for (;;) {
      try {
        await this.writer.submitInBackground((tx) => {
          tx.affects = ownerOfLane(lane) ?? ANYONE;
          this.record(tx, row, outcome);
        });
        runs[outcome.isDefect ? "defect" : outcome.retryAt === undefined ? "done" : "again"].add();
        return outcome.retryAt ?? null;
      } catch (error) {
        // An exception of the recording itself is a defect, too.
        if (outcome === first && !isUnavailable(error)) {
          outcome = this.afterDefect(row, error);
          continue;
        }
      }
      if (!this.started) return null;
      await realDelay(RECORD_RETRY_MS);
    }
  }

  private record(tx: Tx, row: JobRow, outcome: JobOutcome): void {
    outcome.record?.(tx);
    if (outcome.retryAt === undefined) {
      this.store.finish(tx, row);
      return;
    }
    const payload = outcome.payload === undefined ? row.payload : JSON.stringify(outcome.payload);
    this.store.postpone(tx, row.id, outcome.retryAt, payload, outcome.attempt ?? row.attempt + 1);
  }

  private afterDefect(row: JobRow, error: unknown): RecordedOutcome {
    const wait = Math.min(DEFECT_RETRY_MAX_MS, DEFECT_RETRY_MS * 2 ** Math.min(row.attempt, 30));
    this.log.error("a job failed", {
      kind: row.kind,
      attempt: row.attempt,
      error: errorText(error),
      stack: error instanceof Error ? error.stack : undefined,
    });
    return { retryAt: this.clock.now() + wait, isDefect: true };
  }
}
