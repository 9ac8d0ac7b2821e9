import type { CallerProject } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { Activity } from "./activity.ts";
import { PROJECT_ID_LENGTH } from "./domain.ts";
import { ProjectStore } from "./store.ts";

/**
 * Removed projects that are remembered: a request that began before the deletion may still hold one. So many are not
 * removed while one request runs.
 */
export const REMOVED_REMEMBERED_MAX = 100_000;

/** What a new project is made of. */
export interface NewProject {
  readonly accountRef: number;
  readonly name: string;
  readonly slug: string;
  readonly description: string | null;
  readonly isDefault: boolean;
}

/** The projects, for every other area to ask. */
export class ProjectDirectory {
  readonly store: ProjectStore;
  readonly activity: Activity;
  /** Deleted projects, those already removed included. */
  private readonly deleted: Set<number>;
  private readonly removed: number[] = [];
  private nextRef: number;

  constructor(private readonly kernel: Pick<Kernel, "db" | "ids" | "writer">) {
    this.store = new ProjectStore(kernel.db);
    this.activity = new Activity(this.store, kernel.writer);
    this.deleted = new Set(this.store.deletedRefs());
    this.nextRef = this.store.highestRef() + 1;
  }

  /** Makes a project. */
  create(tx: Tx, { accountRef, isDefault, ...texts }: NewProject): CallerProject {
    const made = { ref: this.nextRef++, id: `proj_${this.kernel.ids.base62(PROJECT_ID_LENGTH)}` };
    const state = { is_default: isDefault ? 1 : 0, created_at: tx.now, updated_at: tx.now };
    this.store.insert(tx, { ...made, account_ref: accountRef, ...texts, ...state });
    return made;
  }

  /** Makes the default project of a new account. */
  createDefault(tx: Tx, accountRef: number): CallerProject {
    const texts = { name: "Default", slug: "default", description: null };
    return this.create(tx, { accountRef, ...texts, isDefault: true });
  }

  /** The default project of an account. */
  defaultOf(accountRef: number): CallerProject {
    const project = this.store.defaultOf(accountRef);
    if (project === null) throw new Error(`account ${accountRef} has no default project`);
    return project;
  }

  /** The account's project with this id; null when there is none or it is deleted. */
  find(accountRef: number, id: string): CallerProject | null {
    return this.store.find(accountRef, id);
  }

  /** The account of a project; null when it has been removed. */
  accountOf(ref: number): number | null {
    return this.store.accountOf(ref);
  }

  /** Whether a project has been deleted: true from the unit of work that deletes it on. */
  isDeleted(ref: number): boolean {
    return this.deleted.has(ref);
  }

  /** Marks a project as deleted. */
  markDeleted(tx: Tx, ref: number): void {
    this.store.markDeleted(tx, ref);
    this.deleted.add(ref);
    tx.onRollback(() => this.deleted.delete(ref));
  }

  /** Removes the row of a deleted project, when nothing else of it is left. */
  remove(tx: Tx, ref: number): void {
    this.store.remove(tx, ref);
    tx.afterCommit(() => {
      this.removed.push(ref);
      if (this.removed.length <= REMOVED_REMEMBERED_MAX) return;
      for (const old of this.removed.splice(0, REMOVED_REMEMBERED_MAX / 2)) this.deleted.delete(old);
    });
  }
}
