import { monotonicMs, realTimeout } from "../clock.ts";

/** How often the event loop is asked whether it is on time. */
const PULSE_MS = 100;
/** A delay of at least this is remembered as a hold-up. */
const REMEMBERED_MS = 250;
/** Hold-ups are forgotten after this time: longer than any request may take. */
const KEPT_MS = 120_000;

/** Knows when this process was held up: what a network seemed to do meanwhile, it did not do. */
export interface HoldUps {
  /** The longest delay of the event loop at any time since `since` (monotonic milliseconds), in milliseconds. */
  longestSince(since: number): number;
  /** Ends the measuring. */
  stop(): void;
}

/**
 * Measures the event loop by a timer that should come regularly. `onPulse` is told each time how late it came, in
 * milliseconds.
 */
export function watchForHoldUps(onPulse: (lateMs: number) => void = () => {}): HoldUps {
  let held: { readonly endedAt: number; readonly lateMs: number }[] = [];
  let expected = monotonicMs() + PULSE_MS;
  let cancel = () => {};
  const pulse = (): void => {
    const now = monotonicMs();
    const lateMs = now - expected;
    onPulse(Math.max(0, lateMs));
    if (lateMs >= REMEMBERED_MS) {
      held = [...held.filter(({ endedAt }) => endedAt > now - KEPT_MS), { endedAt: now, lateMs }];
    }
    expected = now + PULSE_MS;
    cancel = realTimeout(PULSE_MS, pulse);
  };
  cancel = realTimeout(PULSE_MS, pulse);
  return {
    longestSince(since) {
      // A hold-up that has just ended may not have been noticed by the timer yet.
      let longest = Math.max(0, monotonicMs() - expected);
      for (const { endedAt, lateMs } of held) if (endedAt > since) longest = Math.max(longest, lateMs);
      return longest;
    },
    stop: () => cancel(),
  };
}
