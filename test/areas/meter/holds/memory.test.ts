import { afterEach, beforeEach, expect, test } from "bun:test";
import { MISSED_REFILLS_MAX } from "../../../../src/areas/meter/book.ts";
import { DueWork } from "../../../../src/areas/meter/holds/due.ts";
import { HoldService } from "../../../../src/areas/meter/holds/holds.ts";
import { createMeter, type MeterArea } from "../../../../src/areas/meter/index.ts";
import { PlanService } from "../../../../src/areas/meter/plans/plans.ts";
import type { MeterDeps } from "../../../../src/areas/meter/ports.ts";
import { MeterService } from "../../../../src/areas/meter/service.ts";
import { meterStore } from "../../../../src/areas/meter/store.ts";
import { UsageReader } from "../../../../src/areas/meter/usage/reader.ts";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import type { StoppedProjects } from "../../../../src/kernel/projects/stopped-projects.ts";
import type { Tx } from "../../../../src/kernel/storage/tx.ts";
import { KernelBench } from "../../projects/kernel-bench.ts";

const REQUEST_ID = "019cd79e-4600-72c4-a4c7-1699cbd1c0e9";
const PROJECT = 1;
const PORTS: MeterDeps = {
  alerts: { notifyWebhook: () => {} },
  charger: { charge: () => {}, refund: () => {} },
  projects: { accountOf: () => null },
  policy: { assertUrl: () => undefined },
  tiers: DEFAULT_TIERS,
};
const change = (meterId: string) => ({ projectRef: PROJECT, meterId, requestId: REQUEST_ID });

let bench: KernelBench;
beforeEach(() => {
  bench = new KernelBench();
});
afterEach(() => bench.close());

const submit = <T>(work: (tx: Tx) => T) => bench.kernel.writer.submit(work as never) as Promise<T>;

/** Services with this limit of meters in memory, in the state after a start. */
function begin(inMemoryMax?: number) {
  const store = meterStore(bench.kernel.db);
  const meters = new MeterService(store, bench.kernel, inMemoryMax);
  const scheduler = { register: () => {}, enqueue: () => {} } as never;
  const due = new DueWork(store, meters.book, {} as StoppedProjects, PORTS.projects, {
    ...bench.kernel,
    scheduler,
  });
  const plans = new PlanService(store.plans, meters.book, due, PORTS);
  return { meters, plans, holds: new HoldService(store.holds, meters, due, bench.kernel) };
}

test("missed refills are applied later, up to a thousand", async () => {
  const { meters, plans } = begin();
  await submit(
    (tx) => void plans.setPlan(tx, change("m"), { amount: 1, every: "day", mode: "add" }, () => {}),
  );
  await submit(
    (tx) => void plans.setPlan(tx, change("n"), { amount: 1, every: "day", mode: "add" }, () => {}),
  );
  const missed = async (days: number, meterId: string) => {
    await bench.clock.advance(days * 86_400_000);
    await submit((tx) => void meters.book.current(tx, change(meterId)));
    return meters.balance(PROJECT, meterId).balance;
  };
  expect(await missed(MISSED_REFILLS_MAX, "m")).toBe(MISSED_REFILLS_MAX);
  expect(await missed(1, "n")).toBe(MISSED_REFILLS_MAX);
  // Further refills are dropped, and the next one keeps its time.
  expect(await missed(1, "n")).toBe(MISSED_REFILLS_MAX + 1);
  expect(plans.plan(PROJECT, "n").next_at > new Date(bench.clock.now()).toISOString()).toBe(true);
});

test("a meter is not dropped while its hold is rolled back with its batch", async () => {
  const room = 2;
  const { meters, holds } = begin(room);
  await submit((tx) => meters.refill(tx, change("m"), 100));
  await meters.finish();
  // Many in one batch, which the last one rolls back: each evicts another.
  const others = Array.from({ length: 20 }, (_, index) => `other-${index}`);
  const batch = [
    submit((tx) => holds.create(tx, change("m"), { amount: 60, hold_id: "h" })),
    ...others.map((id) => submit((tx) => meters.refill(tx, change(id), 1))),
    submit(
      (tx) => void expect(meters.stateOf(meters.book.current(tx, change("m")), "m", tx.now).held).toBe(60),
    ),
    submit((tx) => {
      tx.storageFailed(new Error("the disk"));
      throw new Error("the disk");
    }),
  ];
  for (const outcome of await Promise.allSettled(batch)) expect(outcome.status).toBe("rejected");
  expect(meters.balance(PROJECT, "m")).toMatchObject({ balance: 100, available: 100, held: 0 });
  expect(begin().meters.balance(PROJECT, "m").held).toBe(0);
  const made = await submit((tx) => holds.create(tx, change("m"), { amount: 100, hold_id: "h" }));
  expect(made.isNew).toBe(true);
});

test("the held credits are the sum of the open holds after random changes", async () => {
  const { meters, holds } = begin();
  await submit((tx) => meters.refill(tx, change("m"), 1_000));
  const open = new Map<string, number>();
  for (let step = 0; step < 300; step += 1) {
    const id = `h${(step * 7) % 40}`;
    const at = { ...change("m"), holdId: id };
    const amount = open.get(id);
    if (amount === undefined && step % 3 !== 0) {
      const hold_id = `${id}-${step}`;
      await submit((tx) => holds.create(tx, change("m"), { amount: (step % 9) + 1, hold_id }));
      open.set(id, (step % 9) + 1);
      open.set(`id ${id}`, step);
    } else if (amount !== undefined) {
      const holdId = `${id}-${open.get(`id ${id}`)}`;
      const failing = step % 5 === 0;
      const work = submit((tx) => {
        holds.capture(tx, { ...at, holdId }, { amount: 1, final: step % 2 === 0 || amount === 1 });
        if (failing) throw new Error("taken back");
      });
      await work.catch(() => {});
      if (!failing && (step % 2 === 0 || amount === 1)) open.delete(id);
      else if (!failing) open.set(id, amount - 1);
    }
    const held = [...open.entries()].reduce(
      (sum, [key, value]) => sum + (key.startsWith("id") ? 0 : value),
      0,
    );
    expect(meters.balance(PROJECT, "m").held).toBe(held);
  }
  const before = meters.balance(PROJECT, "m");
  expect(before.held).toBeGreaterThan(0);
  // Loaded again, with and without a flushed row.
  expect(begin().meters.balance(PROJECT, "m")).toEqual(before);
  await meters.finish();
  expect(begin().meters.balance(PROJECT, "m")).toEqual(before);
  bench.clock.setWall(300_000);
  expect(meters.balance(PROJECT, "m").held).toBe(0);
});

test("a deleted project's holds, plans, alerts and sums are removed", async () => {
  const { meters, holds } = begin();
  const tables = ["meter_holds", "meter_plans", "meter_alerts", "meter_usage", "meter_entries", "meters"];
  const rows = () => tables.map((table) => bench.kernel.db.number(`SELECT count(*) AS n FROM ${table}`)());
  const area = areaOf();
  for (const projectRef of [PROJECT, 2]) {
    for (const meterId of ["a", "b"]) {
      const at = { projectRef, meterId, requestId: REQUEST_ID };
      await submit((tx) => void meters.refill(tx, at, 100));
      for (let count = 0; count < 5; count += 1)
        await submit((tx) => void holds.create(tx, at, { amount: 1 }));
      const ref = meters.book.find(projectRef, meterId)?.ref ?? 0;
      const { plans } = meterStore(bench.kernel.db);
      const plan = { meter_ref: ref, amount: 1, every: 1, mode: 1, day: null, carry_max: null, next_at: 1 };
      await submit((tx) => {
        plans.setPlan(tx, plan);
        plans.setAlert(tx, projectRef, ref, 1, 1, "https://example.com/");
      });
    }
  }
  await meters.finish();
  const { usage } = meterStore(bench.kernel.db);
  await new UsageReader(usage, bench.kernel, meters.book.recent).catchUp();
  await area.finish();
  expect(rows()).toEqual([20, 4, 4, 6, 4, 4]);
  await submit((tx) => area.resources.projectDeleted?.(tx, PROJECT));
  // Due refills of a deleted project are not applied.
  await bench.kernel.scheduler.start();
  let removed = 0;
  for (let slice = 3; slice === 3; removed += slice) {
    slice = await submit((tx) => area.resources.removeRows(tx, PROJECT, 3));
  }
  await bench.kernel.scheduler.stop();
  // 10 holds, 2 entries, 2 meters, 3 rows of sums.
  expect(removed).toBe(17);
  expect(rows()).toEqual([10, 2, 2, 3, 2, 2]);
});

function areaOf(): MeterArea {
  return createMeter(bench.kernel, PORTS);
}

test("operations in another area's unit of work succeed or fail with the unit", async () => {
  const { meters } = begin();
  await submit((tx) => void meters.refill(tx, change("m"), 100));
  await meters.finish();
  const area = areaOf().inUnit;
  expect(await submit((tx) => [area.available(tx, PROJECT, "none")])).toEqual([null]);
  const terms = { meter_id: "m", amount: 60, hold_id: "call" };
  const taken = await submit((tx) => [
    area.findOpenHold(tx, PROJECT, terms),
    area.hold(tx, PROJECT, terms, REQUEST_ID).isNew,
    area.hold(tx, PROJECT, terms, REQUEST_ID).isNew,
    area.findOpenHold(tx, PROJECT, terms)?.status,
    area.available(tx, PROJECT, "m"),
    area.deduct(tx, PROJECT, "m", 40, REQUEST_ID),
  ]);
  const figures = { balance: 100, available: 40 };
  expect(taken).toEqual([null, true, false, "open", figures, 60]);
  const rejected = (work: (tx: Tx) => unknown) => submit((tx) => void work(tx));
  await expect(rejected((tx) => area.deduct(tx, PROJECT, "m", 1, REQUEST_ID))).rejects.toMatchObject({
    code: "insufficient_balance",
  });
  for (const other of [
    { ...terms, amount: 61 },
    { ...terms, meter_id: "other" },
  ]) {
    await expect(rejected((tx) => area.findOpenHold(tx, PROJECT, other))).rejects.toMatchObject({
      code: "conflict",
    });
  }
  const none = { meter_id: "none", amount: 1 };
  await expect(rejected((tx) => area.hold(tx, PROJECT, none, REQUEST_ID))).rejects.toMatchObject({
    code: "insufficient_balance",
  });
  bench.clock.setWall(300_000);
  await expect(rejected((tx) => area.findOpenHold(tx, PROJECT, terms))).rejects.toMatchObject({
    details: { extras: { status: "expired" } },
  });
  expect(await submit((tx) => area.available(tx, PROJECT, "m"))).toEqual({ balance: 60, available: 60 });
});
