import { ApiError } from "../../errors.ts";
import { isUnlimited, type Tiers } from "../../limits/tiers.ts";
import type { Database } from "../../storage/database.ts";
import type { Tx } from "../../storage/tx.ts";
import type { CallerAccount } from "../access/caller.ts";

/**
 * Bytes per request that a tier allows in a day: twice those of a usual answer. So one key that works all day at its
 * tier's pace, each time under another `Idempotency-Key`, does not reach the bound.
 */
export const FREE_RESPONSE_BYTES = 512;
/** What a row takes beside its key and its answer. */
const RESPONSE_ROW_BYTES = 100;

const MINUTES_A_DAY = 24 * 60;
const HOUR_MS = 60 * 60 * 1000;
/** Hours that an answer's own hour is counted for: the 24 in which it is kept, and the one in which they begin. */
const HOURS_COUNTED = 25;

/**
 * Counts what each account has had kept under `Idempotency-Key`s without paying for it, and bounds it: answers of requests
 * that cost nothing, and refusals. By the hour, so that nothing need be counted when old answers go.
 */
export class FreeResponses {
  private readonly sum;
  private readonly insert;
  private readonly deleteOld;

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
    this.deleteOld = db.change<[number]>("DELETE FROM free_answers WHERE hour <= ?");
  }

  /** Whether another one may be kept. */
  hasCapacity(tx: Tx, account: CallerAccount): boolean {
    return this.secondsUntilSpace(tx, account) === 0;
  }

  /**
   * For requests whose answer must be kept: without it, a repeat would do the work again.
   * @throws ApiError `rate_limit_exceeded` when there is no room.
   */
  assertCapacity(tx: Tx, account: CallerAccount): void {
    const seconds = this.secondsUntilSpace(tx, account);
    if (seconds === 0) return;
    throw new ApiError(
      "rate_limit_exceeded",
      "This account's free requests under Idempotency-Keys have filled the room that its tier has for their answers " +
        `in a day. Try again in ${seconds} s, or send this one without an Idempotency-Key.`,
      { retryAfterSeconds: seconds },
    );
  }

  /** Counts one that is kept. */
  add(tx: Tx, account: CallerAccount, bytes: number): void {
    if (!isUnlimited(account.tier)) this.insert(tx, account.ref, hourOf(tx), bytes + RESPONSE_ROW_BYTES);
  }

  /** Forgets the hours whose answers are gone. */
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

/** Bytes that an account may have kept for nothing, by its tier's requests per minute. */
export function freeBytesMax(requestsPerMinute: number): number {
  return requestsPerMinute * MINUTES_A_DAY * FREE_RESPONSE_BYTES;
}

function hourOf({ now }: Tx): number {
  return Math.floor(now / HOUR_MS);
}
