import type { Tx } from "./storage/tx.ts";

/**
 * What an area keeps in a project, as far as the project itself must know of it. Each area offers one of these
 * for every kind of resource that it has; projects count them and, when a project is deleted, remove them.
 */
export interface ProjectResources {
  /** The name under `resources` in the overview. */
  readonly name: "flags" | "monitors" | "relays" | "buckets" | "keys" | "locks" | "chains" | "meters";
  /** How many there are now. `defaultOf`: the account whose default project it is, or null for any other project. */
  count(projectRef: number, defaultOf: number | null): number;
  /** Runs in the unit of work that marks the project as deleted: whatever is active stops with it. */
  projectDeleted?(tx: Tx, projectRef: number): void;
  /**
   * Removes at most `rowsMax` rows of a deleted project. Returns how many it removed: fewer than `rowsMax` when
   * nothing is left.
   */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number;
}
