import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { killChildren } from "./children.ts";

type Task = () => Promise<unknown> | unknown;

/**
 * Tasks for the end, such as stopping processes and removing folders. They run in reverse order, once, also when the
 * script is interrupted.
 */
export class Cleanup {
  private tasks: Task[] = [];
  /** Whether a signal was received: later errors are a consequence of it. */
  interrupted = false;
  private ending: Promise<void> | null = null;

  constructor() {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        if (this.interrupted) return;
        this.interrupted = true;
        // Processes end first, so that none writes into the folders that are being removed.
        killChildren();
        void this.run().finally(() => process.exit(130));
      });
    }
  }

  add(task: Task): void {
    this.tasks.push(task);
  }

  /** A temporary folder, removed at the end. */
  folder(name: string): string {
    const path = mkdtempSync(join(tmpdir(), `ninefold-${name}-`));
    this.add(() => rmSync(path, { recursive: true, force: true }));
    return path;
  }

  /** Runs the registered tasks, newest first. A task that fails does not stop the others. */
  run(): Promise<void> {
    // An interrupt also ends the script's own work, which calls this again: both wait for the same clean-up.
    this.ending ??= this.runTasks();
    return this.ending;
  }

  private async runTasks(): Promise<void> {
    for (let task = this.tasks.pop(); task !== undefined; task = this.tasks.pop()) {
      try {
        await task();
      } catch (error) {
        console.error(`cleaning up: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }
}
