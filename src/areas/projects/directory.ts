import type { CallerProject } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { Activity } from "./activity.ts";
import { PROJECT_ID_LENGTH } from "./domain.ts";
import { type ProjectRow, projectStore } from "./store.ts";

/**
 * Removed projects that are remembered: a request that began before the deletion may still hold one. So many are not
 * removed while one request runs.
 */
export const REMOVED_REMEMBERED_MAX = 100_000;

/** What a new project is made of. */
type NewProject = Omit<ProjectRow, "ref" | "id" | "created_at" | "updated_at">;

/** The projects, for every other area to ask. */
export type ProjectDirectory = ReturnType<typeof openProjectDirectory>;

/** Opens the directory of projects, for every other area to ask. */
export function openProjectDirectory(kernel: Pick<Kernel, "db" | "ids" | "writer">) {
  const store = projectStore(kernel.db);
  /** Deleted projects, those already removed included. */
  const deleted = new Set(store.deleted().map(({ ref }) => ref));
  const removed: number[] = [];
  let nextRef = store.highestRef() + 1;
  const create = (tx: Tx, project: NewProject): ProjectRow => {
    const made = { ref: nextRef++, id: `proj_${kernel.ids.base62(PROJECT_ID_LENGTH)}` };
    const row = { ...made, ...project, created_at: tx.now, updated_at: tx.now };
    store.insert(tx, row);
    return row;
  };
  return {
    store,
    activity: new Activity(store, kernel.writer),
    /** Makes a project. */
    create,
    /** Makes the default project of a new account. */
    createDefault: (tx: Tx, accountRef: number): CallerProject => {
      const texts = { name: "Default", slug: "default", description: null };
      const { ref, id } = create(tx, { account_ref: accountRef, ...texts, is_default: 1 });
      return { ref, id };
    },
    /** The default project of an account. */
    defaultOf: (accountRef: number): CallerProject => {
      const project = store.defaultOf(accountRef);
      if (project === null) throw new Error(`account ${accountRef} has no default project`);
      return project;
    },
    /** The account's project with this id; null when there is none or it is deleted. */
    find: (accountRef: number, id: string): CallerProject | null => store.find(accountRef, id),
    /** The account of a project; null when it has been removed. */
    accountOf: (ref: number): number | null => store.accountOf(ref)?.account_ref ?? null,
    /** Whether a project has been deleted: true from the unit of work that deletes it on. */
    isDeleted: (ref: number): boolean => deleted.has(ref),
    /** Marks a project as deleted. */
    markDeleted: (tx: Tx, ref: number): void => {
      store.markDeleted(tx, tx.now, ref);
      deleted.add(ref);
      tx.onRollback(() => deleted.delete(ref));
    },
    /** Removes the row of a deleted project, when nothing else of it is left. */
    remove: (tx: Tx, ref: number): void => {
      store.remove(tx, ref);
      store.noteRemoved(tx, ref);
      tx.afterCommit(() => {
        removed.push(ref);
        if (removed.length <= REMOVED_REMEMBERED_MAX) return;
        for (const old of removed.splice(0, REMOVED_REMEMBERED_MAX / 2)) deleted.delete(old);
      });
    },
  };
}
