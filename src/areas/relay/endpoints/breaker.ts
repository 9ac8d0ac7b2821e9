import { GONE } from "../../../kernel/outbound/retries.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import { CLOSED, type Health, OPEN } from "./store.ts";

/** Delay before the first probe; each failed probe doubles it up to {@link PROBE_MS_MAX}. */
export const PROBE_MS = 30_000;
export const PROBE_MS_MAX = 15 * 60_000;
/** Jitter of the delay, as a fraction: endpoints that failed together are not probed together. */
const PROBE_JITTER = 0.1;

/** Minimum time between the first and last failure before an endpoint is disabled: a single failure proves nothing. */
const FAILURES_APART_MS = 12 * HOUR_MS;

/** Minimum time between two notices about failed deliveries to an endpoint. */
export const FAILED_NOTICE_MS = HOUR_MS;

/** Health of an endpoint after a success, or after a user enabled it. */
export const HEALTHY = {
  breaker: CLOSED,
  failures: 0,
  failing_since: null,
  probes: 0,
  next_probe_at: null,
  disabled_reason: null,
} as const satisfies Partial<Health>;

export interface FailedAttempt {
  readonly status: number | null;
  readonly error: string;
  /** Whether it was the probe of an open breaker. */
  readonly isProbe: boolean;
}

/** When the next probe is due after `probes` failed ones. `fraction` in [0, 1) varies it. */
export function nextProbeAt(now: number, probes: number, fraction: number): number {
  const wait = Math.min(PROBE_MS_MAX, PROBE_MS * 2 ** Math.min(probes, 30));
  return now + Math.round(wait * (1 - PROBE_JITTER + 2 * PROBE_JITTER * fraction));
}

/** The health of an endpoint after a failed attempt. `disabledFor`: why it must be disabled; null if it must not. */
export function afterFailure(
  health: Health,
  { status, error, isProbe }: FailedAttempt,
  limits: { readonly breakerFailures: number; readonly disableAfterHours: number },
  now: number,
  fraction: number,
): { readonly change: Partial<Health>; readonly disabledFor: string | null } {
  const failures = health.failures + 1;
  const failing_since = health.failing_since ?? now;
  const change = { failures, failing_since, last_status: status, last_error: error };
  if (status === GONE) return { change, disabledFor: `the target responded with ${GONE}` };
  const { breakerFailures, disableAfterHours } = limits;
  const patienceMs = Math.max(disableAfterHours * HOUR_MS, FAILURES_APART_MS);
  if (disableAfterHours > 0 && now - failing_since >= patienceMs)
    return { change, disabledFor: `every attempt of the last ${disableAfterHours} hours failed` };
  const opens = health.breaker === CLOSED && failures >= breakerFailures;
  if (!opens && !isProbe) return { change, disabledFor: null };
  const probes = opens ? 0 : health.probes + 1;
  const next_probe_at = nextProbeAt(now, probes, fraction);
  return { change: { ...change, breaker: OPEN, probes, next_probe_at }, disabledFor: null };
}

/** Longest time that a delivery waits for a reserved token. */
export const PACE_AHEAD_MS = 1_000;

/** A token bucket that is refilled continuously and holds the tokens of one second. Tokens can be reserved ahead. */
export class Pace {
  private free = Number.NEGATIVE_INFINITY;

  /**
   * Takes a token at a time of the monotonic clock. A token further ahead than {@link PACE_AHEAD_MS} is not reserved: its
   * delivery may be cancelled, or its endpoint's rate changed, before it is available.
   *
   * @returns the time until the token is available, in milliseconds; 0 if it is now.
   */
  take(now: number, perSecond: number): number {
    const interval = 1_000 / perSecond;
    const at = Math.max(this.free, now - (1_000 - interval));
    const wait = Math.max(0, Math.ceil(at - now));
    if (wait <= PACE_AHEAD_MS) this.free = at + interval;
    return wait;
  }
}

/** Time without a response after which an endpoint gets only one attempt at a time. */
export const SILENT_AFTER_MS = 1_000;

/**
 * Tracks whether endpoints respond. An attempt without a response occupies its slot until its timeout: unresponsive
 * endpoints must not occupy the slots of others.
 */
export class Progress {
  private readonly running = new Map<number, { attempts: number; since: number }>();

  started(ref: number, now: number): void {
    const running = this.running.get(ref);
    if (running === undefined) this.running.set(ref, { attempts: 1, since: now });
    else running.attempts += 1;
  }

  finished(ref: number, now: number): void {
    const running = this.running.get(ref);
    if (running === undefined) return;
    running.attempts -= 1;
    running.since = now;
    if (running.attempts === 0) this.running.delete(ref);
  }

  /** Whether attempts are in flight and none of them has finished for {@link SILENT_AFTER_MS}. */
  isSilent(ref: number, now: number): boolean {
    const running = this.running.get(ref);
    return running !== undefined && now - running.since > SILENT_AFTER_MS;
  }
}
