import { drainMicrotasks } from "bun:jsc";
import type { Cancel } from "../../../src/kernel/time/clock.ts";
import { TimerHeap } from "../../../src/kernel/time/timer-heap.ts";

/** Random numbers that a seed determines (mulberry32). */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = Math.imul(seed + 1, 0x9e3779b1);
  }

  /** From 0 to below 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number of a range, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(part: number): boolean {
    return this.next() < part;
  }

  pick<T>(from: readonly T[]): T {
    const found = from[Math.floor(this.next() * from.length)];
    if (found === undefined) throw new Error("nothing to pick from");
    return found;
  }
}

/** Simulated time: what is due runs in order, with everything that promises start, and nothing waits for real. */
export class World {
  /** Milliseconds since the beginning. */
  now = 0;
  readonly random: Random;
  private readonly timers = new TimerHeap();

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  after(delayMs: number, run: () => void): Cancel {
    const entry = this.timers.push(this.now + delayMs, run);
    return () => this.timers.cancel(entry);
  }

  /** Calls `run` again and again. */
  every(periodMs: number, run: () => void): void {
    this.after(periodMs, () => {
      run();
      this.every(periodMs, run);
    });
  }

  /** Runs what is due within this time. */
  run(ms: number): void {
    const until = this.now + ms;
    drainMicrotasks();
    for (let due = this.timers.earliest(); due !== undefined && due <= until; due = this.timers.earliest()) {
      this.now = due;
      this.timers.takeDue(due)?.();
      drainMicrotasks();
    }
    this.now = until;
  }
}

/** What must never happen has happened. */
export class Violation extends Error {
  constructor(
    /** The property that does not hold. */
    readonly property: string,
    readonly detail: string,
  ) {
    super(`${property}: ${detail}`);
  }
}
