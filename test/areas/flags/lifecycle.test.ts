import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FLAGS_PER_PROJECT_MAX } from "../../../src/areas/flags/domain.ts";
import { FLAGS_IN_MEMORY_MAX } from "../../../src/areas/flags/registry.ts";
import type { FlagService } from "../../../src/areas/flags/service.ts";
import { flagStore } from "../../../src/areas/flags/store.ts";
import { ApiError } from "../../../src/kernel/errors.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { KernelBench } from "../projects/kernel-bench.ts";
import { flagServiceOn } from "./flag-service.ts";

describe("on a server", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ manualClock: true });
  });
  afterAll(() => server.stop());

  test("the next request uses a change, on any connection", async () => {
    const account = await server.account({ balance: 1_000 });
    for (let round = 0; round < 40; round += 1) {
      const enabled = round % 3 !== 0;
      await account.post("/v1/gate", { flag_key: "f", enabled });
      const seen = await Promise.all([account.get("/v1/gate/f"), account.get("/v1/gate/f")]);
      expect(seen.map(({ body }) => body.enabled)).toEqual([enabled, enabled]);
      if (round % 5 !== 0) continue;
      expect((await account.delete("/v1/gate/f")).status).toBe(200);
      expectError(await account.get("/v1/gate/f"), "gate.feature_not_found");
    }
  });

  test("random changes and restarts have the same result as a map", async () => {
    const step = fc.oneof(
      { weight: 8, arbitrary: fc.record({ key: fc.constantFrom("a", "b", "c"), enabled: fc.boolean() }) },
      { weight: 4, arbitrary: fc.record({ key: fc.constantFrom("a", "b", "c") }) },
      { weight: 1, arbitrary: fc.constant("restart" as const) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 15 }), async (steps) => {
        let client: Client = await server.account({ balance: 1_000 });
        const model = new Map<string, boolean>();
        for (const step of steps) {
          if (step === "restart") {
            await server.restart();
            client = server.client(client.key);
          } else if ("enabled" in step) {
            const body = { flag_key: step.key, enabled: step.enabled };
            expect((await client.post("/v1/gate", body)).status).toBe(201);
            model.set(step.key, step.enabled);
          } else {
            const { status } = await client.delete(`/v1/gate/${step.key}`);
            expect(status).toBe(model.delete(step.key) ? 200 : 404);
          }
          for (const key of ["a", "b", "c"]) {
            const { status, body } = await client.get(`/v1/gate/${key}`);
            expect(status === 200 ? body.enabled : undefined).toBe(model.get(key));
          }
        }
        const config = (await client.get("/v1/gate/config")).body.flags as { flag_key: string }[];
        const expected = [...model].reverse().map(([flag_key, enabled]) => ({ flag_key, enabled }));
        expect(config).toEqual(expected);
      }),
      { numRuns: 15 },
    );
  });

  test("a flag with a corrupt row: 500 gate.evaluation_failed, free of charge", async () => {
    const account = await server.account({ balance: 5 });
    const { db } = server.server.kernel;
    db.execute("ALTER TABLE flags RENAME TO flags_elsewhere");
    try {
      expectError(await account.get("/v1/gate/unread"), "gate.evaluation_failed");
    } finally {
      db.execute("ALTER TABLE flags_elsewhere RENAME TO flags");
    }
    expect((await account.get("/v1/meter/balance")).body.balance).toBe(5);
    expect(server.logs.map(({ message }) => message)).toContain("a request failed");
  });
});

/** Columns of a flag that is on. */
function rowOf(flag_key: string) {
  const nothing = {
    managed_by: null,
    description: null,
    archived: 0,
    version: 0,
    updated_at: 0,
    definition: null,
  };
  return { flag_key, enabled: 1, ...nothing };
}

describe("without a server", () => {
  const PROJECT = 1;
  const NOW = TEST_START_MS;
  let bench: KernelBench;
  beforeEach(() => {
    bench = new KernelBench();
  });
  afterEach(() => bench.close());

  function newService(store = flagStore(bench.kernel.db), inMemoryMax?: number): FlagService {
    return flagServiceOn(bench.kernel, store, inMemoryMax);
  }

  /** A service that counts how often it reads a flag's row. */
  function readingService(inMemoryMax?: number): { service: FlagService; reads: () => number } {
    const store = flagStore(bench.kernel.db);
    let reads = 0;
    const find: typeof store.find = (...key) => {
      reads += 1;
      return store.find(...key);
    };
    return { service: newService({ ...store, find }, inMemoryMax), reads: () => reads };
  }

  function save(service: FlagService, key: string, enabled = true) {
    return bench.kernel.writer.submit((tx) => service.save(tx, PROJECT, { flag_key: key, enabled }));
  }

  function fill(count: number): Promise<void> {
    const store = flagStore(bench.kernel.db);
    const first = store.highestRef() + 1;
    return bench.kernel.writer.submit((tx) => {
      for (let index = 0; index < count; index += 1) {
        store.insert(tx, { ...rowOf(`filled-${index}`), ref: first + index, project_ref: PROJECT });
      }
    });
  }

  test("flags in use are cached up to a limit; others are read again unchanged", async () => {
    const { service, reads } = readingService(10);
    for (let index = 0; index < 40; index += 1) await save(service, `f${index}`, index % 2 === 0);
    const evaluateAll = () => {
      const before = reads();
      for (let index = 0; index < 40; index += 1) {
        expect(service.evaluate(PROJECT, `f${index}`, NOW).enabled).toBe(index % 2 === 0);
      }
      return reads() - before;
    };
    expect(evaluateAll()).toBeGreaterThanOrEqual(30);
    expect(evaluateAll()).toBeGreaterThanOrEqual(30);
    const before = reads();
    for (let round = 0; round < 3; round += 1) {
      for (let index = 0; index < 10; index += 1) service.evaluate(PROJECT, `f${index}`, NOW);
    }
    // The ten flags of these rounds are soon all cached.
    expect(reads() - before).toBeLessThan(30);
  });

  test("the default limit is as documented", () => {
    let reads = 0;
    const find = (_: number, flag_key: string) => {
      reads += 1;
      return { ...rowOf(flag_key), ref: 1, created_at: null, evaluated_at: NOW };
    };
    const service = newService({ ...flagStore(bench.kernel.db), find });
    const readsOf = (count: number): number => {
      const before = reads;
      for (let index = 0; index < count; index += 1) service.evaluate(PROJECT, `f${index}`, NOW);
      return reads - before;
    };
    expect(readsOf(FLAGS_IN_MEMORY_MAX)).toBe(FLAGS_IN_MEMORY_MAX);
    expect(readsOf(FLAGS_IN_MEMORY_MAX)).toBe(0);
    // A recently used flag is skipped once before its eviction: several must be added before one is evicted.
    const more = FLAGS_IN_MEMORY_MAX + 2_000;
    expect(readsOf(more)).toBeGreaterThanOrEqual(2_000);
    expect(readsOf(more)).toBeGreaterThan(0);
  }, 60_000);

  test(`a project has ${FLAGS_PER_PROJECT_MAX} flags at most; after a deletion, another can be created`, async () => {
    await fill(FLAGS_PER_PROJECT_MAX - 1);
    const service = newService();
    await save(service, "last");
    expect(flagStore(bench.kernel.db).count(PROJECT)).toBe(FLAGS_PER_PROJECT_MAX);
    const rejected = await save(service, "one-more").catch((error: unknown) => error);
    expect(rejected).toBeInstanceOf(ApiError);
    expect((rejected as ApiError).code).toBe("forbidden");
    expect(() => service.evaluate(PROJECT, "one-more", NOW)).toThrow("This project has no flag");
    // Existing flags can still be changed.
    await save(service, "last", false);
    await bench.kernel.writer.submit((tx) => service.delete(tx, PROJECT, "filled-0"));
    await save(service, "one-more");
    expect(flagStore(bench.kernel.db).count(PROJECT)).toBe(FLAGS_PER_PROJECT_MAX);
  });

  test("a failed unit rolls back its changes in memory", async () => {
    const service = newService();
    await save(service, "kept", true);
    const failing = bench.kernel.writer.submit((tx) => {
      service.save(tx, PROJECT, { flag_key: "kept", enabled: false, description: "another" });
      service.save(tx, PROJECT, { flag_key: "new", enabled: true });
      throw new ApiError("conflict", "Rejected by this test, after the changes.");
    });
    expect(await failing.catch((error: ApiError) => error.code)).toBe("conflict");
    expect(service.evaluate(PROJECT, "kept", NOW).enabled).toBe(true);
    expect(() => service.evaluate(PROJECT, "new", NOW)).toThrow("This project has no flag");
    expect([...service.config(PROJECT, {}, NOW)]).toEqual([{ flag_key: "kept", enabled: true }]);
    const deleting = bench.kernel.writer.submit((tx) => {
      service.delete(tx, PROJECT, "kept");
      throw new ApiError("conflict", "Rejected by this test, after the deletion.");
    });
    expect(await deleting.catch((error: ApiError) => error.code)).toBe("conflict");
    expect(service.evaluate(PROJECT, "kept", NOW).enabled).toBe(true);
  });
});
