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

/** Parses limits as they are stored. */
export function keyLimits(stored: string): readonly KeyLimit[] {
  return parseLimits(stored).map(({ name, limit, duration_ms, auto, shared }) => ({
    name,
    isAutomatic: auto,
    isShared: shared === "owner",
    rate: { capacity: limit, parts: duration_ms, gainPerMs: limit },
  }));
}

export function limitedOf({ ref, account_ref, project_ref, owner_id, ratelimits }: KeyRow): LimitedKey {
  const project = project_ref === null ? null : { ref: project_ref };
  const limits = ratelimits === null ? [] : keyLimits(ratelimits);
  return { ref, accountRef: account_ref, project, owner_id, limits };
}

/** The limits of a key, checked by one verification. No tokens are taken before {@link take}. */
export interface LimitsCheck {
  /** Milliseconds until every applied limit has enough tokens; 0 when all have. */
  readonly waitMs: number;
  readonly states: () => RatelimitState[];
  readonly take: (tx: Tx) => void;
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
    const costOf = ({ name, isAutomatic }: KeyLimit) =>
      named.find((one) => one.name === name)?.cost ?? (isAutomatic ? 1 : 0);
    const checks = key.limits.map((limit) => {
      const bucket = this.bucketOf(key, limit, now);
      const cost = costOf(limit);
      return { limit, bucket, cost, waitMs: waitForTokens(bucket, cost) };
    });
    return {
      waitMs: Math.max(0, ...checks.map(({ waitMs }) => waitMs)),
      states: () => checks.map(({ limit, bucket, waitMs }) => stateOf(limit, bucket, waitMs > 0)),
      take: (tx) => {
        for (const { bucket, cost } of checks) {
          takeTokens(bucket, cost);
          tx.onRollback(() => takeTokens(bucket, -cost));
        }
      },
    };
  }

  /** The state of all limits of a key, none of them applied. */
  states(key: LimitedKey, now: number): RatelimitState[] {
    return key.limits.map((limit) => stateOf(limit, this.bucketOf(key, limit, now), false));
  }

  /** Fills the buckets of a key at its current limits, which are about to change. */
  settle(key: LimitedKey, now: number): void {
    for (const limit of key.limits) this.buckets.settle(nameOf(key, limit), now, key.accountRef);
  }

  private bucketOf(key: LimitedKey, limit: KeyLimit, now: number): TokenBucket {
    return this.buckets.at(nameOf(key, limit), limit.rate, now, 0, key.accountRef);
  }
}

/** The bucket of the key itself, or of its owner in its project. Limit names contain no slash, so results are unique. */
function nameOf({ ref, project, owner_id }: LimitedKey, { name, isShared }: KeyLimit): string {
  return isShared ? `/${project?.ref ?? ""}/${owner_id}/${name}` : `${ref}/${name}`;
}

function stateOf({ name, rate }: KeyLimit, bucket: TokenBucket, exceeded: boolean): RatelimitState {
  const reset_at = isoTime(Math.ceil(bucket.fullAt));
  return { name, limit: rate.capacity, remaining: tokensIn(bucket), reset_at, exceeded };
}

function assertNamed(limits: readonly KeyLimit[], named: readonly NamedLimit[]): void {
  const names = new Set<string>();
  for (const { name, cost } of named) {
    const limit = limits.find((one) => one.name === name);
    if (limit === undefined)
      throw invalidField("ratelimits", `names ${echoed(name)}, which is not a limit of the key`);
    const { capacity } = limit.rate;
    if (cost > capacity)
      throw invalidField("ratelimits", `has a cost for ${echoed(name)} above its limit of ${capacity}`);
    if (names.has(name)) throw invalidField("ratelimits", `names ${echoed(name)} twice`);
    names.add(name);
  }
}
