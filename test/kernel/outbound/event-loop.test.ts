import { expect, test } from "bun:test";
import { watchEventLoop } from "../../../src/kernel/outbound/event-loop.ts";

test("a stall of the event loop is known at once and afterwards, and only to what it touched", async () => {
  const stalls = watchEventLoop();
  try {
    await Bun.sleep(150);
    const before = performance.now();
    expect(stalls.longestSince(before)).toBeLessThan(200);
    Bun.sleepSync(600);
    expect(stalls.longestSince(before)).toBeGreaterThan(400);
    await Bun.sleep(150);
    expect(stalls.longestSince(before)).toBeGreaterThan(400);
    expect(stalls.longestSince(performance.now())).toBeLessThan(200);
  } finally {
    stalls.stop();
  }
});
