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
  /** Whether it was removed from memory: then the next use of its key begins with a full one. */
  isRemoved: boolean;
}

/** After a search for full buckets the next one waits so long: it looks at all of them. */
const SWEEP_PAUSE_MS = 1_000;
/** Share of all buckets that is removed together, so that not every new bucket needs a search. */
const REMOVED_PART = 0.01;
/** The owner of buckets without owners. */
const NO_OWNER = 0;

/**
 * Token buckets, refilled continuously. A bucket starts full; when its limits change it refills at the new rate from
 * where it stands, and does not jump. Owners share the space fairly: nobody's new buckets remove those of an owner with
 * fewer buckets than the average.
 */
export class TokenBuckets<Key extends string | number> {
  private readonly owners = new Map<number, Map<Key, TokenBucket>>();
  private count = 0;
  private sweptAt = Number.NEGATIVE_INFINITY;

  /** `bucketsMax`: buckets held in memory. A full bucket is the same as none, so only what was used lately needs one. */
  constructor(private readonly bucketsMax: number) {}

  /**
   * The bucket of `key`, filled until `now`. The limits apply since `since` (epoch milliseconds); before
   * that, the bucket refilled at its earlier limits. Keys are unique within their owner. `last`: the bucket that the last
   * call for this key returned, which saves the lookup.
   */
  at(
    key: Key,
    rate: BucketRate,
    now: number,
    since = 0,
    owner = NO_OWNER,
    last: TokenBucket | null = null,
  ): TokenBucket {
    const bucket =
      last === null || last.isRemoved ? (this.peek(key, owner) ?? this.insert(key, rate, now, owner)) : last;
    const { rate: before } = bucket;
    if (before.gainPerMs !== rate.gainPerMs && since > bucket.filledAt) fill(bucket, since);
    if (before.parts !== rate.parts) bucket.level = Math.floor((bucket.level / before.parts) * rate.parts);
    bucket.rate = rate;
    fill(bucket, now);
    return bucket;
  }

  /** Refills an existing bucket until `now` at its current limits, which are about to change. */
  settle(key: Key, now: number, owner = NO_OWNER): void {
    const bucket = this.peek(key, owner);
    if (bucket !== undefined) fill(bucket, now);
  }

  /** The bucket of `key`, as it was last looked at. */
  peek(key: Key, owner = NO_OWNER): TokenBucket | undefined {
    return this.owners.get(owner)?.get(key);
  }

  /** Buckets in memory. */
  get size(): number {
    return this.count;
  }

  private insert(key: Key, rate: BucketRate, now: number, owner: number): TokenBucket {
    if (this.count >= this.bucketsMax) this.makeSpace(now);
    const level = rate.capacity * rate.parts;
    const fresh = { level, rate, filledAt: now, fullAt: now, isRemoved: false };
    const buckets = this.owners.get(owner) ?? new Map<Key, TokenBucket>();
    this.owners.set(owner, buckets.set(key, fresh));
    this.count += 1;
    return fresh;
  }

  /** Removes buckets that are full by now; failing that, the oldest of the owners that have most. */
  private makeSpace(now: number): void {
    if (Math.abs(now - this.sweptAt) >= SWEEP_PAUSE_MS) {
      this.sweptAt = now;
      this.removeFull(now);
    }
    if (this.count < this.bucketsMax) return;
    let excess = Math.max(1, Math.floor(this.bucketsMax * REMOVED_PART));
    // At least half of the owners have this many or lose more than one: a search is paid for by what it removes.
    const fairShare = Math.floor(this.count / this.owners.size);
    for (const [owner, buckets] of this.owners) {
      if (excess <= 0) return;
      if (buckets.size < fairShare) continue;
      const leaving = Math.min(excess, Math.max(1, buckets.size - fairShare));
      this.removeOldest(owner, buckets, leaving);
      excess -= leaving;
    }
  }

  private removeOldest(owner: number, buckets: Map<Key, TokenBucket>, leaving: number): void {
    let left = leaving;
    for (const [key, bucket] of buckets) {
      if (left === 0) break;
      bucket.isRemoved = true;
      buckets.delete(key);
      left -= 1;
    }
    this.count -= leaving;
    if (buckets.size === 0) this.owners.delete(owner);
  }

  private removeFull(now: number): void {
    for (const [owner, buckets] of this.owners) {
      for (const [key, bucket] of buckets) {
        if (bucket.fullAt > now) continue;
        bucket.isRemoved = true;
        buckets.delete(key);
        this.count -= 1;
      }
      if (buckets.size === 0) this.owners.delete(owner);
    }
  }
}

/** Takes tokens from a bucket, or gives some back. */
export function takeTokens(bucket: TokenBucket, tokens: number): void {
  const { rate, filledAt } = bucket;
  bucket.level -= tokens * rate.parts;
  bucket.fullAt = filledAt + (rate.capacity * rate.parts - bucket.level) / rate.gainPerMs;
}

/** Lowers a bucket that is filled until now to the level that a stored one has by then, if that is lower. */
export function lowerTo(bucket: TokenBucket, stored: TokenBucket): void {
  const { rate, filledAt } = bucket;
  fill(stored, filledAt);
  const tokens =
    stored.rate.parts === rate.parts ? stored.level : (stored.level / stored.rate.parts) * rate.parts;
  bucket.level = Math.min(bucket.level, Math.floor(tokens));
  takeTokens(bucket, 0);
}

/** Milliseconds until so many tokens are there; 0 when they are. */
export function waitForTokens({ level, rate }: TokenBucket, tokens: number): number {
  return Math.max(0, tokens * rate.parts - level) / rate.gainPerMs;
}

/** Whole tokens in a bucket. */
export function tokensIn({ level, rate }: TokenBucket): number {
  return Math.floor(level / rate.parts);
}

/** Refills until `now`. A wall clock that was set back adds nothing and takes nothing. */
function fill(bucket: TokenBucket, now: number): void {
  const { capacity, parts, gainPerMs } = bucket.rate;
  const full = capacity * parts;
  bucket.level = Math.min(full, bucket.level + Math.max(0, now - bucket.filledAt) * gainPerMs);
  bucket.filledAt = now;
  bucket.fullAt = now + (full - bucket.level) / gainPerMs;
}
