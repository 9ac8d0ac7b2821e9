import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import { changed } from "../../kernel/audit/change.ts";
import type { AuditTrail } from "../../kernel/audit/trail.ts";
import { removeInSlices } from "../../kernel/background/removal.ts";
import type { Caller, CallerProject } from "../../kernel/callers/caller.ts";
import { ApiError, invalidField } from "../../kernel/errors.ts";
import { pageOf, pageStart } from "../../kernel/http/requests/pagination.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { TierLimit } from "../../kernel/limits/tier-limits.ts";
import type { ProjectContents, ProjectResources } from "../../kernel/projects/resources.ts";
import { isTimeZone } from "../../kernel/scheduler/calendar.ts";
import type { JobOutcome } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { UTC } from "../../kernel/time/zone.ts";
import type { ProjectDirectory } from "./directory.ts";
import { availableSlug } from "./domain.ts";
import type {
  Project,
  ProjectCreateBody,
  ProjectDeleted,
  ProjectItem,
  ProjectOverview,
  ProjectPage,
  ProjectUpdateBody,
} from "./schema.ts";
import type { ProjectRow } from "./store.ts";

/** How long an overview is cached. */
export const OVERVIEW_TTL_MS = 5 * 60 * 1000;
/** Cached overviews, under a kilobyte each. */
export const OVERVIEWS_IN_MEMORY_MAX = 10_000;
/** The job that removes the contents of a deleted project. */
const REMOVE_PROJECT = "projects.remove";
/** Projects of a deleted account that one unit of work deletes: a fraction of a millisecond each at most. */
const PROJECTS_DELETED_TOGETHER = 20;
/** Rows removed in one unit of work: one or two milliseconds of the writer's time. */
export const REMOVAL_SLICE_ROWS = 100;

export interface ProjectDeps extends Pick<Kernel, "clock" | "scheduler" | "writer"> {
  readonly directory: ProjectDirectory;
  /** The resources that overviews count, in this order. */
  readonly resources: readonly ProjectResources[];
  /** What is removed with a project, in this order: the resources are among it. */
  readonly contents: readonly ProjectContents[];
  readonly accounts: ProjectAccounts;
  readonly trail: AuditTrail;
}

/** What projects need of the accounts. */
export interface ProjectAccounts {
  /** An account's credit balance. */
  balance(accountRef: number): number;
  /** Changes the default project of an account. */
  setDefaultProject(tx: Tx, accountRef: number, project: CallerProject): void;
}

interface CachedOverview extends Actor {
  readonly view: ProjectOverview;
  readonly countedAt: number;
}

/** Counts the resources in projects and caches the result for five minutes. */
export class Overviews {
  private readonly cached = new ActorRegistry<number, CachedOverview>(OVERVIEWS_IN_MEMORY_MAX);

  constructor(private readonly deps: Omit<ProjectDeps, "contents">) {}

  /** The overview of a project, at most five minutes old. */
  of(project: ProjectRow): ProjectOverview {
    const now = this.deps.clock.now();
    const known = this.cached.peek(project.ref);
    // If the clock was set back, the age is unknown: count again.
    if (known !== undefined && known.countedAt <= now && now < known.countedAt + OVERVIEW_TTL_MS) {
      return known.view;
    }
    const view = this.count(project);
    this.cached.drop(project.ref);
    this.cached.insert(project.ref, { idle: true, recent: false, view, countedAt: now });
    return view;
  }

  /** Discards the overview of a project that has changed. */
  drop(projectRef: number): void {
    this.cached.drop(projectRef);
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
        last_activity: isoTimeOrNull(directory.activity.lastActivityOf(ref)),
      },
    };
  }
}

/** Removes the contents of deleted projects. The job is durable and continues after a restart. */
export class ProjectRemoval {
  private stopping = false;

  constructor(
    private readonly deps: ProjectDeps,
    private readonly overviews: Overviews,
  ) {
    // One project at a time, to limit the load on the disk.
    deps.scheduler.register(REMOVE_PROJECT, {
      concurrency: 1,
      run: (job) => this.run(Number(job.key), job.dueAt),
    });
  }

  /** Enqueues the removal of a project in the unit of work that deletes it. */
  enqueue(tx: Tx, projectRef: number): void {
    this.deps.scheduler.enqueue(tx, REMOVE_PROJECT, String(projectRef), tx.now, {});
  }

  /** Stops after the current slice; the next start continues. */
  stop(): void {
    this.stopping = true;
  }

  /** Deletes at most `projectsMax` projects of a deleted account, the default one included. Returns how many. */
  deleteSomeOf(tx: Tx, accountRef: number, projectsMax: number): number {
    const { directory, contents } = this.deps;
    const living = directory.store.livingOfAccount(accountRef, projectsMax);
    for (const { ref } of living) {
      directory.markDeleted(tx, ref);
      for (const kind of contents) kind.projectDeleted?.(tx, ref);
      this.overviews.drop(ref);
    }
    return living.length;
  }

  /**
   * Removes the contents of all projects of a deleted account, and in the last pass the projects. False if the process
   * stops before it is done.
   */
  async removeAllOf(accountRef: number, isLastPass: boolean): Promise<boolean> {
    const { writer, directory } = this.deps;
    const deleteSome = (tx: Tx) =>
      this.deleteSomeOf(tx, accountRef, PROJECTS_DELETED_TOGETHER) === PROJECTS_DELETED_TOGETHER;
    const isStopping = (): boolean => this.stopping;
    if (!(await removeInSlices(() => writer.submit(deleteSome), isStopping))) return false;
    for (let ref = 0; ; ) {
      ref = directory.store.nextOfAccount(accountRef, ref);
      if (ref === 0) return true;
      const projectRef = ref;
      if (!(await this.removeContents(projectRef))) return false;
      if (isLastPass) await writer.submit((tx) => directory.remove(tx, projectRef));
    }
  }

  private recordRemoval(tx: Tx, projectRef: number): void {
    const { directory, trail } = this.deps;
    const row = directory.store.withRef(projectRef);
    directory.remove(tx, projectRef);
    if (row === null) return;
    const change = { ...aboutProject(row, "removed with everything in it"), before: null, after: null };
    trail.recordSystem(tx, "projects.purge", row.account_ref, change);
  }

  private async run(projectRef: number, dueAt: number): Promise<JobOutcome> {
    const done = await this.removeContents(projectRef);
    return done ? { record: (tx) => this.recordRemoval(tx, projectRef) } : { retryAt: dueAt, attempt: 0 };
  }

  /** False if the process stops before everything is removed. */
  private async removeContents(projectRef: number): Promise<boolean> {
    const { writer, contents } = this.deps;
    for (const kind of contents) {
      const slice = (tx: Tx) => kind.removeRows(tx, projectRef, REMOVAL_SLICE_ROWS) === REMOVAL_SLICE_ROWS;
      const done = await removeInSlices(
        () => writer.submit(slice),
        () => this.stopping,
      );
      if (!done) return false;
    }
    return true;
  }
}

/** Common fields of the audit entries of a project. */
function aboutProject({ id, name }: Pick<ProjectRow, "id" | "name">, what: string) {
  return { summary: `Project ${name} ${what}`, target: { type: "project", id }, projectId: id };
}

/** What an update can change. */
function settingsOf({
  name,
  description,
  time_zone,
  review,
}: Pick<ProjectRow, "name" | "description" | "time_zone" | "review">) {
  return { name, description, time_zone, review: review !== 0 };
}

/** @throws ApiError `validation_error` */
function assertTimeZone(name: string): void {
  if (!isTimeZone(name))
    throw invalidField("time_zone", 'must be the IANA name of a time zone, such as "Europe/Berlin"');
}

/** The use cases of projects. */
export class ProjectService {
  constructor(
    private readonly deps: ProjectDeps,
    private readonly overviews: Overviews,
    private readonly removal: ProjectRemoval,
    private readonly limit: TierLimit,
  ) {}

  /** Creates a project with a slug derived from its name. @throws ApiError `project_limit_exceeded` */
  create(tx: Tx, { account }: Caller, body: ProjectCreateBody): Project {
    const { name, description = null, time_zone = UTC } = body;
    const { directory } = this.deps;
    assertTimeZone(time_zone);
    this.limit.assertCapacity(account);
    const slug = availableSlug(name, (candidate) => directory.store.refOfSlug(account.ref, candidate) !== 0);
    const texts = { name, slug, description, time_zone };
    const project = { account_ref: account.ref, ...texts, is_default: 0, review: 0 };
    const row = directory.create(tx, project);
    tx.audit({ ...aboutProject(row, "created"), before: null, after: texts });
    return projectView(row);
  }

  /** A page of the projects that the caller can see, newest first. @throws ApiError `validation_error` for a cursor of another list. */
  list(caller: Caller, limit: number, cursor: string | undefined): ProjectPage {
    const before = pageStart(cursor);
    const { items, ...next } = pageOf(this.rowsBefore(caller, before, limit + 1), limit, ({ ref }) => [ref]);
    return { projects: items.map(itemView), ...next };
  }

  /** @throws ApiError `not_found` */
  get(caller: Caller, id: string): Project {
    return projectView(this.visible(caller, id));
  }

  /** Updates the given fields; without any, the project is unchanged. @throws ApiError `not_found` */
  update(tx: Tx, caller: Caller, id: string, change: ProjectUpdateBody): Project {
    const row = this.visible(caller, id);
    const { name = row.name, description = row.description, time_zone = row.time_zone } = change;
    assertTimeZone(time_zone);
    const review = Number(change.review ?? row.review !== 0);
    if (review < row.review && !caller.scopes.has("*"))
      throw new ApiError(
        "forbidden",
        "Switching the review of flags off requires a key with the scope *, or an owner or admin of the account.",
      );
    const before = settingsOf(row);
    const after = settingsOf({ name, description, time_zone, review });
    tx.audit(changed({ ...aboutProject(row, "changed"), before, after }));
    const { name: newName, description: newText, time_zone: newZone } = change;
    const isGiven = newName !== undefined || newText !== undefined || newZone !== undefined;
    if (!isGiven && review === row.review) return projectView(row);
    const { directory } = this.deps;
    const updated = { ...row, name, description, time_zone, review, updated_at: tx.now };
    directory.store.update(tx, updated);
    directory.activity.changed(tx, row.ref);
    this.overviews.drop(row.ref);
    return projectView(updated);
  }

  /**
   * Deletes a project: from now on it and its contents are not found, and a job removes the rows. If it was the default
   * project, the oldest of the others becomes the default.
   *
   * @throws ApiError `not_found`, `forbidden` when the default project is the only one, or when a key of the account
   *   without the scope `*` would move all of the account's keys to another project.
   */
  delete(tx: Tx, caller: Caller, id: string): ProjectDeleted {
    const row = this.visible(caller, id);
    const { directory, accounts, contents } = this.deps;
    if (row.is_default !== 0 && caller.person?.isOfAccount === false) {
      throw new ApiError(
        "forbidden",
        "This is the default project. Deleting it moves all keys of the account to another project, which requires a role for the account.",
      );
    }
    if (row.is_default !== 0 && !caller.projectBound && !caller.scopes.has("*")) {
      throw new ApiError(
        "forbidden",
        "This is the default project. Deleting it moves all keys of the account to another project, which requires a key with the scope *.",
      );
    }
    const successor = row.is_default === 0 ? null : this.successorOf(row);
    const { name, slug, description, time_zone } = row;
    const before = { name, slug, description, time_zone };
    tx.audit({ ...aboutProject(row, "deleted"), before, after: null });
    directory.markDeleted(tx, row.ref);
    if (successor !== null) {
      directory.store.makeDefault(tx, successor.ref);
      accounts.setDefaultProject(tx, row.account_ref, successor);
      this.overviews.drop(successor.ref);
    }
    for (const kind of contents) kind.projectDeleted?.(tx, row.ref);
    this.overviews.drop(row.ref);
    this.removal.enqueue(tx, row.ref);
    return { success: true, deleted_at: isoTime(tx.now) };
  }

  /** The number of resources in a project, at most five minutes old. @throws ApiError `not_found` */
  overview(caller: Caller, id: string): ProjectOverview {
    return this.overviews.of(this.visible(caller, id));
  }

  private successorOf(row: ProjectRow): CallerProject {
    const successor = this.deps.directory.store.oldestExcept(row.account_ref, row.ref);
    if (successor !== null) return successor;
    throw new ApiError(
      "forbidden",
      "This is the default project, and the account has no other. Create another project first.",
    );
  }

  /** The project with an id, if the caller can see it: a key of one project can see only that one. */
  private visible(caller: Caller, id: string): ProjectRow {
    const row = this.deps.directory.store.find(caller.account.ref, id);
    const isVisible = !caller.projectBound || row?.ref === caller.project.ref;
    if (row !== null && isVisible) return row;
    throw new ApiError("not_found", "There is no project with this id.");
  }

  private rowsBefore(caller: Caller, before: number, limit: number): readonly ProjectRow[] {
    const { store } = this.deps.directory;
    const roles = caller.person?.projects ?? null;
    if (roles !== null) {
      const refs = [...roles.keys()].filter((ref) => ref < before).sort((a, b) => b - a);
      return refs.flatMap((ref) => store.livingWithRef(ref) ?? []).slice(0, limit);
    }
    if (!caller.projectBound) return store.listBefore(caller.account.ref, before, limit);
    const project = store.find(caller.account.ref, caller.project.id);
    return project !== null && project.ref < before ? [project] : [];
  }
}

function itemView({ id, name, slug, description, time_zone, review, created_at }: ProjectRow): ProjectItem {
  return {
    id,
    name,
    slug,
    description,
    time_zone,
    review: review !== 0,
    created_at: isoTime(created_at),
  };
}

function projectView(row: ProjectRow): Project {
  return { ...itemView(row), updated_at: isoTime(row.updated_at) };
}
