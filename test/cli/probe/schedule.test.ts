import { describe, expect, test } from "bun:test";
import type { ProbeWork } from "../../../src/areas/monitors/probes/schema.ts";
import { ProbeSchedule } from "../../../src/cli/probe/schedule.ts";

const ID = "01a226ba-f5cb-752d-a756-5735dbee5c77";

const [FIRST, LAST] = [
  { reset: true, complete: false },
  { reset: false, complete: true },
];
const WHOLE = { reset: true, complete: true };

/** A part of a list, with a monitor as far as the schedule reads it. */
function part({ reset, complete }: Pick<ProbeWork, "reset" | "complete">, ...ids: string[]): ProbeWork {
  const monitors = ids.map(
    (monitor_id) => ({ monitor_id, interval: 60_000 }) as ProbeWork["monitors"][number],
  );
  return { cursor: "a.1", reset, complete, monitors, due: [], scheduled: false };
}

describe("the list of a probe", () => {
  test("is complete with a last part without monitors", () => {
    const schedule = new ProbeSchedule(() => undefined);
    expect(schedule.take(part(FIRST, ID))).toBe(false);
    expect(schedule.find(ID)).toBeNull();
    expect(schedule.take(part(LAST))).toBe(true);
    expect(schedule.find(ID)).toMatchObject({ monitor_id: ID });
  });

  test("stays while nothing changes, and may become empty", () => {
    const schedule = new ProbeSchedule(() => undefined);
    expect(schedule.take(part(WHOLE, ID))).toBe(true);
    expect(schedule.take(part(LAST))).toBe(false);
    expect(schedule.size).toBe(1);
    expect(schedule.take(part(WHOLE))).toBe(true);
    expect(schedule.size).toBe(0);
  });

  test("knows whether a check has found something else than the last one", () => {
    const schedule = new ProbeSchedule(() => undefined);
    schedule.take(part(WHOLE, ID));
    const found = (["up", "up", "down", "down", "unknown", "up"] as const).map((status) =>
      schedule.found(ID, status),
    );
    expect(found).toEqual([true, false, true, false, true, true]);
  });
});
