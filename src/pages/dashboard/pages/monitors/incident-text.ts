import type { Incident } from "../../../../client/generated/api.ts";
import { now } from "../../core/now.ts";
import { shortTime } from "../../core/times.ts";

/** Until when an outage that nobody has acknowledged is snoozed; null: it is not. */
export function snoozedText({
  snoozed_until: until,
  acknowledged_at,
  resolved_at,
}: Pick<Incident, "snoozed_until" | "acknowledged_at" | "resolved_at">): string | null {
  if (until === null || acknowledged_at !== null || resolved_at !== null) return null;
  return Date.parse(until) > now.value ? `snoozed until ${shortTime(Date.parse(until))}` : null;
}
