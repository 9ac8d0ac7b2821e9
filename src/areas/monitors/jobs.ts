import type { Clock } from "../../kernel/clock.ts";
import { laneName } from "../../kernel/scheduler/dispatcher.ts";
import type { Job, JobOutcome, Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { StoppedProjects } from "../../kernel/stopped-projects.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import type { Tiers } from "../../kernel/tiers.ts";
import type { CheckStore } from "./check-store.ts";
import { CHECKS_KEPT_MS, type Checks } from "./checks.ts";
import { CommitWindow } from "./commit-window.ts";
import { firstCheckAt, nextCheckAt } from "./domain.ts";
import type { MonitorOwners } from "./ports.ts";
import type { MonitorRow, MonitorStore } from "./store.ts";

/** The job of a monitor's next scheduled check; its key is the monitor's reference. */
const CHECK = "monitors.check";

/** Checks under way at once, in all: 30 s of 136 dead targets a second. */
const CONCURRENCY = 4_096;
/** Checks under way at once of one host: many monitors may watch one, and all of them on time. */
const PER_HOST = 128;
/** Checks under way at once of hosts that do not answer within a second. */
const SLOW_TOTAL = 3_072;
/** Of both, what one account may take: however many hosts it watches, the checks of others are made in time. */
const ACCOUNT_SHARE = 1 / 2;

/** Checks kept in all, about 4 GB: beyond it the oldest go before their 30 days are over. */
const CHECKS_KEPT_MAX = 100_000_000;
/** Checks removed in one unit of work: a few milliseconds of the writer's time. */
const PURGE_SLICE = 2_000;
/** Hourly, off the full hour. */
const PURGE_SCHEDULE = "41 * * * *";

/** What the schedule of checks is built on. */
export interface ScheduleDeps {
  readonly scheduler: Scheduler;
  readonly clock: Clock;
  readonly monitors: MonitorStore;
  readonly stopped: StoppedProjects;
  readonly checks: Checks;
  readonly owners: MonitorOwners;
  readonly tiers: Tiers;
}

/** The scheduled checks. */
export class CheckSchedule {
  private readonly window = new CommitWindow();

  constructor(private readonly deps: ScheduleDeps) {
    deps.scheduler.register(CHECK, {
      concurrency: CONCURRENCY,
      lanes: { perLane: PER_HOST, perSlowLane: PER_HOST, slowTotal: SLOW_TOTAL, ownerShare: ACCOUNT_SHARE },
      run: (job) => this.check(job),
    });
  }

  /** Begins to check a monitor, within 5 seconds; one that is checked already begins anew. */
  begin(tx: Tx, accountRef: number, ref: number, url: string): void {
    const lane = laneName(accountRef, new URL(url).host);
    this.deps.scheduler.enqueue(tx, CHECK, String(ref), firstCheckAt(ref, tx.now), null, lane);
  }

  /** Checks a monitor no more. */
  end(tx: Tx, ref: number): void {
    this.deps.scheduler.cancel(tx, CHECK, String(ref));
  }

  private async check(job: Job): Promise<JobOutcome> {
    const monitor = this.deps.monitors.monitor(Number(job.key));
    if (monitor === null || !monitor.active || this.deps.stopped.has(monitor.projectRef)) return {};
    const made = await this.deps.checks.make(monitor, false);
    const retryAt = this.nextAt(monitor, job.dueAt);
    // The attempt counter is of no use to a job that never ends.
    const again = { retryAt, attempt: 0 };
    if (made === null || this.deps.stopped.has(monitor.projectRef)) return again;
    await this.window.join();
    return { ...again, record: (tx) => void this.deps.checks.record(tx, monitor, made) };
  }

  /** A tier change works at once: an interval below the tier's minimum counts as that. */
  private nextAt(monitor: MonitorRow, dueAt: number): number {
    const { owners, tiers, clock } = this.deps;
    const minimum = tiers[owners.account(monitor.accountRef).tier].monitorIntervalMinMs;
    return nextCheckAt(monitor.ref, Math.max(monitor.intervalMs, minimum), dueAt, clock.now());
  }
}

/** Registers the removal of old checks. */
export function registerPurge(deps: {
  scheduler: Scheduler;
  writer: Writer;
  clock: Clock;
  checkStore: CheckStore;
}): void {
  const { scheduler, writer, clock, checkStore } = deps;
  scheduler.recurring("monitors.purge", PURGE_SCHEDULE, async () => {
    const before = clock.now() - CHECKS_KEPT_MS;
    const slice = () => writer.submit((tx) => checkStore.removeOld(tx, before, CHECKS_KEPT_MAX, PURGE_SLICE));
    while ((await slice()) === PURGE_SLICE);
  });
}
