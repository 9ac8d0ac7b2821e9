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
import { limitsIn } from "./terms.ts";
import type { RatelimitState } from "./verify-schema.ts";

/** A rate limit in memory. Keys of one plan share theirs. */
export interface KeyLimit {
  readonly name: string;
  readonly isAutomatic: boolean;
  /** Whether the owner's keys draw on one bucket. */
  readonly isShared: boolean;
  readonly rate: BucketRate;
}

/** A key, as far as its limits tell its buckets by it. */
export interface LimitedKey {
  readonly ref: number;
  readonly accountRef: number;
  readonly project: { readonly ref: number } | null;
  readonly owner_id: string | null;
  readonly limits: readonly KeyLimit[];
}

/** A limit that a verification names. */
export interface NamedLimit {
  readonly name: string;
  readonly cost: number;
}

/** Reads limits as they are stored. */
export function keyLimits(stored: string): readonly KeyLimit[] {
  return limitsIn(stored).map(({ name, limit, duration_ms, auto, shared }) => ({
    name,
    isAutomatic: auto,
    isShared: shared === "owner",
    rate: { capacity: limit, parts: duration_ms, gainPerMs: limit },
  }));
}

/** A key by its row. */
export function limitedOf({ ref, account_ref, project_ref, owner_id, ratelimits }: KeyRow): LimitedKey {
  const project = project_ref === null ? null : { ref: project_ref };
  const limits = ratelimits === null ? [] : keyLimits(ratelimits);
  return { ref, accountRef: account_ref, project, owner_id, limits };
}

/** The limits of a key as one verification looks at them. Nothing is taken before {@link take}. */
export interface LimitsLook {
  /** Milliseconds until all that took part have enough; 0 when they have. */
  readonly waitMs: number;
  readonly states: () => RatelimitState[];
  readonly take: (tx: Tx) => void;
}

/** The buckets behind the rate limits of keys. They lie in memory, each account with its share, and are full after a start. */
export class KeyLimits {
  private readonly buckets = new TokenBuckets<string>(LIMIT_BUCKETS_MAX);

  /**
   * Looks at all limits of a key. The automatic ones and those that are named take part.
   * @throws ApiError `validation_error` for a name that the key does not have, or a cost beyond its limit.
   */
  look(key: LimitedKey, named: readonly NamedLimit[], now: number): LimitsLook {
    assertNamed(key.limits, named);
    const costOf = ({ name, isAutomatic }: KeyLimit) =>
      named.find((one) => one.name === name)?.cost ?? (isAutomatic ? 1 : 0);
    const looks = key.limits.map((limit) => {
      const bucket = this.bucketOf(key, limit, now);
      const cost = costOf(limit);
      return { limit, bucket, cost, waitMs: waitForTokens(bucket, cost) };
    });
    return {
      waitMs: Math.max(0, ...looks.map(({ waitMs }) => waitMs)),
      states: () => looks.map(({ limit, bucket, waitMs }) => stateOf(limit, bucket, waitMs > 0)),
      take: (tx) => {
        for (const { bucket, cost } of looks) {
          takeTokens(bucket, cost);
          tx.onRollback(() => takeTokens(bucket, -cost));
        }
      },
    };
  }

  /** How all limits of a key stand, none of them taking part. */
  states(key: LimitedKey, now: number): RatelimitState[] {
    return key.limits.map((limit) => stateOf(limit, this.bucketOf(key, limit, now), false));
  }

  /** Fills the buckets of a key at the figures that it has until now: they are about to change. */
  settle(key: LimitedKey, now: number): void {
    for (const limit of key.limits) this.buckets.settle(nameOf(key, limit), now, key.accountRef);
  }

  private bucketOf(key: LimitedKey, limit: KeyLimit, now: number): TokenBucket {
    return this.buckets.at(nameOf(key, limit), limit.rate, now, 0, key.accountRef);
  }
}

/** The bucket of the key itself, or of its owner in its project. No name has a slash, so that no two are alike. */
function nameOf({ ref, project, owner_id }: LimitedKey, { name, isShared }: KeyLimit): string {
  return isShared ? `/${project?.ref ?? ""}/${owner_id}/${name}` : `${ref}/${name}`;
}

function stateOf({ name, rate }: KeyLimit, bucket: TokenBucket, exceeded: boolean): RatelimitState {
  const reset_at = isoTime(Math.ceil(bucket.fullAt));
  return { name, limit: rate.capacity, remaining: tokensIn(bucket), reset_at, exceeded };
}

function assertNamed(limits: readonly KeyLimit[], named: readonly NamedLimit[]): void {
  const seen = new Set<string>();
  for (const { name, cost } of named) {
    const limit = limits.find((one) => one.name === name);
    if (limit === undefined)
      throw invalidField("ratelimits", `names ${echoed(name)}, and the key has no such limit`);
    const { capacity } = limit.rate;
    if (cost > capacity)
      throw invalidField("ratelimits", `asks ${echoed(name)} for more than its limit of ${capacity}`);
    if (seen.has(name)) throw invalidField("ratelimits", `names ${echoed(name)} twice`);
    seen.add(name);
  }
}
