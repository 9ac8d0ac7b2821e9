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
import { LIMIT_BUCKETS_MAX, MEMORY_DURATION_MS_MAX } from "./domain.ts";
import type { LimitLevels } from "./limit-levels.ts";
import type { KeyRow, LimitPlace } from "./store.ts";
import { parseLimits } from "./terms.ts";
import type { RatelimitState } from "./verify-schema.ts";

/** A rate limit in memory. Keys with equal limits share the objects. */
export interface KeyLimit {
  readonly name: string;
  readonly isAutomatic: boolean;
  /** Whether the owner's keys share one bucket. */
  readonly isShared: boolean;
  /** Whether its bucket is also on the disk: its duration is too long to start full after a restart. */
  readonly isStored: boolean;
  readonly rate: BucketRate;
}

/** What identifies the buckets of a key. */
export interface LimitedKey {
  readonly ref: number;
  readonly accountRef: number;
  /** The first of the keys that rotations have joined. */
  readonly allowanceRef: number;
  readonly project: { readonly ref: number } | null;
  readonly owner_id: string | null;
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
    isStored: duration_ms > MEMORY_DURATION_MS_MAX,
    rate: { capacity: limit, parts: duration_ms, gainPerMs: limit },
  }));
}

export function limitedOf(row: KeyRow): LimitedKey {
  const { ref, account_ref, project_ref, owner_id, ratelimits } = row;
  const limits = ratelimits === null ? [] : keyLimits(ratelimits);
  return {
    ref,
    accountRef: account_ref,
    allowanceRef: row.allowance_ref ?? ref,
    project: project_ref === null ? null : { ref: project_ref },
    owner_id,
    limits,
    buckets: bucketsOf(row, limits),
  };
}

/**
 * Returns the buckets of a key: each is the key's own, or that of its owner in its project. A stored one is shared by keys
 * that rotations have joined, so that a rotation does not fill it. Names of limits contain no slash, so the names are unique.
 */
export function bucketsOf(
  { ref, allowance_ref, project_ref, owner_id }: BucketOwner,
  limits: readonly KeyLimit[],
): readonly LimitBucket[] {
  return limits.map(({ name, isShared, isStored }) => {
    const keyRef = isStored ? (allowance_ref ?? ref) : ref;
    return { name: isShared ? `/${project_ref ?? ""}/${owner_id}/${name}` : `${keyRef}/${name}`, last: null };
  });
}

type BucketOwner = Pick<KeyRow, "ref" | "allowance_ref" | "project_ref" | "owner_id">;

/** The limits of a key, checked by one verification. No tokens are taken before {@link take}. */
export class LimitsCheck {
  /** Milliseconds until every applied limit has enough tokens; 0 when all have. */
  waitMs = 0;
  private readonly checked: { limit: KeyLimit; bucket: TokenBucket; cost: number; waitMs: number }[] = [];

  constructor(
    private readonly levels: LimitLevels,
    private readonly keyRef: number,
  ) {}

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
    const { checked, levels, keyRef } = this;
    for (const { limit, bucket, cost } of checked) {
      takeTokens(bucket, cost);
      if (cost > 0) recordUse(levels, limit, bucket, keyRef);
    }
    tx.onRollback(() => {
      for (const { bucket, cost } of checked) takeTokens(bucket, -cost);
    });
  }
}

/**
 * The token buckets of the keys' rate limits, in memory, shared fairly between accounts. Those of long limits are also on
 * the disk; the others are full after a start.
 */
export class KeyLimits {
  private readonly buckets = new TokenBuckets<string>(LIMIT_BUCKETS_MAX);

  constructor(private readonly levels: LimitLevels) {}

  /**
   * Checks all limits of a key. The automatic and the named ones apply.
   * @throws ApiError `validation_error` for a name that the key does not have, or a cost above its limit.
   */
  check(key: LimitedKey, named: readonly NamedLimit[], now: number): LimitsCheck {
    assertNamed(key.limits, named);
    const check = new LimitsCheck(this.levels, key.ref);
    key.limits.forEach((limit, index) => {
      check.add(limit, this.bucketOf(key, limit, index, now), costOf(limit, named));
    });
    return check;
  }

  /** The state of all limits of a key, none of them applied. */
  states(key: LimitedKey, now: number): RatelimitState[] {
    return key.limits.map((limit, index) => stateOf(limit, this.bucketOf(key, limit, index, now), false));
  }

  /** Changes the limits of a key: its buckets refill at the earlier ones until now. */
  change(tx: Tx, before: LimitedKey, after: LimitedKey): void {
    before.limits.forEach((limit, index) => {
      if (limit.isStored) this.changeStored(tx, before, index, after);
      else this.buckets.settle((before.buckets[index] as LimitBucket).name, tx.now, before.accountRef);
    });
  }

  private changeStored(tx: Tx, before: LimitedKey, index: number, after: LimitedKey): void {
    const { levels } = this;
    const limit = before.limits[index] as KeyLimit;
    const bucket = this.bucketOf(before, limit, index, tx.now);
    const level = levels.known(bucket);
    const afterIndex = after.limits.findIndex(({ name }) => name === limit.name);
    const next = after.limits[afterIndex];
    if (next?.isStored && next.isShared === limit.isShared) {
      this.bucketOf(after, next, afterIndex, tx.now);
      recordUse(levels, next, bucket, after.ref);
    } else if (level !== undefined && !limit.isShared) levels.remove(tx, level);
  }

  private bucketOf(key: LimitedKey, limit: KeyLimit, index: number, now: number): TokenBucket {
    const last = key.buckets[index] as LimitBucket;
    const bucket = this.buckets.at(last.name, limit.rate, now, 0, key.accountRef, last.last);
    last.last = bucket;
    if (limit.isStored && this.levels.known(bucket) === undefined)
      this.levels.of(bucket, placeOf(key, limit));
    return bucket;
  }
}

/** What identifies the stored bucket of a limit. */
function placeOf(key: LimitedKey, { name, isShared }: KeyLimit): LimitPlace {
  return {
    account_ref: key.accountRef,
    key_ref: isShared ? null : key.allowanceRef,
    project_ref: isShared ? (key.project?.ref ?? null) : null,
    owner_id: isShared ? key.owner_id : null,
    name,
  };
}

/** Notes that a key has used a bucket, if that is on the disk. One that keys share may be so by the limit of another key. */
function recordUse(
  levels: LimitLevels,
  { isStored, isShared }: KeyLimit,
  bucket: TokenBucket,
  keyRef: number,
) {
  const level = isStored || isShared ? levels.known(bucket) : undefined;
  if (level !== undefined) levels.recordUse(level, keyRef);
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
