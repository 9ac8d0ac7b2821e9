/** An entry of a {@link TimerHeap}: due at a time, cancellable in O(1). */
export interface HeapEntry<T = () => void> {
  readonly due: number;
  readonly order: number;
  run: T | null;
}

/** A binary heap of what falls due (callbacks, mostly), earliest first; equal times come in the order of their insertion. */
export class TimerHeap<T = () => void> {
  private entries: HeapEntry<T>[] = [];
  private nextOrder = 0;
  private cancelled = 0;

  /** Adds a callback and returns its entry, to be handed to {@link cancel}. */
  push(due: number, run: T): HeapEntry<T> {
    const entry: HeapEntry<T> = { due, order: this.nextOrder++, run };
    this.entries.push(entry);
    this.siftUp(this.entries.length - 1);
    return entry;
  }

  /** Cancels an entry. One that has run, or was cancelled before, is left alone. */
  cancel(entry: HeapEntry<T>): void {
    if (entry.run === null) return;
    entry.run = null;
    this.cancelled += 1;
    // Cancelled entries stay until they surface; rebuilt when they are the majority, so memory follows the live ones.
    if (this.cancelled > 64 && this.cancelled * 2 > this.entries.length) this.compact();
  }

  /** The time of the earliest live entry, or undefined when there is none. */
  earliest(): number | undefined {
    this.dropCancelledTop();
    return this.entries[0]?.due;
  }

  /** Takes out the earliest live entry that is due at `now` or before, and returns its callback. */
  takeDue(now: number): T | undefined {
    this.dropCancelledTop();
    const top = this.entries[0];
    if (top === undefined || top.due > now) return undefined;
    this.removeTop();
    const run = top.run ?? undefined;
    top.run = null;
    return run;
  }

  /** Live entries. */
  get size(): number {
    return this.entries.length - this.cancelled;
  }

  private dropCancelledTop(): void {
    while (this.entries.length > 0 && this.entries[0]?.run === null) {
      this.removeTop();
      this.cancelled -= 1;
    }
  }

  private compact(): void {
    this.entries = this.entries.filter((entry) => entry.run !== null);
    this.cancelled = 0;
    for (let index = (this.entries.length >> 1) - 1; index >= 0; index -= 1) this.siftDown(index);
  }

  private removeTop(): void {
    const last = this.entries.pop();
    if (last === undefined || this.entries.length === 0) return;
    this.entries[0] = last;
    this.siftDown(0);
  }

  private siftUp(start: number): void {
    let index = start;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.swapIfSmaller(index, parent)) return;
      index = parent;
    }
  }

  private siftDown(start: number): void {
    let index = start;
    for (;;) {
      const left = 2 * index + 1;
      const right = left + 1;
      if (left >= this.entries.length) return;
      const child = right < this.entries.length && this.isSmaller(right, left) ? right : left;
      if (!this.swapIfSmaller(child, index)) return;
      index = child;
    }
  }

  private isSmaller(a: number, b: number): boolean {
    const first = this.entries[a];
    const second = this.entries[b];
    return first !== undefined && second !== undefined && compare(first, second) < 0;
  }

  private swapIfSmaller(child: number, parent: number): boolean {
    const a = this.entries[child];
    const b = this.entries[parent];
    if (a === undefined || b === undefined || compare(a, b) >= 0) return false;
    this.entries[child] = b;
    this.entries[parent] = a;
    return true;
  }
}

function compare(a: HeapEntry<unknown>, b: HeapEntry<unknown>): number {
  return a.due - b.due || a.order - b.order;
}
