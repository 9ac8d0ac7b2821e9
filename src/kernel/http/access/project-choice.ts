import type { Caller, CallerProject } from "../../callers/caller.ts";
import { CallerOfKey } from "../../callers/caller-of-key.ts";
import { ApiError } from "../../errors.ts";

/** Selects the project of a request, by its id. */
export const PROJECT_HEADER = "x-ninefold-project";

/** The projects of accounts. */
export interface ProjectFinder {
  /** The account's project with this id; null when there is none or it is deleted. */
  find(accountRef: number, id: string): CallerProject | null;
}

/**
 * The project that a request names; null for the caller's own. Only keys of the account with the scope `*` reach other projects.
 * @throws ApiError `forbidden`, `not_found`
 */
export function chosenProject(
  request: Request,
  caller: Caller,
  projects: ProjectFinder,
): CallerProject | null {
  const id = request.headers.get(PROJECT_HEADER);
  if (id === null || id === caller.project.id) return null;
  if (caller.projectBound || !caller.scopes.has("*")) {
    throw new ApiError(
      "forbidden",
      "This key works only in its own project. Use a key of the account that has the scope *.",
    );
  }
  const project = projects.find(caller.account.ref, id);
  if (project === null) throw new ApiError("not_found", "There is no project with this id.");
  return project;
}

/** A key of the account in a project that the request names. */
export class CallerInProject extends CallerOfKey implements Caller {
  readonly projectBound = false;

  constructor(
    key: Caller,
    readonly project: CallerProject,
    private readonly projects: ProjectFinder,
  ) {
    super(key);
  }

  get credential() {
    return this.key.credential;
  }

  get projectDeleted() {
    return this.projects.find(this.key.account.ref, this.project.id) === null;
  }
}
