import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { FLUSH_AFTER_ENTRIES, METERS_IN_MEMORY_MAX } from "../../../src/areas/meter/book.ts";
import { MeterService } from "../../../src/areas/meter/service.ts";
import { meterStore } from "../../../src/areas/meter/store.ts";
import type { Kernel } from "../../../src/kernel/kernel.ts";
import { eventually } from "../../support/eventually.ts";
import { TestKernel } from "../../support/kernel.ts";

const REQUEST_ID = "019cd79e-4600-72c4-a4c7-1699cbd1c0e9";
const PROJECT = 1;

let opened: TestKernel;
let kernel: Kernel;
beforeEach(() => {
  opened = new TestKernel();
  kernel = opened.kernel;
});
afterEach(() => opened.close());

function serviceWith(inMemoryMax?: number): MeterService {
  return new MeterService(meterStore(kernel.db), kernel, inMemoryMax);
}

async function refill(service: MeterService, meterId: string, amount: number): Promise<void> {
  const change = { projectRef: PROJECT, meterId, requestId: REQUEST_ID };
  await kernel.writer.submit((tx) => service.refill(tx, change, amount));
}

/** A service and the number of its database lookups of meters. */
function counting(find = meterStore(kernel.db).find) {
  const looked = { up: 0 };
  const store = {
    ...meterStore(kernel.db),
    find: (projectRef: number, meterId: string) => {
      looked.up += 1;
      return find(projectRef, meterId);
    },
  };
  return { store, looked };
}

describe("meters in memory", () => {
  test("are those in use, up to a limit; others are loaded unchanged from their rows", async () => {
    const { store, looked } = counting();
    const service = new MeterService(store, kernel, 10);
    for (let round = 1; round <= 3; round += 1) {
      for (let index = 0; index < 40; index += 1) await refill(service, `m${index}`, index + 1);
      await service.finish();
      for (let index = 0; index < 40; index += 1) {
        expect(service.balance(PROJECT, `m${index}`).balance).toBe(round * (index + 1));
      }
      expect(service.history(PROJECT, "m39", 100, undefined).entries).toHaveLength(round);
    }
    // Adding one evicts another. Meters in continuous use stay within the limit.
    await refill(service, "one-more", 1);
    await service.finish();
    const lookUps = (meters: number): number => {
      for (let pass = 1; pass <= 5; pass += 1) {
        looked.up = 0;
        for (let index = 0; index < meters; index += 1) service.balance(PROJECT, `m${index}`);
      }
      return looked.up;
    };
    expect(lookUps(10)).toBe(0);
    expect(lookUps(11)).toBeGreaterThan(0);
  });

  test("above the limit stay until their rows are written", async () => {
    const { store, looked } = counting();
    const service = new MeterService(store, kernel, 10);
    for (let index = 0; index < 40; index += 1) await refill(service, `m${index}`, 1);
    looked.up = 0;
    for (let index = 0; index < 40; index += 1) expect(service.balance(PROJECT, `m${index}`).balance).toBe(1);
    expect(looked.up).toBe(0);
    // A second service on the same database reads unflushed balances from the ledger.
    const later = serviceWith(10);
    for (let index = 0; index < 40; index += 1) expect(later.balance(PROJECT, `m${index}`).balance).toBe(1);
  });

  test("have the documented default limit", () => {
    const { store, looked } = counting((_, meterId) => ({
      ref: Number(meterId),
      balance: 0,
      last_sequence: 0,
      has_extras: 0,
    }));
    const service = new MeterService(store, kernel);
    for (let ref = 1; ref <= METERS_IN_MEMORY_MAX; ref += 1) service.balance(PROJECT, String(ref));
    service.balance(PROJECT, "1");
    expect(looked.up).toBe(METERS_IN_MEMORY_MAX);
    // One more replaces the first that was not read again.
    service.balance(PROJECT, "0");
    service.balance(PROJECT, "1");
    expect(looked.up).toBe(METERS_IN_MEMORY_MAX + 1);
    service.balance(PROJECT, "2");
    expect(looked.up).toBe(METERS_IN_MEMORY_MAX + 2);
  });
});

describe("the balance flusher", () => {
  const flushed = (): number => meterStore(kernel.db).flushedThrough();

  async function change(service: MeterService, times: number): Promise<void> {
    for (let done = 0; done < times; done += 1_000) {
      const units = Math.min(1_000, times - done);
      await Promise.all(Array.from({ length: units }, (_, index) => refill(service, `m${index % 7}`, 1)));
    }
  }

  test(`starts immediately after ${FLUSH_AFTER_ENTRIES} changes, and not before`, async () => {
    const service = serviceWith();
    const begun = performance.now();
    await change(service, FLUSH_AFTER_ENTRIES - 1);
    // On a slow machine, the flush after two seconds may run first; then this proves nothing.
    if (performance.now() - begun < 1_500) expect(flushed()).toBe(0);
    await change(service, 1);
    await eventually(() => expect(flushed()).toBeGreaterThan(0));
    await service.finish();
    expect(flushed()).toBe(FLUSH_AFTER_ENTRIES);
  });
});

test("numbers of rolled-back entries are not reused: no later entry counts as flushed", async () => {
  const first = serviceWith();
  await refill(first, "m", 1_000);
  for (let count = 0; count < 5; count += 1) {
    const failing = kernel.writer.submit((tx) => {
      first.refill(tx, { projectRef: PROJECT, meterId: "m", requestId: REQUEST_ID }, 1);
      throw new Error("taken back");
    });
    await expect(failing).rejects.toThrow("taken back");
  }
  await first.finish();
  const second = serviceWith();
  for (let count = 0; count < 3; count += 1) await refill(second, "m", 100);
  // Not finished, as after a kill: the row is outdated and only the ledger is current.
  expect(serviceWith().balance(PROJECT, "m").balance).toBe(1_300);
});
