import { readFileSync } from "node:fs";
import { type Cancel, monotonicMs, realDelay, realTimeout, wallMs } from "../kernel/time/clock.ts";

/** Time of a node's machine, which nobody sets. */
export interface NodeTime {
  /** Milliseconds of a clock that never goes back. */
  monotonic(): number;
  after(delayMs: number, run: () => void): Cancel;
  delay(ms: number): Promise<void>;
  /** Milliseconds since the machine's boot, sleep included. It is slow to read. */
  sinceBoot(): number;
  /** Wall clock, epoch milliseconds. */
  wall(): number;
}

/** How far the clock that counts sleep is before the monotonic one, which stands still while a machine is suspended. */
export function sleptMs(time: NodeTime): number {
  return time.sinceBoot() - time.monotonic();
}

/** The time of this machine. */
export const REAL_TIME: NodeTime = {
  monotonic: monotonicMs,
  after: realTimeout,
  delay: realDelay,
  sinceBoot: bootMs,
  wall: wallMs,
};

/** Where the system does not tell, the monotonic clock. */
function bootMs(): number {
  try {
    return Number(readFileSync("/proc/uptime", "latin1").split(" ", 1)[0]) * 1000;
  } catch {
    return monotonicMs();
  }
}
