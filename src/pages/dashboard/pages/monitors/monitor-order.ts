import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { stateOf } from "./monitor-state.ts";

/** States of monitors, the worst first. */
const WORST_FIRST = ["down", "overdue", "degraded", "unknown", "up", "paused"];

/** Orders of the list. */
export const ORDERS = [
  ["", "Worst first"],
  ["name", "By name"],
  ["uptime", "Lowest uptime first"],
  ["latency", "Slowest first"],
  ["checked", "Last check first"],
] as const;
export type Order = (typeof ORDERS)[number][0];

/** Position of a state: the worst is 0. */
function badness(state: string): number {
  const at = WORST_FIRST.indexOf(state);
  return at < 0 ? WORST_FIRST.length : at;
}

type Compared = (a: MonitorStatus, b: MonitorStatus) => number;

const BY: Readonly<Record<Order, Compared>> = {
  "": (a, b) => badness(stateOf(a)) - badness(stateOf(b)),
  name: () => 0,
  uptime: (a, b) => (a.uptime ?? UNKNOWN_UPTIME) - (b.uptime ?? UNKNOWN_UPTIME),
  latency: (a, b) => latencyOf(b) - latencyOf(a),
  checked: (a, b) => (b.last_checked_at ?? 0) - (a.last_checked_at ?? 0),
};
/** Those without checks come last. */
const UNKNOWN_UPTIME = 101;

/** A heartbeat has no latency. */
function latencyOf({ type, latency_ms }: MonitorStatus): number {
  return type === "heartbeat" ? -1 : (latency_ms ?? -1);
}

/** Monitors in an order; equal ones by name. */
export function ordered(monitors: readonly MonitorStatus[], order: Order): readonly MonitorStatus[] {
  return monitors.toSorted((a, b) => BY[order](a, b) || a.name.localeCompare(b.name));
}

/** Whether a name, group or target has every word of a search. */
export function matches({ name, group, url }: MonitorStatus, search: string): boolean {
  const text = `${group ?? ""} ${name} ${url}`.toLowerCase();
  return search
    .toLowerCase()
    .split(" ")
    .every((word) => text.includes(word));
}

/** Monitors of a group, with the states of all of them. */
export interface Group {
  /** Null for monitors without a group. */
  readonly name: string | null;
  readonly monitors: readonly MonitorStatus[];
  readonly worst: string;
}

/** The groups of monitors, in the order of their worst states; those without a group are the first of equal ones. */
export function groupsOf(monitors: readonly MonitorStatus[]): readonly Group[] {
  const groups = [...Map.groupBy(monitors, ({ group }) => group)].map(([name, all]) => {
    const [worst = "up"] = all.map(stateOf).sort((a, b) => badness(a) - badness(b));
    return { name, monitors: all, worst };
  });
  return groups.sort(
    (a, b) => badness(a.worst) - badness(b.worst) || (a.name ?? "").localeCompare(b.name ?? ""),
  );
}

/** How many monitors have each state. */
export function countsOf(monitors: readonly MonitorStatus[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const state of monitors.map(stateOf)) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
}
