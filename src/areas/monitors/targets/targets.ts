import type { MonitorType } from "../types.ts";
import { DNS } from "./dns.ts";
import { HTTP } from "./http.ts";
import { ICMP } from "./icmp.ts";
import { DOMAIN } from "./registration.ts";
import type { TargetKind } from "./target.ts";
import { TCP } from "./tcp.ts";

/** How each type checks its target. */
const TARGETS: Readonly<Record<Exclude<MonitorType, "heartbeat" | "manual">, TargetKind>> = {
  http: HTTP,
  tcp: TCP,
  dns: DNS,
  icmp: ICMP,
  domain: DOMAIN,
};

/** How a type that has a target checks it. */
export function targetOf(type: MonitorType): TargetKind {
  if (type === "heartbeat" || type === "manual") throw new Error(`a monitor of type ${type} has no target`);
  return TARGETS[type];
}
