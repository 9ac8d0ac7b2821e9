import type { Tx } from "../storage/tx.ts";

/**
 * Notes changes in projects, for `usage.last_activity`. The kernel notes requests that change their caller's own
 * project; anything else that changes one (a background job, a public endpoint, a request that names another project)
 * notes it itself.
 */
export interface ProjectActivity {
  /** Something in the project has changed in this unit of work. Costs no write of its own. */
  changed(tx: Tx, projectRef: number): void;
}
