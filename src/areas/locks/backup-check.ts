import type { RestoreStep } from "../../kernel/data/backup-check.ts";
import { FENCING_RESERVED } from "./store.ts";

/** Fencing tokens go on where no token was handed out before. */
export const raiseFencingTokens: RestoreStep = (db, now) => {
  const row = db.get<{ value: number }>("SELECT value FROM settings WHERE name = ?", FENCING_RESERVED);
  const floor = fencingFloor(row?.value ?? 0, now);
  db.execute(
    "INSERT OR REPLACE INTO settings (name, value) VALUES (?, CAST(? AS INTEGER))",
    FENCING_RESERVED,
    floor,
  );
  return [`locks     fencing tokens go on above ${floor}, and so above every one handed out before`];
};

/**
 * No server hands out as many fencing tokens in a millisecond, for any length of time: each is an answer over the
 * network and a row on the disk, and a thousandth of this is a lot.
 */
export const TOKENS_PER_MS_MAX = 1_000;
/** For a clock that is behind the tokens: more than a server that is always busy hands out in weeks. */
export const TOKENS_BEYOND_BACKUP = 2 ** 36;

/**
 * Where fencing tokens go on after a restore: above every token that was ever handed out, also after the backup, and
 * after earlier restores of the same backup.
 *
 * Nobody knows how many tokens were handed out since the backup was made, but since 1970 there cannot have been more
 * than {@link TOKENS_PER_MS_MAX} in each millisecond. A count from there rises with the time as fast as tokens can, so
 * a later restore always begins above an earlier one. It stays within 2^53 until the year 2255. Only when the machine's
 * clock is behind does it not do, and a wide step from the backup's own figure has to.
 */
export function fencingFloor(reservedThrough: number, now: number): number {
  const since1970 = now * TOKENS_PER_MS_MAX;
  const floor = since1970 > reservedThrough ? since1970 : reservedThrough + TOKENS_BEYOND_BACKUP;
  return Math.min(floor, Number.MAX_SAFE_INTEGER);
}
