/**
 * How a bucket fills. Levels are counted in parts of a token, of which `parts` make one and a millisecond adds
 * `gainPerMs`: whole numbers, so that a token is there in the very millisecond that was announced, which fractions
 * would miss by a hair.
 */
export interface BucketRate {
  /** Tokens of a full bucket. */
  readonly capacity: number;
  readonly parts: number;
  readonly gainPerMs: number;
}

/** A bucket, as it was last looked at. */
export interface TokenBucket {
  /** In parts of a token. */
  level: number;
  rate: BucketRate;
  filledAt: number;
  /** When it will be full, epoch milliseconds. */
  fullAt: number;
}

/** After a search for full buckets the next one waits so long: it looks at all of them. */
const SWEEP_PAUSE_MS = 1_000;

/**
 * Token buckets, refilled continuously. A bucket starts full; when its figures change it refills at the new rate from
 * where it stands, and does not jump.
 */
export class TokenBuckets<Key extends string | number> {
  private readonly buckets = new Map<Key, TokenBucket>();
  private sweptAt = Number.NEGATIVE_INFINITY;

  /** `bucketsMax`: those kept in memory. A full bucket is the same as none, so only what was used lately needs one. */
  constructor(private readonly bucketsMax: number) {}

  /**
   * The bucket of `key`, filled until `now`. The figures hold since `since` (epoch milliseconds): what had run in before
   * that did so at the figures of the time.
   */
  at(key: Key, rate: BucketRate, now: number, since = 0): TokenBucket {
    const bucket = this.buckets.get(key) ?? this.insert(key, rate, now);
    const { rate: before } = bucket;
    if (before.gainPerMs !== rate.gainPerMs && since > bucket.filledAt) fill(bucket, since);
    if (before.parts !== rate.parts) bucket.level = Math.floor((bucket.level / before.parts) * rate.parts);
    bucket.rate = rate;
    fill(bucket, now);
    return bucket;
  }

  /** Fills a bucket that is there until `now`, at the figures that it has: they are about to change. */
  settle(key: Key, now: number): void {
    const bucket = this.buckets.get(key);
    if (bucket !== undefined) fill(bucket, now);
  }

  /** The bucket of `key`, as it was last looked at. */
  peek(key: Key): TokenBucket | undefined {
    return this.buckets.get(key);
  }

  /** Buckets in memory. */
  get size(): number {
    return this.buckets.size;
  }

  private insert(key: Key, rate: BucketRate, now: number): TokenBucket {
    if (this.buckets.size >= this.bucketsMax) this.sweep(now);
    const fresh = { level: rate.capacity * rate.parts, rate, filledAt: now, fullAt: now };
    this.buckets.set(key, fresh);
    return fresh;
  }

  /** Forgets buckets that are full by now; failing that, the oldest. */
  private sweep(now: number): void {
    if (Math.abs(now - this.sweptAt) >= SWEEP_PAUSE_MS) {
      this.sweptAt = now;
      for (const [key, bucket] of this.buckets) {
        if (bucket.fullAt <= now) this.buckets.delete(key);
      }
    }
    for (const key of this.buckets.keys()) {
      if (this.buckets.size < this.bucketsMax) return;
      this.buckets.delete(key);
    }
  }
}

/** Takes tokens from a bucket, or gives some back. */
export function takeTokens(bucket: TokenBucket, tokens: number): void {
  const { rate, filledAt } = bucket;
  bucket.level -= tokens * rate.parts;
  bucket.fullAt = filledAt + (rate.capacity * rate.parts - bucket.level) / rate.gainPerMs;
}

/** Milliseconds until so many tokens are there; 0 when they are. */
export function waitForTokens({ level, rate }: TokenBucket, tokens: number): number {
  return Math.max(0, tokens * rate.parts - level) / rate.gainPerMs;
}

/** Whole tokens in a bucket. */
export function tokensIn({ level, rate }: TokenBucket): number {
  return Math.floor(level / rate.parts);
}

/** Lets in what has run in until `now`. A wall clock that was set back gives nothing, and takes nothing. */
function fill(bucket: TokenBucket, now: number): void {
  const { capacity, parts, gainPerMs } = bucket.rate;
  const full = capacity * parts;
  bucket.level = Math.min(full, bucket.level + Math.max(0, now - bucket.filledAt) * gainPerMs);
  bucket.filledAt = now;
  bucket.fullAt = now + (full - bucket.level) / gainPerMs;
}
