import type { Tx } from "../storage/tx.ts";
import type { COUNTED_MAX } from "./overview-card.ts";

/** What an area keeps in projects: it goes with a deleted project. */
export interface ProjectContents {
  /** Runs in the unit of work that deletes the project: stops what is active in it. */
  projectDeleted?(tx: Tx, projectRef: number): void;
  /**
   * Removes at most `rowsMax` rows of a deleted project. Returns how many it removed: fewer than `rowsMax` when
   * nothing is left.
   */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number;
}

/** A kind of resource that an area keeps in projects, and that an overview counts. */
export interface ProjectResources extends ProjectContents {
  /** Its name under `resources` in the overview. */
  readonly name: string;
  /** How many there are now, counted up to {@link COUNTED_MAX}: read within a few milliseconds, whatever is stored. `defaultOf`: the account whose default project it is; null for any other project. */
  count(projectRef: number, defaultOf: number | null): number;
}

/**
 * Removes at most `rowsMax` rows that a deleted account has outside of its projects. Returns how many it removed: fewer
 * than `rowsMax` when nothing is left.
 */
export type RemoveAccountRows = (tx: Tx, accountRef: number, rowsMax: number) => number;
