import type { Clock } from "../../../kernel/time/clock.ts";
import { type AlertRules, type MonitorState, nextCheckAt } from "../domain.ts";
import type { CompletedCheck } from "../store.ts";

/** The end of every advance of a manual clock in which each check is made: what a test then sees was really asked. */
export const FULL_PACE_MS = 60 * 60 * 1000;
/** Longest time in which an answer stands for the checks that are left out. */
export const GAP_MS_MAX = 6 * 60 * 60 * 1000;

/** The last check that was made of a monitor, and how long its answer stands for others. */
interface Held {
  readonly made: CompletedCheck;
  readonly dueAt: number;
  readonly gapMs: number;
}

/** A check that was made, and what follows from it. */
export interface Followed {
  readonly ref: number;
  readonly intervalMs: number;
  readonly dueAt: number;
  readonly made: CompletedCheck;
  readonly before: MonitorState;
  readonly after: MonitorState;
  readonly rules: AlertRules;
}

/**
 * How often targets are asked while a manual clock advances by more than {@link FULL_PACE_MS}: month after month would
 * be hundreds of thousands of requests that all end alike. After a check that changed nothing, the next one is made
 * after twice the time, and what it found counts for the moments between. No alert is left out or late.
 */
export class TestClockPace {
  private readonly held = new Map<number, Held>();

  constructor(private readonly clock: Pick<Clock, "advancing">) {}

  /** The monitor is deleted, or its checks begin anew. */
  forget(ref: number): void {
    this.held.delete(ref);
  }

  /** The checks that were left out before the one due at `dueAt`, in order: each found what the last one made did. */
  skippedChecks(ref: number, intervalMs: number, dueAt: number): CompletedCheck[] {
    const held = this.held.get(ref);
    if (held === undefined) return [];
    const checks: CompletedCheck[] = [];
    const after = (moment: number): number => nextCheckAt(ref, intervalMs, moment, moment);
    for (let at = after(held.dueAt); at < dueAt; at = after(at)) checks.push({ ...held.made, at });
    return checks;
  }

  /** When the next check is made; `next` is the moment that it would have by itself. */
  nextAt(check: Followed, next: number): number {
    const { ref, intervalMs, dueAt, made } = check;
    const gapMs = Math.min(GAP_MS_MAX, 2 * (this.held.get(ref)?.gapMs ?? intervalMs));
    this.held.delete(ref);
    const left = this.clock.advancing();
    if (left === null || left <= FULL_PACE_MS || changesSomething(check)) return next;
    const moments = (until: number): number => Math.max(0, (until - next) / intervalMs);
    const passed = Math.floor(moments(dueAt + Math.min(gapMs, left - FULL_PACE_MS)));
    const skipped = Math.min(passed, Math.ceil(moments(alertDueAt(check))));
    this.held.set(ref, { made, dueAt, gapMs });
    return next + skipped * intervalMs;
  }
}

/** Whether the state is on its way: another check alike would change it once more. */
function changesSomething({ before, after }: Followed): boolean {
  if (after.status !== before.status || after.status === "unknown") return true;
  return after.streak > 0 || (after.status === "up" && after.consecutiveFailures > 0);
}

/** When a target that stays down is told of again; never where nobody is told. */
function alertDueAt({ dueAt, after, rules }: Followed): number {
  if (after.status !== "down" || !rules.hasListeners) return Number.POSITIVE_INFINITY;
  return after.alertedAt === null ? dueAt : after.alertedAt + rules.cooldownMs;
}
