import type { RestoreStep } from "../../kernel/data/backup-check.ts";
import { FENCING_RESERVED } from "./store.ts";

/** Raises the fencing sequence above all tokens issued before the restore. */
export const raiseFencingTokens: RestoreStep = (db, now) => {
  const row = db.get<{ value: number }>("SELECT value FROM settings WHERE name = ?", FENCING_RESERVED);
  const floor = fencingFloor(row?.value ?? 0, now);
  db.execute(
    "INSERT OR REPLACE INTO settings (name, value) VALUES (?, CAST(? AS INTEGER))",
    FENCING_RESERVED,
    floor,
  );
  return [`locks     fencing tokens continue above ${floor}, which is higher than any token issued before`];
};

/**
 * Upper limit of the fencing tokens that a server issues per millisecond. Each token is a response over the network and a
 * row on the disk; a thousandth of this rate is already high.
 */
export const TOKENS_PER_MS_MAX = 1_000;
/** Increment if the clock is behind the tokens: more tokens than a busy server issues in weeks. */
export const TOKENS_BEYOND_BACKUP = 2 ** 36;

/**
 * Returns the start of the fencing sequence after a restore. It is higher than every token issued before, including those
 * issued after the backup and after earlier restores of the same backup.
 *
 * The number of tokens issued since the backup is unknown, but it is at most {@link TOKENS_PER_MS_MAX} per millisecond since
 * 1970. This value rises at least as fast as tokens are issued, so that a later restore always starts above an earlier one.
 * It stays below 2^53 until the year 2255. If the machine's clock is behind, a large increment of the backup's value
 * replaces it.
 */
export function fencingFloor(reservedThrough: number, now: number): number {
  const since1970 = now * TOKENS_PER_MS_MAX;
  const floor = since1970 > reservedThrough ? since1970 : reservedThrough + TOKENS_BEYOND_BACKUP;
  return Math.min(floor, Number.MAX_SAFE_INTEGER);
}
