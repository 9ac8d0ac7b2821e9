import { GONE } from "../domain.ts";
import { CLOSED, type Health, OPEN } from "./store.ts";

const HOUR_MS = 3_600_000;

/** Wait before the first probe, doubled after each that fails, up to the second figure. */
export const PROBE_MS = 30_000;
export const PROBE_MS_MAX = 15 * 60_000;
/** How much shorter or longer it may be, so that endpoints that failed together are not probed together. */
const PROBE_JITTER = 0.1;

/** Least time between two failed attempts that prove something: one failure in a quiet week does not. */
const FAILURES_APART_MS = 12 * HOUR_MS;

/** Least time between two notices that deliveries to an endpoint have failed. */
export const FAILED_NOTICE_MS = HOUR_MS;

/** An endpoint that has answered well, or that a user has enabled. */
export const WELL = {
  breaker: CLOSED,
  failures: 0,
  failing_since: null,
  probes: 0,
  next_probe_at: null,
  disabled_reason: null,
} as const satisfies Partial<Health>;

/** An attempt that failed. */
export interface FailedAttempt {
  readonly status: number | null;
  readonly error: string;
  /** Whether it was the probe that the open breaker lets pass. */
  readonly isProbe: boolean;
}

/** When the next probe is due after so many that failed. `fraction` in [0, 1) varies it. */
export function nextProbeAt(now: number, probes: number, fraction: number): number {
  const wait = Math.min(PROBE_MS_MAX, PROBE_MS * 2 ** Math.min(probes, 30));
  return now + Math.round(wait * (1 - PROBE_JITTER + 2 * PROBE_JITTER * fraction));
}

/** How an endpoint is after an attempt that failed, and why it is to be disabled, if it is. */
export function afterFailure(
  health: Health,
  { status, error, isProbe }: FailedAttempt,
  bounds: { readonly breakerFailures: number; readonly disableAfterHours: number },
  now: number,
  fraction: number,
): { readonly change: Partial<Health>; readonly disabledFor: string | null } {
  const failures = health.failures + 1;
  const failing_since = health.failing_since ?? now;
  const change = { failures, failing_since, last_status: status, last_error: error };
  if (status === GONE) return { change, disabledFor: `the target answered ${GONE}` };
  const { breakerFailures, disableAfterHours } = bounds;
  const patienceMs = Math.max(disableAfterHours * HOUR_MS, FAILURES_APART_MS);
  if (disableAfterHours > 0 && now - failing_since >= patienceMs)
    return { change, disabledFor: `every attempt of the last ${disableAfterHours} hours has failed` };
  const opens = health.breaker === CLOSED && failures >= breakerFailures;
  if (!opens && !isProbe) return { change, disabledFor: null };
  const probes = opens ? 0 : health.probes + 1;
  const next_probe_at = nextProbeAt(now, probes, fraction);
  return { change: { ...change, breaker: OPEN, probes, next_probe_at }, disabledFor: null };
}

/** How long a delivery waits for a token of its own: a second's worth are given away ahead, whatever the rate. */
export const PACE_AHEAD_MS = 1_000;

/** A token bucket that is refilled continuously and holds a second's worth: who finds it empty gets a moment of its own. */
export class Pace {
  private free = Number.NEGATIVE_INFINITY;

  /**
   * Takes a token at a moment of the monotonic clock. One that is further away than {@link PACE_AHEAD_MS} is not taken: its
   * delivery may be cancelled, and its endpoint's rate changed, before it is there.
   *
   * @returns how long it is until the token is there: 0 if it is.
   */
  take(now: number, perSecond: number): number {
    const interval = 1_000 / perSecond;
    const at = Math.max(this.free, now - (1_000 - interval));
    const wait = Math.max(0, Math.ceil(at - now));
    if (wait <= PACE_AHEAD_MS) this.free = at + interval;
    return wait;
  }
}

/** How long an endpoint may answer nothing before it gets only one attempt at a time: until then it counts as quick. */
export const SILENT_AFTER_MS = 1_000;

/**
 * Whether an endpoint answers at all. Whatever hangs keeps its place until its time is over: endpoints that are silent must
 * not take those of the others in the meantime.
 */
export class Progress {
  private readonly running = new Map<number, { attempts: number; since: number }>();

  began(ref: number, now: number): void {
    const one = this.running.get(ref);
    if (one === undefined) this.running.set(ref, { attempts: 1, since: now });
    else one.attempts += 1;
  }

  ended(ref: number, now: number): void {
    const one = this.running.get(ref);
    if (one === undefined) return;
    one.attempts -= 1;
    one.since = now;
    if (one.attempts === 0) this.running.delete(ref);
  }

  /** Whether attempts are under way of which none has ended for a while. */
  isSilent(ref: number, now: number): boolean {
    const one = this.running.get(ref);
    return one !== undefined && now - one.since > SILENT_AFTER_MS;
  }
}
