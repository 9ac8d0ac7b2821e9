import type { CallerProject } from "../../kernel/http/caller.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { ProjectStore } from "./store.ts";

/** Characters of a project id after `proj_`. */
const PROJECT_ID_LENGTH = 20;

/** What projects offer to the rest of the house. */
export interface ProjectsArea {
  /** Makes the default project of a new account. */
  createDefault(tx: Tx, accountRef: number): CallerProject;
  /** The default project of an account. */
  defaultOf(accountRef: number): CallerProject;
}

/** Builds the area: every account works in a project, the default one unless its key says otherwise. */
export function createProjects(deps: { db: Database; ids: Ids }): ProjectsArea {
  const store = new ProjectStore(deps.db);
  let nextRef = store.highestRef() + 1;
  return {
    createDefault(tx, accountRef) {
      const project = { ref: nextRef++, id: `proj_${deps.ids.base62(PROJECT_ID_LENGTH)}` };
      store.insert(tx, {
        ...project,
        accountRef,
        name: "Default",
        slug: "default",
        description: null,
        isDefault: true,
      });
      return project;
    },
    defaultOf(accountRef) {
      const project = store.defaultOf(accountRef);
      if (project === null) throw new Error(`account ${accountRef} has no default project`);
      return project;
    },
  };
}
