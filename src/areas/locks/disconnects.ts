import { slices } from "../../kernel/background/time-slices.ts";

/** Waiters removed per slice of the event loop: each takes about 0.1 ms with its response. */
const DISCONNECTS_PER_SLICE = 25;

/** Removes waiters of disconnected clients in slices, because thousands of clients may disconnect together. */
export class Disconnects {
  private pending: (() => void)[] = [];
  private isRunning = false;

  /** Queues `leave`. Until it runs, the waiter of the disconnected client is inactive and gets no grant. */
  add(leave: () => void): void {
    this.pending.push(leave);
    if (!this.isRunning) void this.run();
  }

  private async run(): Promise<void> {
    this.isRunning = true;
    while (this.pending.length > 0) {
      await slices.next();
      for (const leave of this.pending.splice(0, DISCONNECTS_PER_SLICE)) leave();
    }
    this.isRunning = false;
  }
}
