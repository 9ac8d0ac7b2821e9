import { type Cancel, type Clock, realDelay } from "../clock.ts";
import { ApiError, errorText } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Database } from "../storage/database.ts";
import type { Tx } from "../storage/tx.ts";
import type { Writer } from "../storage/writer.ts";
import { nextOccurrence } from "./calendar.ts";
import { type JobRow, JobStore } from "./job-store.ts";

/** A job that fell due. */
export interface Job {
  readonly kind: string;
  /** Names the job within its kind. */
  readonly key: string;
  /** When it was to run, epoch milliseconds. */
  readonly dueAt: number;
  /** What was handed in when it was enqueued, or at the last retry. */
  readonly payload: unknown;
  /** How many times it has been tried before. */
  readonly attempt: number;
}

/** What becomes of a job that was run, recorded in one unit of work together with its removal. */
export interface JobOutcome {
  /** Records the result. */
  readonly record?: (tx: Tx) => void;
  /** Runs the job again then instead of removing it. */
  readonly retryAt?: number;
  /** Replaces the payload of a job that is run again. */
  readonly payload?: unknown;
  /** The tries that a job which is run again has behind it; one more than before when left out. */
  readonly attempt?: number;
}

/** How a kind of job is run. */
export interface JobKind {
  /** Jobs of this kind under way at once. */
  readonly concurrency: number;
  /** Does the work. What it throws is a defect: it is logged, and the job is run again later. */
  run(job: Job): Promise<JobOutcome>;
}

interface RegisteredKind {
  readonly kind: JobKind;
  /** Ids of the jobs under way. */
  readonly running: Set<number>;
}

/** Wait before a job whose handler threw is tried again: doubled each time, up to the second figure. */
const DEFECT_RETRY_MS = 1_000;
const DEFECT_RETRY_MAX_MS = 60 * 60 * 1000;

/** Wait before an outcome that could not be committed (a full disk) is handed in again. Real time: it is the disk's. */
const RECORD_RETRY_MS = 1_000;

/** Wait before the table is read again after that has failed. */
const READ_RETRY_MS = 1_000;

/** How long the end of the process waits for jobs under way: one attempt over the network. */
const STOP_GRACE_MS = 10_000;

/**
 * Durable jobs. A job is enqueued in the transaction that causes it and leaves the table in the transaction that
 * records its outcome: a crash repeats work and loses none.
 */
export class Scheduler {
  private readonly store: JobStore;
  private readonly writer: Writer;
  private readonly clock: Clock;
  private readonly log: Logger;
  private readonly kinds = new Map<string, RegisteredKind>();
  private readonly work = new Set<Promise<void>>();
  private readonly calendar = new Map<string, string>();
  private cancelTimer: Cancel | null = null;
  private armedFor = Number.POSITIVE_INFINITY;
  private started = false;

  constructor(db: Database, writer: Writer, clock: Clock, log: Logger) {
    this.store = new JobStore(db);
    this.writer = writer;
    this.clock = clock;
    this.log = log;
  }

  /** Says how jobs of a kind are run. Before {@link start}. */
  register(name: string, kind: JobKind): void {
    if (this.kinds.has(name)) throw new Error(`job kind ${name} is registered twice`);
    this.kinds.set(name, { kind, running: new Set() });
  }

  /**
   * Registers work that recurs at the times of a cron expression (UTC). What fell due while the server was down
   * is run once, at the start.
   */
  recurring(name: string, expression: string, run: (job: Job) => Promise<void>): void {
    this.register(name, {
      concurrency: 1,
      run: async (job) => {
        await run(job);
        const retryAt = nextOccurrence(expression, this.clock.now());
        return { retryAt, payload: { expression }, attempt: 0 };
      },
    });
    this.calendar.set(name, expression);
  }

  /** Enqueues a job; one of the same kind and key is replaced. */
  enqueue(tx: Tx, kind: string, key: string, dueAt: number, payload: unknown): void {
    this.store.replace(tx, kind, key, dueAt, JSON.stringify(payload));
    tx.afterCommit(() => this.armAt(dueAt));
  }

  /** Takes a job back. Returns whether it was still there; one that is running is not stopped by this. */
  cancel(tx: Tx, kind: string, key: string): boolean {
    return this.store.remove(tx, kind, key);
  }

  /** Begins to run jobs: first those overdue, in the order of their due times. */
  async start(): Promise<void> {
    this.started = true;
    await this.writer.submit((tx) => {
      for (const [name, expression] of this.calendar) this.plan(tx, name, expression);
    });
    this.armAt(this.clock.now());
  }

  /** Starts no further job, and waits for those under way, at most `graceMs` of real time. */
  async stop(graceMs: number = STOP_GRACE_MS): Promise<void> {
    this.started = false;
    this.cancelTimer?.();
    this.armedFor = Number.POSITIVE_INFINITY;
    await Promise.race([Promise.all(this.work), realDelay(graceMs)]);
  }

  /** Jobs under way. */
  get running(): number {
    let sum = 0;
    for (const { running } of this.kinds.values()) sum += running.size;
    return sum;
  }

  private plan(tx: Tx, name: string, expression: string): void {
    const known = this.store.find(name, "");
    if (known !== null && known.payload === JSON.stringify({ expression })) return;
    this.enqueue(tx, name, "", nextOccurrence(expression, tx.now), { expression });
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
    for (const [name, entry] of this.kinds) this.startDueOf(name, entry);
  }

  private startDueOf(name: string, entry: RegisteredKind): void {
    const free = entry.kind.concurrency - entry.running.size;
    if (!this.started || free <= 0) return;
    const now = this.clock.now();
    try {
      // Jobs under way are still in the table: read so many more rows that a full hand can be left without them.
      const rows = this.store.due(name, now, free + entry.running.size);
      const waiting = rows.filter((row) => !entry.running.has(row.id));
      for (const row of waiting.slice(0, free)) this.startJob(row, name, entry);
      const next = this.store.earliestAfter(name, now);
      if (next !== null) this.armAt(next);
    } catch (error) {
      this.log.error("due jobs could not be read", { kind: name, error: errorText(error) });
      this.armAt(now + READ_RETRY_MS);
    }
  }

  private startJob(row: JobRow, name: string, entry: RegisteredKind): void {
    entry.running.add(row.id);
    const work: Promise<void> = this.runJob(row, entry.kind).finally(() => {
      entry.running.delete(row.id);
      this.work.delete(work);
      // A place is free: whatever is overdue takes it.
      this.startDueOf(name, entry);
    });
    this.work.add(work);
    this.clock.track(work);
  }

  private async runJob(row: JobRow, kind: JobKind): Promise<void> {
    let outcome: JobOutcome;
    try {
      outcome = await kind.run({
        kind: row.kind,
        key: row.key,
        dueAt: row.due_at,
        payload: JSON.parse(row.payload),
        attempt: row.attempt,
      });
    } catch (error) {
      outcome = this.afterDefect(row, error);
    }
    await this.settle(row, outcome);
  }

  /**
   * Commits an outcome, however long that takes: running the job again instead would repeat what it did outside.
   * Only the end of the process gives up; the job is still in the table then.
   */
  private async settle(row: JobRow, first: JobOutcome): Promise<void> {
    let outcome = first;
    for (;;) {
      try {
        await this.writer.submit((tx) => this.record(tx, row, outcome));
        return;
      } catch (error) {
        // What the recording itself throws is a defect like one of the handler.
        if (outcome === first && !isUnavailable(error)) {
          outcome = this.afterDefect(row, error);
          continue;
        }
      }
      if (!this.started) return;
      await realDelay(RECORD_RETRY_MS);
    }
  }

  private record(tx: Tx, row: JobRow, outcome: JobOutcome): void {
    outcome.record?.(tx);
    if (outcome.retryAt === undefined) {
      this.store.finish(tx, row.id);
      return;
    }
    const payload = outcome.payload === undefined ? row.payload : JSON.stringify(outcome.payload);
    const retryAt = outcome.retryAt;
    this.store.postpone(tx, row.id, retryAt, payload, outcome.attempt ?? row.attempt + 1);
    tx.afterCommit(() => this.armAt(retryAt));
  }

  private afterDefect(row: JobRow, error: unknown): JobOutcome {
    const wait = Math.min(DEFECT_RETRY_MAX_MS, DEFECT_RETRY_MS * 2 ** Math.min(row.attempt, 30));
    this.log.error("a job failed", {
      kind: row.kind,
      attempt: row.attempt,
      error: errorText(error),
      stack: error instanceof Error ? error.stack : undefined,
    });
    return { retryAt: this.clock.now() + wait };
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof ApiError && error.code === "service_unavailable";
}
