import { BatchedWrites, type PendingWrite } from "../../kernel/background/batched-writes.ts";
import { lowerTo, type TokenBucket } from "../../kernel/http/access/token-buckets.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { KeyStore, LimitLevelRow, LimitPlace } from "./store.ts";

/** Longest time until a level is written: half of the 10 s of use that a crash may forgive, so that the disk has as long. */
const WRITE_AFTER_MS = 5_000;
/** Number of used buckets at which they are written immediately: limits the memory that they take. */
const UNWRITTEN_LEVELS_MAX = 50_000;
/** Rows written in one unit of work: under a millisecond. */
const ROWS_PER_UNIT = 100;

/** A bucket that has a row. */
export interface LimitLevel extends PendingWrite {
  readonly place: LimitPlace;
  bucket: TokenBucket;
  /** The key that has used it last. */
  usedBy: number;
  /** True while its limit is removed: nothing is written. */
  isRemoved: boolean;
}

/**
 * The token buckets of long rate limits on the disk. A bucket is read when it is first used, and its level is written in
 * the background: a verification never waits for the disk because of it.
 */
export class LimitLevels extends BatchedWrites<LimitLevel> {
  /** Levels of buckets in memory. */
  private readonly levels = new WeakMap<TokenBucket, LimitLevel>();
  /** Levels whose rows are behind, by the name of their bucket: memory may have dropped the bucket meanwhile. */
  private readonly unwritten = new Map<string, LimitLevel>();
  private nextRef: number;

  constructor(
    private readonly store: KeyStore,
    { writer, log }: Pick<Kernel, "writer" | "log">,
  ) {
    super({
      writer,
      log,
      warning: "levels of rate limits could not be written yet",
      waitMs: WRITE_AFTER_MS,
      marksMax: UNWRITTEN_LEVELS_MAX,
      rowsPerUnit: ROWS_PER_UNIT,
      write: (tx, level) => this.writeLevel(tx, level),
    });
    this.nextRef = store.highestLimitLevel() + 1;
  }

  /** The level of a bucket in memory; undefined if it has none. */
  known(bucket: TokenBucket): LimitLevel | undefined {
    return this.levels.get(bucket);
  }

  /** The level of a bucket, which is filled until now. The first time lowers the bucket to what is stored. */
  of(bucket: TokenBucket, place: LimitPlace): LimitLevel {
    const known = this.levels.get(bucket);
    if (known !== undefined) return known;
    const level = this.unwritten.get(nameOf(place)) ?? this.read(bucket, place);
    if (level.bucket !== bucket) lowerTo(bucket, level.bucket);
    level.bucket = bucket;
    this.levels.set(bucket, level);
    return level;
  }

  /** Notes that a key has used a bucket. */
  recordUse(level: LimitLevel, keyRef: number): void {
    level.usedBy = keyRef;
    level.isRemoved = false;
    if (this.isDue(level)) return;
    this.unwritten.set(nameOf(level.place), level);
    this.mark(level);
  }

  /** Removes the row of a bucket whose limit is removed. */
  remove(tx: Tx, level: LimitLevel): void {
    this.store.removeLimitLevel(tx, level.ref);
    level.isRemoved = true;
    tx.onRollback(() => {
      level.isRemoved = false;
    });
  }

  private read(bucket: TokenBucket, place: LimitPlace): LimitLevel {
    const row = this.store.limitLevel(place);
    const stored = row === null ? bucket : bucketOf(row);
    const ref = row?.ref ?? this.nextRef++;
    return { ref, place, bucket: stored, usedBy: 0, isRemoved: false, dueInRound: 0 };
  }

  private writeLevel(tx: Tx, level: LimitLevel): void {
    const { ref, place, bucket, usedBy, isRemoved } = level;
    const { rate, filledAt, fullAt } = bucket;
    if (!isRemoved)
      this.store.saveLimitLevel(tx, {
        ...place,
        ref,
        used_by: usedBy,
        level: bucket.level,
        tokens: rate.capacity,
        duration_ms: rate.parts,
        filled_at: filledAt,
        full_at: Math.ceil(fullAt),
      });
    tx.afterCommit(() => {
      // One that was used meanwhile stays.
      if (!this.isDue(level)) this.unwritten.delete(nameOf(place));
    });
  }
}

/** The name of a bucket, unique over all accounts: neither names of limits nor references contain a slash. */
function nameOf({ account_ref, key_ref, project_ref, owner_id, name }: LimitPlace): string {
  return `${account_ref}/${key_ref ?? ""}/${project_ref ?? ""}/${name}/${owner_id ?? ""}`;
}

function bucketOf({ level, tokens, duration_ms, filled_at, full_at }: LimitLevelRow): TokenBucket {
  const rate = { capacity: tokens, parts: duration_ms, gainPerMs: tokens };
  return { level, rate, filledAt: filled_at, fullAt: full_at, isRemoved: true };
}
