import { type Cancel, monotonicMs, onSharedTick, realTimeout } from "../time/clock.ts";

/** How often the timer fires that measures the event loop. */
const TICK_MS = 100;
/** A delay of at least this is remembered as a stall. */
const REMEMBERED_MS = 250;
/** A failure during which the event loop stalled for longer, in milliseconds, says nothing about the network. */
export const STALL_MS_MAX = 1_000;
/** Stalls are forgotten after this time: longer than any request may take. */
const HISTORY_MS = 120_000;

/** Knows when the event loop stalled: meanwhile a request measures this process, not the network. */
export interface EventLoopStalls {
  /** The longest stall since a time (monotonic milliseconds), in milliseconds. */
  longestSince(since: number): number;
  /** Measures closely again: work starts that reads {@link longestSince} at its end. */
  wake(): void;
  /** Ends the measuring. */
  stop(): void;
}

/** How an event loop is watched. */
export interface EventLoopWatch {
  /** Called at each tick with how late it fired, in milliseconds, and how many ticks of {@link TICK_MS} it stands for. */
  readonly onTick?: (lateMs: number, ticks: number) => void;
  /** Called at each tick: whether the process is idle, so that the next tick may be later. */
  readonly isIdle?: () => boolean;
}

/** Measures the event loop by a regular timer. */
export function watchEventLoop({
  onTick = () => {},
  isIdle = () => false,
}: EventLoopWatch = {}): EventLoopStalls {
  let stalls: { readonly endedAt: number; readonly lateMs: number }[] = [];
  let ticks = 1;
  let expected = 0;
  let cancel: Cancel = () => {};
  const arm = (): void => {
    ticks = 1;
    expected = monotonicMs() + TICK_MS;
    cancel = realTimeout(TICK_MS, tick);
  };
  // While nothing is going on: a process without work wakes as rarely as it can.
  const armIdle = (): void => {
    const shared = onSharedTick(tick);
    ticks = Math.max(1, Math.round((shared.dueAt - monotonicMs()) / TICK_MS));
    expected = shared.dueAt;
    cancel = shared.cancel;
  };
  const tick = (): void => {
    const now = monotonicMs();
    const lateMs = now - expected;
    onTick(Math.max(0, lateMs), ticks);
    if (lateMs >= REMEMBERED_MS) {
      stalls = [...stalls.filter(({ endedAt }) => endedAt > now - HISTORY_MS), { endedAt: now, lateMs }];
    }
    if (isIdle()) armIdle();
    else arm();
  };
  arm();
  return {
    longestSince(since) {
      // The timer may not have noticed a stall that has just ended.
      let longest = Math.max(0, monotonicMs() - expected);
      for (const { endedAt, lateMs } of stalls) if (endedAt > since) longest = Math.max(longest, lateMs);
      return longest;
    },
    wake() {
      // A tick that is due in less time, or is late already, will measure what follows.
      if (expected - monotonicMs() <= TICK_MS) return;
      cancel();
      arm();
    },
    stop: () => cancel(),
  };
}
