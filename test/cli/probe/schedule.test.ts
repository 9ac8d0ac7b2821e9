import { describe, expect, test } from "bun:test";
import type { ProbeWork } from "../../../src/areas/monitors/probes/schema.ts";
import { ProbeSchedule } from "../../../src/cli/probe/schedule.ts";

const ID = "01a226ba-f5cb-752d-a756-5735dbee5c77";

/** A part of a list, with a monitor as far as the schedule reads it. */
function part(isFirst: boolean, complete: boolean, ...ids: string[]): ProbeWork {
  const monitors = ids.map(
    (monitor_id) => ({ monitor_id, interval: 60_000 }) as ProbeWork["monitors"][number],
  );
  return { cursor: "a.1", reset: isFirst, complete, monitors, due: [], scheduled: false };
}

describe("the list of a probe", () => {
  test("is complete with a last part without monitors", () => {
    const schedule = new ProbeSchedule(() => undefined);
    expect(schedule.take(part(true, false, ID))).toBe(false);
    expect(schedule.find(ID)).toBeNull();
    expect(schedule.take(part(false, true))).toBe(true);
    expect(schedule.find(ID)).toMatchObject({ monitor_id: ID });
  });

  test("stays while nothing changes, and may become empty", () => {
    const schedule = new ProbeSchedule(() => undefined);
    expect(schedule.take(part(true, true, ID))).toBe(true);
    expect(schedule.take(part(false, true))).toBe(false);
    expect(schedule.size).toBe(1);
    expect(schedule.take(part(true, true))).toBe(true);
    expect(schedule.size).toBe(0);
  });
});
