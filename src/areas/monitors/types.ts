import type { MonitorType } from "./heartbeats/schema.ts";
import type { MonitorUpdateBody } from "./schema.ts";

/** What a type of monitor is, without what it does: see {@link TypeBehavior} for that. */
interface MonitorTypeInfo {
  /** Whether the server sends requests to a target; otherwise it waits for pings. */
  readonly checksTarget: boolean;
  /** Fields that only monitors of this type have. */
  readonly fields: readonly (keyof MonitorUpdateBody)[];
  /** How error messages name a monitor of this type. */
  readonly noun: string;
}

/** All types of monitors. */
export const MONITOR_TYPES: Readonly<Record<MonitorType, MonitorTypeInfo>> = {
  http: {
    checksTarget: true,
    fields: [
      "url",
      "interval",
      "method",
      "headers",
      "body",
      "timeout",
      "retry_interval",
      "degraded_ms",
      "notify_degraded",
      "accept_status",
      "keyword",
      "keyword_absent",
      "json_path",
      "json_op",
      "json_value",
      "tls_expiry_days",
    ],
    noun: "an http monitor",
  },
  heartbeat: {
    checksTarget: false,
    fields: ["slug", "period_ms", "schedule", "tz", "grace_ms"],
    noun: "a heartbeat",
  },
};

/** Whether monitors of a type send requests to a target. */
export function checksTarget(type: MonitorType): boolean {
  return MONITOR_TYPES[type].checksTarget;
}
