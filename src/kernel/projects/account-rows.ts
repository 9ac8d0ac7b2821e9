import type { Tx } from "../storage/tx.ts";

/**
 * Removes at most `rowsMax` rows that a deleted account has outside of its projects. Returns how many it removed: fewer
 * than `rowsMax` when nothing is left.
 */
export type RemoveAccountRows = (tx: Tx, accountRef: number, rowsMax: number) => number;
