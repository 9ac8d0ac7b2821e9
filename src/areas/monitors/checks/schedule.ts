import type { Job, JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import { monotonicMs, realTimeout } from "../../../kernel/time/clock.ts";
import { afterCheck, isFailing, nextCheckAt } from "../domain.ts";
import { LOCAL, retryMsMin } from "../options.ts";
import type { AreaDeps } from "../ports.ts";
import type { MonitorRow } from "../store.ts";
import type { Suppression } from "../suppression/suppression.ts";
import type { Checks } from "./checks.ts";
import { CHECK_JOB, type CheckQueue } from "./queue.ts";

/** Concurrent checks: enough for 136 targets a second that time out after 30 s. */
const CONCURRENCY = 4_096;
/** Concurrent checks of one host: many monitors can check it, all on time. */
const PER_HOST = 128;
/** Concurrent checks of hosts that do not respond within a second. */
const SLOW_TOTAL = 3_072;
/** Share of both for one account: however many hosts it checks, the checks of others run on time. */
const ACCOUNT_SHARE = 1 / 2;

/** Votes of monitors without checks by the server are counted together, each so many milliseconds: for many, one by one costs more. */
const VOTES_MS = 1_000;

/** The probes of monitors. */
interface ProbeChecks {
  /** Under a test clock: has the connected probes of a monitor check it. */
  checkDue(monitor: MonitorRow): Promise<void>;
}

/** Runs the scheduled checks. */
export class CheckSchedule {
  private readonly window = new CommitWindow();

  constructor(
    private readonly deps: Pick<
      AreaDeps,
      "clock" | "monitors" | "owners" | "scheduler" | "stopped" | "tiers"
    >,
    private readonly queue: CheckQueue,
    private readonly checks: Checks,
    private readonly suppression: Suppression,
    private readonly probes: ProbeChecks,
  ) {
    deps.scheduler.register(CHECK_JOB, {
      concurrency: CONCURRENCY,
      lanes: { perLane: PER_HOST, perSlowLane: PER_HOST, slowTotal: SLOW_TOTAL, ownerShare: ACCOUNT_SHARE },
      run: (job) => this.check(job),
    });
  }

  private async check(job: Job): Promise<JobOutcome> {
    const { monitors, stopped, clock } = this.deps;
    const monitor = monitors.monitor(Number(job.key));
    if (monitor === null || !monitor.settings.active || stopped.has(monitor.projectRef)) return {};
    await this.probes.checkDue(monitor);
    if (!monitor.settings.probes.includes(LOCAL)) {
      const next = nextCheckAt(monitor.ref, this.intervalOf(monitor), job.dueAt, clock.now());
      const retryAt = Math.ceil(next / VOTES_MS) * VOTES_MS;
      if (!this.checks.hasNewVerdict(monitor, clock.now())) return { retryAt, attempt: 0 };
      return { retryAt, attempt: 0, record: (tx) => this.checks.recordVotes(tx, monitor.ref) };
    }
    const checked = await this.checks.run(monitor, false);
    const check = checked && (await this.suppression.investigate(monitor, checked, this.checks));
    const { ref } = monitor;
    const { dueAt } = job;
    const { pace } = this.queue;
    const paceBefore = this.intervalOf(monitor);
    // The job never ends: its attempts are not counted.
    if (check === null || stopped.has(monitor.projectRef))
      return { retryAt: nextCheckAt(ref, paceBefore, dueAt, clock.now()), attempt: 0 };
    const checks = [...pace.skippedChecks(ref, paceBefore, dueAt), check];
    const rules = this.checks.rulesOf(monitor);
    const after = afterCheck(monitor, check, rules).state;
    const intervalMs = this.intervalOf(monitor, after.status);
    const next = nextCheckAt(ref, intervalMs, dueAt, clock.now());
    const paced = pace.nextAt(
      { ref, intervalMs, dueAt, completed: check, before: monitor, after, rules },
      next,
    );
    const retryAt = isFailing(after) ? Math.min(paced, this.retryAt(monitor)) : paced;
    if (clock.advancing() === null) await this.window.join();
    return { retryAt, attempt: 0, record: (tx) => this.checks.record(tx, monitor, checks) };
  }

  /** The interval at a status, at least the minimum of the current tier. */
  private intervalOf(monitor: MonitorRow, status = monitor.status): number {
    const { interval, down_interval: downMs } = monitor.settings;
    const minimum = this.intervalMinOf(monitor);
    return status === "down" && downMs !== null
      ? Math.max(downMs, retryMsMin(minimum))
      : Math.max(interval, minimum);
  }

  /** Latest time of the next check of a failing target. */
  private retryAt(monitor: MonitorRow): number {
    const { retry_interval: retryMs } = monitor.settings;
    if (retryMs === null) return Number.POSITIVE_INFINITY;
    return this.deps.clock.now() + Math.max(retryMs, retryMsMin(this.intervalMinOf(monitor)));
  }

  private intervalMinOf({ accountRef }: MonitorRow): number {
    const { owners, tiers } = this.deps;
    return tiers[owners.account(accountRef).tier].monitorIntervalMinMs;
  }
}

/** How long results wait for others under load. */
const WINDOW_MS = 50;
/** Results within one window above which results wait: 200 a second. */
const BUSY_RESULTS = 10;

/**
 * Lets the results of many checks share a commit. A delay of 50 ms does not matter to a result, and hundreds of commits
 * fewer a second leave the disk to requests.
 */
export class CommitWindow {
  private waiting: Promise<void> | null = null;
  private endsAt = 0;
  private results = 0;
  private resultsBefore = 0;

  /** Returns a promise that resolves at the end of the window; undefined under low load. */
  join(): Promise<void> | undefined {
    const now = monotonicMs();
    if (now >= this.endsAt) {
      this.resultsBefore = now < this.endsAt + WINDOW_MS ? this.results : 0;
      this.results = 0;
      this.endsAt = now + WINDOW_MS;
    }
    this.results += 1;
    if (Math.max(this.results, this.resultsBefore) <= BUSY_RESULTS) return undefined;
    this.waiting ??= new Promise((resolve) => {
      realTimeout(this.endsAt - now, () => {
        this.waiting = null;
        resolve();
      });
    });
    return this.waiting;
  }
}
