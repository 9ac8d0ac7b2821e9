import { monotonicMs, realTimeout } from "../clock.ts";

/** How often the timer fires that measures the event loop. */
const TICK_MS = 100;
/** A delay of at least this is remembered as a stall. */
const REMEMBERED_MS = 250;
/** Stalls are forgotten after this time: longer than any request may take. */
const KEPT_MS = 120_000;

/** Knows when the event loop stalled: meanwhile a request measures this process, not the network. */
export interface EventLoopStalls {
  /** The longest stall since a moment (monotonic milliseconds), in milliseconds. */
  longestSince(since: number): number;
  /** Ends the measuring. */
  stop(): void;
}

/** Measures the event loop by a regular timer, and calls `onTick` each time with how late it fired, in milliseconds. */
export function watchEventLoop(onTick: (lateMs: number) => void = () => {}): EventLoopStalls {
  let stalls: { readonly endedAt: number; readonly lateMs: number }[] = [];
  let expected = monotonicMs() + TICK_MS;
  let cancel = () => {};
  const tick = (): void => {
    const now = monotonicMs();
    const lateMs = now - expected;
    onTick(Math.max(0, lateMs));
    if (lateMs >= REMEMBERED_MS) {
      stalls = [...stalls.filter(({ endedAt }) => endedAt > now - KEPT_MS), { endedAt: now, lateMs }];
    }
    expected = now + TICK_MS;
    cancel = realTimeout(TICK_MS, tick);
  };
  cancel = realTimeout(TICK_MS, tick);
  return {
    longestSince(since) {
      // The timer may not have noticed a stall that has just ended.
      let longest = Math.max(0, monotonicMs() - expected);
      for (const { endedAt, lateMs } of stalls) if (endedAt > since) longest = Math.max(longest, lateMs);
      return longest;
    },
    stop: () => cancel(),
  };
}
