import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import { isoTimeOrNull } from "../../kernel/date-time.ts";
import type { CallerProject } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import { removeInSlices } from "../../kernel/removal.ts";
import type { JobOutcome } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { ProjectDirectory } from "./directory.ts";
import type { ProjectOverview } from "./schema.ts";
import type { ProjectRow } from "./store.ts";

/** How long an overview is answered from memory. */
export const OVERVIEW_KEPT_MS = 5 * 60 * 1000;
/** Overviews kept in memory, under a kilobyte each. */
export const OVERVIEWS_IN_MEMORY_MAX = 10_000;
/** The job that removes what was in a deleted project. */
const REMOVE_PROJECT = "projects.remove";
/** Rows removed in one unit of work: one or two milliseconds of the writer's time. */
export const REMOVAL_SLICE_ROWS = 100;

/** What projects are built on. */
export interface ProjectDeps extends Pick<Kernel, "clock" | "scheduler" | "writer"> {
  readonly directory: ProjectDirectory;
  /** What the other areas keep in projects. */
  readonly resources: readonly ProjectResources[];
  readonly accounts: ProjectAccounts;
}

/** The accounts, as far as projects need them. */
export interface ProjectAccounts {
  /** An account's credit balance. */
  balance(accountRef: number): number;
  /** Another project is the default one now. */
  setDefaultProject(tx: Tx, accountRef: number, project: CallerProject): void;
}

interface KeptOverview extends Actor {
  readonly view: ProjectOverview;
  readonly countedAt: number;
}

/** Counts what is in projects, and remembers it for five minutes. */
export class Overviews {
  private readonly kept = new ActorRegistry<number, KeptOverview>(OVERVIEWS_IN_MEMORY_MAX);

  constructor(private readonly deps: ProjectDeps) {}

  /** The overview of a project, at most five minutes old. */
  of(project: ProjectRow): ProjectOverview {
    const now = this.deps.clock.now();
    const known = this.kept.peek(project.ref);
    // A clock that was set back makes an overview look younger than it is: then it is counted again.
    if (known !== undefined && known.countedAt <= now && now < known.countedAt + OVERVIEW_KEPT_MS) {
      return known.view;
    }
    const view = this.count(project);
    this.kept.drop(project.ref);
    this.kept.insert(project.ref, { idle: true, recent: false, view, countedAt: now });
    return view;
  }

  /** Forgets the overview of a project that has itself changed. */
  drop(projectRef: number): void {
    this.kept.drop(projectRef);
  }

  private count({ ref, id, name, account_ref, is_default }: ProjectRow): ProjectOverview {
    const { resources, accounts, directory } = this.deps;
    const defaultOf = is_default === 0 ? null : account_ref;
    return {
      project_id: id,
      project_name: name,
      resources: Object.fromEntries(resources.map((kind) => [kind.name, kind.count(ref, defaultOf)])),
      usage: {
        meter_balance: accounts.balance(account_ref),
        last_activity: isoTimeOrNull(directory.activity.lastOf(ref)),
      },
    };
  }
}

/** Removes what was in deleted projects. The job is durable: a restart goes on where it stopped. */
export class ProjectRemoval {
  private stopping = false;

  constructor(private readonly deps: ProjectDeps) {
    // One project at a time: two would take twice as much of the disk.
    deps.scheduler.register(REMOVE_PROJECT, {
      concurrency: 1,
      run: (job) => this.run(Number(job.key), job.dueAt),
    });
  }

  /** Enqueues the removal of a project in the unit of work that deletes it. */
  enqueue(tx: Tx, projectRef: number): void {
    this.deps.scheduler.enqueue(tx, REMOVE_PROJECT, String(projectRef), tx.now, {});
  }

  /** Ends after the slice under way; the next start goes on. */
  stop(): void {
    this.stopping = true;
  }

  private async run(projectRef: number, dueAt: number): Promise<JobOutcome> {
    const { writer, directory, resources } = this.deps;
    for (const kind of resources) {
      const slice = (tx: Tx) => kind.removeRows(tx, projectRef, REMOVAL_SLICE_ROWS) === REMOVAL_SLICE_ROWS;
      const done = await removeInSlices(
        () => writer.submit(slice),
        () => this.stopping,
      );
      if (!done) return { retryAt: dueAt, attempt: 0 };
    }
    return { record: (tx) => directory.remove(tx, projectRef) };
  }
}
