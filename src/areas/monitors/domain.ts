import type { TargetStatus } from "./schema.ts";

/** What the checks so far amount to. */
export interface MonitorState {
  readonly status: TargetStatus;
  /** Of the last check; null before the first. */
  readonly latencyMs: number | null;
  /** Epoch milliseconds of the last check; null before the first. */
  readonly lastCheckedAt: number | null;
  readonly consecutiveFailures: number;
  /** When the last alert that it is down was sent; null while it is not down, or no alert has been sent. */
  readonly alertedAt: number | null;
  /** Whether it is up, but slow. */
  readonly degraded: boolean;
  /** Checks in a row towards a change: successes of what is down, else slow ones, or quick ones while it is degraded. */
  readonly streak: number;
}

/**
 * What a check of a target outside says of this server's own line: it was `proved` by an answer, it `failed` as it would
 * without a line, or it is `open`.
 */
export type ConnectivitySign = "proved" | "failed" | "open";

/** What a check found. */
export interface CheckResult {
  readonly up: boolean;
  readonly latencyMs: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Recorded at the very time it is made, so that none which was recorded before can be later. */
  readonly isImmediate?: boolean;
  /** Asked for by a user: it counts like any other, but sends no alert. */
  readonly manual: boolean;
}

/** When a monitor alerts, and whether it has anywhere to send alerts. */
export interface AlertRules {
  readonly threshold: number;
  /** Successes in a row that make it up again. */
  readonly recoveryThreshold: number;
  /** Milliseconds above which a check is slow; null: none is. */
  readonly degradedMs: number | null;
  readonly cooldownMs: number;
  readonly notifyRecovery: boolean;
  /** Whether there is a webhook, an e-mail address or a channel. */
  readonly hasListeners: boolean;
}

/** What people read of a monitor: the name that it was given, else the host that it checks, which a heartbeat has not. */
export function shownName({ name, url }: { readonly name: string | null; readonly url: string }): string {
  return name ?? (new URL(url).host || "Heartbeat");
}

/** What an alert says. */
export type MonitorEvent = "monitor.down" | "monitor.up";

/** Slow checks in a row after which a target is degraded, and quick ones after which it no longer is. */
const SLOW_CHECKS = 3;

/** How much older than a later one a slow check may be: three tries of 30 s, and as many of what its target depends on. */
export const OUTDATED_MS_MAX = 3 * 60_000;

/**
 * Whether a check is out of date, since a later one has ended before it. One that is older than any check lasts is not:
 * the clock was set back, and what it showed before must not outweigh all checks until it shows that again.
 */
export function isOutdated(
  { lastCheckedAt }: Pick<MonitorState, "lastCheckedAt">,
  { at, isImmediate = false }: Pick<CheckResult, "at" | "isImmediate">,
): boolean {
  if (isImmediate) return false;
  return lastCheckedAt !== null && at < lastCheckedAt && lastCheckedAt - at <= OUTDATED_MS_MAX;
}

/** The state after a check, and the alert that it causes. */
export function afterCheck(
  state: MonitorState,
  result: CheckResult,
  rules: AlertRules,
): { readonly state: MonitorState; readonly event: MonitorEvent | null } {
  // It goes into the history, and changes nothing.
  if (isOutdated(state, result)) return { state, event: null };
  const seen = { latencyMs: result.latencyMs, lastCheckedAt: result.at };
  const mayAlert = !result.manual && rules.hasListeners;
  if (result.up) {
    const recovered = state.status === "down";
    const successes = state.streak + 1;
    if (recovered && successes < rules.recoveryThreshold) {
      return { state: { ...state, ...seen, consecutiveFailures: 0, streak: successes }, event: null };
    }
    const event = recovered && mayAlert && rules.notifyRecovery ? "monitor.up" : null;
    const pace = paceAfter(recovered ? NORMAL_PACE : state, result, rules);
    return { state: { ...seen, ...pace, status: "up", consecutiveFailures: 0, alertedAt: null }, event };
  }
  const consecutiveFailures = state.consecutiveFailures + 1;
  const isDown = state.status === "down" || consecutiveFailures >= rules.threshold;
  if (!isDown) return { state: { ...state, ...seen, consecutiveFailures, streak: 0 }, event: null };
  // One alert, and another whenever the cooldown has passed. Of a down that only a manual check has found, none was sent.
  // One that lies ahead was sent before the clock was set back.
  const isDue = state.alertedAt === null || Math.abs(result.at - state.alertedAt) >= rules.cooldownMs;
  const alerts = mayAlert && isDue;
  const alertedAt = alerts ? result.at : state.alertedAt;
  return {
    state: { ...seen, ...NORMAL_PACE, status: "down", consecutiveFailures, alertedAt },
    event: alerts ? "monitor.down" : null,
  };
}

type Pace = Pick<MonitorState, "degraded" | "streak">;
const NORMAL_PACE: Pace = { degraded: false, streak: 0 };

/** How slow a target is after a success. */
function paceAfter({ degraded, streak }: Pace, { latencyMs }: CheckResult, { degradedMs }: AlertRules): Pace {
  if (degradedMs === null) return NORMAL_PACE;
  const isSlow = latencyMs > degradedMs;
  if (isSlow === degraded) return { degraded, streak: 0 };
  return streak + 1 < SLOW_CHECKS ? { degraded, streak: streak + 1 } : { degraded: isSlow, streak: 0 };
}

/** Whether the last check failed, and more must do so before it is down. */
export function isFailing({ status, consecutiveFailures }: MonitorState): boolean {
  return status !== "down" && consecutiveFailures > 0;
}

/** Longest wait for a monitor's first check: a little less than the 5 s promised, since starting it takes time as well. */
export const FIRST_CHECK_MS_MAX = 4_500;

/** Multiples of this, modulo 1, are spread as evenly as possible, however many there are. */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** Where in its interval, from 0 to 1, a monitor is checked. */
function share(ref: number): number {
  return (ref * GOLDEN_RATIO) % 1;
}

/** The first check of a monitor that was created or switched on at `now`. */
export function firstCheckAt(ref: number, now: number): number {
  return now + Math.floor(share(ref) * FIRST_CHECK_MS_MAX);
}

/**
 * The check after the one that was due at `dueAt` and ended at `now`. Each monitor has its own moment of the interval,
 * so that the checks of many are spread evenly. Moments that have passed are skipped.
 */
export function nextCheckAt(ref: number, intervalMs: number, dueAt: number, now: number): number {
  const offset = Math.floor(share(ref) * intervalMs);
  const momentAfter = (time: number): number =>
    (Math.floor((time - offset) / intervalMs) + 1) * intervalMs + offset;
  // A first check can be at any time: the second one comes half an interval later at least.
  const next = momentAfter(dueAt + Math.floor(intervalMs / 2));
  return next > now ? next : momentAfter(now);
}

const HOUR_MS = 3_600_000;

/** The beginning of a moment's hour. */
export function hourOf(epochMs: number): number {
  return epochMs - (epochMs % HOUR_MS);
}

/** Checks of one hour. */
export interface HourCount {
  readonly hour: number;
  readonly checks: number;
  readonly up: number;
}

/** How many checks of the last `hours` were up, in percent with three decimals; null without checks. */
export function uptimePercent(counts: readonly HourCount[], now: number, hours: number): number | null {
  const recent = counts.filter(({ hour }) => hour > now - hours * HOUR_MS);
  const sum = (of: "checks" | "up") => recent.reduce((total, count) => total + count[of], 0);
  const checks = sum("checks");
  return checks === 0 ? null : Math.round((sum("up") / checks) * 100_000) / 1_000;
}

/** `since 12:01 UTC`, with the day where that is another one than today. */
export function sinceText(at: number, now: number): string {
  const [day = "", time = ""] = new Date(at).toISOString().split("T");
  const isToday = new Date(now).toISOString().startsWith(day);
  return `since ${isToday ? "" : `${day} `}${time.slice(0, 5)} UTC`;
}

/** How long something took, for people: `45 s`, `12 min`, `5 h`, `3 days`. */
export function durationText(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 1) return `${Math.round(ms / 1_000)} s`;
  if (minutes < 120) return `${Math.round(minutes)} min`;
  return minutes < 2_880 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1_440)} days`;
}

/** Unix seconds. */
export function secondsOf(epochMs: number): number {
  return Math.floor(epochMs / 1_000);
}
