import { isIPv6 } from "node:net";
import type { MonitorType } from "../fields.ts";
import type { MonitorRow, MonitorSettings } from "../store.ts";
import { checkRecords } from "./dns.ts";
import { checkUrl } from "./http.ts";
import type { TargetOutcome, TargetParts } from "./target-outcome.ts";
import { checkPort } from "./tcp.ts";

interface TargetKind {
  /** URL that identifies the target in responses and alerts. */
  urlOf(settings: MonitorSettings): string;
  check(parts: TargetParts, monitor: MonitorRow): Promise<TargetOutcome>;
}

/** How each type checks its target. */
const TARGETS: Readonly<Record<Exclude<MonitorType, "heartbeat">, TargetKind>> = {
  http: { urlOf: ({ url }) => url, check: checkUrl },
  tcp: {
    urlOf: ({ host, port }) => `tcp://${host !== null && isIPv6(host) ? `[${host}]` : host}:${port}`,
    check: checkPort,
  },
  // RFC 4501.
  dns: { urlOf: ({ host, record_type }) => `dns:${host}?type=${record_type}`, check: checkRecords },
};

/** How a type that has a target checks it. */
export function targetOf(type: MonitorType): TargetKind {
  if (type === "heartbeat") throw new Error("a heartbeat has no target");
  return TARGETS[type];
}
