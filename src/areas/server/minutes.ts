import { statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { slices } from "../../kernel/background/time-slices.ts";
import { errorText } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { MinuteLoad } from "../../kernel/metrics/minute-load.ts";
import type { RecentLoad } from "../../kernel/metrics/recent-load.ts";
import type { Cancel } from "../../kernel/time/clock.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { MINUTE_MS } from "../../kernel/time/units.ts";
import { type Problem, ProblemFinder } from "./domain.ts";
import type { ServerHistory } from "./schema.ts";
import { type MinuteRow, minuteStore } from "./store.ts";

/** Minutes of which the measurements are stored: a week, some 10,000 rows. */
export const MINUTES_STORED = 7 * 24 * 60;
/** Steps of a response: as many as a chart can show. */
const STEPS_MAX = 360;
/** Minutes that are read at once: about a millisecond. */
const SLICE_MINUTES = 720;
/** A problem whose last minute is at most so long ago continues: the row of the current minute does not exist yet. */
const CONTINUES_MINUTES = 2;

/** What the measurements are read from. */
export interface MinuteDeps {
  readonly kernel: Kernel;
  readonly load: Pick<RecentLoad, "lagP99Ms">;
  readonly requests: Pick<MinuteLoad, "take">;
}

/** Stores what the server measures, one row a minute, for a week. */
export class Minutes {
  private readonly store: ReturnType<typeof minuteStore>;
  private cancel: Cancel = () => undefined;
  private stopped = false;
  private commits = 0;
  private commitFailures = 0;

  constructor(private readonly deps: MinuteDeps) {
    this.store = minuteStore(deps.kernel.db);
  }

  /** Begins to measure. The first row is stored after a minute. */
  start(): void {
    const { clock } = this.deps.kernel;
    // One row for the whole way of a test's clock: nobody measured in between.
    const delayMs = Math.max(MINUTE_MS, clock.advancing() ?? 0);
    this.cancel = clock.after(delayMs, () => clock.track(this.next()));
  }

  /** Stores nothing more. */
  stop(): void {
    this.stopped = true;
    this.cancel();
  }

  private async next(): Promise<void> {
    try {
      const row = await this.measure();
      if (this.stopped) return;
      await this.deps.kernel.writer.submitInBackground((tx) => {
        this.store.insert(tx, row);
        const { isTrusted } = this.deps.kernel.scheduler.clockTrust;
        if (isTrusted) this.store.removeOutside(tx, row.minute - MINUTES_STORED + 1, row.minute);
      });
    } catch (error) {
      // A full disk: its log says so, and the minute is missing.
      this.deps.kernel.log.debug("the measurements of a minute were not stored", { error: errorText(error) });
    }
    if (!this.stopped) this.start();
  }

  private async measure(): Promise<MinuteRow> {
    const { kernel, load, requests } = this.deps;
    const { db, writer, clock, scheduler } = kernel;
    const { commits, failures } = writer.stats;
    const jobs = scheduler.jobs();
    const row = {
      minute: Math.floor(clock.now() / MINUTE_MS),
      ...requests.take(),
      commits: commits - this.commits,
      commitFailures: failures - this.commitFailures,
      jobsDue: jobs.reduce((sum, job) => sum + job.due(), 0),
      jobsOverdueSeconds: jobs.reduce((most, job) => Math.max(most, job.overdueSeconds()), 0),
      lagMs: load.lagP99Ms,
      memoryBytes: process.memoryUsage.rss(),
      databaseBytes: statSync(db.path, { throwIfNoEntry: false })?.size ?? 0,
    };
    this.commits = commits;
    this.commitFailures = failures;
    return { ...row, diskFreeBytes: await freeBytes(dirname(db.path)) };
  }

  /** The measurements and problems of the last hours, read in slices. */
  async history(hours: number): Promise<ServerHistory> {
    const now = this.deps.kernel.clock.now();
    const to = Math.floor(now / MINUTE_MS);
    const from = to - hours * 60 + 1;
    const step = Math.ceil((hours * 60) / STEPS_MAX);
    const finder = new ProblemFinder();
    const rows: MinuteRow[] = [];
    // A slice begins with a step, so that no step is in two of them.
    const slice = step * Math.ceil(SLICE_MINUTES / step);
    const start = Math.floor(from / step) * step;
    for (let at = start; at <= to; at += slice) {
      const within = { from: Math.max(from, at), to: Math.min(to, at + slice - 1) };
      rows.push(...this.store.steps({ ...within, step }));
      for (const row of this.store.flags(within.from, within.to)) finder.add(row);
      if (slices.isOver) await slices.next();
    }
    const problems = finder.problems.map((problem) => problemView(problem, to));
    return {
      from: timeOf(from),
      to: isoTime(now),
      step_seconds: step * 60,
      healthy: !problems.some(({ until }) => until === null),
      problems,
      points: rows.map((row) => ({
        at: timeOf(row.minute),
        requests: row.requests,
        errors: row.errors,
        p99_ms: row.p99Ms,
        commits: row.commits,
        commit_failures: row.commitFailures,
        jobs_due: row.jobsDue,
        jobs_overdue_seconds: row.jobsOverdueSeconds,
        event_loop_lag_p99_ms: row.lagMs,
        memory_bytes: row.memoryBytes,
        database_bytes: row.databaseBytes,
        disk_free_bytes: row.diskFreeBytes,
      })),
    };
  }
}

function problemView({ kind, first, last }: Problem, to: number): ServerHistory["problems"][number] {
  const continues = last >= to - CONTINUES_MINUTES && kind !== "offline";
  return { kind, since: timeOf(first), until: continues ? null : timeOf(last + 1) };
}

/** Free bytes on the folder's disk; null if unknown. Asynchronous, so that a disk that hangs delays only its caller. */
export async function freeBytes(folder: string): Promise<number | null> {
  const disk = await statfs(folder).catch(() => null);
  return disk === null ? null : disk.bavail * disk.bsize;
}

function timeOf(minute: number): string {
  return isoTime(minute * MINUTE_MS);
}
