import type { MonitorType } from "./fields.ts";
import type { MonitorUpdateBody } from "./schema.ts";

/** What a type of monitor is, without what it does: see {@link TypeBehavior} for that. */
interface MonitorTypeInfo {
  /** Whether the server sends requests to a target; otherwise it waits for pings. */
  readonly checksTarget: boolean;
  /** Fields that only monitors of some types have, this one among them. */
  readonly fields: readonly (keyof MonitorUpdateBody)[];
  /** The fields that a new monitor must have. */
  readonly required: readonly (keyof MonitorUpdateBody)[];
  /** How error messages name a monitor of this type. */
  readonly noun: string;
}

/** Fields of every type that checks a target. */
const CHECKED = ["interval", "timeout", "retry_interval", "degraded_ms", "notify_degraded"] as const;

/** All types of monitors. */
export const MONITOR_TYPES: Readonly<Record<MonitorType, MonitorTypeInfo>> = {
  http: {
    checksTarget: true,
    fields: [
      "url",
      ...CHECKED,
      "method",
      "headers",
      "body",
      "accept_status",
      "keyword",
      "keyword_absent",
      "json_path",
      "json_op",
      "json_value",
      "tls_expiry_days",
    ],
    required: ["url", "interval"],
    noun: "an http monitor",
  },
  heartbeat: {
    checksTarget: false,
    fields: ["slug", "period_ms", "schedule", "tz", "grace_ms"],
    required: [],
    noun: "a heartbeat",
  },
  tcp: {
    checksTarget: true,
    fields: ["host", "port", ...CHECKED, "keyword"],
    required: ["host", "port", "interval"],
    noun: "a tcp monitor",
  },
  dns: {
    checksTarget: true,
    fields: ["host", "record_type", "record_value", ...CHECKED],
    required: ["host", "record_type", "interval"],
    noun: "a dns monitor",
  },
};

/** Whether monitors of a type send requests to a target. */
export function checksTarget(type: MonitorType): boolean {
  return MONITOR_TYPES[type].checksTarget;
}
