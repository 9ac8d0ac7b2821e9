/** The accounts that own projects. */
export interface ProjectOwners {
  /** The reference of a project's account; null once the project has been removed. */
  accountOf(projectRef: number): number | null;
}
