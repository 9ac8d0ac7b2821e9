import type { Random } from "../crash/random.ts";
import { inParallel } from "../crash/target.ts";
import { freePorts } from "../processes/ports.ts";
import type { Api } from "./api.ts";
import { LOCAL, type Outage, type WatchedMonitor } from "./record.ts";
import type { Target, Targets } from "./targets.ts";

/** Every so many monitors has a port as its target, and every so many has outages. */
const TCP_EVERY = 20;
const OUTAGES_EVERY = 17;
/** Outages of such a monitor: with five changes of its status it would be flapping. */
const OUTAGES = 2;
/** Share of the outages that are short, and their longest duration. */
const BLIP_CHANCE = 0.25;
const BLIP_MS_MAX = 5_000;
/** Longest time for a check: nothing is down because the machine is busy. */
const TIMEOUT_MS = 10_000;
/** Intervals after which an outage is long. */
const LONG_INTERVALS = 4;
const CREATING = 16;

/** An outage of the plan. */
interface PlannedOutage {
  readonly afterMs: number;
  readonly ms: number;
  readonly isLong: boolean;
}

/** A monitor with its target, and what is planned for it. */
export interface Watched {
  readonly id: string;
  readonly checkers: readonly string[];
  readonly target: Target;
  readonly plan: readonly PlannedOutage[];
  /** Outages that have begun. */
  readonly outages: Outage[];
}

/** What monitors are checked by. The last probe, whose link is partitioned, is never the only one. */
function checkersOf(probes: readonly string[]): { probes: string[]; confirm: string }[] {
  const alone = [LOCAL, ...probes.slice(0, -1)].map((name) => ({ probes: [name], confirm: "majority" }));
  const last = probes.at(-1) ?? "";
  const [first = "", second = first] = probes;
  return [
    ...alone,
    { probes: [LOCAL, first], confirm: "all" },
    { probes: [LOCAL, second, last], confirm: "majority" },
    { probes: [first, last], confirm: "any" },
    { probes: [second, last], confirm: "all" },
    { probes: [LOCAL, ...probes], confirm: "majority" },
  ];
}

/** How many monitors there are, and for how long they have outages. */
export interface WatchedPlan {
  readonly monitors: number;
  readonly intervalMs: number;
  readonly probes: readonly string[];
  /** Time in which the outages are, and their duration, but for a share of short ones. */
  readonly forMs: number;
  readonly outageMs: number;
  /** Time between checks while a target is down; null: the interval. */
  readonly downIntervalMs: number | null;
}

/** Creates the monitors, and plans their outages. */
export async function createWatched(
  api: Api,
  targets: Targets,
  random: Random,
  plan: WatchedPlan,
): Promise<Watched[]> {
  const { monitors, intervalMs, probes, downIntervalMs } = plan;
  const kinds = checkersOf(probes);
  const numbers = Array.from({ length: monitors }, (_, number) => number);
  const ports = freePorts(Math.ceil(monitors / TCP_EVERY));
  const prepared = numbers.map((number) => {
    const isTcp = number % TCP_EVERY === TCP_EVERY - 1;
    return {
      kind: kinds[number % kinds.length] as (typeof kinds)[number],
      target: isTcp ? targets.tcp(ports.pop() ?? 0) : targets.http(),
      plan: number % OUTAGES_EVERY === 0 || isTcp ? planOf(random, plan) : [],
    };
  });
  return inParallel(prepared, CREATING, async ({ kind, target, plan }) => {
    const { id } = await api.ask<{ id: string }>("POST", "/v1/pulse", {
      ...target.body,
      ...kind,
      interval: intervalMs,
      timeout: TIMEOUT_MS,
      consecutive_threshold: 1,
      down_interval: downIntervalMs,
    });
    return { id, checkers: kind.probes, target, plan, outages: [] };
  });
}

/**
 * One after another, each in its share of the time, with as long a pause as a change needs to be noticed. Everyone notices an
 * outage that lasts several intervals: until votes from before have lapsed, all have checked again, and late results have arrived.
 */
function planOf(random: Random, { forMs, outageMs, intervalMs }: WatchedPlan): PlannedOutage[] {
  const roomMs = Math.max(outageMs, LONG_INTERVALS * intervalMs);
  const count = forMs >= 2 * OUTAGES * roomMs ? OUTAGES : 1;
  const shareMs = forMs / count;
  return Array.from({ length: count }, (_, index) => {
    const isBlip = index > 0 && random.chance(BLIP_CHANCE);
    const ms = isBlip ? 1 + random.below(BLIP_MS_MAX) : outageMs;
    const pauseMs = index === 0 ? 0 : outageMs / 2;
    const free = Math.max(1, shareMs - outageMs - pauseMs);
    const isLong = ms >= LONG_INTERVALS * intervalMs;
    return { afterMs: index * shareMs + pauseMs + random.below(free), ms, isLong };
  });
}

/** Runs the plan of a monitor. `isNoticed` resolves when its alert has arrived; the outage waits for it `patienceMs`. */
export async function runOutages(
  { id, target, plan, outages }: Watched,
  patienceMs: number,
  isNoticed: (monitorId: string) => Promise<void>,
): Promise<void> {
  const begun = Date.now();
  for (const { afterMs, ms, isLong } of plan) {
    await Bun.sleep(Math.max(0, begun + afterMs - Date.now()));
    const from = Date.now();
    target.setUp(false);
    const noticed = patienceMs > 0 ? isNoticed(id) : Promise.resolve();
    await Promise.all([Bun.sleep(ms), Promise.race([noticed, Bun.sleep(ms + patienceMs)])]);
    outages.push({ from, to: Date.now(), isLong });
    target.setUp(true);
  }
}

/** A monitor and its history for the judge. */
export async function recordOf(api: Api, watched: Watched, since: number): Promise<WatchedMonitor> {
  const { id, checkers, target, outages } = watched;
  const seen = target.seen.filter((at) => at >= since);
  return { id, checkers, seesAll: target.seesAll, outages, seen, history: await api.history(id, since) };
}
