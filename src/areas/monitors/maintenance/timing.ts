import { invalidField } from "../../../kernel/errors.ts";
import { CronTimes, requestedTimes } from "../../../kernel/scheduler/calendar.ts";
import { timestampOf } from "../../../kernel/time/date-time.ts";
import { type Maintenance, type MaintenanceUpdateBody, TIME_ZONE } from "./schema.ts";
import type { MaintenanceRow } from "./store.ts";

type Window = Pick<MaintenanceRow, "starts_at" | "ends_at">;
/** When maintenance is: a single window, or recurring windows by a schedule, of which it has the current or the next one. */
type Timing = Window & Pick<MaintenanceRow, "schedule" | "tz" | "duration_ms">;
type Given = MaintenanceUpdateBody;

/** The timing after a change. `before`: null for new maintenance. @throws ApiError `validation_error` naming the field */
export function timingOf(body: Given, before: Timing | null, now: number): Timing {
  const recurs = before === null ? body.schedule !== undefined : before.schedule !== null;
  return recurs ? recurring(body, before, now) : once(body, before, now);
}

export function isOpen({ starts_at, ends_at }: Window, now: number): boolean {
  return starts_at <= now && now < ends_at;
}

export function statusOf(row: Window, now: number): Maintenance["status"] {
  if (isOpen(row, now)) return "active";
  return row.starts_at > now ? "scheduled" : "ended";
}

/** The first window of recurring maintenance that ends after a time; the current one if there is none. */
export function windowAfter(row: Timing, now: number): Window {
  const { schedule, tz, duration_ms } = row;
  if (schedule === null || duration_ms === null) return row;
  const starts_at = new CronTimes(schedule, tz ?? TIME_ZONE).after(now - duration_ms);
  return starts_at === null ? row : { starts_at, ends_at: starts_at + duration_ms };
}

function once(body: Given, before: Timing | null, now: number): Timing {
  const wrong = (["schedule", "tz", "duration_ms"] as const).find((field) => body[field] !== undefined);
  if (wrong !== undefined) throw invalidField(wrong, "must be omitted without schedule");
  const at = (field: "starts_at" | "ends_at"): number => {
    const text = body[field];
    if (text !== undefined) return timestampOf(field, text);
    if (before !== null) return before[field];
    throw invalidField(field, "is required without schedule");
  };
  const [starts_at, ends_at] = [at("starts_at"), at("ends_at")];
  if (ends_at <= starts_at) throw invalidField("ends_at", "must be after starts_at");
  if (before === null && ends_at <= now) throw invalidField("ends_at", "must be in the future");
  return { starts_at, ends_at, schedule: null, tz: null, duration_ms: null };
}

function recurring(body: Given, before: Timing | null, now: number): Timing {
  const wrong = (["starts_at", "ends_at"] as const).find((field) => body[field] !== undefined);
  if (wrong !== undefined) throw invalidField(wrong, "must be omitted with schedule");
  const schedule = body.schedule ?? before?.schedule ?? "";
  const tz = body.tz ?? before?.tz ?? TIME_ZONE;
  const duration_ms = body.duration_ms ?? before?.duration_ms ?? null;
  if (duration_ms === null) throw invalidField("duration_ms", "is required with schedule");
  const times = requestedTimes(schedule, tz, { expression: "schedule", timeZone: "tz" });
  const timing = { schedule, tz, duration_ms };
  const isSame = schedule === before?.schedule && tz === before.tz && duration_ms === before.duration_ms;
  if (isSame) return { ...timing, starts_at: before.starts_at, ends_at: before.ends_at };
  const starts_at = times.after(now - duration_ms);
  if (starts_at === null) throw invalidField("schedule", "must match a time in the future");
  return { ...timing, starts_at, ends_at: starts_at + duration_ms };
}
