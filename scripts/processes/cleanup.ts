import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { killChildren } from "./children.ts";

type Task = () => Promise<unknown> | unknown;

/**
 * What has to be taken away at the end: processes, folders. Runs in reverse order, once, also when the script is
 * interrupted.
 */
export class Cleanup {
  private tasks: Task[] = [];
  /** Whether a signal has come: what fails from then on fails for that. */
  interrupted = false;
  private ending: Promise<void> | null = null;

  constructor() {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        if (this.interrupted) return;
        this.interrupted = true;
        // First of all, so that nothing writes into the folders that are being removed.
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

  /** Does what was noted, newest first. A task that fails does not keep the others from running. */
  run(): Promise<void> {
    // An interrupt also ends what the script was doing, which comes here by its own way: both wait for one clean-up.
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
