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

/** The recurring job. A backup that was due while the server was down runs soon after the start. */
const JOB = "backup.make";
/** The job of a requested backup: after a crash, the next start runs it again. */
const ASKED_JOB = "backup.asked";

/** The texts of the log, by the reason of a backup. */
const SCHEDULED = {
  subject: "a scheduled backup",
  next: "; the next one runs at the next scheduled time",
  mayBeThere: false,
};
/** It may exist already: the backup process of a killed server continues. */
const ASKED = { subject: "a manual backup", next: "", mayBeThere: true };

/** The configuration of scheduled backups. */
export interface BackupPlan {
  readonly folder: string;
  /** A cron expression, in UTC. */
  readonly cron: string;
  readonly keep: number;
}

/** A stored backup. */
export interface BackupFile {
  readonly name: string;
  readonly bytes: number;
  /** Its start, in epoch milliseconds. */
  readonly at: number;
}

/** A backup that is running or has failed. */
export interface BackupTry {
  readonly name: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/**
 * Creates backups by a schedule and on request, each verified and in a separate process, one at a time. Old backups are
 * deleted only after a new one is complete, and only files whose names have exactly the form of scheduled backups.
 */
export class ScheduledBackups {
  plan: BackupPlan;
  /** The last failure since the start of this process, unless a later backup succeeded. */
  failure: (BackupTry & { readonly message: string }) | null = null;
  private asked: BackupTry | null = null;
  private making: (BackupTry & { readonly done: Promise<unknown> }) | null = null;
  private process: BackupProcess | null = null;
  private stopped = false;
  private last: number | null;
  private readonly startedAt: number;

  /** @throws StartupError if the folder cannot be created, read or written. */
  constructor(
    private readonly kernel: Kernel,
    plan: BackupPlan,
  ) {
    this.plan = { ...plan, folder: resolve(plan.folder) };
    this.startedAt = kernel.clock.now();
    prepareBackupFolder(this.plan.folder);
    this.last = madeUntil(this.files(), this.startedAt).at(-1)?.at ?? null;
    kernel.scheduler.recurring(JOB, plan.cron, () => this.makeScheduled());
    kernel.scheduler.register(ASKED_JOB, {
      concurrency: 1,
      run: ({ payload }) => this.makeAsked((payload as { readonly at: number }).at),
    });
  }

  /** Changes the configuration; null: no more scheduled backups. @throws StartupError as the constructor. */
  change(tx: Tx, plan: BackupPlan | null): void {
    this.kernel.scheduler.reschedule(tx, JOB, plan?.cron ?? null);
    if (plan === null) return;
    const { plan: before, last } = this;
    this.plan = { ...plan, folder: resolve(plan.folder) };
    tx.onRollback(() => {
      this.plan = before;
      this.last = last;
    });
    if (this.plan.folder !== before.folder) this.last = madeUntil(this.files(), tx.now).at(-1)?.at ?? null;
  }

  /** Time of the newest stored backup, in epoch milliseconds; null without one. */
  get lastBackupAt(): number | null {
    return this.last;
  }

  /** The backup that is running or about to start. */
  get running(): BackupTry | null {
    return this.making ?? this.asked;
  }

  /** Time of the next scheduled backup, in epoch milliseconds. */
  get nextAt(): number {
    return nextOccurrence(this.plan.cron, this.kernel.clock.now());
  }

  /** Whether two scheduled times have passed since the newest backup, or without one since the start. */
  get isOverdue(): boolean {
    const after = (time: number): number => nextOccurrence(this.plan.cron, time);
    return this.kernel.clock.now() > after(after(this.last ?? this.startedAt));
  }

  /** The newest backups before a time, including those of a clock that was ahead. */
  async list(before: number, filesMax: number): Promise<BackupFile[]> {
    const found = madeUntil(await readdir(this.plan.folder), before - 1).toReversed();
    const files: BackupFile[] = [];
    for (const candidate of found) {
      if (files.length === filesMax) break;
      // It may be deleted meanwhile.
      const status = await stat(join(this.plan.folder, candidate.name)).catch(() => null);
      if (status?.isFile() === true) files.push({ ...candidate, bytes: status.size });
    }
    return files;
  }

  /**
   * Enqueues a backup as a job: once this is committed, the backup runs even after a crash.
   * @throws ApiError `conflict` while a backup is running, or if the last one started in the same second.
   */
  ask(tx: Tx): BackupTry {
    const { running } = this;
    if (running !== null) {
      throw new ApiError("conflict", `A backup has been running since ${isoTime(running.at)}.`);
    }
    const asked = tryOf(tx.now);
    // The time in a name has seconds only.
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

  /** Ends the running backup. The next start runs it again. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.process?.end();
  }

  private async makeScheduled(): Promise<"cut-off" | undefined> {
    await this.making?.done;
    const planned = tryOf(this.kernel.clock.now());
    // One was requested in the same second.
    if (planned.at === this.last) return undefined;
    return this.makeAlone(planned, SCHEDULED);
  }

  private async makeAsked(at: number): Promise<JobOutcome> {
    const requested = tryOf(at);
    this.asked = requested;
    try {
      await this.making?.done;
      const outcome = await this.makeAlone(requested, ASKED);
      return outcome === "cut-off" ? { retryAt: this.kernel.clock.now(), attempt: 0 } : {};
    } finally {
      this.asked = null;
    }
  }

  private async makeAlone(backup: BackupTry, why: typeof ASKED): Promise<"cut-off" | undefined> {
    const done = this.make(backup, why);
    this.making = { ...backup, done };
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
      // Stopped meanwhile: nothing would end a process that starts now.
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

  /** Backups of a clock that was ahead are not counted: they would be the newest, and the new backup would be deleted. */
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

/** Creates the folder of backups if it is missing. @throws StartupError if it cannot be created, read or written. */
export function prepareBackupFolder(path: string): void {
  const folder = resolve(path);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
    readdirSync(folder);
  } catch (error) {
    throw new StartupError(`backup_dir: ${folder} cannot be written (${plainText(error)}).`);
  }
}

function tryOf(now: number): BackupTry {
  const name = scheduledName(now);
  return { name, at: timeOfScheduled(name) ?? now };
}

/** The backups among these names that started no later than a time, oldest first. */
function madeUntil(names: readonly string[], moment: number): { name: string; at: number }[] {
  return names
    .map((name) => ({ name, at: timeOfScheduled(name) }))
    .filter((file): file is { name: string; at: number } => file.at !== null && file.at <= moment)
    .toSorted((a, b) => a.at - b.at);
}
