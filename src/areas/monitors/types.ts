import { Type } from "@sinclair/typebox";
import { oneOf } from "../../kernel/data/schema.ts";

/** What a type of monitor is, without what it does: see `TypeBehavior` for that. */
interface MonitorTypeInfo<Field extends string = string> {
  /** What a monitor of this type does, in the description of the field `type`. */
  readonly does: string;
  /** Whether the server sends requests to a target; otherwise it waits for pings, or for incidents. */
  readonly checksTarget: boolean;
  /** What determines its state, if it has no target. */
  readonly waitsFor?: string;
  /** Fields that only monitors of some types have, this one among them. */
  readonly fields: readonly Field[];
  /** The fields that a new monitor must have. */
  readonly required: readonly Field[];
  /** How error messages name a monitor of this type. */
  readonly noun: string;
}

/** Fields of every type that checks a target. */
const CHECKED = [
  ...(["interval", "timeout", "retry_interval", "down_interval"] as const),
  ...(["degraded_ms", "notify_degraded"] as const),
  ...(["probes", "confirm"] as const),
] as const;

const TYPES = {
  http: {
    does: "requests a URL",
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
      "keywords_all",
      "keywords_any",
      "json_path",
      "json_op",
      "json_value",
      ...(["tls_verify", "tls_client_certificate", "tls_client_key", "tls_expiry_days"] as const),
    ],
    required: ["url", "interval"],
    noun: "an http monitor",
  },
  tcp: {
    does: "connects to a port",
    checksTarget: true,
    fields: ["host", "port", ...CHECKED, "keyword", "tls", "tls_expiry_days"],
    required: ["host", "port", "interval"],
    noun: "a tcp monitor",
  },
  dns: {
    does: "looks up records",
    checksTarget: true,
    fields: [
      ...(["host", "record_type", "record_value", "record_values", "match", "resolver"] as const),
      ...CHECKED,
    ],
    required: ["host", "record_type", "interval"],
    noun: "a dns monitor",
  },
  icmp: {
    does: "sends packets by ping",
    checksTarget: true,
    fields: ["host", ...CHECKED, "packets", "max_loss_percent"],
    required: ["host", "interval"],
    noun: "an icmp monitor",
  },
  domain: {
    does: "asks when a registered name expires",
    checksTarget: true,
    fields: ["host", "timeout"],
    required: ["host"],
    noun: "a domain monitor",
  },
  heartbeat: {
    does: "waits for pings",
    checksTarget: false,
    waitsFor: "pings",
    fields: [
      "slug",
      "period_ms",
      "schedule",
      "tz",
      "grace_ms",
      "start_grace_ms",
      "max_runs_per_period",
      "ping_id",
      "push_token",
    ],
    required: [],
    noun: "a heartbeat",
  },
  manual: {
    does: "has the state of the incidents that name it",
    checksTarget: false,
    waitsFor: "incidents",
    fields: [],
    required: [],
    noun: "a manual monitor",
  },
} as const satisfies Readonly<Record<string, MonitorTypeInfo>>;

export type MonitorType = keyof typeof TYPES;
type TypeField = (typeof TYPES)[MonitorType]["fields"][number];

/** All types of monitors. */
export const MONITOR_TYPES: Readonly<Record<MonitorType, MonitorTypeInfo<TypeField>>> = TYPES;
const NAMES = Object.keys(TYPES) as MonitorType[];

export const MonitorType = Type.Unsafe<MonitorType>(
  oneOf(NAMES, {
    description: `${NAMES.map((type) => `\`${type}\` ${TYPES[type].does}`).join(", ")}. Default \`http\`; fixed after creation.`,
  }),
);

/** Whether monitors of a type send requests to a target. */
export function checksTarget(type: MonitorType): boolean {
  return MONITOR_TYPES[type].checksTarget;
}

/** Whether a successful check of a type took a time that was measured, in milliseconds: a ping without a start took none. */
export function hasLatency(type: MonitorType, ms: number): boolean {
  return ms > 0 || checksTarget(type);
}

/** The types that require a field, for its description: "Required for `tcp` and `dns`." */
export function requiredFor(field: TypeField): string {
  const names = NAMES.filter((type) => MONITOR_TYPES[type].required.includes(field)).map(
    (type) => `\`${type}\``,
  );
  return `Required for ${enumerated(names)}.`;
}

/** "a", "a and b", or "a, b, and c". `Intl.ListFormat` would load its tables at each start of the server. */
function enumerated(names: readonly string[]): string {
  if (names.length <= 2) return names.join(" and ");
  return `${names.slice(0, -1).join(", ")}, and ${names.at(-1)}`;
}
