/** The known name that is most similar to an unknown one; null if none is similar. Only for names of limited length. */
export function nearestName(name: string, names: readonly string[]): string | null {
  const near = names
    .map((known) => ({ known, distance: editDistance(name, known) }))
    .filter(({ known, distance }) => distance <= Math.max(1, Math.floor(known.length / 3)))
    .toSorted((a, b) => a.distance - b.distance)[0];
  return near?.known ?? null;
}

/**
 * Letters to change, insert, delete or swap with their neighbour (Damerau, optimal string alignment). Its time grows with
 * the product of both lengths.
 */
export function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  const at = (row: number, column: number): number => rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j += 1) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      const ways = [at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + cost];
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) ways.push(at(i - 2, j - 2) + 1);
      row.push(Math.min(...ways));
    }
  }
  return at(a.length, b.length);
}
