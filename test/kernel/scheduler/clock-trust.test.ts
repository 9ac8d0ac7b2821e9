import { afterEach, beforeEach, expect, test } from "bun:test";
import { JUMP_MS_MAX, STEADY_MS } from "../../../src/kernel/scheduler/clock-trust.ts";
import { Housekeeping } from "../../../src/kernel/scheduler/housekeeping.ts";
import { DAY, HOUR, SchedulerBench } from "./bench.ts";

const JUMPED =
  "the clock has jumped by more than a day: nothing expired is deleted until it has run steadily for an hour";
const TRUSTED = "the clock is trusted again: expired data is deleted";

let bench: SchedulerBench;
let purged: number;
beforeEach(async () => {
  bench = new SchedulerBench();
  purged = 0;
  await start();
});
afterEach(() => bench.close());

/** Starts a scheduler with a purge that runs every ten minutes. */
async function start(): Promise<void> {
  const { scheduler } = bench;
  const { writer } = bench.storage;
  const remove = () => {
    purged += 1;
    return 0;
  };
  const housekeeping = new Housekeeping(scheduler, writer, bench.storage.log, "*/10 * * * *");
  housekeeping.addPurge({ name: "purge", rowsMax: 1, remove });
  await scheduler.start();
}

async function restart(): Promise<void> {
  await bench.scheduler.stop();
  bench.renew();
  await start();
}

/** Sets the wall clock and advances by an hour minus a minute. Returns the number of purges. */
async function purgesAfter(setBy: number): Promise<number> {
  purged = 0;
  bench.storage.clock.setWall(setBy);
  await bench.advance(0);
  await bench.advance(STEADY_MS - 60_000);
  return purged;
}

const logged = (level: string) => bench.storage.log.messages(level);

test.each([JUMP_MS_MAX + 1, -JUMP_MS_MAX - 1])(
  "after a jump of %p ms nothing is purged for an hour",
  async (by) => {
    expect(await purgesAfter(by)).toBe(0);
    expect(logged("warn")).toContain(JUMPED);
    expect(bench.scheduler.clockTrust.isTrusted).toBe(false);
    await bench.advance(60_000);
    expect(bench.scheduler.clockTrust.isTrusted).toBe(true);
    expect(logged("info")).toContain(TRUSTED);
    await bench.advance(HOUR);
    expect(purged).toBeGreaterThanOrEqual(5);
  },
);

test("a smaller jump changes nothing", async () => {
  expect(await purgesAfter(JUMP_MS_MAX)).toBeGreaterThanOrEqual(5);
});

test("undoing a jump ends the wait", async () => {
  bench.storage.clock.setWall(400 * DAY);
  expect(bench.scheduler.clockTrust.isTrusted).toBe(false);
  await bench.advance(90_000);
  expect(await purgesAfter(-400 * DAY)).toBeGreaterThanOrEqual(5);
});

test("another jump starts another hour", async () => {
  expect(await purgesAfter(400 * DAY)).toBe(0);
  expect(await purgesAfter(-200 * DAY)).toBe(0);
});

test("the time is noted when the clock is set: a crash directly afterwards forgets nothing of it", async () => {
  const { clock, db } = bench.storage;
  bench.storage.clock.setWall(HOUR);
  await bench.advance(0);
  expect(db.number("SELECT value AS n FROM settings WHERE name = 'clock_seen'")()).toBe(clock.now());
});

test("a jump since the last stop counts, also after another restart", async () => {
  await bench.scheduler.stop();
  bench.storage.clock.setWall(400 * DAY);
  bench.renew();
  await start();
  expect(await purgesAfter(0)).toBe(0);
  await restart();
  expect(await purgesAfter(0)).toBe(0);
  await bench.advance(HOUR);
  expect(purged).toBeGreaterThanOrEqual(5);
  await restart();
  expect(bench.scheduler.clockTrust.isTrusted).toBe(true);
});
