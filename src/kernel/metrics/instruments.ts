/** A number that only grows. Counting is one addition: cheap enough for every request. */
export class Counter {
  value = 0;

  add(by = 1): void {
    this.value += by;
  }
}

/** Counts observations by size, in buckets that are fixed from the start. */
export class Histogram {
  sum = 0;
  /** Observations in all. */
  count = 0;
  private readonly counts: Float64Array;

  constructor(
    /** Upper limits of the buckets, inclusive, rising; one more bucket takes what is larger than all of them. */
    readonly bounds: readonly number[],
  ) {
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds } = this;
    let bucket = 0;
    // From the left: what is usual stands in the first few buckets.
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1;
    this.counts[bucket] = (this.counts[bucket] as number) + 1;
    this.sum += value;
    this.count += 1;
  }

  /** Cumulative counts per bucket; the last one is the count of all observations. */
  cumulative(): number[] {
    let sum = 0;
    return Array.from(this.counts, (count) => {
      sum += count;
      return sum;
    });
  }
  /** Upper limit of the bucket that has this share of the observations below it, at most the largest; null without any. */
  quantile(share: number): number | null {
    const index = this.cumulative().findIndex((count) => count >= this.count * share);
    return this.count === 0 ? null : (this.bounds[Math.min(index, this.bounds.length - 1)] ?? null);
  }
}
