import type { Clock } from "../clock.ts";

/** Buckets kept in memory. A full bucket is the same as none, so only keys used lately need one. */
export const RATE_BUCKETS_MAX = 100_000;

/** What a request found in its bucket. */
export interface RateVerdict {
  readonly allowed: boolean;
  /** The bucket's capacity. */
  readonly limit: number;
  /** Whole tokens left. */
  readonly remaining: number;
  /** Unix seconds when the bucket is full again. */
  readonly resetAt: number;
  /** Whole seconds until one token is there; 0 when allowed. */
  readonly retryAfterSeconds: number;
}

/**
 * One token, in the unit that buckets count in. A millisecond adds the tier's figure per minute, a whole number:
 * so a token is there in the very millisecond that `Retry-After` announced, which fractions would miss by a hair.
 */
const TOKEN = 60_000;

interface Bucket {
  /** Tokens, times {@link TOKEN}. */
  level: number;
  capacity: number;
  perMinute: number;
  filledAt: number;
  /** When it will be full, epoch milliseconds. */
  fullAt: number;
}

/**
 * Token buckets, refilled continuously. A bucket starts full; when its figures change it refills at the new
 * rate from where it stands, and does not jump.
 */
export class RateLimiter<Key extends string | number = string> {
  private readonly buckets = new Map<Key, Bucket>();

  constructor(
    private readonly clock: Clock,
    private readonly bucketsMax: number = RATE_BUCKETS_MAX,
  ) {}

  /**
   * Takes one token from the bucket of `key`, if there is one. The figures hold since `since` (epoch
   * milliseconds): what had run in before that did so at the figures of the time.
   */
  take(key: Key, capacity: number, perMinute: number, since = 0): RateVerdict {
    const now = this.clock.now();
    const bucket = this.bucketOf(key, capacity, perMinute, now);
    if (bucket.perMinute !== perMinute && since > bucket.filledAt) fill(bucket, since);
    bucket.capacity = capacity;
    bucket.perMinute = perMinute;
    fill(bucket, now);
    const allowed = bucket.level >= TOKEN;
    if (allowed) bucket.level -= TOKEN;
    bucket.fullAt = now + (capacity * TOKEN - bucket.level) / perMinute;
    return verdict(bucket, allowed, capacity, perMinute);
  }

  /** Gives back the token that was just taken: the request was refused elsewhere. */
  giveBack(key: Key): void {
    const bucket = this.buckets.get(key);
    if (bucket === undefined) return;
    bucket.level += TOKEN;
    bucket.fullAt -= TOKEN / bucket.perMinute;
  }

  /** Buckets in memory. */
  get size(): number {
    return this.buckets.size;
  }

  private bucketOf(key: Key, capacity: number, perMinute: number, now: number): Bucket {
    const known = this.buckets.get(key);
    if (known !== undefined) return known;
    if (this.buckets.size >= this.bucketsMax) this.sweep(now);
    const fresh = { level: capacity * TOKEN, capacity, perMinute, filledAt: now, fullAt: now };
    this.buckets.set(key, fresh);
    return fresh;
  }

  /** Forgets buckets that are full by now; failing that, the oldest. */
  private sweep(now: number): void {
    for (const [key, bucket] of this.buckets) {
      if (bucket.fullAt <= now) this.buckets.delete(key);
    }
    for (const key of this.buckets.keys()) {
      if (this.buckets.size < this.bucketsMax) return;
      this.buckets.delete(key);
    }
  }
}

/** Lets in what has run in until `now`. A wall clock that was set back gives nothing, and takes nothing. */
function fill(bucket: Bucket, now: number): void {
  const gained = Math.max(0, now - bucket.filledAt) * bucket.perMinute;
  bucket.level = Math.min(bucket.capacity * TOKEN, bucket.level + gained);
  bucket.filledAt = now;
}

function verdict(bucket: Bucket, allowed: boolean, capacity: number, perMinute: number): RateVerdict {
  const untilOneMs = Math.max(0, TOKEN - bucket.level) / perMinute;
  return {
    allowed,
    limit: capacity,
    remaining: Math.floor(bucket.level / TOKEN),
    resetAt: Math.ceil(bucket.fullAt / 1000),
    retryAfterSeconds: allowed ? 0 : Math.max(1, Math.ceil(untilOneMs / 1000)),
  };
}

/** Addresses remembered at once. The oldest are forgotten first: memory stays bounded under a flood of addresses. */
export const ATTEMPT_KEYS_MAX = 50_000;

/** At most so many attempts per key within any window of the given length (a sliding log, so no burst at its edge). */
export class AttemptLimiter {
  private readonly attempts = new Map<string, number[]>();

  constructor(
    private readonly clock: Clock,
    private readonly limit: number,
    private readonly windowMs: number,
    private readonly keysMax: number = ATTEMPT_KEYS_MAX,
  ) {}

  /** Counts an attempt. Returns 0 when it is within the limit, else the whole seconds until one is again. */
  take(key: string): number {
    // Monotonic: a wall clock that is set back would shut everybody out for as long.
    const now = this.clock.monotonic();
    const recent = (this.attempts.get(key) ?? []).filter((at) => at > now - this.windowMs);
    const oldest = recent[0];
    if (oldest !== undefined && recent.length >= this.limit) {
      return Math.max(1, Math.ceil((oldest + this.windowMs - now) / 1000));
    }
    recent.push(now);
    // Set anew, so that the map's order is that of the last attempt.
    this.attempts.delete(key);
    if (this.attempts.size >= this.keysMax) this.forgetOldest();
    this.attempts.set(key, recent);
    return 0;
  }

  private forgetOldest(): void {
    const oldest = this.attempts.keys().next();
    if (oldest.done !== true) this.attempts.delete(oldest.value);
  }
}
