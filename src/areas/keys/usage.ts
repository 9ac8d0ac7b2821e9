import { type UsageQuery, usageOf } from "../../kernel/data/usage.ts";
import { OUTCOMES, USAGE_RETENTION_MS } from "./domain.ts";
import type { KeyUsage } from "./schema.ts";
import type { HourRow } from "./store.ts";

type Bucket = KeyUsage["data"][number];

/**
 * Usage of a key by hour or day, UTC. `hours` returns the counts from one hour until before another, in any order.
 * @throws ApiError `validation_error`
 */
export function keyUsageOf(
  query: UsageQuery,
  now: number,
  hours: (from: number, to: number) => readonly HourRow[],
): KeyUsage {
  return usageOf<HourRow, Bucket>(query, {
    now,
    retentionMs: USAGE_RETENTION_MS,
    hours,
    empty: (from) => ({ from, total: 0, valid: 0, errors: {} }),
    add(bucket, { outcome, count }) {
      bucket.total += count;
      const name = OUTCOMES[outcome] ?? "valid";
      if (name === "valid") bucket.valid += count;
      else bucket.errors[name] = (bucket.errors[name] ?? 0) + count;
    },
  });
}
