import { monotonicMs, realDelay } from "../../kernel/clock.ts";

/** How long requests look at events before others have the event loop, which also waits for the event under way: a mebibyte takes some ten milliseconds. */
export const SLICE_MS = 4;

/** Turns that requests take which look at many events: one slice in a turn of the event loop, however many requests there are. */
export class Turns {
  private last = Promise.resolve();
  /** When the slice of this turn is over; null until somebody looks. */
  private end: number | null = null;

  /** Whether this turn is used up. To be asked right before each event: then {@link next} has to be waited for. */
  get isOver(): boolean {
    return monotonicMs() >= (this.end ?? this.begin());
  }

  /** Waits for a turn of one's own. */
  next(): Promise<void> {
    this.last = this.last
      .then(() => realDelay(0))
      .then(() => {
        this.begin();
      });
    return this.last;
  }

  private begin(): number {
    const end = monotonicMs() + SLICE_MS;
    this.end = end;
    void realDelay(0).then(() => {
      if (this.end === end) this.end = null;
    });
    return end;
  }
}
