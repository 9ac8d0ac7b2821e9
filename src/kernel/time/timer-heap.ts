import TinyQueue from "tinyqueue";

/** An entry of a {@link TimerHeap}: due at a time, cancellable in O(1). */
export interface HeapEntry<T = () => void> {
  readonly due: number;
  readonly order: number;
  run: T | null;
}

/** What falls due (callbacks, mostly), earliest first; equal times come in the order of their insertion. */
export class TimerHeap<T = () => void> {
  private queue = new TinyQueue<HeapEntry<T>>([], compare);
  private nextOrder = 0;
  private cancelled = 0;

  /** Adds a callback and returns its entry, to be handed to {@link cancel}. */
  push(due: number, run: T): HeapEntry<T> {
    const entry: HeapEntry<T> = { due, order: this.nextOrder++, run };
    this.queue.push(entry);
    return entry;
  }

  /** Cancels an entry. One that has run, or was cancelled before, is left alone. */
  cancel(entry: HeapEntry<T>): void {
    if (entry.run === null) return;
    entry.run = null;
    this.cancelled += 1;
    // Cancelled entries stay until they surface; rebuilt when they are the majority, so memory follows the live ones.
    if (this.cancelled <= 64 || this.cancelled * 2 <= this.queue.length) return;
    const { data } = this.queue;
    this.queue = new TinyQueue(
      data.filter(({ run }) => run !== null),
      compare,
    );
    // Cancelled entries are released even while the list itself is referenced.
    data.length = 0;
    this.cancelled = 0;
  }

  /** The time of the earliest live entry, or undefined when there is none. */
  earliest(): number | undefined {
    while (this.queue.peek()?.run === null) {
      this.queue.pop();
      this.cancelled -= 1;
    }
    return this.queue.peek()?.due;
  }

  /** Takes out the earliest live entry that is due at `now` or before, and returns its callback. */
  takeDue(now: number): T | undefined {
    const due = this.earliest();
    if (due === undefined || due > now) return undefined;
    const entry = this.queue.pop();
    const run = entry?.run ?? undefined;
    if (entry !== undefined) entry.run = null;
    return run;
  }

  /** Live entries. */
  get size(): number {
    return this.queue.length - this.cancelled;
  }
}

function compare(a: HeapEntry<unknown>, b: HeapEntry<unknown>): number {
  return a.due - b.due || a.order - b.order;
}
