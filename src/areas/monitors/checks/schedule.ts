import { laneName } from "../../../kernel/scheduler/dispatcher.ts";
import type { Job, JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { monotonicMs, realTimeout } from "../../../kernel/time/clock.ts";
import { afterCheck, firstCheckAt, isFailing, nextCheckAt } from "../domain.ts";
import { retryMsMin } from "../options.ts";
import type { MonitorParts } from "../ports.ts";
import type { MonitorRow } from "../store.ts";
import type { Suppression } from "../suppression/suppression.ts";
import type { Checks } from "./checks.ts";
import { TestClockPace } from "./test-clock-pace.ts";

/** The job of a monitor's next scheduled check; its key is the monitor's reference. */
const CHECK = "monitors.check";

/** Checks running at once, in all: 30 s of 136 dead targets a second. */
const CONCURRENCY = 4_096;
/** Checks of one host running at once: many monitors may watch it, and all of them on time. */
const PER_HOST = 128;
/** Checks running at once of hosts that do not answer within a second. */
const SLOW_TOTAL = 3_072;
/** Share of both that one account may take: however many hosts it watches, the checks of others are made in time. */
const ACCOUNT_SHARE = 1 / 2;

/** The scheduled checks. */
export class CheckSchedule {
  private readonly window = new CommitWindow();
  private readonly pace: TestClockPace;

  constructor(
    private readonly parts: MonitorParts,
    private readonly checks: Checks,
    private readonly suppression: Suppression,
  ) {
    this.pace = new TestClockPace(parts.clock);
    parts.scheduler.register(CHECK, {
      concurrency: CONCURRENCY,
      lanes: { perLane: PER_HOST, perSlowLane: PER_HOST, slowTotal: SLOW_TOTAL, ownerShare: ACCOUNT_SHARE },
      run: (job) => this.check(job),
    });
  }

  /** Begins to check a monitor, within 5 seconds, or begins anew. */
  begin(tx: Tx, accountRef: number, ref: number, url: string): void {
    this.checkAt(tx, { accountRef, ref, url }, firstCheckAt(ref, tx.now));
  }

  /** Checks a monitor at a moment, instead of when it would be; it is active. */
  checkAt(
    tx: Tx,
    { accountRef, ref, url }: { accountRef: number; ref: number; url: string },
    at: number,
  ): void {
    this.pace.forget(ref);
    this.parts.scheduler.enqueue(tx, CHECK, String(ref), at, null, laneName(accountRef, new URL(url).host));
  }

  /** Ends the checks of a monitor. */
  end(tx: Tx, ref: number): void {
    this.pace.forget(ref);
    this.parts.scheduler.cancel(tx, CHECK, String(ref));
  }

  private async check(job: Job): Promise<JobOutcome> {
    const { monitors, stopped, clock } = this.parts;
    const monitor = monitors.monitor(Number(job.key));
    if (monitor === null || !monitor.settings.active || stopped.has(monitor.projectRef)) return {};
    const found = await this.checks.make(monitor, false);
    const made = found && (await this.suppression.investigate(monitor, found, this.checks));
    const { ref } = monitor;
    const { dueAt } = job;
    const intervalMs = this.intervalOf(monitor);
    const next = nextCheckAt(ref, intervalMs, dueAt, clock.now());
    // The attempt counter is of no use to a job that never ends.
    if (made === null || stopped.has(monitor.projectRef)) return { retryAt: next, attempt: 0 };
    const checks = [...this.pace.skippedChecks(ref, intervalMs, dueAt), made];
    const rules = this.checks.rulesOf(monitor);
    const after = afterCheck(monitor, made, rules).state;
    const paced = this.pace.nextAt({ ref, intervalMs, dueAt, made, before: monitor, after, rules }, next);
    const retryAt = isFailing(after) ? Math.min(paced, this.retryAt(monitor)) : paced;
    if (clock.advancing() === null) await this.window.join();
    return { retryAt, attempt: 0, record: (tx) => this.checks.record(tx, monitor, checks) };
  }

  /** A tier change works at once: an interval below the tier's minimum counts as that. */
  private intervalOf(monitor: MonitorRow): number {
    return Math.max(monitor.settings.interval, this.intervalMinOf(monitor));
  }

  /** When a target that has begun to fail is asked again, at the latest. */
  private retryAt(monitor: MonitorRow): number {
    const { retry_interval: asked } = monitor.settings;
    if (asked === null) return Number.POSITIVE_INFINITY;
    return this.parts.clock.now() + Math.max(asked, retryMsMin(this.intervalMinOf(monitor)));
  }

  private intervalMinOf({ accountRef }: MonitorRow): number {
    const { owners, tiers } = this.parts;
    return tiers[owners.account(accountRef).tier].monitorIntervalMinMs;
  }
}

/** How long results wait for others when many come in. */
const WINDOW_MS = 50;
/** Results within one window above which they wait: 200 a second. */
const BUSY_RESULTS = 10;

/**
 * Lets the results of many checks share a commit. A result may well come 50 ms later, and some hundred commits a second
 * less leave the disk to the requests.
 */
export class CommitWindow {
  private waiting: Promise<void> | null = null;
  private endsAt = 0;
  private results = 0;
  private resultsBefore = 0;

  /** Undefined while there is little to do; else a promise that resolves at the end of the window. */
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
