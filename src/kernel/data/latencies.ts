/**
 * How many latencies were about so long, as text: pairs of a class and a count, such as `47:12 48:3`. A class ends a tenth above
 * the one before it. Texts one after another, with a blank between them, are their sum, which SQL makes by `group_concat`.
 */
export type Latencies = string;

/** The end of a class over that of the class before it. */
const GROWTH = 1.1;
/** Half a class: what is read off the middle of a class is so much too high or too low at most, 5 %. */
const HALF = Math.sqrt(GROWTH);

/** No latency at all. */
export const NO_LATENCIES: Latencies = "";

/** Latencies in milliseconds. */
export function latenciesOf(durations: readonly number[]): Latencies {
  const counts = new Map<number, number>();
  for (const ms of durations) add(counts, classOf(ms), 1);
  return textOf(counts);
}

/** Those of two periods together. */
export function sumOfLatencies(some: Latencies, others: Latencies): Latencies {
  if (some === NO_LATENCIES || others === NO_LATENCIES) return some + others;
  const counts = countsOf(some);
  for (const [index, count] of countsOf(others)) add(counts, index, count);
  return textOf(counts);
}

/**
 * What a share of the latencies is not above, in milliseconds, for each of some shares from 0 to 1 in ascending order; 5 % too high
 * or too low at most. Null without a latency.
 */
export function percentilesOf(latencies: Latencies, shares: readonly number[]): (number | null)[] {
  const counts = [...countsOf(latencies)].sort(([left], [right]) => left - right);
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  return shares.map((share) => {
    let below = 0;
    const found = counts.find(([, count]) => {
      below += count;
      return below >= share * total;
    });
    return found === undefined ? null : middleOf(found[0]);
  });
}

function classOf(ms: number): number {
  return ms <= 1 ? 0 : Math.ceil(Math.log(ms) / Math.log(GROWTH) - 1e-9);
}

function middleOf(index: number): number {
  return index === 0 ? 1 : Math.round(GROWTH ** index / HALF);
}

function add(counts: Map<number, number>, index: number, count: number): void {
  counts.set(index, (counts.get(index) ?? 0) + count);
}

function countsOf(latencies: Latencies): Map<number, number> {
  const counts = new Map<number, number>();
  for (const pair of latencies.split(" ")) {
    const [index, count] = pair.split(":");
    if (count !== undefined) add(counts, Number(index), Number(count));
  }
  return counts;
}

function textOf(counts: ReadonlyMap<number, number>): Latencies {
  return [...counts].map(([index, count]) => `${index}:${count}`).join(" ");
}
