import { readFileSync } from "node:fs";
import { type Cancel, monotonicMs, realDelay, realTimeout } from "../kernel/time/clock.ts";

/** Time of a node's machine, which nobody sets. */
export interface NodeTime {
  /** Milliseconds of a clock that never goes back. */
  monotonic(): number;
  after(delayMs: number, run: () => void): Cancel;
  delay(ms: number): Promise<void>;
  /** Milliseconds since the machine's boot, sleep included. */
  sinceBoot(): number;
}

/** The time of this machine. */
export const REAL_TIME: NodeTime = {
  monotonic: monotonicMs,
  after: realTimeout,
  delay: realDelay,
  sinceBoot: bootMs,
};

/** Where the system does not tell, the monotonic clock. */
function bootMs(): number {
  try {
    return Number(readFileSync("/proc/uptime", "latin1").split(" ", 1)[0]) * 1000;
  } catch {
    return monotonicMs();
  }
}
