import { echoed, invalidField } from "../../kernel/errors.ts";
import {
  type BucketRate,
  type TokenBucket,
  TokenBuckets,
  takeTokens,
  tokensIn,
  waitForTokens,
} from "../../kernel/http/access/token-buckets.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { LIMIT_BUCKETS_MAX } from "./domain.ts";
import type { KeyRow } from "./store.ts";
import { parseLimits } from "./terms.ts";
import type { RatelimitState } from "./verify-schema.ts";

/** A rate limit in memory. Keys with equal limits share the objects. */
export interface KeyLimit {
  readonly name: string;
  readonly isAutomatic: boolean;
  /** Whether the owner's keys share one bucket. */
  readonly isShared: boolean;
  readonly rate: BucketRate;
}

/** What identifies the buckets of a key. */
export interface LimitedKey {
  readonly accountRef: number;
  readonly limits: readonly KeyLimit[];
  /** The bucket of each limit: see {@link bucketsOf}. */
  readonly buckets: readonly LimitBucket[];
}

/** The bucket of a limit. */
interface LimitBucket {
  readonly name: string;
  /** As it was last used; null before. */
  last: TokenBucket | null;
}

/** A limit that a verification names. */
export interface NamedLimit {
  readonly name: string;
  readonly cost: number;
}

/** Parses limits as they are stored. */
export function keyLimits(stored: string): readonly KeyLimit[] {
  return parseLimits(stored).map(({ name, limit, duration_ms, auto, shared }) => ({
    name,
    isAutomatic: auto,
    isShared: shared === "owner",
    rate: { capacity: limit, parts: duration_ms, gainPerMs: limit },
  }));
}

export function limitedOf(row: KeyRow): LimitedKey {
  const { account_ref, ratelimits } = row;
  const limits = ratelimits === null ? [] : keyLimits(ratelimits);
  return { accountRef: account_ref, limits, buckets: bucketsOf(row, limits) };
}

/**
 * Returns the buckets of a key: each is the key's own, or that of its owner in its project. Names of limits contain no slash,
 * so the names are unique.
 */
export function bucketsOf(
  { ref, project_ref, owner_id }: Pick<KeyRow, "ref" | "project_ref" | "owner_id">,
  limits: readonly KeyLimit[],
): readonly LimitBucket[] {
  return limits.map(({ name, isShared }) => ({
    name: isShared ? `/${project_ref ?? ""}/${owner_id}/${name}` : `${ref}/${name}`,
    last: null,
  }));
}

/** The limits of a key, checked by one verification. No tokens are taken before {@link take}. */
export class LimitsCheck {
  /** Milliseconds until every applied limit has enough tokens; 0 when all have. */
  waitMs = 0;
  private readonly checked: { limit: KeyLimit; bucket: TokenBucket; cost: number; waitMs: number }[] = [];

  /** Adds a limit, of which the verification takes `cost` tokens. */
  add(limit: KeyLimit, bucket: TokenBucket, cost: number): void {
    const waitMs = waitForTokens(bucket, cost);
    if (waitMs > this.waitMs) this.waitMs = waitMs;
    this.checked.push({ limit, bucket, cost, waitMs });
  }

  states(): RatelimitState[] {
    return this.checked.map(({ limit, bucket, waitMs }) => stateOf(limit, bucket, waitMs > 0));
  }

  take(tx: Tx): void {
    const { checked } = this;
    for (const { bucket, cost } of checked) takeTokens(bucket, cost);
    tx.onRollback(() => {
      for (const { bucket, cost } of checked) takeTokens(bucket, -cost);
    });
  }
}

/** The token buckets of the keys' rate limits: in memory, shared fairly between accounts, full after a start. */
export class KeyLimits {
  private readonly buckets = new TokenBuckets<string>(LIMIT_BUCKETS_MAX);

  /**
   * Checks all limits of a key. The automatic and the named ones apply.
   * @throws ApiError `validation_error` for a name that the key does not have, or a cost above its limit.
   */
  check(key: LimitedKey, named: readonly NamedLimit[], now: number): LimitsCheck {
    assertNamed(key.limits, named);
    const check = new LimitsCheck();
    key.limits.forEach((limit, index) => {
      check.add(limit, this.bucketOf(key, limit, index, now), costOf(limit, named));
    });
    return check;
  }

  /** The state of all limits of a key, none of them applied. */
  states(key: LimitedKey, now: number): RatelimitState[] {
    return key.limits.map((limit, index) => stateOf(limit, this.bucketOf(key, limit, index, now), false));
  }

  /** Fills the buckets of a key at its current limits, which are about to change. */
  settle(key: LimitedKey, now: number): void {
    for (const { name } of key.buckets) this.buckets.settle(name, now, key.accountRef);
  }

  private bucketOf({ buckets, accountRef }: LimitedKey, { rate }: KeyLimit, index: number, now: number) {
    const bucket = buckets[index] as LimitBucket;
    bucket.last = this.buckets.at(bucket.name, rate, now, 0, accountRef, bucket.last);
    return bucket.last;
  }
}

function costOf({ name, isAutomatic }: KeyLimit, named: readonly NamedLimit[]): number {
  for (const limit of named) if (limit.name === name) return limit.cost;
  return isAutomatic ? 1 : 0;
}

function stateOf({ name, rate }: KeyLimit, bucket: TokenBucket, exceeded: boolean): RatelimitState {
  const reset_at = isoTime(Math.ceil(bucket.fullAt));
  return { name, limit: rate.capacity, remaining: tokensIn(bucket), reset_at, exceeded };
}

function assertNamed(limits: readonly KeyLimit[], named: readonly NamedLimit[]): void {
  if (named.length === 0) return;
  const names = new Set<string>();
  for (const { name, cost } of named) {
    const limit = limits.find((limit) => limit.name === name);
    if (limit === undefined)
      throw invalidField("ratelimits", `names ${echoed(name)}, which is not a limit of the key`);
    const { capacity } = limit.rate;
    if (cost > capacity)
      throw invalidField("ratelimits", `has a cost for ${echoed(name)} above its limit of ${capacity}`);
    if (names.has(name)) throw invalidField("ratelimits", `names ${echoed(name)} twice`);
    names.add(name);
  }
}
