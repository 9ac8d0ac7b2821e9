import type { CallerAccount } from "../../callers/caller.ts";
import { ApiError } from "../../errors.ts";
import { isUnlimited, type Tiers } from "../../limits/tiers.ts";
import type { Database } from "../../storage/database.ts";
import type { Tx } from "../../storage/tx.ts";
import { HOUR_MS } from "../../time/units.ts";

/**
 * Bytes per request that a tier allows in a day: twice those of a usual response. One key that sends requests all day at
 * its tier's rate, each with another `Idempotency-Key`, stays below the limit.
 */
export const FREE_RESPONSE_BYTES = 512;
/** Bytes of a row without its key and its response. */
const RESPONSE_ROW_BYTES = 100;

const MINUTES_A_DAY = 24 * 60;
/** Hours for which a response counts: the 24 of its retention, and the hour in which they begin. */
const HOURS_COUNTED = 25;

/**
 * Counts and limits the bytes that each account has stored under `Idempotency-Key`s free of charge: responses of free
 * requests, and rejections. Counts by the hour, so that removing old responses needs no counting.
 */
export class FreeResponses {
  private readonly sum;
  private readonly insert;
  private readonly deleteOld;
  private readonly deleteOfAccount;

  constructor(
    db: Database,
    private readonly tiers: Tiers,
  ) {
    this.sum = db.one<{ bytes: number; oldest: number }, [number, number]>(
      "SELECT coalesce(sum(bytes), 0) AS bytes, coalesce(min(hour), 0) AS oldest FROM free_answers WHERE account_ref = ? AND hour > ?",
    );
    this.insert = db.change<[number, number, number]>(
      "INSERT INTO free_answers (account_ref, hour, bytes) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes",
    );
    this.deleteOfAccount = db.change<[accountRef: number]>("DELETE FROM free_answers WHERE account_ref = ?");
    this.deleteOld = db.change<[number]>("DELETE FROM free_answers WHERE hour <= ?");
  }

  /** Whether another one may be kept. */
  hasCapacity(tx: Tx, account: CallerAccount): boolean {
    return this.secondsUntilSpace(tx, account) === 0;
  }

  /**
   * For requests that must store their response: without it, a repeat would do the work again.
   * @throws ApiError `rate_limit_exceeded` when there is no space.
   */
  assertCapacity(tx: Tx, account: CallerAccount): void {
    const seconds = this.secondsUntilSpace(tx, account);
    if (seconds === 0) return;
    throw new ApiError(
      "rate_limit_exceeded",
      "The responses of this account's free requests with Idempotency-Keys have reached the limit of its tier " +
        `in a day. Try again in ${seconds} s, or send this one without an Idempotency-Key.`,
      { retryAfterSeconds: seconds },
    );
  }

  /** Counts a stored response. */
  add(tx: Tx, account: CallerAccount, bytes: number): void {
    if (!isUnlimited(account.tier)) this.insert(tx, account.ref, hourOf(tx), bytes + RESPONSE_ROW_BYTES);
  }

  /** Drops the counts of a deleted account: one row per hour of a day. */
  removeOfAccount(tx: Tx, accountRef: number): void {
    this.deleteOfAccount(tx, accountRef);
  }

  /** Drops the hours whose responses have expired. */
  purge(tx: Tx): void {
    this.deleteOld(tx, hourOf(tx) - HOURS_COUNTED);
  }

  private secondsUntilSpace(tx: Tx, account: CallerAccount): number {
    if (isUnlimited(account.tier)) return 0;
    const { bytes, oldest } = this.sum(account.ref, hourOf(tx) - HOURS_COUNTED) ?? {
      bytes: 0,
      oldest: 0,
    };
    if (bytes < freeBytesMax(this.tiers[account.tier].requestsPerMinute)) return 0;
    return Math.max(1, Math.ceil(((oldest + HOURS_COUNTED) * HOUR_MS - tx.now) / 1000));
  }
}

/** Bytes that an account may store free of charge, by its tier's requests per minute. */
export function freeBytesMax(requestsPerMinute: number): number {
  return requestsPerMinute * MINUTES_A_DAY * FREE_RESPONSE_BYTES;
}

function hourOf({ now }: Tx): number {
  return Math.floor(now / HOUR_MS);
}
