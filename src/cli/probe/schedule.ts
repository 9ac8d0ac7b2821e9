import type { ProbeMonitor, ProbeResult, ProbeWork } from "../../areas/monitors/probes/schema.ts";
import { type Cancel, monotonicMs, realTimeout } from "../../kernel/time/clock.ts";

/** The first check of a monitor comes within this time, so that a probe that starts does not check all at once. */
const FIRST_CHECK_MS_MAX = 4_500;
/** Multiples of this, modulo 1, are evenly spread. */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

interface Scheduled {
  readonly monitor: ProbeMonitor;
  /** The same as text, to notice changes. */
  readonly text: string;
  /** What the last check found; null before one. */
  status: ProbeResult["status"] | null;
  /** Consecutive failures: the first ones, and those while down, are retried sooner. */
  failures: number;
  /** Monotonic milliseconds of the next check on its grid. */
  dueAt: number;
  cancel: Cancel;
}

/** When each monitor is checked: by a clock that nobody sets. */
export class ProbeSchedule {
  private monitors = new Map<string, Scheduled>();
  /** The list that is being received. */
  private next = new Map<string, ProbeMonitor>();
  private isReceiving = false;
  private placed = 0;

  /** `check`: checks a monitor. */
  constructor(private readonly check: (monitor: ProbeMonitor) => void) {}

  /** Number of monitors. */
  get size(): number {
    return this.monitors.size;
  }

  /** Takes a part of the list. Returns whether the list is complete, and new. */
  take({ reset, complete, monitors, scheduled }: ProbeWork): boolean {
    if (reset) this.next = new Map();
    this.isReceiving ||= reset || monitors.length > 0;
    for (const monitor of monitors) this.next.set(monitor.monitor_id, monitor);
    // The last part may have no monitors.
    if (!complete || !this.isReceiving) return false;
    this.isReceiving = false;
    this.replace(scheduled);
    return true;
  }

  /** A monitor by its id. */
  find(monitorId: string): ProbeMonitor | null {
    return this.monitors.get(monitorId)?.monitor ?? null;
  }

  /** The result of a check decides when the next one is. */
  checked(monitor: ProbeMonitor, isUp: boolean): void {
    const entry = this.monitors.get(monitor.monitor_id);
    if (entry === undefined) return;
    entry.failures = isUp ? 0 : entry.failures + 1;
    if (entry.failures === 0) return;
    const { retry_interval, down_interval, consecutive_threshold: threshold } = entry.monitor;
    // A server that is one version older does not send it.
    const soonerMs = (entry.failures < threshold ? retry_interval : down_interval) ?? null;
    if (soonerMs !== null && entry.dueAt - monotonicMs() > soonerMs)
      this.plan(entry, monotonicMs() + soonerMs);
  }

  /** Records what a check has found. Returns whether it is something else than before. */
  found(monitorId: string, status: ProbeResult["status"]): boolean {
    const entry = this.monitors.get(monitorId);
    if (entry?.status === status) return false;
    if (entry !== undefined) entry.status = status;
    return true;
  }

  /** Ends all timers. */
  stop(): void {
    for (const { cancel } of this.monitors.values()) cancel();
    this.monitors.clear();
  }

  private replace(isScheduled: boolean): void {
    const before = this.monitors;
    this.monitors = new Map();
    for (const [id, monitor] of this.next) {
      const text = JSON.stringify(monitor);
      const known = before.get(id);
      if (known?.text === text) {
        this.monitors.set(id, known);
        before.delete(id);
        continue;
      }
      this.placed += 1;
      const delayMs = ((this.placed * GOLDEN_RATIO) % 1) * FIRST_CHECK_MS_MAX;
      const entry = { monitor, text, status: null, failures: 0, dueAt: 0, cancel: () => undefined };
      this.monitors.set(id, entry);
      if (isScheduled) this.plan(entry, monotonicMs() + delayMs);
    }
    for (const { cancel } of before.values()) cancel();
  }

  private plan(entry: Scheduled, at: number): void {
    entry.cancel();
    entry.dueAt = at;
    entry.cancel = realTimeout(Math.max(0, at - monotonicMs()), () => {
      const { interval } = entry.monitor;
      // Times that have passed, while the machine slept, are skipped.
      const passed = Math.max(0, Math.floor((monotonicMs() - at) / interval));
      this.plan(entry, at + (passed + 1) * interval);
      this.check(entry.monitor);
    });
  }
}
