import { slices } from "../../kernel/background/time-slices.ts";

/** Waiters that leave in one turn of the event loop: each costs some 0.1 ms with its response. */
const HANG_UPS_PER_TURN = 25;

/** Waiters whose clients have gone leave their queues a few at a time: thousands may hang up in the same moment. */
export class HangUps {
  private pending: (() => void)[] = [];
  private isRunning = false;

  /** Runs `leave` soon. A waiter whose client has gone is passed over until then. */
  add(leave: () => void): void {
    this.pending.push(leave);
    if (!this.isRunning) void this.run();
  }

  private async run(): Promise<void> {
    this.isRunning = true;
    while (this.pending.length > 0) {
      await slices.next();
      for (const leave of this.pending.splice(0, HANG_UPS_PER_TURN)) leave();
    }
    this.isRunning = false;
  }
}
