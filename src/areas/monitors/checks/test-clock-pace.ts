import type { Clock } from "../../../kernel/time/clock.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import { type AlertRules, type MonitorState, nextCheckAt } from "../domain.ts";
import type { CompletedCheck } from "../store.ts";

/** The end of each advance of a manual clock in which every check runs: tests then see real results. */
export const FULL_PACE_MS = HOUR_MS;
/** Longest time for which one result stands for skipped checks. */
export const GAP_MS_MAX = 6 * HOUR_MS;

/** The last check of a monitor, and how long its result stands for skipped ones. */
interface LastCheck {
  readonly completed: CompletedCheck;
  readonly dueAt: number;
  readonly gapMs: number;
}

/** A check and its effect. */
export interface CheckWithEffect {
  readonly ref: number;
  readonly intervalMs: number;
  readonly dueAt: number;
  readonly completed: CompletedCheck;
  readonly before: MonitorState;
  readonly after: MonitorState;
  readonly rules: AlertRules;
}

/**
 * Skips checks while a manual clock advances by more than {@link FULL_PACE_MS}: months would be hundreds of thousands of
 * requests with equal results. After a check that changed nothing, the next one runs after twice the time, and its result
 * counts for the skipped ones. No alert is missed or late.
 */
export class TestClockPace {
  private readonly held = new Map<number, LastCheck>();

  constructor(private readonly clock: Pick<Clock, "advancing">) {}

  /** Called when a monitor is deleted or its checks restart. */
  forget(ref: number): void {
    this.held.delete(ref);
  }

  /** The skipped checks before the one due at `dueAt`, in order, each with the result of the last check. */
  skippedChecks(ref: number, intervalMs: number, dueAt: number): CompletedCheck[] {
    const held = this.held.get(ref);
    if (held === undefined) return [];
    const checks: CompletedCheck[] = [];
    const after = (time: number): number => nextCheckAt(ref, intervalMs, time, time);
    for (let at = after(held.dueAt); at < dueAt; at = after(at)) checks.push({ ...held.completed, at });
    return checks;
  }

  /** Time of the next check; `next` is its time without skipping. */
  nextAt(check: CheckWithEffect, next: number): number {
    const { ref, intervalMs, dueAt, completed } = check;
    const gapMs = Math.min(GAP_MS_MAX, 2 * (this.held.get(ref)?.gapMs ?? intervalMs));
    this.held.delete(ref);
    const left = this.clock.advancing();
    if (left === null || left <= FULL_PACE_MS || changesSomething(check)) return next;
    const checksUntil = (until: number): number => Math.max(0, (until - next) / intervalMs);
    const passed = Math.floor(checksUntil(dueAt + Math.min(gapMs, left - FULL_PACE_MS)));
    const skipped = Math.min(passed, Math.ceil(checksUntil(alertDueAt(check))));
    this.held.set(ref, { completed, dueAt, gapMs });
    return next + skipped * intervalMs;
  }
}

/** Whether another check with the same result would change the state again. */
function changesSomething({ before, after, completed }: CheckWithEffect): boolean {
  if (after.status !== before.status) return true;
  if (after.status === "unknown") return completed.isUnknown !== true;
  return after.streak > 0 || (after.status === "up" && after.consecutiveFailures > 0);
}

/** When the alert of a target that stays down is repeated; infinity without recipients. */
function alertDueAt({ dueAt, after, rules }: CheckWithEffect): number {
  if (after.status !== "down" || !rules.hasListeners) return Number.POSITIVE_INFINITY;
  return after.alertedAt === null ? dueAt : after.alertedAt + rules.cooldownMs;
}
