import { accessSync, constants, mkdirSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { monotonicMs, realDelay } from "../kernel/clock.ts";
import { errorText, StartupError } from "../kernel/errors.ts";
import type { Kernel } from "../kernel/kernel.ts";
import {
  plainText,
  removeGently,
  removeLeftovers,
  removeTemporary,
  scheduledName,
  temporaryNameOf,
  timeOfScheduled,
} from "./files.ts";

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
  private running: BackupProcess | null = null;
  private stopped = false;
  private last: number | null;

  /** @throws StartupError when the folder cannot be made, read or written. */
  constructor(
    private readonly kernel: Kernel,
    plan: BackupPlan,
  ) {
    this.plan = { ...plan, folder: resolve(plan.folder) };
    try {
      mkdirSync(this.plan.folder, { recursive: true, mode: 0o700 });
      accessSync(this.plan.folder, constants.W_OK);
      this.last = this.made(kernel.clock.now()).at(-1)?.at ?? null;
    } catch (error) {
      throw new StartupError(`backup_dir: ${this.plan.folder} cannot be written (${plainText(error)}).`);
    }
    kernel.scheduler.recurring(JOB, plan.cron, () => this.make());
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
    const { clock, db, log } = this.kernel;
    const now = clock.now();
    const file = join(this.plan.folder, scheduledName(now));
    const begun = monotonicMs();
    try {
      await removeLeftovers(this.plan.folder, (name) => timeOfScheduled(name) !== null);
      // Stopped meanwhile: nobody would end a process that began now.
      if (this.stopped) return "cut-off";
      this.running = startBackupProcess(file, dirname(db.path));
      const failure = await this.running.done;
      if (failure !== null && this.stopped) return "cut-off";
      if (failure !== null) throw new Error(failure);
    } catch (error) {
      const message = error instanceof Error ? error.message : errorText(error);
      log.error("a scheduled backup failed; it is tried again at the next time", { file, error: message });
      return undefined;
    } finally {
      this.running = null;
    }
    this.last = timeOfScheduled(scheduledName(now));
    log.info("a scheduled backup was made", { file, duration_ms: Math.round(monotonicMs() - begun) });
    await this.removeOld(now);
    return undefined;
  }

  private async removeOld(now: number): Promise<void> {
    try {
      for (const { name } of this.made(now).slice(0, -this.plan.keep)) {
        await removeGently(join(this.plan.folder, name));
        this.kernel.log.info("an old backup was deleted", { file: join(this.plan.folder, name) });
      }
    } catch (error) {
      this.kernel.log.error("old backups could not be deleted", { error: errorText(error) });
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

/** How long a backup that is told to end may take to remove what it has begun. */
const END_GRACE_MS = 2_000;
/** Of what the process writes to standard error, so much of the end is kept: its last line says what went wrong. */
const ERROR_CHARACTERS_MAX = 4_000;

/** A backup under way, in a process of its own. */
interface BackupProcess {
  /** Resolves to what went wrong; null when the file is there. */
  readonly done: Promise<string | null>;
  /** Ends it, and takes away what it has begun. */
  end(): Promise<void>;
}

/** Starts `ninefold backup` in a process of its own: the event loop of the server has no part in it. */
function startBackupProcess(file: string, dataFolder: string): BackupProcess {
  const child = Bun.spawn([...ownCommand(), "backup", file, `--data=${dataFolder}`, "--verify"], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const outcome = async (): Promise<string | null> => {
    const [out, error, code] = await Promise.all([endOf(child.stdout), endOf(child.stderr), child.exited]);
    if (code === 0) return null;
    const failed = out.split("\n").filter((line) => line !== "" && !line.startsWith("ok "));
    const last = error.trimEnd().split("\n").at(-1) ?? "";
    return [
      ...failed.map((line) => line.trim()),
      last.replace(/^ninefold: /, "") || `exit code ${code}`,
    ].join(" | ");
  };
  return {
    done: outcome(),
    end: async () => {
      child.kill("SIGTERM");
      await Promise.race([child.exited, realDelay(END_GRACE_MS)]);
      if (child.exitCode !== null) return;
      child.kill("SIGKILL");
      await child.exited;
      await removeTemporary(temporaryNameOf(file, child.pid));
    },
  };
}

/** How this program is called: the executable by itself, or Bun with the source tree's main file. */
function ownCommand(): string[] {
  const isExecutable = import.meta.dir.startsWith("/$bunfs/") || import.meta.dir.includes("~BUN");
  if (isExecutable) return [process.execPath];
  const root = join(import.meta.dir, "..", "..");
  const options = ["--no-env-file", "--no-install", `--config=${join(root, "bunfig.toml")}`];
  return [process.execPath, ...options, join(root, "src", "main.ts")];
}

async function endOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    text = (text + decoder.decode(chunk, { stream: true })).slice(-ERROR_CHARACTERS_MAX);
  }
  return text;
}
