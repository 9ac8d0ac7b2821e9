import { realDelay } from "../../src/kernel/time/clock.ts";

/** Longer than a page takes to draw on a machine that is busy with other things. */
const PATIENCE_MS = 30_000;
const PAUSE_MS = 25;

/**
 * Makes assertions about something that is on its way to its state, such as a page after a click: repeats them until they
 * hold, and throws what the last attempt threw after 30 seconds. The assertions must only read.
 */
export async function eventually(assertions: () => unknown): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      await assertions();
      return;
    } catch (error) {
      if (performance.now() >= end) throw error;
    }
    await realDelay(PAUSE_MS);
  }
}
