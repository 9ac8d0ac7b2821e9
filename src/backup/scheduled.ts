import { accessSync, constants, mkdirSync, readdirSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { ApiError, errorText, StartupError } from "../kernel/errors.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { nextOccurrence } from "../kernel/scheduler/calendar.ts";
import type { JobOutcome } from "../kernel/scheduler/scheduler.ts";
import type { Tx } from "../kernel/storage/tx.ts";
import { monotonicMs } from "../kernel/time/clock.ts";
import { isoTime } from "../kernel/time/date-time.ts";
import { plainText, removeGently, removeLeftovers, scheduledName, timeOfScheduled } from "./files.ts";
import { type BackupProcess, startBackupProcess } from "./process.ts";

/** The job that recurs. One that fell due while the server was down is run soon after the start. */
const JOB = "backup.make";
/** The job of a backup that somebody requested: one that a crash has cut off is made after the next start. */
const ASKED_JOB = "backup.asked";

/** Why a backup is made, and what the log calls it. */
const SCHEDULED = {
  subject: "a scheduled backup",
  next: "; the next one runs at the next scheduled time",
  mayBeThere: false,
};
/** One may be there already: a killed server's process continues, and makes it. */
const ASKED = { subject: "a manual backup", next: "", mayBeThere: true };

/** Where backups go, when they are made, and how many are stored. */
export interface BackupPlan {
  readonly folder: string;
  /** A cron expression, in UTC. */
  readonly cron: string;
  readonly keep: number;
}

/** A backup that is there. */
export interface BackupFile {
  readonly name: string;
  readonly bytes: number;
  /** When it was begun, epoch milliseconds. */
  readonly at: number;
}

/** A backup that is being made or did not succeed. */
export interface BackupTry {
  readonly name: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/**
 * Makes backups by the calendar and on request, each verified and in a separate process. Never two concurrently. Old ones
 * are deleted only after a new one is there, and only files of exactly the names that are given here.
 */
export class ScheduledBackups {
  readonly plan: BackupPlan;
  /** The last one that failed, unless one has succeeded since; of this process alone. */
  failure: (BackupTry & { readonly message: string }) | null = null;
  private asked: BackupTry | null = null;
  private making: (BackupTry & { readonly done: Promise<unknown> }) | null = null;
  private process: BackupProcess | null = null;
  private stopped = false;
  private last: number | null;
  private readonly startedAt: number;

  /** @throws StartupError when the folder cannot be made, read or written. */
  constructor(
    private readonly kernel: Kernel,
    plan: BackupPlan,
  ) {
    this.plan = { ...plan, folder: resolve(plan.folder) };
    this.startedAt = kernel.clock.now();
    try {
      mkdirSync(this.plan.folder, { recursive: true, mode: 0o700 });
      accessSync(this.plan.folder, constants.W_OK);
      this.last = madeUntil(this.files(), this.startedAt).at(-1)?.at ?? null;
    } catch (error) {
      throw new StartupError(`backup_dir: ${this.plan.folder} cannot be written (${plainText(error)}).`);
    }
    kernel.scheduler.recurring(JOB, plan.cron, () => this.makeScheduled());
    kernel.scheduler.register(ASKED_JOB, {
      concurrency: 1,
      run: ({ payload }) => this.makeAsked((payload as { readonly at: number }).at),
    });
  }

  /** When the last backup that is there was made, epoch milliseconds; null when there is none. */
  get lastBackupAt(): number | null {
    return this.last;
  }

  /** The one in progress, or about to begin. */
  get running(): BackupTry | null {
    return this.making ?? this.asked;
  }

  /** When the next scheduled one is due, epoch milliseconds. */
  get nextAt(): number {
    return nextOccurrence(this.plan.cron, this.kernel.clock.now());
  }

  /** Whether two times of the calendar have passed since the last one, or where there is none since the start. */
  get isOverdue(): boolean {
    const { cron } = this.plan;
    return this.kernel.clock.now() > nextOccurrence(cron, nextOccurrence(cron, this.last ?? this.startedAt));
  }

  /** The newest backups that were begun before a time, those of a clock that was ahead included. */
  async list(before: number, filesMax: number): Promise<BackupFile[]> {
    const found = madeUntil(await readdir(this.plan.folder), before - 1).toReversed();
    const files: BackupFile[] = [];
    for (const one of found) {
      if (files.length === filesMax) break;
      // One may be deleted meanwhile.
      const status = await stat(join(this.plan.folder, one.name)).catch(() => null);
      if (status?.isFile() === true) files.push({ ...one, bytes: status.size });
    }
    return files;
  }

  /**
   * Enqueues a backup as a job: once this is committed, the backup runs even after a crash.
   * @throws ApiError `conflict` while one is being made, or when the last one was begun in this very second.
   */
  ask(tx: Tx): BackupTry {
    const { running } = this;
    if (running !== null) {
      throw new ApiError("conflict", `A backup is being made already, since ${isoTime(running.at)}.`);
    }
    const asked = tryOf(tx.now);
    // Names are of whole seconds.
    if (asked.at === this.last) {
      throw new ApiError("conflict", "A backup was started in this second. Retry in the next one.");
    }
    this.asked = asked;
    tx.onRollback(() => {
      this.asked = null;
    });
    this.kernel.scheduler.enqueue(tx, ASKED_JOB, "", tx.now, { at: asked.at });
    return asked;
  }

  /** Ends the one that is in progress. The next start restarts it. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.process?.end();
  }

  private async makeScheduled(): Promise<"cut-off" | undefined> {
    await this.making?.done;
    const one = tryOf(this.kernel.clock.now());
    // Somebody requested it in this very second.
    if (one.at === this.last) return undefined;
    return this.makeAlone(one, SCHEDULED);
  }

  private async makeAsked(at: number): Promise<JobOutcome> {
    const one = tryOf(at);
    this.asked = one;
    try {
      await this.making?.done;
      const outcome = await this.makeAlone(one, ASKED);
      return outcome === "cut-off" ? { retryAt: this.kernel.clock.now(), attempt: 0 } : {};
    } finally {
      this.asked = null;
    }
  }

  private async makeAlone(one: BackupTry, why: typeof ASKED): Promise<"cut-off" | undefined> {
    const done = this.make(one, why);
    this.making = { ...one, done };
    try {
      return await done;
    } finally {
      this.making = null;
    }
  }

  private async make(
    { name, at }: BackupTry,
    { subject, next, mayBeThere }: typeof ASKED,
  ): Promise<"cut-off" | undefined> {
    if (this.stopped) return "cut-off";
    const { db, log } = this.kernel;
    const file = join(this.plan.folder, name);
    const begun = monotonicMs();
    try {
      const isThere = () => mayBeThere && this.files().includes(name);
      await removeLeftovers(this.plan.folder, (other) => timeOfScheduled(other) !== null);
      // Stopped meanwhile: nobody would end a process that began now.
      if (this.stopped) return "cut-off";
      if (!isThere()) {
        this.process = startBackupProcess(file, dirname(db.path));
        const failure = await this.process.done;
        if (failure !== null && this.stopped) return "cut-off";
        if (failure !== null && !isThere()) throw new Error(failure);
      }
    } catch (error) {
      const message = error instanceof Error ? error.message : errorText(error);
      this.failure = { name, at, message };
      log.error(`${subject} failed${next}`, { file, error: message });
      return undefined;
    } finally {
      this.process = null;
    }
    this.failure = null;
    this.last = Math.max(at, this.last ?? at);
    log.info(`${subject} was made`, { file, duration_ms: Math.round(monotonicMs() - begun) });
    await this.removeOld(at);
    return undefined;
  }

  private files(): string[] {
    const entries = readdirSync(this.plan.folder, { withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  }

  /** Those of a clock that was ahead are omitted: they would pass for the newest, and the one just made would go. */
  private async removeOld(now: number): Promise<void> {
    const { folder, keep } = this.plan;
    try {
      for (const { name } of madeUntil(this.files(), now).slice(0, -keep)) {
        await removeGently(join(folder, name));
        this.kernel.log.info("an old backup was deleted", { file: join(folder, name) });
      }
    } catch (error) {
      this.kernel.log.error("old backups could not be deleted", { error: errorText(error) });
    }
  }
}

function tryOf(now: number): BackupTry {
  const name = scheduledName(now);
  return { name, at: timeOfScheduled(name) ?? now };
}

/** The backups among the names in a folder that were begun at a time at the latest, the oldest first. */
function madeUntil(names: readonly string[], moment: number): { name: string; at: number }[] {
  return names
    .map((name) => ({ name, at: timeOfScheduled(name) }))
    .filter((one): one is { name: string; at: number } => one.at !== null && one.at <= moment)
    .toSorted((a, b) => a.at - b.at);
}
