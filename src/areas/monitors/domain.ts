import { type Latencies, NO_LATENCIES, sumOfLatencies } from "../../kernel/data/latencies.ts";
import { partUp, type UptimeCounts } from "../../kernel/data/uptime.ts";
import { type ErrorMeaning, registerErrors } from "../../kernel/errors.ts";
import { DAY_MS, HOUR_MS } from "../../kernel/time/units.ts";
import type { TargetStatus } from "./schema.ts";

const codes = registerErrors({
  monitor_name_taken: [
    409,
    "Another monitor of the project has this name: the one in `monitor_id`.",
    "Use the monitor in `monitor_id`, or another name.",
  ],
  monitor_slug_taken: [
    409,
    "Another heartbeat of the project has this slug: the one in `monitor_id`.",
    "Use the heartbeat in `monitor_id`, or another slug.",
  ],
  ping_id_taken: [
    409,
    "Another heartbeat of the server has this `ping_id` or `push_token`.",
    "Omit it, so that the server chooses one, or keep the heartbeat that has it.",
  ],
  monitor_limit_exceeded: [
    403,
    "The account has the maximum number of monitors of its tier.",
    "Delete monitors that are not used, or request another tier from the operator.",
  ],
  maintenance_limit_exceeded: [
    403,
    "The project has the maximum number of maintenance entries.",
    "Delete maintenance windows that are over.",
  ],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** The state of a monitor after its checks. */
export interface MonitorState {
  readonly status: TargetStatus;
  /** Latency of the last check, milliseconds; null before the first. */
  readonly latencyMs: number | null;
  /** Epoch milliseconds of the last check; null before the first. */
  readonly lastCheckedAt: number | null;
  readonly consecutiveFailures: number;
  /** When the last alert of the current outage was sent, epoch milliseconds; null without one. */
  readonly alertedAt: number | null;
  /** Whether the target is up, but slow, or some probes see it down. */
  readonly degraded: boolean;
  /** Whether some probes see it down, and fewer than needed. */
  readonly isSplit: boolean;
  /** Whether it is a heartbeat whose first success is missing for longer than its period and grace; its status is unknown. */
  readonly overdue: boolean;
  /** Consecutive checks towards a change: successes while down; slow checks while up; fast checks while degraded. */
  readonly streak: number;
}

/**
 * What a check of a public target shows about the server's connectivity: a response `proved` it, the check `failed` as it
 * does when the server is offline, or neither (`open`).
 */
export type ConnectivitySign = "proved" | "failed" | "open";

/** Result of a check. */
export interface CheckResult {
  readonly up: boolean;
  /** Whether the check could not be made, so that it says nothing about the target; it is not `up` then. */
  readonly isUnknown?: boolean;
  readonly latencyMs: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Whether it is recorded at the time it is made, so that it cannot be out of date. */
  readonly isImmediate?: boolean;
  /** Whether a user requested it: it counts like any other check, but causes no alert. */
  readonly manual: boolean;
}

/** When a monitor changes its status and sends alerts. */
export interface AlertRules {
  readonly threshold: number;
  /** Consecutive successes after which a target that is down is up. */
  readonly recoveryThreshold: number;
  /** Latency above which a check is slow, milliseconds; null: no check is slow. */
  readonly degradedMs: number | null;
  readonly cooldownMs: number;
  readonly notifyRecovery: boolean;
  /** Whether there is a webhook, an e-mail alert or a channel. */
  readonly hasListeners: boolean;
}

/** The displayed name of a monitor: its name, else the host of its target, else `Heartbeat` or `Component`. */
export function shownName({ name, url }: { readonly name: string | null; readonly url: string }): string {
  return name ?? (hostOf(url) || (url.startsWith("manual:") ? "Component" : "Heartbeat"));
}

/** The host and the port of a target's URL, or the name that a `dns:` or `domain:` URL is about; empty for heartbeats and manual monitors. */
export function hostOf(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return protocol === "dns:" || protocol === "domain:" ? pathname : host;
}

/** Event of an alert. */
export type MonitorEvent = "monitor.down" | "monitor.up";

/** Consecutive slow checks after which a target is degraded, and fast checks after which it no longer is. */
const SLOW_CHECKS = 3;

/** Longest duration of a check: three attempts of 30 s, and as many of the monitor that it depends on. */
export const OUTDATED_MS_MAX = 3 * 60_000;

/**
 * Whether a check is out of date because a later one ended before it. A check that seems older than any check can be is
 * not: the clock was set back, and checks from before must not outweigh all later ones.
 */
export function isOutdated(
  { lastCheckedAt }: Pick<MonitorState, "lastCheckedAt">,
  { at, isImmediate = false }: Pick<CheckResult, "at" | "isImmediate">,
): boolean {
  if (isImmediate) return false;
  return lastCheckedAt !== null && at < lastCheckedAt && lastCheckedAt - at <= OUTDATED_MS_MAX;
}

/** Calculates the state after a check, and the alert that the check causes. */
export function afterCheck(
  state: MonitorState,
  result: CheckResult,
  rules: AlertRules,
): { readonly state: MonitorState; readonly event: MonitorEvent | null } {
  // It is stored in the history only.
  if (isOutdated(state, result)) return { state, event: null };
  const lastCheck = { latencyMs: result.latencyMs, lastCheckedAt: result.at };
  if (result.isUnknown === true) {
    const { alertedAt } = state;
    const unknown = { status: "unknown", overdue: false, consecutiveFailures: 0, alertedAt } as const;
    return { state: { ...lastCheck, ...NORMAL_PACE, ...unknown }, event: null };
  }
  const mayAlert = !result.manual && rules.hasListeners;
  if (result.up) {
    const wasDown = state.status === "down";
    const successes = state.streak + 1;
    if (wasDown && successes < rules.recoveryThreshold) {
      return { state: { ...state, ...lastCheck, consecutiveFailures: 0, streak: successes }, event: null };
    }
    const event = wasDown && mayAlert && rules.notifyRecovery ? "monitor.up" : null;
    const pace = paceAfter(wasDown ? NORMAL_PACE : state, result, rules);
    const up = { status: "up", overdue: false, consecutiveFailures: 0, alertedAt: null } as const;
    return { state: { ...lastCheck, ...pace, ...up }, event };
  }
  const consecutiveFailures = state.consecutiveFailures + 1;
  const isDown = state.status === "down" || consecutiveFailures >= rules.threshold;
  if (!isDown) return { state: { ...state, ...lastCheck, consecutiveFailures, streak: 0 }, event: null };
  // One alert, repeated after each cooldown. An outage found by a manual check has had no alert. An alert in the future was
  // sent before the clock was set back.
  const isDue = state.alertedAt === null || Math.abs(result.at - state.alertedAt) >= rules.cooldownMs;
  const sendsAlert = mayAlert && isDue;
  const alertedAt = sendsAlert ? result.at : state.alertedAt;
  return {
    state: { ...lastCheck, ...NORMAL_PACE, status: "down", overdue: false, consecutiveFailures, alertedAt },
    event: sendsAlert ? "monitor.down" : null,
  };
}

type Pace = Pick<MonitorState, "degraded" | "isSplit" | "streak">;
const NORMAL_PACE: Pace = { degraded: false, isSplit: false, streak: 0 };

/** Whether a target is degraded after a success. */
function paceAfter(
  { degraded, streak }: Pick<Pace, "degraded" | "streak">,
  { latencyMs }: CheckResult,
  { degradedMs }: AlertRules,
): Pace {
  if (degradedMs === null) return NORMAL_PACE;
  const isSlow = latencyMs > degradedMs;
  if (isSlow === degraded) return { ...NORMAL_PACE, degraded };
  if (streak + 1 < SLOW_CHECKS) return { ...NORMAL_PACE, degraded, streak: streak + 1 };
  return { ...NORMAL_PACE, degraded: isSlow };
}

/** Whether the last check failed, but the target is not down yet. */
export function isFailing({ status, consecutiveFailures }: MonitorState): boolean {
  return status !== "down" && consecutiveFailures > 0;
}

/** Longest delay of a monitor's first check: a little less than the 5 s promised, since starting it takes time. */
export const FIRST_CHECK_MS_MAX = 4_500;

/** Multiples of this, modulo 1, are evenly spread. */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** The position in its interval, from 0 to 1, at which a monitor is checked. */
function share(ref: number): number {
  return (ref * GOLDEN_RATIO) % 1;
}

/** Time of the first check of a monitor that was created or activated at `now`. */
export function firstCheckAt(ref: number, now: number): number {
  return now + Math.floor(share(ref) * FIRST_CHECK_MS_MAX);
}

/**
 * Time of the check after the one that was due at `dueAt` and ended at `now`. Each monitor has its own offset in the
 * interval, so that checks are evenly spread. Times that have passed are skipped.
 */
export function nextCheckAt(ref: number, intervalMs: number, dueAt: number, now: number): number {
  const offset = Math.floor(share(ref) * intervalMs);
  const timeAfter = (time: number): number =>
    (Math.floor((time - offset) / intervalMs) + 1) * intervalMs + offset;
  // The first check, and one at another interval, can be at any time: the next one comes at least half an interval later. Where
  // that would be more than an interval, there is another one half way.
  const after = timeAfter(dueAt + Math.floor(intervalMs / 2));
  const next = after - dueAt > intervalMs ? dueAt + Math.floor((after - dueAt) / 2) : after;
  return next > now ? next : timeAfter(now);
}

/** Retention of checks. */
export const CHECK_RETENTION_MS = 30 * DAY_MS;

/** The start of the hour, epoch milliseconds. */
export function hourOf(epochMs: number): number {
  return epochMs - (epochMs % HOUR_MS);
}

/** Number of checks in one hour. */
export interface HourCount extends UptimeCounts {
  readonly hour: number;
  /** Sum of the latencies of its successful checks, milliseconds; null if it was not recorded. */
  readonly latencySum: number | null;
  /** How long they took; null if it was not recorded. */
  readonly latencies: Latencies | null;
}

type Counts = Omit<HourCount, "hour">;

/** Counts of a period without checks. */
export const NO_CHECKS: Counts = {
  checks: 0,
  up: 0,
  latencySum: 0,
  latencies: NO_LATENCIES,
  knownMs: 0,
  upMs: 0,
};

/** Counts of two periods together. */
export function sumOf(left: Counts, right: Counts): Counts {
  return {
    checks: left.checks + right.checks,
    up: left.up + right.up,
    latencySum:
      left.latencySum === null || right.latencySum === null ? null : left.latencySum + right.latencySum,
    latencies:
      left.latencies === null || right.latencies === null
        ? null
        : sumOfLatencies(left.latencies, right.latencies),
    knownMs: left.knownMs + right.knownMs,
    upMs: left.upMs + right.upMs,
  };
}

/** The check that stands for the target's state until the next scheduled one. */
export interface StandingCheck {
  /** Its time, epoch milliseconds; null where none stands: before the first one, during maintenance, while paused. */
  readonly standsSince: number | null;
  readonly standsUp: boolean;
}

/** The time that a check stood for between two instants, as counts: `sumOf` adds it. */
export function timeStood({ standsSince, standsUp }: StandingCheck, from: number, to: number): Counts {
  if (standsSince === null) return NO_CHECKS;
  const knownMs = Math.max(0, to - Math.max(standsSince, from));
  return { ...NO_CHECKS, knownMs, upMs: standsUp ? knownMs : 0 };
}

/** The time that a check stood for between two instants, by the hours or days (`sizeMs`) that it was in, oldest first. */
export function timeStoodBy(
  sizeMs: number,
  check: StandingCheck,
  from: number,
  to: number,
): (Counts & { readonly at: number })[] {
  if (check.standsSince === null) return [];
  const parts: (Counts & { readonly at: number })[] = [];
  const begin = Math.max(check.standsSince, from);
  for (let at = begin - (begin % sizeMs); at < to; at += sizeMs)
    parts.push({ at, ...timeStood(check, Math.max(at, from), Math.min(at + sizeMs, to)) });
  return parts;
}

/** Share of the last `hours` that was up, in percent with three decimals; null without checks. */
export function uptimePercent(
  counts: readonly (UptimeCounts & Pick<HourCount, "hour">)[],
  now: number,
  hours: number,
): number | null {
  return percentUp(counts.filter(({ hour }) => hour > now - hours * HOUR_MS));
}

/** Share of the time that was up, in percent with three decimals; null without checks. */
export function percentUp(counts: readonly UptimeCounts[]): number | null {
  const { up, of } = partUp(counts);
  return of === 0 ? null : Math.round((up / of) * 100_000) / 1_000;
}
