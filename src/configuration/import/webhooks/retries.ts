import { durationText } from "../../../kernel/data/duration-text.ts";
import { RETRIES_MAX } from "../../../kernel/data/schema.ts";
import { DAY_MS, SECOND_MS } from "../../../kernel/time/units.ts";
import type { SourceObject } from "../source.ts";

/** Longest delay before a retry, and of all retries together, that a `retry_schedule` can have. */
const DELAY_MS_MAX = DAY_MS;
const DELAYS_MS_MAX = 7 * DAY_MS;

/** Most retries that are read of a source: more than any product has. */
export const RETRIES_READ_MAX = 1_000;

/** Retries of another product. */
export interface SourceRetries {
  /** Whether each delay is twice the one before. */
  readonly isExponential: boolean;
  readonly intervalMs: number;
  readonly count: number;
  /** Longest delay of the product. */
  readonly delayMsMax: number;
}

/** The `retry_schedule` of retries that another product describes. What it cannot have is noted at `field`. */
export function retryScheduleOf(
  subject: SourceObject,
  field: string,
  { isExponential, intervalMs, count, delayMsMax }: SourceRetries,
): readonly string[] {
  const delays = Array.from({ length: Math.min(count, RETRIES_READ_MAX) }, (_, index) =>
    Math.min(intervalMs * (isExponential ? 2 ** index : 1), delayMsMax),
  );
  return limitedSchedule(subject, field, delays);
}

/** Delays in milliseconds as a `retry_schedule`, in whole seconds and within its limits. Fewer retries are noted at `field`. */
export function limitedSchedule(
  subject: SourceObject,
  field: string,
  delays: readonly number[],
): readonly string[] {
  const schedule: string[] = [];
  let total = 0;
  for (const delay of delays.slice(0, RETRIES_MAX)) {
    const ms = Math.max(1, Math.round(Math.min(delay, DELAY_MS_MAX) / SECOND_MS)) * SECOND_MS;
    total += ms;
    if (total > DELAYS_MS_MAX) break;
    schedule.push(durationText(ms, "h"));
  }
  if (schedule.length < delays.length) subject.noteChange(field, `lowered to ${schedule.length} retries`);
  return schedule;
}
