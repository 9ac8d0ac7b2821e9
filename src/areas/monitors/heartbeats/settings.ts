import { invalidField } from "../../../kernel/errors.ts";
import { requestedTimes } from "../../../kernel/scheduler/calendar.ts";
import { GRACE_MS, PERIOD_MS } from "../heartbeat-fields.ts";
import type { GivenTiming } from "../type-fields.ts";
import { nextExpected } from "./state.ts";
import type { HeartbeatSettings } from "./store.ts";

const TIME_ZONE = "UTC";
/** The settings of a heartbeat without any. */
const NEW: HeartbeatSettings = {
  slug: null,
  period_ms: null,
  schedule: null,
  tz: null,
  grace_ms: GRACE_MS,
  start_grace_ms: null,
  max_runs_per_period: null,
};

/**
 * The settings of a heartbeat after an update. A period replaces a schedule, and a schedule a period.
 * `before`: null for a new one.
 * @throws ApiError `validation_error` naming the field.
 */
export function mergedTiming(
  {
    slug,
    period_ms,
    schedule,
    tz,
    grace_ms,
    start_grace_ms: startGrace,
    max_runs_per_period: runsMax,
  }: GivenTiming,
  before: HeartbeatSettings | null,
  now: number,
): HeartbeatSettings {
  if (period_ms !== undefined && schedule !== undefined)
    throw invalidField("schedule", "cannot be combined with period_ms: omit one of them");
  const old = before ?? NEW;
  const kept = {
    slug: slug === undefined ? old.slug : slug,
    grace_ms: grace_ms ?? old.grace_ms,
    start_grace_ms: startGrace === undefined ? old.start_grace_ms : startGrace,
    max_runs_per_period: runsMax === undefined ? old.max_runs_per_period : runsMax,
  };
  const cron = schedule ?? (period_ms === undefined ? old.schedule : null);
  if (cron === null) {
    if (tz !== undefined) throw invalidField("tz", "applies only to a schedule: omit it");
    return { ...kept, period_ms: period_ms ?? old.period_ms ?? PERIOD_MS, schedule: null, tz: null };
  }
  const merged = { ...kept, period_ms: null, schedule: cron, tz: tz ?? old.tz ?? TIME_ZONE };
  if (schedule !== undefined || tz !== undefined) assertSchedule(merged, now);
  return merged;
}

function assertSchedule(timing: HeartbeatSettings & { schedule: string; tz: string }, now: number): void {
  requestedTimes(timing.schedule, timing.tz, { expression: "schedule", timeZone: "tz" });
  if (nextExpected(timing, now) === null) throw invalidField("schedule", "never occurs");
}
