import type { CallerAccount, CallerProject } from "../../kernel/http/caller.ts";
import type { ProjectActivity } from "../../kernel/project-activity.ts";

/** The account that a key belongs to, live until it is passivated. */
export interface KeyAccount extends CallerAccount {
  readonly defaultProject: CallerProject;
  /** Set when it has left the memory: then it must be read again. */
  readonly passivated: boolean;
}

/** The accounts, as far as keys need them. */
export interface KeyAccounts {
  account(accountRef: number): KeyAccount;
}

/** The projects, as far as keys need them. */
export interface KeyProjects {
  /** The account's project with this id; null when there is none or it is deleted. */
  find(accountRef: number, id: string): CallerProject | null;
  /** Whether a project has been deleted. */
  isDeleted(projectRef: number): boolean;
  readonly activity: ProjectActivity;
}
