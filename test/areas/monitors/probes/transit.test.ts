import { describe, expect, test } from "bun:test";
import { TransitTimes } from "../../../../src/areas/monitors/probes/transit.ts";

const MINUTE = 60_000;

describe("the delay of a request of a probe", () => {
  test("is the time beyond that of the fastest one of its process", () => {
    const times = new TransitTimes();
    const delayOf = (sent_ms: number, now: number) => times.delayOf({ run: "a", sent_ms }, now);
    expect(delayOf(1_000, 91_200)).toBe(0);
    expect(delayOf(2_000, 92_050)).toBe(0);
    // Within a second: every line takes some time.
    expect(delayOf(3_000, 94_000)).toBe(0);
    expect(delayOf(4_000, 124_050)).toBe(30_000);
    // Sent later, and received earlier.
    expect(delayOf(30_000, 120_050)).toBe(0);
  });

  test("is that of its process: another one has another clock", () => {
    const times = new TransitTimes();
    expect(times.delayOf({ run: "a", sent_ms: 5_000_000 }, 6_000_000)).toBe(0);
    expect(times.delayOf({ run: "b", sent_ms: 10 }, 6_001_000)).toBe(0);
    // The first one was killed, and what it sent arrives later.
    expect(times.delayOf({ run: "a", sent_ms: 5_001_000 }, 6_041_000)).toBe(40_000);
  });

  test("does not grow with clocks that run at different speeds", () => {
    const times = new TransitTimes();
    // 100 ms in 10 minutes are 14 s in a day.
    for (let minute = 0; minute <= 24 * 60; minute += 1)
      expect(times.delayOf({ run: "a", sent_ms: minute * (MINUTE - 10) }, minute * MINUTE)).toBe(0);
  });

  test("is none where it is not known when a request was sent", () => {
    const times = new TransitTimes();
    times.delayOf({ run: "a", sent_ms: 1_000 }, 1_000);
    expect(times.delayOf({}, 50_000)).toBe(0);
    expect(times.delayOf({ run: "a" }, 50_000)).toBe(0);
    expect(times.delayOf({ sent_ms: 1_000 }, 50_000)).toBe(0);
  });
});
