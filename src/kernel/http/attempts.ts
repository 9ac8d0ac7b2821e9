import type { Clock } from "../clock.ts";

/** Addresses remembered at once. The oldest are forgotten first: memory stays bounded under a flood of addresses. */
export const ATTEMPT_KEYS_MAX = 50_000;

/** At most so many attempts per key within any window of the given length (a sliding log, so no burst at its edge). */
export class AttemptLimiter {
  private readonly attempts = new Map<string, number[]>();

  constructor(
    private readonly clock: Clock,
    private readonly limit: number,
    private readonly windowMs: number,
    private readonly keysMax: number = ATTEMPT_KEYS_MAX,
  ) {}

  /** Counts an attempt. Returns 0 when it is within the limit, else the whole seconds until one is again. */
  take(key: string): number {
    // Monotonic: a wall clock that is set back would shut everybody out for as long.
    const now = this.clock.monotonic();
    const recent = (this.attempts.get(key) ?? []).filter((at) => at > now - this.windowMs);
    const oldest = recent[0];
    if (oldest !== undefined && recent.length >= this.limit) {
      return Math.max(1, Math.ceil((oldest + this.windowMs - now) / 1000));
    }
    recent.push(now);
    // Set anew, so that the map's order is that of the last attempt.
    this.attempts.delete(key);
    if (this.attempts.size >= this.keysMax) this.forgetOldest();
    this.attempts.set(key, recent);
    return 0;
  }

  private forgetOldest(): void {
    const oldest = this.attempts.keys().next();
    if (oldest.done !== true) this.attempts.delete(oldest.value);
  }
}
