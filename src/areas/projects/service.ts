import { isoTime } from "../../kernel/date-time.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Caller, CallerProject } from "../../kernel/http/caller.ts";
import { decodeNumberCursor, pageOf } from "../../kernel/http/pagination.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { TierBound } from "../../kernel/tier-bounds.ts";
import type { Overviews, ProjectDeps, ProjectRemoval } from "./contents.ts";
import { freeSlug } from "./domain.ts";
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

/** The use cases of projects. */
export class ProjectService {
  constructor(
    private readonly deps: ProjectDeps,
    private readonly overviews: Overviews,
    private readonly removal: ProjectRemoval,
    private readonly bound: TierBound,
  ) {}

  /** Creates a project under the slug that its name gives. @throws ApiError `project_limit_exceeded` */
  create(tx: Tx, { account }: Caller, { name, description = null }: ProjectCreateBody): Project {
    const { directory } = this.deps;
    this.bound.assertRoom(account);
    const slug = freeSlug(name, (candidate) => directory.store.refOfSlug(account.ref, candidate) !== 0);
    const project = { account_ref: account.ref, name, slug, description, is_default: 0 };
    return projectView(directory.create(tx, project));
  }

  /** A page of the projects that the caller sees, newest first. @throws ApiError `validation_error` for a cursor of another list. */
  list(caller: Caller, limit: number, cursor: string | undefined): ProjectPage {
    const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeNumberCursor(cursor);
    const { items, ...next } = pageOf(this.rowsBefore(caller, before, limit + 1), limit, ({ ref }) => [ref]);
    return { projects: items.map(itemView), ...next };
  }

  /** @throws ApiError `not_found` */
  get(caller: Caller, id: string): Project {
    return projectView(this.visible(caller, id));
  }

  /** Changes what is given; with nothing given, nothing changes. @throws ApiError `not_found` */
  update(tx: Tx, caller: Caller, id: string, change: ProjectUpdateBody): Project {
    const row = this.visible(caller, id);
    if (change.name === undefined && change.description === undefined) return projectView(row);
    const { name = row.name, description = row.description } = change;
    const { directory } = this.deps;
    directory.store.update(tx, name, description, tx.now, row.ref);
    directory.activity.changed(tx, row.ref);
    this.overviews.drop(row.ref);
    return projectView({ ...row, name, description, updated_at: tx.now });
  }

  /**
   * Deletes a project: from now on nobody sees it or what is in it, and a job removes the rows. If it was the default
   * one, the oldest of the others takes its place.
   *
   * @throws ApiError `not_found`, `forbidden` when there is no other, or when a key of the account without the scope `*`
   *   would move all of the account's keys to another project.
   */
  delete(tx: Tx, caller: Caller, id: string): ProjectDeleted {
    const row = this.visible(caller, id);
    const { directory, accounts, resources } = this.deps;
    if (row.is_default !== 0 && !caller.projectBound && !caller.scopes.has("*")) {
      throw new ApiError(
        "forbidden",
        "Without this project all keys of the account would work in another one. That takes a key with the scope *.",
      );
    }
    const successor = row.is_default === 0 ? null : this.successorOf(row);
    directory.markDeleted(tx, row.ref);
    if (successor !== null) {
      directory.store.makeDefault(tx, successor.ref);
      accounts.setDefaultProject(tx, row.account_ref, successor);
      this.overviews.drop(successor.ref);
    }
    for (const kind of resources) kind.projectDeleted?.(tx, row.ref);
    this.overviews.drop(row.ref);
    this.removal.enqueue(tx, row.ref);
    return { success: true, deleted_at: isoTime(tx.now) };
  }

  /** What is in a project, at most five minutes old. @throws ApiError `not_found` */
  overview(caller: Caller, id: string): ProjectOverview {
    return this.overviews.of(this.visible(caller, id));
  }

  private successorOf(row: ProjectRow): CallerProject {
    const successor = this.deps.directory.store.oldestBeside(row.account_ref, row.ref);
    if (successor !== null) return successor;
    throw new ApiError(
      "forbidden",
      "This is the default project and there is no other that could take its place. Create another one first.",
    );
  }

  /** The project of an id, if the caller may see it: a key of one project sees only that one. */
  private visible(caller: Caller, id: string): ProjectRow {
    const row = this.deps.directory.store.find(caller.account.ref, id);
    if (row !== null && (!caller.projectBound || row.ref === caller.project.ref)) return row;
    throw new ApiError("not_found", "There is no project with this id.");
  }

  private rowsBefore(caller: Caller, before: number, limit: number): readonly ProjectRow[] {
    const { store } = this.deps.directory;
    if (!caller.projectBound) return store.listBefore(caller.account.ref, before, limit);
    const own = store.find(caller.account.ref, caller.project.id);
    return own !== null && own.ref < before ? [own] : [];
  }
}

function itemView({ id, name, slug, description, created_at }: ProjectRow): ProjectItem {
  return { id, name, slug, description, created_at: isoTime(created_at) };
}

function projectView(row: ProjectRow): Project {
  return { ...itemView(row), updated_at: isoTime(row.updated_at) };
}
