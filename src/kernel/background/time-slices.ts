import { monotonicMs, realDelay } from "../time/clock.ts";

/** Longest stretch of long work before other requests get the event loop; one indivisible step may exceed it. */
export const SLICE_MS = 4;

/**
 * Divides long work (rendering, parsing, searching) into slices, so that no request holds up the event loop. All users
 * of one instance share its slices: however many of them there are, one slice of work runs per turn of the event loop.
 */
export class TimeSlices {
  private last = Promise.resolve();
  /** When the current slice is over; null outside a slice. */
  private end: number | null = null;

  /** `sliceMs`: longest slice, in milliseconds. */
  constructor(private readonly sliceMs: number = SLICE_MS) {}

  /** Whether the current slice is used up: check before each step, and wait for {@link next} if it is. */
  get isOver(): boolean {
    return monotonicMs() >= (this.end ?? this.begin());
  }

  /** Waits for the next slice, behind everyone who already waits. */
  next(): Promise<void> {
    this.last = this.last
      .then(() => realDelay(0))
      .then(() => {
        this.begin();
      });
    return this.last;
  }

  private begin(): number {
    const end = monotonicMs() + this.sliceMs;
    this.end = end;
    void realDelay(0).then(() => {
      if (this.end === end) this.end = null;
    });
    return end;
  }
}

/** The slices of this process: all long work shares the one event loop. */
export const slices = new TimeSlices();

/** Maps a list one item after another, in {@link slices} of the event loop. */
export async function mapInSlices<T, R>(items: Iterable<T>, map: (item: T) => R): Promise<R[]> {
  const results: R[] = [];
  for (const item of items) {
    if (slices.isOver) await slices.next();
    results.push(map(item));
  }
  return results;
}
