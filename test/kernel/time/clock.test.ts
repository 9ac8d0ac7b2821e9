import { afterEach, describe, expect, jest, setSystemTime, spyOn, test } from "bun:test";
import {
  createSystemClock,
  INTERRUPTION_MS_MIN,
  ManualClock,
  monotonicMs,
  onSharedTick,
  realDelay,
  realTimeout,
  SHARED_TICK_MS,
  WALL_SLEEP_MS_MAX,
} from "../../../src/kernel/time/clock.ts";
import { eventually, until } from "../../support/eventually.ts";
import { rejection } from "../support.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

describe("manual clock", () => {
  test("stands still until it advances, and starts at the real time by default", async () => {
    const clock = new ManualClock(1_000);
    await realDelay(5);
    expect(clock.now()).toBe(1_000);
    const before = Date.now();
    const started = new ManualClock().now();
    expect([before <= started, started <= Date.now()]).toEqual([true, true]);
  });

  test("runs due work in order, each at its own time", async () => {
    const clock = new ManualClock(1_000);
    const ran: [string, number][] = [];
    const note = (name: string) => () => {
      ran.push([name, clock.now()]);
    };
    clock.at(1_300, note("at 1300"));
    clock.after(100, note("after 100"));
    clock.at(1_200, note("at 1200"));
    clock.after(200, note("after 200"));
    clock.at(1_501, note("at 1501"));
    expect(await clock.advance(500)).toBe(1_500);
    expect(ran).toEqual([
      ["after 100", 1_100],
      ["at 1200", 1_200],
      ["after 200", 1_200],
      ["at 1300", 1_300],
    ]);
    expect(await clock.advance(1)).toBe(1_501);
    expect(ran.at(-1)).toEqual(["at 1501", 1_501]);
  });

  test("runs overdue work at the next advance, even by 0, without going back", async () => {
    const clock = new ManualClock(1_000);
    const ran: number[] = [];
    clock.at(10, () => ran.push(clock.now()));
    await realDelay(1);
    expect(ran).toEqual([]);
    expect(await clock.advance(0)).toBe(1_000);
    expect(ran).toEqual([1_000]);
  });

  test("waits for tracked work before it continues", async () => {
    const clock = new ManualClock(0);
    const events: string[] = [];
    const work = async () => {
      await realDelay(10);
      events.push(`work ended at ${clock.now()}`);
    };
    clock.at(10, () => clock.track(work()));
    clock.at(20, () => events.push(`timer at ${clock.now()}`));
    await clock.advance(30);
    expect(events).toEqual(["work ended at 10", "timer at 20"]);
  });

  test("waits for nested tracked work; failing work blocks nothing", async () => {
    const clock = new ManualClock(0);
    const events: string[] = [];
    const second = async () => {
      await realDelay(5);
      events.push(`second at ${clock.now()}`);
    };
    const first = async () => {
      await realDelay(5);
      clock.track(second());
      throw new Error("failed");
    };
    clock.at(10, () => clock.track(first()));
    clock.at(11, () => events.push("timer"));
    expect(await clock.advance(50)).toBe(50);
    expect(events).toEqual(["second at 10", "timer"]);
  });

  test("runs timers that are set during an advance within it when they are due", async () => {
    const clock = new ManualClock(0);
    const ran: number[] = [];
    const again = () => {
      ran.push(clock.now());
      clock.after(10, again);
    };
    clock.after(10, again);
    await clock.advance(35);
    expect(ran).toEqual([10, 20, 30]);
    await clock.advance(5);
    expect(ran).toEqual([10, 20, 30, 40]);
  });

  test("runs a timer set for now by another one at the same time", async () => {
    const clock = new ManualClock(0);
    const ran: string[] = [];
    clock.at(10, () => {
      ran.push("first");
      clock.at(clock.now(), () => ran.push("nested"));
    });
    clock.at(10, () => ran.push("second"));
    clock.at(11, () => ran.push("later"));
    await clock.advance(10);
    expect(ran).toEqual(["first", "second", "nested"]);
  });

  test("runs equal times in the order in which they were set", async () => {
    const clock = new ManualClock(0);
    const ran: number[] = [];
    for (let index = 0; index < 50; index += 1) clock.at(5, () => ran.push(index));
    await clock.advance(5);
    expect(ran).toEqual(Array.from({ length: 50 }, (_, index) => index));
  });

  test("never runs a cancelled timer, also if another one of the same time cancels it", async () => {
    const clock = new ManualClock(0);
    const ran: string[] = [];
    const cancelled = clock.at(5, () => ran.push("cancelled before"));
    clock.at(10, () => {
      ran.push("canceller");
      cancelLater();
    });
    const cancelLater = clock.at(10, () => ran.push("cancelled in time"));
    cancelled();
    cancelled();
    await clock.advance(20);
    cancelLater();
    expect(ran).toEqual(["canceller"]);
  });

  test("setting the wall clock moves what waits for it, but no durations", async () => {
    const clock = new ManualClock(10_000);
    const ran: [string, number][] = [];
    const note = (name: string) => () => {
      ran.push([name, clock.monotonic()]);
    };
    clock.at(10_100, note("at 10100"));
    clock.at(10_700, note("at 10700"));
    clock.after(200, note("after 200"));
    clock.at(10_150, note("cancelled"))();
    const told: [number, number][] = [];
    clock.onWallSet((before, now) => told.push([before, now]));
    clock.setWall(-300);
    expect([clock.now(), clock.monotonic(), clock.wallMoved()]).toEqual([9_700, 10_000, -300]);
    expect(await clock.advance(500)).toBe(10_200);
    expect(ran).toEqual([
      ["after 200", 10_200],
      ["at 10100", 10_400],
    ]);
    clock.setWall(+2_000);
    await clock.advance(0);
    expect(ran.at(-1)).toEqual(["at 10700", 10_500]);
    expect(told).toEqual([
      [0, -300],
      [-300, 1_700],
    ]);
  });

  test("advances run one after another", async () => {
    const clock = new ManualClock(0);
    const seen: number[] = [];
    clock.at(15, () => clock.track(realDelay(5).then(() => seen.push(clock.now()))));
    const both = await Promise.all([clock.advance(20), clock.advance(20)]);
    expect(both).toEqual([20, 40]);
    expect(seen).toEqual([15]);
  });

  test("a timer that throws fails only its advance", async () => {
    const clock = new ManualClock(0);
    clock.at(5, () => {
      throw new Error("broken timer");
    });
    expect(await rejection(clock.advance(10))).toEqual(new Error("broken timer"));
    expect(await clock.advance(10)).toBe(15);
  });
});

/** A wall clock that runs, and can be set. */
function settableWall(): { ahead: number } {
  const wall = { ahead: 0 };
  spyOn(Date, "now").mockImplementation(
    () => Math.floor(performance.timeOrigin + performance.now()) + wall.ahead,
  );
  return wall;
}

describe("system clock", () => {
  afterEach(() => {
    jest.restoreAllMocks();
    setSystemTime();
  });

  test("returns the wall clock's time in whole milliseconds", () => {
    const before = Date.now();
    const now = createSystemClock().now();
    expect(Number.isInteger(now)).toBe(true);
    expect([before <= now, now <= Date.now()]).toEqual([true, true]);
  });

  test("runs timers in order, never early, and no cancelled ones", async () => {
    const clock = createSystemClock();
    const start = clock.now();
    const ran: [string, boolean][] = [];
    clock.at(start + 25, () => ran.push(["at 25", clock.now() >= start + 25]));
    const cancel = clock.at(start + 15, () => ran.push(["cancelled", false]));
    clock.at(start + 10, () => ran.push(["at 10", clock.now() >= start + 10]));
    cancel();
    cancel();
    await realDelay(60);
    expect(ran).toEqual([
      ["at 10", true],
      ["at 25", true],
    ]);
  });

  test("runs overdue timers in a later turn, not within the call", async () => {
    const clock = createSystemClock();
    let ran = false;
    clock.at(clock.now() - 5_000, () => {
      ran = true;
    });
    expect(ran).toBe(false);
    await realDelay(5);
    expect(ran).toBe(true);
  });

  test("supports delays beyond the 24.8 days of setTimeout", async () => {
    const clock = createSystemClock();
    const asked = spyOn(globalThis, "setTimeout");
    let fired = 0;
    const cancels = [25, 30, 400].flatMap((days) => [
      clock.at(clock.now() + days * DAY_MS, () => (fired += 1)),
      clock.after(days * DAY_MS, () => (fired += 1)),
    ]);
    const sleeps = asked.mock.calls.map(([, delay]) => Number(delay));
    expect(sleeps.filter((sleep) => sleep !== SHARED_TICK_MS)).toEqual([WALL_SLEEP_MS_MAX, DAY_MS]);
    await realDelay(20);
    expect(fired).toBe(0);
    for (const cancel of cancels) cancel();
  });

  test("wakes rarely for a timer of 30 days, with one check of the wall clock for all, and runs it on the thirtieth", () => {
    const start = Date.UTC(2026, 0, 1);
    setSystemTime(start);
    let look: () => void = () => {};
    const asked = spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void) => {
      look = run;
      return { unref: () => {} };
    }) as unknown as typeof setTimeout);
    const clock = createSystemClock();
    let firedAt = 0;
    clock.at(start + 30 * DAY_MS, () => {
      firedAt = clock.now();
    });
    for (let day = 1; day <= 30; day += 1) {
      expect(firedAt).toBe(0);
      setSystemTime(start + day * DAY_MS);
      look();
    }
    expect(firedAt).toBe(start + 30 * DAY_MS);
    const sleeps = asked.mock.calls.map(([, delay]) => Number(delay));
    expect(sleeps.filter((sleep) => sleep !== SHARED_TICK_MS)).toEqual(Array(30).fill(WALL_SLEEP_MS_MAX));
    // Earlier clocks may have set the timer that all of them share.
    expect(sleeps.length).toBeLessThanOrEqual(31);
  });

  test("runs what is due soon after the wall clock jumps forward", async () => {
    const clock = createSystemClock();
    const start = Date.now();
    let ran = false;
    clock.at(start + 60 * 60 * 1000, () => {
      ran = true;
    });
    await realDelay(10);
    setSystemTime(start + 2 * 60 * 60 * 1000);
    await until(() => ran);
  });

  test("notices within a second that the wall clock was set, and immediately at a read", async () => {
    const wall = settableWall();
    const clock = createSystemClock();
    const seen: [number, number][] = [];
    const about = (ms: number) => Math.round(ms / 1_000);
    const stop = clock.onWallSet((before, now) => seen.push([about(before), about(now)]));
    expect(clock.wallMoved()).toBe(0);
    wall.ahead = -3_600_000;
    await eventually(() => expect(seen).toEqual([[0, -3_600]]));
    wall.ahead = 7_200_000;
    expect(about(clock.wallMoved())).toBe(7_200);
    expect(seen).toEqual([
      [0, -3_600],
      [-3_600, 7_200],
    ]);
    stop();
    wall.ahead = 0;
    await realDelay(SHARED_TICK_MS + 200);
    expect(seen).toHaveLength(2);
  });

  test("does not treat slewing as a set clock", () => {
    const wall = settableWall();
    const clock = createSystemClock();
    const seen: number[] = [];
    const stop = clock.onWallSet((_before, now) => seen.push(now));
    for (; wall.ahead > -1_000; wall.ahead -= 50) clock.wallMoved();
    stop();
    expect(seen).toEqual([]);
  });

  test("`at` follows a wall clock that is set; `after` does not", async () => {
    const clock = createSystemClock();
    const start = Date.now();
    const ran: string[] = [];
    clock.at(start + 30, () => ran.push("at"));
    clock.after(10, () => ran.push("after"));
    // Set back by an hour: `at` now has an hour to go.
    setSystemTime(start - 60 * 60 * 1000);
    await realDelay(60);
    expect(ran).toEqual(["after"]);
    setSystemTime(start + 31);
    // An earlier timer makes the clock check again.
    clock.at(start, () => ran.push("look"));
    await realDelay(20);
    expect(ran).toEqual(["after", "look", "at"]);
  });

  test("a callback that throws does not affect later timers", () => {
    let look: () => void = () => {};
    spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void) => {
      look = run;
      return { unref: () => {} };
    }) as unknown as typeof setTimeout);
    const clock = createSystemClock();
    let ran = false;
    clock.at(1, () => {
      throw new Error("broken timer");
    });
    clock.at(2, () => {
      ran = true;
    });
    expect(look).toThrow("broken timer");
    expect(ran).toBe(false);
    look();
    expect(ran).toBe(true);
  });
});

describe("real time", () => {
  test("monotonicMs never decreases; realTimeout can be cancelled", async () => {
    const before = monotonicMs();
    let ran = false;
    const cancel = realTimeout(1, () => {
      ran = true;
    });
    cancel();
    await realDelay(10);
    expect(ran).toBe(false);
    expect(monotonicMs() - before).toBeGreaterThanOrEqual(9);
  });
});

test("the system clock notices that the process was stopped for more than a minute, but no shorter stop", () => {
  const clock = createSystemClock();
  const end = clock.onWallSet(() => undefined);
  const [startedAt, wall] = [performance.now(), Date.now()];
  const now = spyOn(performance, "now");
  const afterMs = (ms: number): number => {
    setSystemTime(new Date(wall + ms));
    now.mockReturnValue(startedAt + ms);
    return clock.runningSince() - startedAt;
  };
  try {
    expect(afterMs(INTERRUPTION_MS_MIN - 1_000)).toBeLessThanOrEqual(0);
    expect(afterMs(2 * INTERRUPTION_MS_MIN)).toBeCloseTo(2 * INTERRUPTION_MS_MIN);
    expect(afterMs(2 * INTERRUPTION_MS_MIN + 500)).toBeCloseTo(2 * INTERRUPTION_MS_MIN);
  } finally {
    now.mockRestore();
    setSystemTime();
    end();
  }
});

test("what shares a tick runs in one turn of the event loop, and what a tick adds runs in the next one", async () => {
  const asked = spyOn(globalThis, "setTimeout");
  const ran: string[] = [];
  const first = onSharedTick(() => {
    ran.push("first");
    onSharedTick(() => ran.push("next"));
  });
  const second = onSharedTick(() => ran.push("second"));
  const cancelled = onSharedTick(() => ran.push("cancelled"));
  cancelled.cancel();
  const timers = asked.mock.calls.length;
  // In this process, other files' tests count timers, too.
  asked.mockRestore();
  expect(timers).toBeLessThanOrEqual(1);
  expect(second.dueAt).toBe(first.dueAt);
  expect(first.dueAt).toBeLessThanOrEqual(monotonicMs() + SHARED_TICK_MS);
  while (ran.length === 0) await realDelay(5);
  expect(ran).toEqual(["first", "second"]);
  expect(monotonicMs()).toBeGreaterThan(first.dueAt - 5);
  await eventually(() => expect(ran).toEqual(["first", "second", "next"]));
});
