import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { CONFIRM } from "./monitor-more.tsx";
import { ProbeStates } from "./probe-states.tsx";

/** What each probe sees of a monitor, and how many must see it down. */
export function MonitorProbes({ of: { probe_states, confirm } }: { of: MonitorStatus }) {
  const rule = CONFIRM.find(([name]) => name === confirm)?.[1];
  return <ProbeStates states={probe_states} note={`Down when ${rule}`} />;
}
