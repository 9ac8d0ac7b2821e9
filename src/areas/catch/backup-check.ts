import { type LostSecret, lostLines, type RestoreStep } from "../../kernel/data/backup-check.ts";
import { withoutSealed } from "./event-headers.ts";

/** Events that are changed after one another, so that the iteration does not meet its own changes. */
const EVENTS_PER_STEP = 500;

/**
 * Removes what a lost master key has sealed of buckets: their signing secrets and settings, and secret headers of events.
 * These buckets are paused: they store events, and forward none.
 */
export const forgetCatchSecrets: RestoreStep = (db, now) => {
  const lost = "(signing_secret IS NOT NULL OR settings IS NOT NULL) AND catch_buckets.deleted_at IS NULL";
  const buckets = db.all<LostSecret>(
    `SELECT id, name, email FROM catch_buckets JOIN accounts ON accounts.ref = account_ref WHERE ${lost} ORDER BY catch_buckets.ref`,
  );
  db.execute(
    "DELETE FROM catch_targets WHERE bucket_ref IN (SELECT ref FROM catch_buckets WHERE settings IS NOT NULL)",
  );
  db.execute(
    "UPDATE catch_buckets SET signing_secret = NULL, settings = NULL, live = 0, updated_at = ? WHERE signing_secret IS NOT NULL OR settings IS NOT NULL",
    now,
  );
  for (let after = 0; ; ) {
    const events = db.all<{ sequence: number; headers: string }>(
      `SELECT sequence, headers FROM catch_payloads WHERE sequence > ? AND headers LIKE '%":sealed":%' ORDER BY sequence LIMIT ${EVENTS_PER_STEP}`,
      after,
    );
    for (const { sequence, headers } of events)
      db.execute(
        "UPDATE catch_payloads SET headers = ? WHERE sequence = ?",
        withoutSealed(headers),
        sequence,
      );
    const last = events.at(-1);
    if (last === undefined) break;
    after = last.sequence;
  }
  return lostLines(
    "bucket",
    "signing secrets and settings of buckets, which are paused: set them and make the buckets live",
    buckets,
  );
};
