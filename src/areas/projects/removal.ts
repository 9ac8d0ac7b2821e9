import { monotonicMs, realDelay } from "../../kernel/clock.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import type { JobOutcome, Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import type { ProjectDirectory } from "./directory.ts";

/** The job that removes what was in a deleted project. */
const REMOVE_PROJECT = "projects.remove";
/** Rows removed in one unit of work: one or two milliseconds of the writer's time. */
export const REMOVAL_SLICE_ROWS = 100;
/** After a slice the disk is left to others for this many times as long as the slice took. */
const PAUSE_FACTOR = 2;

/**
 * Removes the rows of deleted projects, a slice at a time, with pauses in which everyone else's requests run. The
 * job is durable: a restart goes on where it stopped.
 */
export class ProjectRemoval {
  private readonly scheduler: Scheduler;
  private readonly writer: Writer;
  private readonly directory: ProjectDirectory;
  private readonly resources: readonly ProjectResources[];
  private stopping = false;

  constructor(deps: {
    scheduler: Scheduler;
    writer: Writer;
    directory: ProjectDirectory;
    resources: readonly ProjectResources[];
  }) {
    this.scheduler = deps.scheduler;
    this.writer = deps.writer;
    this.directory = deps.directory;
    this.resources = deps.resources;
    // One project at a time: two would take the disk twice as much.
    this.scheduler.register(REMOVE_PROJECT, {
      concurrency: 1,
      run: (job) => this.run(Number(job.key), job.dueAt),
    });
  }

  /** Enqueues the removal of a project in the unit of work that deletes it. */
  enqueue(tx: Tx, projectRef: number): void {
    this.scheduler.enqueue(tx, REMOVE_PROJECT, String(projectRef), tx.now, {});
  }

  /** Ends after the slice under way; the next start goes on. */
  stop(): void {
    this.stopping = true;
  }

  private async run(projectRef: number, dueAt: number): Promise<JobOutcome> {
    for (const kind of this.resources) {
      for (;;) {
        if (this.stopping) return { retryAt: dueAt, attempt: 0 };
        const startedAt = monotonicMs();
        const removed = await this.writer.submit((tx) => kind.removeRows(tx, projectRef, REMOVAL_SLICE_ROWS));
        if (removed < REMOVAL_SLICE_ROWS) break;
        await realDelay(PAUSE_FACTOR * (monotonicMs() - startedAt));
      }
    }
    return { record: (tx) => this.directory.remove(tx, projectRef) };
  }
}
