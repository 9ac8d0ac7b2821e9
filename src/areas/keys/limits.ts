import { isoTime } from "../../kernel/date-time.ts";
import { echoed, invalidField } from "../../kernel/errors.ts";
import {
  type BucketRate,
  type TokenBucket,
  TokenBuckets,
  takeTokens,
  tokensIn,
  waitForTokens,
} from "../../kernel/http/token-buckets.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { LIMIT_BUCKETS_MAX } from "./domain.ts";
import type { KeyRow } from "./store.ts";
import { limitsIn } from "./terms.ts";
import type { RatelimitState } from "./verify-schema.ts";

/** A rate limit of a key in memory, with the bucket that it draws on. */
export interface BoundLimit {
  readonly name: string;
  readonly isAutomatic: boolean;
  readonly rate: BucketRate;
  readonly bucket: string;
}

/** A limit that a verification names. */
export interface NamedLimit {
  readonly name: string;
  readonly cost: number;
}

const NONE: readonly BoundLimit[] = [];

/** The limits of a key, each with its bucket: one of the key, or of its owner in the key's project. */
export function boundLimits(
  row: Pick<KeyRow, "ref" | "account_ref" | "project_ref" | "owner_id" | "ratelimits">,
): readonly BoundLimit[] {
  if (row.ratelimits === null) return NONE;
  const owners = `${row.account_ref}/${row.project_ref ?? ""}/${row.owner_id}`;
  return limitsIn(row.ratelimits).map(({ name, limit, duration_ms, auto, shared }) => ({
    name,
    isAutomatic: auto,
    rate: { capacity: limit, parts: duration_ms, gainPerMs: limit },
    // No name has a slash, so that no two of these are alike.
    bucket: shared === "key" ? `${row.ref}/${name}` : `${owners}/${name}`,
  }));
}

/** The limits of a key as one verification looks at them. Nothing is taken before {@link take}. */
export interface LimitsLook {
  /** Milliseconds until all that took part have enough; 0 when they have. */
  readonly waitMs: number;
  readonly states: () => RatelimitState[];
  readonly take: (tx: Tx) => void;
}

/** The buckets behind the rate limits of keys. They lie in memory, and are full after a start. */
export class KeyLimits {
  private readonly buckets = new TokenBuckets<string>(LIMIT_BUCKETS_MAX);

  /**
   * Looks at all limits of a key. The automatic ones and those that are named take part.
   * @throws ApiError `validation_error` for a name that the key does not have, or a cost beyond its limit.
   */
  look(limits: readonly BoundLimit[], named: readonly NamedLimit[], now: number): LimitsLook {
    assertNamed(limits, named);
    const costOf = ({ name, isAutomatic }: BoundLimit) =>
      named.find((one) => one.name === name)?.cost ?? (isAutomatic ? 1 : 0);
    const looks = limits.map((limit) => {
      const bucket = this.buckets.at(limit.bucket, limit.rate, now);
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
  states(limits: readonly BoundLimit[], now: number): RatelimitState[] {
    return limits.map((limit) => stateOf(limit, this.buckets.at(limit.bucket, limit.rate, now), false));
  }

  /** Fills the buckets of a key at the figures that it has until now: they are about to change. */
  settle(limits: readonly BoundLimit[], now: number): void {
    for (const { bucket } of limits) this.buckets.settle(bucket, now);
  }

  /** Buckets in memory. */
  get size(): number {
    return this.buckets.size;
  }
}

function stateOf({ name, rate }: BoundLimit, bucket: TokenBucket, exceeded: boolean): RatelimitState {
  const reset_at = isoTime(Math.ceil(bucket.fullAt));
  return { name, limit: rate.capacity, remaining: tokensIn(bucket), reset_at, exceeded };
}

function assertNamed(limits: readonly BoundLimit[], named: readonly NamedLimit[]): void {
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
