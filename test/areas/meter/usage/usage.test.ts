import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { RECENT_ENTRIES_MAX } from "../../../../src/areas/meter/recent-entries.ts";
import { MeterService } from "../../../../src/areas/meter/service.ts";
import { meterStore } from "../../../../src/areas/meter/store.ts";
import { BUCKETS_MAX, usageRangeOf } from "../../../../src/areas/meter/usage/ranges.ts";
import { ROUND_ENTRIES_MAX, UsageReader } from "../../../../src/areas/meter/usage/reader.ts";
import { TAIL_MAX, UsageService } from "../../../../src/areas/meter/usage/usage.ts";
import { expectError } from "../../../support/errors.ts";
import { endpoint } from "../../../support/scenario.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../../support/server.ts";
import { KernelBench } from "../../projects/kernel-bench.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MOST = Number.MAX_SAFE_INTEGER;
const REQUEST_ID = "019cd79e-4600-72c4-a4c7-1699cbd1c0e9";

describe("over HTTP", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ manualClock: true });
  });
  afterAll(() => server.stop());

  const wrong = (query: string, name: string) => ({
    name,
    request: ["GET", `/v1/meter/m/usage?${query}`] as const,
    status: 400,
    code: "validation_error",
  });
  endpoint(() => server, "GET /v1/meter/{meterId}/usage", [
    {
      name: "what became of a meter today",
      before: async ({ account }) => {
        await account.post("/v1/meter/m/refill", { amount: 100 });
        await account.post("/v1/meter/m/deduct", { amount: 30 });
        await account.post("/v1/meter/m/holds", { amount: 20, hold_id: "h" });
        await account.post("/v1/meter/m/holds/h/capture", { amount: 10 });
        await account.post("/v1/meter/m/reset", { balance: 55 });
        await account.post("/v1/meter/other/refill", { amount: 1 });
      },
      request: ["GET", "/v1/meter/m/usage"],
      status: 200,
      body: {
        meter_id: "m",
        granularity: "day",
        from: "2026-02-08T00:00:00.000Z",
        to: "2026-03-11T00:00:00.000Z",
        data: [
          {
            from: "2026-03-10T00:00:00.000Z",
            to: "2026-03-11T00:00:00.000Z",
            deducted: 40,
            refilled: 100,
            reset: -5,
            entries: 4,
            balance: 55,
          },
        ],
      },
    },
    {
      name: "of a meter that does not exist",
      request: ["GET", "/v1/meter/never/usage?granularity=month&from=2025-01-31T10:00:00%2B02:00"],
      status: 200,
      holds: { from: "2025-01-01T00:00:00.000Z", to: "2026-04-01T00:00:00.000Z", data: [] },
    },
    wrong("granularity=year", "a granularity that there is not"),
    wrong("from=yesterday", "an invalid start"),
    wrong("to=2026-13-01T00:00:00Z", "an invalid end"),
    wrong("from=2026-03-11T00:00:00Z&to=2026-03-11T00:00:00Z", "an end that is its beginning"),
    wrong("to=0000-01-01T00:00:00Z", "an end before which nothing is"),
    wrong("from=9999-12-01T00:00:00Z&to=9999-12-31T23:59:59Z", "the end of all years"),
    { ...wrong("", "no key"), as: "nobody", status: 401, code: "unauthorized" },
  ]);
  endpoint(() => server, "GET /v1/meter/usage", [
    {
      name: "of all meters of the project together",
      before: async ({ account }) => {
        for (const id of ["a", "b", "c"]) await account.post(`/v1/meter/${id}/refill`, { amount: 10 });
        await account.post("/v1/meter/a/deduct", { amount: 4 });
      },
      request: ["GET", "/v1/meter/usage?granularity=hour"],
      status: 200,
      holds: {
        data: [
          {
            from: "2026-03-10T12:00:00.000Z",
            to: "2026-03-10T13:00:00.000Z",
            deducted: 4,
            refilled: 30,
            reset: 0,
            entries: 4,
          },
        ],
      },
      lacks: ["balance"],
    },
    { ...wrong("", "x"), request: ["GET", "/v1/meter/usage?granularity=x"] },
    {
      name: "no key",
      as: "nobody",
      status: 401,
      code: "unauthorized",
      request: ["GET", "/v1/meter/usage"],
    },
  ]);

  test.each([
    ["hour", "2026-03-10T00:00:00Z", BUCKETS_MAX * HOUR_MS],
    ["day", "2026-03-10T00:00:00Z", BUCKETS_MAX * DAY_MS],
  ] as const)("a thousand buckets by %s, not one more", async (granularity, from, length) => {
    const account = await server.account();
    const to = (more: number) => new Date(Date.parse(from) + length + more).toISOString();
    const ask = (end: string) =>
      account.get(`/v1/meter/m/usage?granularity=${granularity}&from=${from}&to=${end}`);
    expect((await ask(to(0))).status).toBe(200);
    expectError(await ask(to(1)), "validation_error");
  });

  test("at most a thousand months", () => {
    const ask = (to: string) =>
      usageRangeOf({ granularity: "month" }, { from: Date.UTC(2000, 0), to: Date.parse(to) }, 0);
    expect(ask("2083-05-01T00:00:00Z").to).toBe(Date.UTC(2083, 4));
    expect(() => ask("2083-05-01T00:00:00.001Z")).toThrow("at most 1000 months");
  });
});

describe("the series matches the history", () => {
  let bench: KernelBench;
  let meters: MeterService;
  let usage: UsageService;
  let reader: UsageReader;
  const begin = (writer = bench.kernel.writer) => {
    const store = meterStore(bench.kernel.db);
    meters = new MeterService(store, bench.kernel);
    reader = new UsageReader(store.usage, { ...bench.kernel, writer }, meters.book.recent);
    usage = new UsageService(store.usage, reader, meters.book, bench.kernel);
  };
  beforeEach(() => {
    bench = new KernelBench();
    begin();
    return () => bench.close();
  });

  interface Step {
    readonly meter: number;
    readonly deed: "deduct" | "refill" | "reset";
    readonly amount: number;
    readonly hours: number;
    /** Number of commits after which a round is cut off; `memory`: a round without a start before it; null: no round. */
    readonly reads: number | "memory" | null;
  }
  const steps = fc.array(
    fc.record<Step>({
      meter: fc.integer({ min: 0, max: 2 }),
      deed: fc.constantFrom("deduct", "refill", "reset"),
      amount: fc.integer({ min: 1, max: 100 }),
      // Also with a clock that is set back.
      hours: fc.integer({ min: -30, max: 60 }),
      reads: fc.constantFrom<Step["reads"]>(null, null, "memory", 9, 0, 1, 2),
    }),
    { maxLength: 60 },
  );

  const read = () => reader.catchUp();

  /** A round that is killed after this number of its commits. */
  async function cutOff(commits: number): Promise<void> {
    let left = commits;
    const writer = {
      submit: (work: never) => {
        left -= 1;
        return left < 0 ? Promise.reject(new Error("killed")) : bench.kernel.writer.submit(work);
      },
    };
    begin(writer as never);
    await reader.catchUp();
    begin();
  }

  async function carryOut({ meter, deed, amount, hours, reads }: Step): Promise<void> {
    bench.clock.setWall(hours * HOUR_MS);
    const change = { projectRef: 1, meterId: `m${meter}`, requestId: REQUEST_ID };
    await bench.kernel.writer.submit((tx) => meters[deed](tx, change, amount)).catch(() => {});
    if (reads === null) return;
    if (reads === "memory") return await read();
    // Flushed, so that the next start has the meters.
    await meters.finish();
    await cutOff(reads);
  }

  /** Sums of a meter's ledger by bucket. */
  function expected(meterId: string, millis: number) {
    const buckets = new Map<number, { deducted: number; refilled: number; reset: number; balance: number }>();
    let cursor: string | undefined;
    const entries = [];
    do {
      const page = meters.history(1, meterId, 100, cursor);
      entries.push(...page.entries);
      cursor = page.cursor;
    } while (cursor !== undefined);
    for (const { at, kind, amount, balance_after } of entries.reverse()) {
      const begun = Math.floor(Date.parse(at) / millis) * millis;
      const bucket = buckets.get(begun) ?? { deducted: 0, refilled: 0, reset: 0, balance: 0 };
      if (kind === "deduct") bucket.deducted -= amount;
      else if (kind === "refill") bucket.refilled += amount;
      else bucket.reset += amount;
      buckets.set(begun, { ...bucket, balance: balance_after });
    }
    return [...buckets.entries()]
      .sort(([a], [b]) => a - b)
      .map(([begun, sums]) => ({ from: new Date(begun).toISOString(), ...sums }));
  }

  const around = (now: number, days: number) => ({
    from: new Date(now - days * DAY_MS).toISOString(),
    to: new Date(now + days * DAY_MS).toISOString(),
  });

  test("for random ledgers, hours and clocks, with and without pending entries", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        bench.close();
        bench = new KernelBench();
        begin();
        for (const step of all) await carryOut(step);
        for (const meterId of ["m0", "m1", "m2"]) {
          const byHour = await usage.ofMeter(1, meterId, {
            granularity: "hour",
            ...around(TEST_START_MS, 20),
          });
          const shown = byHour.data.filter(({ from }) => from !== "");
          const target = expected(meterId, HOUR_MS).filter(
            ({ from }) => from >= byHour.from && from < byHour.to,
          );
          expect(shown).toMatchObject(target);
          expect(shown).toHaveLength(target.length);
          const byDay = await usage.ofMeter(1, meterId, { ...around(TEST_START_MS, 400) });
          expect(byDay.data).toMatchObject(expected(meterId, DAY_MS));
        }
        const all3 = await Promise.all(
          ["m0", "m1", "m2"].map((id) => usage.ofMeter(1, id, around(TEST_START_MS, 400))),
        );
        const together = await usage.ofProject(1, around(TEST_START_MS, 400));
        const sum = (data: readonly { deducted: number; entries: number }[]) =>
          data.reduce((total, { deducted, entries }) => total + 1_000_000 * entries + deducted, 0);
        expect(sum(together.data)).toBe(sum(all3.flatMap(({ data }) => data)));
      }),
      { numRuns: 25 },
    );
  }, 60_000);

  test("sums are limited to exact JSON integers, in the table and in responses", async () => {
    const reset = (balance: number) =>
      bench.kernel.writer.submit((tx) => {
        const change = { projectRef: 1, meterId: "m", requestId: REQUEST_ID };
        for (let count = 0; count < 300; count += 1) {
          meters.reset(tx, change, 0);
          meters.refill(tx, change, MOST);
        }
        meters.reset(tx, change, balance);
      });
    await reset(0);
    const sums = { refilled: MOST, reset: -MOST };
    expect((await usage.ofMeter(1, "m", {})).data).toMatchObject([sums]);
    await read();
    expect((await usage.ofMeter(1, "m", {})).data).toMatchObject([sums]);
    await reset(1);
    await read();
    expect((await usage.ofMeter(1, "m", {})).data).toMatchObject([{ ...sums, entries: 1_202, balance: 1 }]);
    expect((await usage.ofProject(1, {})).data).toMatchObject([sums]);
  });

  const fill = (entries: number) =>
    bench.kernel.writer.submit((tx) => {
      const change = { projectRef: 1, meterId: "m", requestId: REQUEST_ID };
      for (let count = 0; count < entries; count += 1) meters.refill(tx, change, 1);
    });

  test("a request reads pending entries up to a limit; above it, it waits for the reader", async () => {
    await fill(TAIL_MAX);
    expect((await usage.ofMeter(1, "m", {})).data).toMatchObject([{ entries: TAIL_MAX }]);
    expect(meterStore(bench.kernel.db).usage.through()).toBe(0);
    await fill(1);
    expect((await usage.ofMeter(1, "m", {})).data).toMatchObject([{ entries: TAIL_MAX + 1 }]);
    expect(meterStore(bench.kernel.db).usage.through()).toBe(TAIL_MAX + 1);
  });

  const rollBack = (entries: number) => {
    const failing = bench.kernel.writer.submit((tx) => {
      const change = { projectRef: 1, meterId: "m", requestId: REQUEST_ID };
      for (let count = 0; count < entries; count += 1) meters.refill(tx, change, 1);
      throw new Error("rolled back");
    });
    return expect(failing).rejects.toThrow("rolled back");
  };

  test("entries since the start are summed without reading the ledger", async () => {
    const { usage: store } = meterStore(bench.kernel.db);
    const between = () => {
      throw new Error("reads the ledger");
    };
    await rollBack(2);
    await fill(3);
    await rollBack(2);
    await fill(4);
    await new UsageReader({ ...store, between }, bench.kernel, meters.book.recent).catchUp();
    expect((await usage.ofMeter(1, "m", {})).data).toMatchObject([{ entries: 7, refilled: 7 }]);
    expect(store.through()).toBe(store.highestSequence());
  });

  test("more entries than memory holds are read from the ledger", async () => {
    await fill(RECENT_ENTRIES_MAX + 1);
    await rollBack(2);
    await fill(1);
    await read();
    const { data } = await usage.ofMeter(1, "m", {});
    expect(data).toMatchObject([{ entries: RECENT_ENTRIES_MAX + 2, balance: RECENT_ENTRIES_MAX + 2 }]);
    const { usage: store } = meterStore(bench.kernel.db);
    expect(store.through()).toBe(store.highestSequence());
  }, 60_000);

  test("an old ledger is summed in rounds, while requests are served", async () => {
    const entries = ROUND_ENTRIES_MAX + 3 * TAIL_MAX;
    await fill(entries);
    begin();
    const readSettled = reader.catchUp();
    let done = false;
    void readSettled.then(() => {
      done = true;
    });
    while (!done) {
      const { data } = await usage.ofMeter(1, "m", {});
      expect(data).toMatchObject([{ entries, refilled: entries, balance: entries }]);
      await Bun.sleep(1);
    }
    expect(meterStore(bench.kernel.db).usage.through()).toBe(entries);
  });

  test("a reader that cannot write causes 503, and a later request succeeds", async () => {
    await fill(TAIL_MAX + 1);
    begin({ submit: () => Promise.reject(new Error("no disk")) } as never);
    await expect(usage.ofMeter(1, "m", {})).rejects.toMatchObject({ code: "service_unavailable" });
    begin();
    expect((await usage.ofMeter(1, "m", {})).data).toMatchObject([{ entries: TAIL_MAX + 1 }]);
  });
});
