import { TimerHeap } from "./timer-heap.ts";
import { DAY_MS } from "./units.ts";

/** Takes a timer back. Calling it twice, or after the timer ran, does nothing. */
export type Cancel = () => void;

/**
 * The only source of time. All timers are set here, so that the manual clock can run months in
 * milliseconds. Network time-outs and measured latencies are the exception: they use {@link realTimeout}
 * and {@link monotonicMs}, since a network does not obey a test's clock.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch, an integer. */
  now(): number;
  /** Milliseconds of a clock that never goes back and that nobody sets: what {@link after} counts. */
  monotonic(): number;
  /** Runs `run` when the wall clock reaches `epochMs`; if that has passed, in a later turn of the event loop. */
  at(epochMs: number, run: () => void): Cancel;
  /** Runs `run` after `delayMs` of monotonic time: a wall clock that is set does not move it. */
  after(delayMs: number, run: () => void): Cancel;
  /** Registers work that a timer started: the manual clock does not advance before it settles. */
  track(work: Promise<unknown>): void;
  /**
   * On the way of a manual clock: the milliseconds that are left of it, during which nobody outside looks. Null on a
   * clock that runs by itself, and on one that stands.
   */
  advancing(): number | null;
  /** Milliseconds by which the wall clock has been set since the start: forward counts up, back counts down. Looks now. */
  wallMoved(): number;
  /**
   * Monotonic time since which the process has run, at least since this clock was made, without an interruption of more
   * than {@link INTERRUPTION_MS_MIN}: stopped, on a machine that slept, or with the wall clock set forward, which may mean the same. Looks now.
   */
  runningSince(): number;
  /**
   * Calls `listener` each time that the wall clock turns out to have been set, with what {@link wallMoved} was before
   * and is now. It may be called within {@link wallMoved}.
   */
  onWallSet(listener: WallListener): Cancel;
}

/**
 * Since when a process that has run since a monotonic time can have received requests without an interruption: epoch milliseconds
 * of the current wall clock.
 */
export function receivingSince(
  clock: Pick<Clock, "now" | "monotonic" | "runningSince">,
  startedAt: number,
): number {
  const since = Math.max(startedAt, clock.runningSince());
  return clock.now() - Math.max(0, Math.round(clock.monotonic() - since));
}

/** Learns that the wall clock was set. */
export type WallListener = (before: number, now: number) => void;

/** setTimeout is limited to 2^31−1 ms: longer waits check again after a day. */
const LONGEST_SLEEP_MS = DAY_MS;
/**
 * Longest wait of {@link onSharedTick}, and so between two checks of the wall clock. It may be set at any time, or jump when a
 * suspended machine resumes, and no timer notices: what waits for it is at most a second late.
 */
export const SHARED_TICK_MS = 1_000;
/** Longest sleep of what waits for the wall clock: slewed by at most 10 %, which no check notices, it gains less than a second. */
export const WALL_SLEEP_MS_MAX = 10_000;
/** In a process that is held up for less, clients retry and are heard: twice a second it looks whether it was. */
export const INTERRUPTION_MS_MIN = 60_000;
/** A smaller difference between two looks is slewing, or a clock that runs unevenly: nobody set it. */
const WALL_STEP_MIN_MS = 100;
/** Two readings that lie further apart say nothing about each other: the process was held up in between. */
const READINGS_APART_MAX_MS = 10;

/** Milliseconds of a clock that never goes back, with fractions: for measuring how long something really took. */
export function monotonicMs(): number {
  return performance.now();
}

/** What the machine's wall clock shows, in milliseconds since the Unix epoch: to notice that it was set, or that the machine has slept. */
export function wallMs(): number {
  return Date.now();
}

/** Runs `run` after `delayMs` of real time, whatever the clock in use. */
export function realTimeout(delayMs: number, run: () => void): Cancel {
  const timer = setTimeout(run, delayMs);
  return () => clearTimeout(timer);
}

interface SharedTick {
  /** Monotonic milliseconds. */
  readonly dueAt: number;
  readonly runs: Set<() => void>;
}

let sharedTick: SharedTick | null = null;

/**
 * Runs `run` once, after at most {@link SHARED_TICK_MS} of real time, together with everything else that waits so: an idle
 * process wakes once for all of it. Returns when it will run, in monotonic milliseconds. It keeps no process alive.
 */
export function onSharedTick(run: () => void): { readonly dueAt: number; readonly cancel: Cancel } {
  sharedTick ??= armSharedTick();
  const { dueAt, runs } = sharedTick;
  runs.add(run);
  return { dueAt, cancel: () => runs.delete(run) };
}

function armSharedTick(): SharedTick {
  const tick = { dueAt: monotonicMs() + SHARED_TICK_MS, runs: new Set<() => void>() };
  const timer = setTimeout(() => {
    sharedTick = null;
    for (const run of tick.runs) run();
  }, SHARED_TICK_MS);
  timer.unref?.();
  return tick;
}

/** Resolves after `delayMs` of real time. */
export function realDelay(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    realTimeout(delayMs, resolve);
  });
}

/** Holds this thread up for `durationMs` of real time: for commands that do one thing at a time, never for the server. */
export function realPause(durationMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
}

/** Resolves when everything that this turn of the event loop has received is processed. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/**
 * Resolves when the event loop has looked at the network once more: what had arrived by now, such as the end of a
 * connection, is known then.
 */
export function nextNetworkTurn(): Promise<void> {
  // The first turn may be the rest of this one; only between the first and the second is the network polled for sure.
  return new Promise((resolve) => {
    setImmediate(() => setImmediate(resolve));
  });
}

/** One heap of timers on one setTimeout. */
class Alarm {
  private readonly heap = new TimerHeap();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private armedFor = Number.POSITIVE_INFINITY;

  constructor(
    private readonly read: () => number,
    private readonly longestSleepMs: number,
  ) {}

  add(due: number, run: () => void): Cancel {
    const entry = this.heap.push(due, run);
    if (due < this.armedFor) this.arm();
    return () => this.heap.cancel(entry);
  }

  /** Sets the timer for the earliest entry, also after the clock was set. */
  arm(): void {
    clearTimeout(this.timer);
    const due = this.heap.earliest();
    if (due === undefined) {
      this.armedFor = Number.POSITIVE_INFINITY;
      return;
    }
    this.armedFor = due;
    const sleep = Math.min(Math.max(0, Math.ceil(due - this.read())), this.longestSleepMs);
    this.timer = setTimeout(() => this.fire(), sleep);
    // A waiting timer is no reason to keep a process alive: the listening socket is.
    this.timer.unref?.();
  }

  private fire(): void {
    this.armedFor = Number.POSITIVE_INFINITY;
    const now = this.read();
    try {
      for (let run = this.heap.takeDue(now); run !== undefined; run = this.heap.takeDue(now)) run();
    } finally {
      this.arm();
    }
  }
}

/** Compares the wall clock with the monotonic one: what it gains on it, somebody has set. */
class WallWatch {
  private readonly listeners = new Set<WallListener>();
  private cancelLook: Cancel = () => undefined;
  private lead = readLead();
  private moved = 0;
  private lookedAt = performance.now();
  private interruptedUntil = this.lookedAt;

  /** Monotonic time of the end of the last interruption. */
  get runningSince(): number {
    this.look();
    return this.interruptedUntil;
  }

  look(): number {
    const now = performance.now();
    if (now - this.lookedAt >= INTERRUPTION_MS_MIN && this.listeners.size > 0) this.interruptedUntil = now;
    this.lookedAt = now;
    const step = Date.now() - performance.now() - this.lead;
    if (Math.abs(step) < WALL_STEP_MIN_MS) {
      this.lead += step;
      return this.moved;
    }
    return this.lookClosely();
  }

  listen(listener: WallListener): Cancel {
    if (this.listeners.size === 0) {
      this.lookedAt = performance.now();
      this.lookLater();
    }
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.cancelLook();
    };
  }

  private lookClosely(): number {
    const lead = readLead();
    const step = Math.round(lead - this.lead);
    this.lead = lead;
    // The first reading was torn apart: nothing was set.
    if (Math.abs(step) < WALL_STEP_MIN_MS) return this.moved;
    const before = this.moved;
    this.moved += step;
    if (step >= INTERRUPTION_MS_MIN) this.interruptedUntil = performance.now();
    for (const listener of this.listeners) listener(before, this.moved);
    return this.moved;
  }

  private lookLater(): void {
    this.cancelLook();
    this.cancelLook = onSharedTick(() => {
      this.lookLater();
      this.look();
    }).cancel;
  }
}

/** What the wall clock shows beyond the monotonic one, both read at the same time. */
function readLead(): number {
  for (;;) {
    const begun = performance.now();
    const wall = Date.now();
    if (performance.now() - begun <= READINGS_APART_MAX_MS) return wall - begun;
  }
}

/** The machine's clock. */
export function createSystemClock(): Clock {
  const wall = new Alarm(() => Date.now(), WALL_SLEEP_MS_MAX);
  const monotonic = new Alarm(() => performance.now(), LONGEST_SLEEP_MS);
  const watch = new WallWatch();
  let isWatching = false;
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    at: (epochMs, run) => {
      // One timer checks the wall clock for everything that waits for it: an idle process wakes rarely.
      if (!isWatching) watch.listen(() => wall.arm());
      isWatching = true;
      return wall.add(epochMs, run);
    },
    after: (delayMs, run) => monotonic.add(performance.now() + delayMs, run),
    track: () => {},
    advancing: () => null,
    wallMoved: () => watch.look(),
    runningSince: () => watch.runningSince,
    onWallSet: (listener) => watch.listen(listener),
  };
}

/** A clock that stands still until it is advanced. */
export class ManualClock implements Clock {
  /** Due by monotonic time. */
  private readonly delays = new TimerHeap();
  /** Due by the wall clock. */
  private readonly moments = new TimerHeap();
  private readonly pending = new Set<Promise<unknown>>();
  private readonly listeners = new Set<WallListener>();
  /** The monotonic time. */
  private current: number;
  /** What the wall clock shows beyond it. */
  private moved = 0;
  private interruptedUntil: number;
  private moving: Promise<unknown> = Promise.resolve();
  /** Target of the advance in progress, in monotonic time; null if there is none. */
  private target: number | null = null;

  constructor(startMs: number = Date.now()) {
    this.current = startMs;
    this.interruptedUntil = startMs;
  }

  now(): number {
    return this.current + this.moved;
  }

  monotonic(): number {
    return this.current;
  }

  at(epochMs: number, run: () => void): Cancel {
    const entry = this.moments.push(epochMs, run);
    return () => this.moments.cancel(entry);
  }

  after(delayMs: number, run: () => void): Cancel {
    const entry = this.delays.push(this.current + delayMs, run);
    return () => this.delays.cancel(entry);
  }

  advancing(): number | null {
    return this.target === null ? null : this.target - this.current;
  }

  wallMoved(): number {
    return this.moved;
  }

  onWallSet(listener: WallListener): Cancel {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Sets the wall clock forward, or back by a negative value. No time passes: what falls due runs at the next advance. */
  setWall(byMs: number): void {
    const before = this.moved;
    this.moved += byMs;
    if (byMs >= INTERRUPTION_MS_MIN) this.interruptedUntil = this.current;
    for (const listener of this.listeners) listener(before, this.moved);
  }

  runningSince(): number {
    return this.interruptedUntil;
  }

  /** Lets time pass without anything running, as in a process that is stopped. What falls due runs at the next advance. */
  freeze(byMs: number): void {
    this.current += byMs;
    if (byMs >= INTERRUPTION_MS_MIN) this.interruptedUntil = this.current;
  }

  track(work: Promise<unknown>): void {
    const settled: Promise<unknown> = work.then(
      () => this.pending.delete(settled),
      () => this.pending.delete(settled),
    );
    this.pending.add(settled);
  }

  /**
   * Moves time forward by `byMs` (an integer ≥ 0), stopping at every due time in turn until the work that
   * fell due there has settled, and returns the wall clock's new time. Advances queue up behind each other.
   */
  advance(byMs: number): Promise<number> {
    const step = this.moving.then(() => this.moveTo(this.current + byMs));
    this.moving = step.catch(() => {});
    return step;
  }

  private async moveTo(target: number): Promise<number> {
    this.target = target;
    for (;;) {
      const run = this.nextDue(target);
      if (run === undefined) break;
      run();
      await this.settle();
    }
    this.current = Math.max(this.current, target);
    await this.settle();
    this.target = null;
    return this.now();
  }

  private nextDue(target: number): (() => void) | undefined {
    const delay = this.delays.earliest() ?? Number.POSITIVE_INFINITY;
    const moment = (this.moments.earliest() ?? Number.POSITIVE_INFINITY) - this.moved;
    const due = Math.min(delay, moment);
    if (due > target) return undefined;
    this.current = Math.max(this.current, due);
    return moment <= delay ? this.moments.takeDue(this.now()) : this.delays.takeDue(this.current);
  }

  private async settle(): Promise<void> {
    // A turn of the event loop in between: work that has just ended may be about to announce its successor.
    do {
      await Promise.all(this.pending);
      await new Promise((resolve) => setImmediate(resolve));
    } while (this.pending.size > 0);
  }
}
