import { realDelay } from "../../src/kernel/time/clock.ts";

/** Longer than a page takes to draw, or a server to start, on a slow machine that is busy with other things. */
const PATIENCE_MS = 30_000;
/** The first pause; each next one is twice as long, up to the second value. */
const PAUSE_MS = 1;
const PAUSE_MS_MAX = 25;

/**
 * Makes assertions about something that is on its way to its state, such as a page after a click: repeats them until they
 * hold, and throws what the last attempt threw after 30 seconds. The assertions must only read.
 */
export async function eventually(assertions: () => unknown): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  for (let pause = PAUSE_MS; ; pause = Math.min(2 * pause, PAUSE_MS_MAX)) {
    try {
      await assertions();
      return;
    } catch (error) {
      if (performance.now() >= end) throw error;
    }
    await realDelay(pause);
  }
}

/** Waits until something that happens in the background has happened. @throws Error after 30 seconds. */
export function until(holds: () => boolean | Promise<boolean>, what = "so"): Promise<void> {
  return eventually(async () => {
    if (!(await holds())) throw new Error(`still not ${what} after ${PATIENCE_MS / 1_000} s`);
  });
}
