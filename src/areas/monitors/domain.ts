/** What a monitor says of its target. */
export type MonitorStatus = "up" | "down" | "unknown";

/** What the checks so far amount to. */
export interface MonitorState {
  readonly status: MonitorStatus;
  /** Of the last check; null before the first. */
  readonly latencyMs: number | null;
  /** Epoch milliseconds of the last check; null before the first. */
  readonly lastCheckedAt: number | null;
  readonly consecutiveFailures: number;
  /** When somebody was last told that it is down; null while it is not, and while nobody knows. */
  readonly toldAt: number | null;
}

/** What a check found. */
export interface CheckResult {
  readonly up: boolean;
  readonly latencyMs: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Asked for by a user: it counts like any other, but tells nobody. */
  readonly manual: boolean;
}

/** When a monitor tells, and whether anybody listens. */
export interface AlertRules {
  readonly threshold: number;
  readonly cooldownMs: number;
  readonly notifyRecovery: boolean;
  /** Whether there is a webhook or an e-mail address to tell. */
  readonly hasListeners: boolean;
}

/** What is told. */
export type MonitorEvent = "monitor.down" | "monitor.up";

/** The state of a monitor that was never checked. */
export const UNCHECKED: MonitorState = {
  status: "unknown",
  latencyMs: null,
  lastCheckedAt: null,
  consecutiveFailures: 0,
  toldAt: null,
};

/** The state after a check, and what is to be told of it (service: states and transitions of a monitor). */
export function afterCheck(
  state: MonitorState,
  result: CheckResult,
  rules: AlertRules,
): { readonly state: MonitorState; readonly event: MonitorEvent | null } {
  // A slow check that ends after a later one says what was so before: it goes into the history, and changes nothing.
  if (state.lastCheckedAt !== null && result.at < state.lastCheckedAt) return { state, event: null };
  const seen = { latencyMs: result.latencyMs, lastCheckedAt: result.at };
  const mayTell = !result.manual && rules.hasListeners;
  if (result.up) {
    const recovered = state.status === "down";
    const event = recovered && mayTell && rules.notifyRecovery ? "monitor.up" : null;
    return { state: { ...seen, status: "up", consecutiveFailures: 0, toldAt: null }, event };
  }
  const consecutiveFailures = state.consecutiveFailures + 1;
  const isDown = state.status === "down" || consecutiveFailures >= rules.threshold;
  if (!isDown) return { state: { ...state, ...seen, consecutiveFailures }, event: null };
  // Told once, and again whenever the cooldown has passed. A down that only a manual check has found was told to nobody.
  const isDue = state.toldAt === null || result.at - state.toldAt >= rules.cooldownMs;
  const tells = mayTell && isDue;
  const toldAt = tells ? result.at : state.toldAt;
  return {
    state: { ...seen, status: "down", consecutiveFailures, toldAt },
    event: tells ? "monitor.down" : null,
  };
}

/** Longest wait for a monitor's first check. A little less than the 5 s promised: starting it takes time as well. */
export const FIRST_CHECK_MS_MAX = 4_500;

/** Consecutive numbers times this, modulo 1, lie as evenly as can be, however many there are. */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** Where between 0 and 1 of its interval the checks of a monitor lie. */
function share(ref: number): number {
  return (ref * GOLDEN_RATIO) % 1;
}

/** When a monitor that was created or switched on at `now` is first checked. */
export function firstCheckAt(ref: number, now: number): number {
  return now + Math.floor(share(ref) * FIRST_CHECK_MS_MAX);
}

/**
 * When a monitor is checked next, after the check that was due at `dueAt` and ended at `now`: at its own moments of the
 * interval, which spread the checks of many monitors evenly. Moments that have passed are left out.
 */
export function nextCheckAt(ref: number, intervalMs: number, dueAt: number, now: number): number {
  const offset = Math.floor(share(ref) * intervalMs);
  const momentAfter = (time: number): number =>
    (Math.floor((time - offset) / intervalMs) + 1) * intervalMs + offset;
  // A first check lies anywhere: the second one then comes half an interval later at least.
  const next = momentAfter(dueAt + Math.floor(intervalMs / 2));
  return next > now ? next : momentAfter(now);
}

const HOUR_MS = 3_600_000;

/** The beginning of the hour that a moment belongs to. */
export function hourOf(epochMs: number): number {
  return epochMs - (epochMs % HOUR_MS);
}

/** Checks of one hour. */
export interface HourCount {
  readonly hour: number;
  readonly checks: number;
  readonly up: number;
}

/** The part of checks within the last `hours` that were up, in percent with three decimals; null without checks. */
export function uptimePercent(counts: readonly HourCount[], now: number, hours: number): number | null {
  let checks = 0;
  let up = 0;
  for (const count of counts) {
    if (count.hour <= now - hours * HOUR_MS) continue;
    checks += count.checks;
    up += count.up;
  }
  return checks === 0 ? null : Math.round((up / checks) * 100_000) / 1_000;
}
