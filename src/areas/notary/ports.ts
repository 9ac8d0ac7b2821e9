/** Whose projects they are. */
export interface ProjectOwners {
  /** Reference of a project's account; null once the project has been removed. */
  accountOf(projectRef: number): number | null;
}
