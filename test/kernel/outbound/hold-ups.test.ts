import { expect, test } from "bun:test";
import { watchForHoldUps } from "../../../src/kernel/outbound/hold-ups.ts";

test("a hold-up of the event loop is known at once and afterwards, and only to what it touched", async () => {
  const holdUps = watchForHoldUps();
  try {
    await Bun.sleep(150);
    const before = performance.now();
    expect(holdUps.longestSince(before)).toBeLessThan(200);
    Bun.sleepSync(600);
    expect(holdUps.longestSince(before)).toBeGreaterThan(400);
    await Bun.sleep(150);
    expect(holdUps.longestSince(before)).toBeGreaterThan(400);
    expect(holdUps.longestSince(performance.now())).toBeLessThan(200);
  } finally {
    holdUps.stop();
  }
});
