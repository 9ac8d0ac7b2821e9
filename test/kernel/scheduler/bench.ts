import { type Job, type JobOutcome, Scheduler } from "../../../src/kernel/scheduler/scheduler.ts";
import { TEST_START_MS } from "../../support/server.ts";
import { TestStorage } from "../support.ts";

export const SECOND = 1_000;
export const HOUR = 60 * 60 * SECOND;
export const DAY = 24 * HOUR;

/** A job in the table, with a due time relative to the start of the test. */
interface JobView {
  readonly kind: string;
  readonly key: string;
  readonly due: number;
  readonly attempt: number;
}

/** A scheduler on a manual clock, with a record of its runs and their times. */
export class SchedulerBench {
  readonly storage = new TestStorage();
  scheduler: Scheduler;
  /** `kind/key#attempt at <milliseconds since the test began>`, in the order of the runs. */
  ran: string[] = [];

  constructor() {
    this.scheduler = this.newScheduler();
  }

  /** Replaces the scheduler by a new one, as a new start does; optionally with a new connection. */
  renew(reopen = false): void {
    if (reopen) this.storage.reopen();
    this.scheduler = this.newScheduler();
  }

  note({ kind, key, attempt }: Job): void {
    this.ran.push(`${kind}/${key}#${attempt} at ${this.storage.clock.now() - TEST_START_MS}`);
  }

  /** Registers a kind that records its runs. */
  register(
    name: string,
    run: (job: Job) => JobOutcome | Promise<JobOutcome> = () => ({}),
    concurrency = 1,
  ): void {
    this.scheduler.register(name, {
      concurrency,
      run: async (job) => {
        this.note(job);
        return run(job);
      },
    });
  }

  enqueue(kind: string, key: string, afterMs: number, payload: unknown = null): Promise<void> {
    return this.storage.writer.submit((tx) =>
      this.scheduler.enqueue(tx, kind, key, TEST_START_MS + afterMs, payload),
    );
  }

  advance(ms: number): Promise<number> {
    return this.storage.clock.advance(ms);
  }

  /** The rows of the table. */
  get jobs(): JobView[] {
    return this.storage
      .rows<{ kind: string; key: string; due_at: number; attempt: number }>(
        "SELECT kind, key, due_at, attempt FROM jobs ORDER BY id",
      )
      .map(({ kind, key, due_at, attempt }) => ({ kind, key, due: due_at - TEST_START_MS, attempt }));
  }

  async close(): Promise<void> {
    await this.scheduler.stop(0);
    this.storage.close();
  }

  private newScheduler(): Scheduler {
    const { db, writer, clock, log } = this.storage;
    return new Scheduler(db, writer, clock, log);
  }
}
