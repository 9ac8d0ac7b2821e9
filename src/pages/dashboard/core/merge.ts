/**
 * The rows that a reader sees, with their new content, while new rows are held back: rows that were deleted are gone,
 * those that new rows pushed off the page stay. Rows are the same if their keys are.
 */
export function mergedRows<T>(
  shown: readonly T[],
  fresh: readonly T[],
  hasMore: boolean,
  keyOf: (row: T) => string,
): { rows: T[]; held: number } {
  const current = new Map(fresh.map((row) => [keyOf(row), row]));
  const lastKnown = shown.findLastIndex((row) => current.has(keyOf(row)));
  const rows = shown.flatMap(
    (row, at) => current.get(keyOf(row)) ?? (hasMore && at > lastKnown ? [row] : []),
  );
  const known = new Set(shown.map(keyOf));
  return { rows, held: fresh.filter((row) => !known.has(keyOf(row))).length };
}
