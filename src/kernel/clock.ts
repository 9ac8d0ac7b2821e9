import { type HeapEntry, TimerHeap } from "./heap.ts";

/** Takes a timer back. Calling it twice, or after the timer ran, does nothing. */
export type Cancel = () => void;

/**
 * The only source of time. Everything that waits, waits here, so that the manual clock can run months in
 * milliseconds. Network time-outs and measured latencies are the exception: they use {@link realTimeout}
 * and {@link monotonicMs}, since a network does not obey a test's clock.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch, an integer. */
  now(): number;
  /** Milliseconds of a clock that never goes back and that nobody sets: what {@link after} counts. */
  monotonic(): number;
  /** Runs `run` when the wall clock reaches `epochMs`; at once (in a later turn) when that has passed. */
  at(epochMs: number, run: () => void): Cancel;
  /** Runs `run` after `delayMs` of monotonic time: a wall clock that is set does not move it. */
  after(delayMs: number, run: () => void): Cancel;
  /** Tells the clock of work that a timer started: the manual clock does not move on before it settles. */
  track(work: Promise<unknown>): void;
}

/** setTimeout holds 2^31−1 ms; the clock looks again after a day at the latest, which also notices a wall clock that was set. */
const LONGEST_SLEEP_MS = 24 * 60 * 60 * 1000;

/** Milliseconds of a clock that never goes back, with fractions: for measuring how long something really took. */
export function monotonicMs(): number {
  return performance.now();
}

/** Runs `run` after `delayMs` of real time, whatever the clock in use. */
export function realTimeout(delayMs: number, run: () => void): Cancel {
  const timer = setTimeout(run, delayMs);
  return () => clearTimeout(timer);
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
  private readonly read: () => number;

  constructor(read: () => number) {
    this.read = read;
  }

  add(due: number, run: () => void): Cancel {
    const entry: HeapEntry = this.heap.push(due, run);
    if (due < this.armedFor) this.arm();
    return () => this.heap.cancel(entry);
  }

  private arm(): void {
    clearTimeout(this.timer);
    const due = this.heap.earliest();
    if (due === undefined) {
      this.armedFor = Number.POSITIVE_INFINITY;
      return;
    }
    this.armedFor = due;
    const sleep = Math.min(Math.max(0, Math.ceil(due - this.read())), LONGEST_SLEEP_MS);
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

/** The machine's clock. */
export function createSystemClock(): Clock {
  const wall = new Alarm(() => Date.now());
  const monotonic = new Alarm(() => performance.now());
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    at: (epochMs, run) => wall.add(epochMs, run),
    after: (delayMs, run) => monotonic.add(performance.now() + delayMs, run),
    track: () => {},
  };
}

/** A clock that stands still until it is told to move. */
export class ManualClock implements Clock {
  private readonly heap = new TimerHeap();
  private readonly pending = new Set<Promise<unknown>>();
  private current: number;
  private moving: Promise<unknown> = Promise.resolve();

  constructor(startMs: number = Date.now()) {
    this.current = startMs;
  }

  now(): number {
    return this.current;
  }

  monotonic(): number {
    return this.current;
  }

  at(epochMs: number, run: () => void): Cancel {
    const entry = this.heap.push(epochMs, run);
    return () => this.heap.cancel(entry);
  }

  after(delayMs: number, run: () => void): Cancel {
    return this.at(this.current + delayMs, run);
  }

  track(work: Promise<unknown>): void {
    const settled: Promise<unknown> = work.then(
      () => this.pending.delete(settled),
      () => this.pending.delete(settled),
    );
    this.pending.add(settled);
  }

  /**
   * Moves time forward by `byMs` (an integer ≥ 0), stopping at every due moment in turn until the work that
   * fell due there has settled, and returns the new time. Advances queue up behind each other.
   */
  advance(byMs: number): Promise<number> {
    const step = this.moving.then(() => this.moveTo(this.current + byMs));
    this.moving = step.catch(() => {});
    return step;
  }

  private async moveTo(target: number): Promise<number> {
    for (;;) {
      const run = this.nextDue(target);
      if (run === undefined) break;
      run();
      await this.settle();
    }
    this.current = Math.max(this.current, target);
    await this.settle();
    return this.current;
  }

  private nextDue(target: number): (() => void) | undefined {
    const due = this.heap.earliest();
    if (due === undefined || due > target) return undefined;
    this.current = Math.max(this.current, due);
    return this.heap.takeDue(this.current);
  }

  private async settle(): Promise<void> {
    // A turn of the event loop in between: work that has just ended may be about to announce its successor.
    do {
      await Promise.all(this.pending);
      await new Promise((resolve) => setImmediate(resolve));
    } while (this.pending.size > 0);
  }
}
