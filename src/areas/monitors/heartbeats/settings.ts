import { invalidField } from "../../../kernel/errors.ts";
import { CronTimes, isTimeZone } from "../../../kernel/scheduler/calendar.ts";
import type { MonitorUpdateBody } from "../schema.ts";
import { MONITOR_TYPES } from "../types.ts";
import { GRACE_MS, type MonitorType, PERIOD_MS } from "./schema.ts";
import { nextExpected } from "./state.ts";
import type { HeartbeatSettings } from "./store.ts";

const TYPES = Object.keys(MONITOR_TYPES) as MonitorType[];
const TIME_ZONE = "UTC";

/** Separates the settings of heartbeats from those of every monitor. */
export function splitGiven({ type, slug, period_ms, schedule, tz, grace_ms, ...common }: MonitorUpdateBody) {
  return { type, timing: { slug, period_ms, schedule, tz, grace_ms }, common };
}

type GivenTiming = ReturnType<typeof splitGiven>["timing"];

/** @throws ApiError `validation_error` for a type other than the monitor's, and for fields of another type. */
export function assertOfType(type: MonitorType, given: MonitorUpdateBody): void {
  if (given.type !== undefined && given.type !== type)
    throw invalidField("type", `is ${type} and cannot be changed. Create another monitor`);
  const other = TYPES.find(
    (one) => one !== type && MONITOR_TYPES[one].fields.some((field) => given[field] !== undefined),
  );
  if (other === undefined) return;
  const field = MONITOR_TYPES[other].fields.find((name) => given[name] !== undefined) ?? "type";
  throw invalidField(
    field,
    `is a field of ${MONITOR_TYPES[other].noun}, and the \`type\` of this monitor is ${type}. Omit it.`,
  );
}

/**
 * The settings of a heartbeat after an update. A period replaces a schedule, and a schedule a period.
 * `before`: null for a new one.
 * @throws ApiError `validation_error` naming the field.
 */
export function mergedTiming(
  { slug, period_ms, schedule, tz, grace_ms }: GivenTiming,
  before: HeartbeatSettings | null,
  now: number,
): HeartbeatSettings {
  if (period_ms !== undefined && schedule !== undefined)
    throw invalidField("schedule", "cannot be combined with period_ms: omit one of them");
  const old = before ?? { slug: null, period_ms: null, schedule: null, tz: null, grace_ms: GRACE_MS };
  const kept = { slug: slug === undefined ? old.slug : slug, grace_ms: grace_ms ?? old.grace_ms };
  const cron = schedule ?? (period_ms === undefined ? old.schedule : null);
  if (cron === null) {
    if (tz !== undefined) throw invalidField("tz", "applies only to a schedule: omit it");
    return { ...kept, period_ms: period_ms ?? old.period_ms ?? PERIOD_MS, schedule: null, tz: null };
  }
  const merged = { ...kept, period_ms: null, schedule: cron, tz: tz ?? old.tz ?? TIME_ZONE };
  if (schedule !== undefined || tz !== undefined) assertSchedule(merged, now);
  return merged;
}

/** An unknown time zone causes an error only when a time is calculated. */
function assertSchedule(timing: HeartbeatSettings & { schedule: string; tz: string }, now: number): void {
  if (!isTimeZone(timing.tz)) throw invalidField("tz", "must be a time zone such as Europe/Berlin or UTC");
  if (!isCron(timing.schedule, timing.tz))
    throw invalidField("schedule", "must be five fields such as 30 2 * * *");
  if (nextExpected(timing, now) === null) throw invalidField("schedule", "never occurs");
}

function isCron(schedule: string, tz: string): boolean {
  try {
    new CronTimes(schedule, tz);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}
