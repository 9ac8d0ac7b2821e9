import type { Job, JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { receivingSince } from "../../../kernel/time/clock.ts";
import { isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import { clockText, durationText } from "../../../kernel/time/readable.ts";
import type { Checks } from "../checks/checks.ts";
import type { AreaDeps } from "../ports.ts";
import type { CompletedCheck, MonitorRow } from "../store.ts";
import type { Suppression } from "../suppression/suppression.ts";
import { DEADLINE_JOB, type Heartbeats } from "./heartbeats.ts";
import {
  afterOverrun,
  afterPing,
  afterStart,
  beginsRun,
  deadlineOf,
  type HeartbeatState,
  movedBack,
  NO_RUNS,
  openRuns,
  type PingRequest,
  ranMs,
  runMsMax,
  withRun,
} from "./state.ts";
import type { SteadyHeartbeats } from "./steady.ts";
import type { HeartbeatRow, HeartbeatStore, StoredPing } from "./store.ts";

/** Deadlines that are checked concurrently, and so in one commit. */
const CONCURRENCY = 256;
/** The job that resets the heartbeats of a suspended account; its key is the account's reference. */
const RESTART = "monitors.heartbeats-restart";
/**
 * The job that lets heartbeats without a success wait for one from now on: those of a reactivated account, or of all accounts
 * after an upgrade from a version in which they did not. Its key is the account's reference, or `0`.
 */
const BEGIN = "monitors.heartbeats-begin";
const ALL_ACCOUNTS = 0;
/** Monitors that a reset reads in one unit of work: a few milliseconds. */
const MONITORS_PER_UNIT = 500;
/** The same of the other job, which also calculates the next time of each schedule. */
const BEGUN_PER_UNIT = 50;
/** The state of a heartbeat before its first ping. */
const NEW_STATE = {
  startedAt: null,
  startedRid: null,
  waitsSince: null,
  expectedAt: null,
  missedAt: null,
  overranAt: null,
  repeatAt: null,
  ...NO_RUNS,
} as const;

interface Restart {
  /** The last monitor that was read. */
  readonly after: number;
}

/** A ping as it was received. */
export type PingMade = PingRequest & Pick<StoredPing, "ip" | "body">;

type Deps = Pick<AreaDeps, "clock" | "scheduler" | "changes" | "monitors" | "checks" | "stopped"> & {
  readonly heartbeats: HeartbeatStore;
  readonly steady: SteadyHeartbeats;
};

/** Records the pings of heartbeats, and missing ones, as checks. */
export class HeartbeatChecks {
  /** Monotonic time. */
  private readonly startedAt: number;

  constructor(
    private readonly deps: Deps,
    private readonly heartbeats: Heartbeats,
    private readonly checks: Checks,
    private readonly suppression: Suppression,
  ) {
    const { clock, scheduler } = deps;
    this.startedAt = clock.monotonic();
    const reset = (tx: Tx, ref: number) => this.reset(tx, ref);
    const begin = (tx: Tx, ref: number) => this.begin(tx, ref);
    scheduler.register(RESTART, { concurrency: 1, run: (job) => this.walk(job, MONITORS_PER_UNIT, reset) });
    scheduler.register(BEGIN, { concurrency: 1, run: (job) => this.walk(job, BEGUN_PER_UNIT, begin) });
    scheduler.suspended.onReactivated((tx, accountRef) =>
      scheduler.enqueue(tx, BEGIN, String(accountRef), tx.now, { after: 0 } satisfies Restart),
    );
    scheduler.suspended.onSuspended((tx, accountRef) =>
      scheduler.enqueue(tx, RESTART, String(accountRef), tx.now, { after: 0 } satisfies Restart),
    );
    scheduler.register(DEADLINE_JOB, {
      concurrency: CONCURRENCY,
      run: async ({ key, dueAt }) => {
        const overdue = this.findOverdue(Number(key), dueAt);
        const isServerOffline = overdue !== null && (await suppression.isServerOffline(overdue.accountRef));
        return {
          record: (tx) => {
            if (isServerOffline) suppression.recordOffline(tx);
            this.reportIfOverdue(tx, Number(key), dueAt);
          },
        };
      },
    });
  }

  /** Records a ping. Returns false if the heartbeat has been deleted meanwhile. */
  recordPing(tx: Tx, ref: number, ping: PingMade): boolean {
    const { steady, changes } = this.deps;
    const beat = isPlain(ping) ? steady.of(ref) : undefined;
    if (beat === undefined || !beat.staysSteady(tx.now, ping.ip)) return this.recordAnyPing(tx, ref, ping);
    if (this.isStopped(beat)) return false;
    tx.affects = beat.accountRef;
    steady.succeeded(tx, beat, this.checks.recordSuccess(tx, ref, beat.previous));
    changes.inProject(tx, beat.projectRef, "pulse", beat.monitorId);
    return true;
  }

  private isStopped({ projectRef, accountRef }: Pick<MonitorRow, "projectRef" | "accountRef">): boolean {
    return this.deps.stopped.has(projectRef) || this.deps.scheduler.suspended.has(accountRef);
  }

  private recordAnyPing(tx: Tx, ref: number, ping: PingMade): boolean {
    const { monitors, heartbeats, steady, changes } = this.deps;
    steady.release(tx, ref);
    const monitor = monitors.monitor(ref);
    const was = heartbeats.find(ref);
    if (monitor === null || was === null || this.isStopped(monitor)) return false;
    tx.affects = monitor.accountRef;
    const { kind, exit, rid, ip, body } = ping;
    const isEnd = kind === "success" || kind === "fail";
    const startedAt = isEnd && rid !== null && rid !== was.startedRid ? heartbeats.startOf(ref, rid) : null;
    const otherMs = startedAt === null ? ping.durationMs : ranMs(startedAt, tx.now);
    const open = () => openRuns(heartbeats.runPings(ref));
    const is = this.withRunOf(ping, was, afterPing(was, ping, was, tx.now, open, otherMs), tx.now);
    const durationMs = isEnd ? is.lastDurationMs : null;
    heartbeats.insertPing(tx, ref, is.pings, { at: tx.now, kind, exit, durationMs, rid, ip, body });
    if (!monitor.settings.active) {
      heartbeats.save(tx, ref, { ...was, pings: is.pings, lastPingAt: tx.now });
    } else if (isEnd) {
      const error = kind === "success" ? null : exit === null ? "fail" : `exit status ${exit}`;
      const check = { ...checkOf(tx, error, durationMs), pingBody: error === null ? null : body };
      const checked = this.checks.recordNow(tx, monitor, [check]);
      this.reportIfTooMany(tx, checked, was, is);
      const saved = this.heartbeats.save(tx, ref, checked.status === "down" ? { ...is, missedAt: null } : is);
      if (isPlain(ping) && !this.suppression.hasMaintenance(ref))
        steady.add(tx, checked, { ...was, ...saved }, ip);
      return true;
    } else {
      this.heartbeats.save(tx, ref, is);
      this.reportIfTooMany(tx, monitor, was, is);
    }
    changes.inProject(tx, monitor.projectRef, "pulse", monitor.monitorId);
    return true;
  }

  /** The state after a ping, with the run that it begins, where their number is limited. */
  private withRunOf(ping: PingMade, was: HeartbeatRow, is: HeartbeatState, now: number): HeartbeatState {
    if (was.max_runs_per_period === null) return is;
    const isRun = beginsRun(was, ping, () => this.deps.heartbeats.runPings(was.ref));
    return isRun ? withRun(is, was, now) : is;
  }

  /** Reports the first run beyond those that may begin in a period. */
  private reportIfTooMany(tx: Tx, monitor: MonitorRow, was: HeartbeatRow, { runs }: HeartbeatState): void {
    const max = was.max_runs_per_period;
    if (max === null || runs !== max + 1 || runs === was.runs) return;
    if (this.suppression.suppressedUntil(monitor.ref, tx.now) !== null) return;
    this.checks.notify(tx, monitor, [
      {
        event: "monitor.runs_exceeded",
        text: `More runs than may begin in a period: ${runs}, at most ${max}.`,
        isAlert: true,
        facts: {
          status: monitor.status,
          previous_status: monitor.status,
          runs,
          max_runs_per_period: max,
        },
      },
    ]);
  }

  /** Does something with the heartbeats of an account, or of all accounts, in slices. */
  private async walk(
    { key, payload }: Job,
    perUnit: number,
    act: (tx: Tx, ref: number) => void,
  ): Promise<JobOutcome> {
    const { monitors } = this.deps;
    const { after } = payload as Restart;
    const found = monitors.after(after, perUnit);
    const account = Number(key);
    const refs = found.filter(
      ({ accountRef, type }) => type === "heartbeat" && (account === ALL_ACCOUNTS || accountRef === account),
    );
    const record = (tx: Tx): void => {
      for (const { ref } of refs) act(tx, ref);
    };
    const last = found.at(-1);
    if (last === undefined || found.length < perUnit) return { record };
    return {
      record,
      retryAt: this.deps.clock.now(),
      payload: { after: last.ref } satisfies Restart,
      attempt: 0,
    };
  }

  /** Lets a heartbeat wait for its first success, if it is active and has had none. */
  private begin(tx: Tx, ref: number): void {
    const monitor = this.deps.monitors.monitor(ref);
    if (monitor === null || !monitor.settings.active || monitor.status !== "unknown") return;
    if (!this.isStopped(monitor)) this.heartbeats.begin(tx, ref);
  }

  /** Resets a heartbeat of a suspended account: its pings are rejected during the suspension. */
  private reset(tx: Tx, ref: number): void {
    const monitor = this.deps.monitors.monitor(ref);
    const row = this.deps.heartbeats.find(ref);
    if (monitor === null || row === null) return;
    this.heartbeats.save(tx, ref, { ...row, ...NEW_STATE });
    this.checks.forgetStatus(tx, monitor);
    // The suspension may have ended meanwhile.
    this.begin(tx, ref);
  }

  /**
   * Reports a heartbeat whose deadline has passed, as a failed check; a ping may have moved the deadline meanwhile. `dueAt`:
   * due time of the job.
   */
  private reportIfOverdue(tx: Tx, ref: number, dueAt: number): void {
    const { monitors, heartbeats, scheduler, stopped, steady } = this.deps;
    const monitor = monitors.monitor(ref);
    const found = heartbeats.find(ref);
    if (monitor === null || found === null || !monitor.settings.active) return;
    // Heartbeats of a suspended account are reset: see {@link restart}.
    if (stopped.has(monitor.projectRef) || scheduler.suspended.has(monitor.accountRef)) return;
    const row = this.withCurrentDeadlines(monitor, found, dueAt);
    const deadline = deadlineOf(row);
    if (deadline === null || deadline > tx.now) {
      this.heartbeats.save(tx, ref, { ...row, jobAt: null });
      return;
    }
    const jobAt = this.suppression.suppressedUntil(ref, tx.now);
    if (jobAt !== null) {
      heartbeats.save(tx, ref, { ...row, jobAt });
      scheduler.enqueue(tx, DEADLINE_JOB, String(ref), jobAt, null);
      return;
    }
    const { missedAt, overranAt } = row;
    const isMissed = missedAt !== null && missedAt <= tx.now;
    const isOver = overranAt !== null && overranAt <= tx.now;
    if (isMissed && !isOver && monitor.status === "unknown") {
      this.reportOverdue(tx, monitor, row);
      return;
    }
    const watched = isOver ? afterOverrun(row, row, openRuns(heartbeats.runPings(ref))) : row;
    const next = { ...row, ...watched, missedAt: null };
    // A run that began in time has its own limit.
    const isTooLong = isOver && (missedAt === null || overranAt <= missedAt);
    const error = isTooLong
      ? overranText(row, tx.now)
      : isMissed
        ? missedText(row, tx.now)
        : this.lastError(monitor);
    const check = {
      ...checkOf(tx, error, null),
      ignoresThreshold: true,
      isRepeat: !isMissed && !isOver,
      // Pings in memory have no body.
      pingBody: steady.of(ref) === undefined ? heartbeats.bodyOf(ref, row.pings) : null,
    };
    this.checks.recordNow(tx, monitor, [check]);
    this.heartbeats.save(tx, ref, { ...next, repeatAt: tx.now + monitor.settings.cooldown_ms, jobAt: null });
  }

  /** Reports a heartbeat whose first success is missing, once. That is no outage: nothing was up before. */
  private reportOverdue(tx: Tx, monitor: MonitorRow, row: HeartbeatRow): void {
    const { monitors, changes } = this.deps;
    monitors.setOverdue(tx, monitor.ref, true);
    this.heartbeats.save(tx, monitor.ref, { ...row, missedAt: null, jobAt: null });
    changes.inProject(tx, monitor.projectRef, "pulse", monitor.monitorId);
    this.checks.notify(tx, { ...monitor, overdue: true }, [
      {
        event: "monitor.overdue",
        text: overdueText(row, tx.now),
        isAlert: true,
        facts: {
          status: monitor.status,
          previous_status: monitor.status,
          overdue: true,
          expected_at: isoTimeOrNull(row.expectedAt),
        },
      },
    ]);
  }

  /** A heartbeat whose deadlines account for a clock that was set back, and for times in which no ping could arrive. */
  private withCurrentDeadlines({ accountRef }: MonitorRow, row: HeartbeatRow, dueAt: number): HeartbeatRow {
    // The job is due at `jobAt`, unless the clock was set back, and the job with it.
    const setBackMs = row.jobAt === null ? 0 : Math.max(0, row.jobAt - dueAt);
    const received = receivingSince(this.deps.clock, this.startedAt);
    const since = Math.max(received, this.reachableSince(accountRef));
    const is = movedBack(row, setBackMs);
    return { ...row, ...afterStart(is, row, since) };
  }

  /** Since when the server is reachable; 0 for a time in the future, which was recorded before the clock was set back. */
  private reachableSince(accountRef: number): number {
    const since = this.suppression.reachableSince(accountRef);
    return since > this.deps.clock.now() ? 0 : since;
  }

  /** The monitor of a heartbeat if its deadline has passed, else null. */
  private findOverdue(ref: number, dueAt: number): MonitorRow | null {
    const monitor = this.deps.monitors.monitor(ref);
    const row = this.deps.heartbeats.find(ref);
    if (monitor === null || row === null) return null;
    const deadline = deadlineOf(this.withCurrentDeadlines(monitor, row, dueAt));
    return deadline !== null && deadline <= this.deps.clock.now() ? monitor : null;
  }

  /** The error of its last check. */
  private lastError({ lastCheck }: MonitorRow): string {
    return this.deps.checks.check(lastCheck)?.error ?? "No ping.";
  }
}

/** The check that a ping, or a missing one, is recorded as. */
function checkOf(tx: Tx, error: string | null, durationMs: number | null): CompletedCheck {
  return {
    up: error === null,
    latencyMs: durationMs ?? 0,
    at: tx.now,
    manual: false,
    isImmediate: true,
    responseStatus: null,
    error,
  };
}

/** Whether a ping is a success without an exit status, a run, a duration or a body. */
function isPlain({ kind, exit, rid, body, durationMs }: PingMade): boolean {
  return kind === "success" && exit === null && rid === null && body === null && durationMs === null;
}

function overdueText({ pings, waitsSince, expectedAt, grace_ms }: HeartbeatRow, now: number): string {
  const missing =
    pings === 0
      ? "Never pinged since it was created"
      : `No success since ${clockText(waitsSince ?? now, now)}`;
  return `${missing}. Expected ${clockText(expectedAt ?? now, now)}, grace ${durationText(grace_ms)}.`;
}

function missedText({ waitsSince, expectedAt, grace_ms }: HeartbeatRow, now: number): string {
  const expected = expectedAt ?? now;
  const silentFor = durationText(Math.max(0, now - (waitsSince ?? expected)));
  return `No ping for ${silentFor}. Expected ${clockText(expected, now)}, grace ${durationText(grace_ms)}.`;
}

function overranText(row: HeartbeatRow, now: number): string {
  return `The run that started at ${clockText(row.startedAt ?? now, now)} has not ended within ${durationText(runMsMax(row))}.`;
}
