import { accessSync, constants, mkdirSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Clock, monotonicMs } from "../kernel/clock.ts";
import { errorText, StartupError } from "../kernel/errors.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Logger } from "../kernel/log.ts";
import { type BackupProcess, startBackupProcess } from "./child.ts";
import { plainText, removeGently, removeLeftovers } from "./files.ts";
import { scheduledName, timeOfScheduled } from "./names.ts";

/** The job that recurs. One that fell due while the server was down is run soon after the start. */
const JOB = "backup.make";

/** Where backups go, when they are made, and how many are kept. */
export interface BackupPlan {
  readonly folder: string;
  /** A cron expression, in UTC. */
  readonly cron: string;
  readonly keep: number;
}

/**
 * Makes backups by the calendar, each in a process of its own, verified. Never two at once: the next time is looked
 * for when one has ended. Old ones are deleted only after a new one is there, and only files of exactly the names that
 * are given here.
 */
export class ScheduledBackups {
  private readonly plan: BackupPlan;
  private readonly dataFolder: string;
  private readonly clock: Clock;
  private readonly log: Logger;
  private running: BackupProcess | null = null;
  private stopped = false;
  private last: number | null;

  /** @throws StartupError when the folder cannot be made, read or written. */
  constructor({ db, clock, log, scheduler }: Kernel, plan: BackupPlan) {
    this.plan = { ...plan, folder: resolve(plan.folder) };
    this.dataFolder = dirname(db.path);
    this.clock = clock;
    this.log = log;
    try {
      mkdirSync(this.plan.folder, { recursive: true, mode: 0o700 });
      accessSync(this.plan.folder, constants.W_OK);
      this.last = this.made(clock.now()).at(-1)?.at ?? null;
    } catch (error) {
      throw new StartupError(`backup_dir: ${this.plan.folder} cannot be written (${plainText(error)}).`);
    }
    scheduler.recurring(JOB, plan.cron, () => this.make());
  }

  /** When the last backup that is there was made, epoch milliseconds; null when there is none. */
  get lastBackupAt(): number | null {
    return this.last;
  }

  /** Ends the one that is under way. The next start begins it anew. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.running?.end();
  }

  private async make(): Promise<"cut-off" | undefined> {
    if (this.stopped) return "cut-off";
    const now = this.clock.now();
    const file = join(this.plan.folder, scheduledName(now));
    const begun = monotonicMs();
    try {
      await removeLeftovers(this.plan.folder, (name) => timeOfScheduled(name) !== null);
      // Stopped meanwhile: nobody would end a process that began now.
      if (this.stopped) return "cut-off";
      this.running = startBackupProcess(file, this.dataFolder);
      const failure = await this.running.done;
      if (failure !== null && this.stopped) return "cut-off";
      if (failure !== null) throw new Error(failure);
    } catch (error) {
      const { message } = error instanceof Error ? error : new Error(errorText(error));
      this.log.error("a scheduled backup failed; it is tried again at the next time", {
        file,
        error: message,
      });
      return undefined;
    } finally {
      this.running = null;
    }
    this.last = timeOfScheduled(scheduledName(now));
    this.log.info("a scheduled backup was made", { file, duration_ms: Math.round(monotonicMs() - begun) });
    await this.removeOld(now);
    return undefined;
  }

  private async removeOld(now: number): Promise<void> {
    try {
      for (const { name } of this.made(now).slice(0, -this.plan.keep)) {
        await removeGently(join(this.plan.folder, name));
        this.log.info("an old backup was deleted", { file: join(this.plan.folder, name) });
      }
    } catch (error) {
      this.log.error("old backups could not be deleted", { error: errorText(error) });
    }
  }

  /**
   * The backups that are there, the oldest first. Those of a clock that was ahead are left out: they would pass for the
   * newest, and the one just made would be deleted for them.
   */
  private made(now: number): { name: string; at: number }[] {
    return readdirSync(this.plan.folder, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => ({ name, at: timeOfScheduled(name) }))
      .filter((one): one is { name: string; at: number } => one.at !== null && one.at <= now)
      .toSorted((a, b) => a.at - b.at);
  }
}
