import type { Tx } from "./storage/tx.ts";

/**
 * Told of changes in projects, for `usage.last_activity`. Requests that change their caller's own project are
 * told by the kernel; whatever changes a project otherwise (a background job, a public endpoint, a request that
 * names another project) tells it itself.
 */
export interface ProjectActivity {
  /** Something in the project has changed in this unit of work. Costs no write of its own. */
  changed(tx: Tx, projectRef: number): void;
}
