import { isoTime } from "../../kernel/date-time.ts";
import type { Caller, CallerAccount, CallerProject } from "../../kernel/http/caller.ts";
import { decodeNumberCursor, pageOf } from "../../kernel/http/pagination.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { TierBound } from "../../kernel/tier-bounds.ts";
import type { Overviews, ProjectRemoval } from "./contents.ts";
import type { ProjectDirectory } from "./directory.ts";
import { freeSlug, movesKeys, noSuchProject, onlyProject } from "./domain.ts";
import type { ProjectAccounts } from "./ports.ts";
import type {
  Project,
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
    private readonly deps: {
      readonly directory: ProjectDirectory;
      readonly accounts: ProjectAccounts;
      readonly resources: readonly ProjectResources[];
      readonly overviews: Overviews;
      readonly removal: ProjectRemoval;
      readonly bound: TierBound;
    },
  ) {}

  /** Creates a project under the slug that its name gives. @throws ApiError `project_limit_exceeded` */
  create(tx: Tx, account: CallerAccount, name: string, description: string | null): Project {
    const { directory, bound } = this.deps;
    const { store } = directory;
    const accountRef = account.ref;
    bound.assertRoom(account);
    const slug = freeSlug(name, (candidate) => store.isSlugTaken(accountRef, candidate));
    const { id } = directory.create(tx, { accountRef, name, slug, description, isDefault: false });
    const now = isoTime(tx.now);
    return { id, name, slug, description, created_at: now, updated_at: now };
  }

  /** A page of the projects that the caller sees, newest first. @throws ApiError `validation_error` for a cursor of another list. */
  list(caller: Caller, limit: number, cursor: string | undefined): ProjectPage {
    const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeNumberCursor(cursor);
    const page = pageOf(this.rowsBefore(caller, before, limit + 1), limit, ({ ref }) => [ref]);
    const projects = page.items.map(itemView);
    return page.cursor === undefined ? { projects } : { projects, cursor: page.cursor };
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
    const { directory, overviews } = this.deps;
    directory.store.update(tx, row.ref, name, description);
    directory.activity.changed(tx, row.ref);
    overviews.drop(row.ref);
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
    const { directory, accounts, resources, overviews, removal } = this.deps;
    if (row.is_default !== 0 && !caller.projectBound && !caller.scopes.has("*")) throw movesKeys();
    const successor = row.is_default === 0 ? null : this.successorOf(row);
    directory.markDeleted(tx, row.ref);
    if (successor !== null) {
      directory.store.makeDefault(tx, successor.ref);
      accounts.setDefaultProject(tx, row.account_ref, successor);
      overviews.drop(successor.ref);
    }
    for (const kind of resources) kind.projectDeleted?.(tx, row.ref);
    overviews.drop(row.ref);
    removal.enqueue(tx, row.ref);
    return { success: true, deleted_at: isoTime(tx.now) };
  }

  /** What is in a project, at most five minutes old. @throws ApiError `not_found` */
  overview(caller: Caller, id: string): ProjectOverview {
    return this.deps.overviews.of(this.visible(caller, id));
  }

  private successorOf(row: ProjectRow): CallerProject {
    const successor = this.deps.directory.store.oldestBeside(row.account_ref, row.ref);
    if (successor === null) throw onlyProject();
    return successor;
  }

  /** The project of an id, if the caller may see it: a key of one project sees only that one. */
  private visible(caller: Caller, id: string): ProjectRow {
    const row = this.deps.directory.store.find(caller.account.ref, id);
    if (row === null || (caller.projectBound && row.ref !== caller.project.ref)) throw noSuchProject();
    return row;
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
