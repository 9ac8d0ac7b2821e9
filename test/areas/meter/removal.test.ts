import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { MeterService } from "../../../src/areas/meter/service.ts";
import { meterStore } from "../../../src/areas/meter/store.ts";
import { ApiError } from "../../../src/kernel/errors.ts";
import { KernelBench } from "../projects/kernel-bench.ts";

const REQUEST_ID = "00000000-0000-7000-8000-000000000000";
const GOING = 1;
const STAYING = 2;
const SLICE = 100;

let bench: KernelBench;
let meters: MeterService;
beforeEach(() => {
  bench = new KernelBench();
  meters = restarted();
});
afterEach(() => bench.close());

/** The service in the state after a start, flushed or not. */
function restarted(): MeterService {
  return new MeterService(meterStore(bench.kernel.db), bench.kernel);
}

function refill(projectRef: number, meterId: string, times: number): Promise<unknown> {
  return bench.kernel.writer.submit((tx) => {
    for (let count = 0; count < times; count += 1) {
      meters.refill(tx, { projectRef, meterId, requestId: REQUEST_ID }, 1);
    }
  });
}

function remove(rowsMax: number): Promise<number> {
  return bench.kernel.writer.submit((tx) => meters.removeRows(tx, GOING, rowsMax));
}

function rows(table: "meters" | "meter_entries"): number {
  return bench.kernel.db.one<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)()?.count ?? 0;
}

/** Balances after each entry of a meter, newest first. */
function ledger(projectRef: number, meterId: string): number[] {
  const found: number[] = [];
  let cursor: string | undefined;
  do {
    const page = meters.history(projectRef, meterId, 100, cursor);
    found.push(...page.entries.map(({ balance_after }) => balance_after));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

const countdown = (from: number) => Array.from({ length: from }, (_, index) => from - index);

describe.each([
  ["settled", true],
  ["not settled", false],
])("the removal of a project's meters, %s", (_, settled) => {
  beforeEach(async () => {
    for (let round = 0; round < 5; round += 1) {
      await refill(GOING, "long", 50);
      await refill(STAYING, "long", 10);
      await refill(GOING, `short-${round}`, 1);
    }
    if (settled) await meters.finish();
  });

  test("removes the newest entries first: the rest is a valid ledger, also for the next start", async () => {
    expect(await remove(SLICE)).toBe(SLICE);
    expect(ledger(GOING, "long")).toEqual(countdown(150));
    meters = restarted();
    expect(ledger(GOING, "long")).toEqual(countdown(150));
    expect(await remove(SLICE)).toBe(SLICE);
    meters = restarted();
    // 50 entries and the meter, then 5 meters with one entry each.
    expect(await remove(SLICE)).toBe(61);
    expect(await remove(SLICE)).toBe(0);
    expect([rows("meters"), rows("meter_entries")]).toEqual([1, 50]);
    expect(meters.countTo(GOING, 10)).toBe(0);
    expect(ledger(STAYING, "long")).toEqual(countdown(50));
    await meters.finish();
    expect([rows("meters"), rows("meter_entries")]).toEqual([1, 50]);
  });

  test("that ends a slice with a meter's last entry removes the meter in the next slice", async () => {
    expect(await remove(250)).toBe(250);
    expect(meters.countTo(GOING, 10)).toBe(6);
    meters = restarted();
    expect(meters.balance(GOING, "short-0").balance).toBe(1);
    expect(ledger(GOING, "long")).toEqual([]);
    expect(await remove(250)).toBe(11);
  });

  test("that fails leaves all entries unchanged", async () => {
    const failing = bench.kernel.writer.submit((tx) => {
      meters.removeRows(tx, GOING, SLICE);
      throw new ApiError("conflict", "Rejected by this test, after the removal.");
    });
    expect(await failing.catch((error: ApiError) => error.code)).toBe("conflict");
    expect(ledger(GOING, "long")).toEqual(countdown(250));
    expect(await remove(1_000)).toBe(261);
  });

  test("does not reuse numbers: later entries are found by the next start", async () => {
    expect(await remove(1_000)).toBe(261);
    meters = restarted();
    await refill(STAYING, "long", 3);
    meters = restarted();
    expect(ledger(STAYING, "long")).toEqual(countdown(53));
    expect(meters.balance(STAYING, "long").balance).toBe(53);
  });
});
