import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { DEFINITIONS_BYTES_MAX } from "../../../src/areas/flags/domain.ts";
import type { EvaluationContext } from "../../../src/areas/flags/evaluation/context.ts";
import type { FlagBody } from "../../../src/areas/flags/schema.ts";
import type { FlagService } from "../../../src/areas/flags/service.ts";
import { flagStore } from "../../../src/areas/flags/store.ts";
import { ApiError } from "../../../src/kernel/errors.ts";
import type { Tx } from "../../../src/kernel/storage/tx.ts";
import { TEST_START_MS } from "../../support/server.ts";
import { KernelBench } from "../projects/kernel-bench.ts";
import { flagServiceOn } from "./flag-service.ts";

const PROJECT = 1;
const SERVER = { now: TEST_START_MS, seesServerOnly: true };
const BROWSER = { now: TEST_START_MS, seesServerOnly: false };

let bench: KernelBench;
let service: FlagService;
beforeEach(() => {
  bench = new KernelBench();
  service = newService();
});
afterEach(() => bench.close());

function newService(inMemoryMax?: number): FlagService {
  return flagServiceOn(bench.kernel, undefined, inMemoryMax);
}

function inUnit<T extends object>(work: (tx: Tx) => T): Promise<T> {
  return bench.kernel.writer.submit(work as never);
}

function save(flag_key: string, fields: Partial<FlagBody> = {}) {
  return inUnit((tx) => service.save(tx, PROJECT, { flag_key, enabled: true, ...fields }));
}

const outcomes = (context: EvaluationContext = {}, options = SERVER, from = service) => [
  ...from.outcomes(PROJECT, context, options),
];
const keysSeen = (options = SERVER): string[] => outcomes({}, options).map(({ key }) => key);

describe("outcomes", () => {
  test("all flags of the project, sorted by key, without archived and server-only ones", async () => {
    for (const key of ["b", "a", "a-b", "z", "_9".slice(1)]) await save(key);
    await save("hidden", { server_only: true });
    await save("old", { archived: true });
    await save("off", { enabled: false, metadata: { owner: "me" } });
    await inUnit((tx) => service.save(tx, 2, { flag_key: "another-project", enabled: true }));
    expect(keysSeen()).toEqual(["9", "a", "a-b", "b", "hidden", "off", "z"]);
    expect(keysSeen(BROWSER)).toEqual(["9", "a", "a-b", "b", "off", "z"]);
    expect(outcomes({}, BROWSER)[4]).toEqual({
      key: "off",
      value: false,
      variant: "off",
      reason: "DISABLED",
      metadata: { owner: "me" },
    });
  });

  test("of one flag: undefined if it is missing, archived or hidden", async () => {
    await save("f");
    await save("hidden", { server_only: true });
    await save("old", { archived: true });
    const outcome = { key: "f", value: true, variant: "on", reason: "STATIC", metadata: {} } as const;
    expect(service.outcomeOf(PROJECT, "f", {}, BROWSER)).toEqual(outcome);
    expect(service.outcomeOf(PROJECT, "hidden", {}, SERVER)).toMatchObject({ value: true });
    for (const key of ["hidden", "old", "absent", "Not A Key", ""])
      expect(service.outcomeOf(PROJECT, key, {}, BROWSER)).toBeUndefined();
    expect(service.outcomeOf(2, "f", {}, SERVER)).toBeUndefined();
    await save("old", { archived: false });
    expect(service.outcomeOf(PROJECT, "old", {}, BROWSER)).toMatchObject({ value: true });
  });

  test("an individual evaluation is recorded; a bulk evaluation or one of a hidden flag is not", async () => {
    for (const key of ["single", "together"]) await save(key);
    await save("hidden", { server_only: true });
    outcomes();
    service.outcomeOf(PROJECT, "single", {}, BROWSER);
    service.outcomeOf(PROJECT, "hidden", {}, BROWSER);
    const noted = (key: string) => service.definition(PROJECT, key, SERVER.now).last_evaluated_at;
    expect(noted("single")).toBe("2026-03-10T12:00:00.000Z");
    expect([noted("together"), noted("hidden")]).toEqual([null, null]);
  });

  test("an expensive context is a client error, a corrupt definition a server error", async () => {
    const values = Array.from({ length: 1_000 }, (_, index) => `v${index}`);
    const when = [{ attribute: "a", op: "starts_with" as const, values }];
    await save("f", { rules: [{ when, serve: { variant: "on" } }] });
    const long = { a: Array.from({ length: 20_000 }, () => "x") };
    for (const evaluate of [() => service.outcomeOf(PROJECT, "f", long, SERVER), () => outcomes(long)])
      expect(codeOf(evaluate)).toBe("validation_error");
    bench.kernel.db.execute("UPDATE flags SET definition = '{'");
    service = newService();
    expect(codeOf(() => service.outcomeOf(PROJECT, "f", {}, SERVER))).toBe("gate.evaluation_failed");
    expect(codeOf(() => outcomes())).toBe("gate.evaluation_failed");
    expect(codeOf(() => service.evaluate(PROJECT, "f", SERVER.now))).toBe("gate.evaluation_failed");
  });
});

function codeOf(work: () => unknown): string {
  try {
    work();
    return "nothing was thrown";
  } catch (error) {
    return error instanceof ApiError ? error.code : String(error);
  }
}

test("the version for browsers increases only with changes visible to them", async () => {
  const versions = () => [service.version(PROJECT, SERVER), service.version(PROJECT, BROWSER)];
  expect(versions()).toEqual([0, 0]);
  await save("shown");
  expect(versions()).toEqual([1, 1]);
  await save("hidden", { server_only: true });
  await save("hidden", { server_only: true, tags: ["a"] });
  expect(versions()).toEqual([3, 1]);
  await save("hidden", { server_only: false });
  expect(versions()).toEqual([4, 4]);
  await save("hidden", { server_only: true });
  expect(versions()).toEqual([5, 5]);
  await inUnit((tx) => service.delete(tx, PROJECT, "hidden"));
  expect(versions()).toEqual([6, 5]);
  service = newService();
  expect(versions()).toEqual([6, 5]);
  await inUnit((tx) => service.delete(tx, PROJECT, "shown"));
  expect(versions()).toEqual([7, 7]);
  expect(service.version(2, SERVER)).toBe(0);
});

type Step =
  | { readonly kind: "save"; readonly key: string; readonly fields: Partial<FlagBody> }
  | { readonly kind: "delete"; readonly key: string }
  | { readonly kind: "look" };

const key = fc.constantFrom("a", "b", "c", "d");
const fields = fc.record(
  {
    enabled: fc.boolean(),
    archived: fc.boolean(),
    server_only: fc.boolean(),
    tags: fc.constantFrom<string[] | null>(["x"], ["x", "y"], null),
    metadata: fc.constantFrom<Record<string, number> | null>({ n: 1 }, null),
  },
  { requiredKeys: ["enabled"] },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("save" as const), key, fields }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("delete" as const), key }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("look" as const) }) },
);

test("random units of work, some rolled back, leave memory equal to the database", async () => {
  const unit = fc.record({ steps: fc.array(step, { minLength: 1, maxLength: 4 }), fails: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(unit, { minLength: 1, maxLength: 8 }), async (units) => {
      bench.kernel.db.execute("DELETE FROM flags; DELETE FROM flag_projects; DELETE FROM flag_uses");
      service = newService();
      let highest = 0;
      // All in one batch: after a failure it runs again with a savepoint per unit.
      await Promise.allSettled(
        units.map(({ steps, fails }) =>
          inUnit((tx) => {
            for (const step of steps) take(tx, step);
            if (fails) throw new ApiError("conflict", "Rejected by this test, after the changes.");
            return {};
          }),
        ),
      );
      const fresh = newService();
      for (const options of [SERVER, BROWSER]) {
        expect(outcomes({}, options)).toEqual(outcomes({}, options, fresh));
        expect(service.version(PROJECT, options)).toBe(fresh.version(PROJECT, options));
      }
      for (const flag of service.config(PROJECT, { full: true, archived: true }, SERVER.now)) {
        highest = Math.max(highest, "version" in flag ? flag.version : 0);
        const found = service.outcomeOf(PROJECT, flag.flag_key, {}, SERVER);
        expect(found).toEqual(fresh.outcomeOf(PROJECT, flag.flag_key, {}, SERVER) as typeof found & object);
      }
      expect(listed()).toEqual(listed(fresh));
      expect(service.version(PROJECT, SERVER)).toBeGreaterThanOrEqual(highest);
      const bytes = bench.kernel.db.number("SELECT coalesce(sum(length(definition)), 0) AS n FROM flags");
      expect(flagStore(bench.kernel.db).project(PROJECT)?.bytes ?? 0).toBe(bytes());
    }),
    { numRuns: 60 },
  );
});

/** Evaluates a list of flags, as a check does. */
function listed(of = service) {
  return of.evaluator()(PROJECT, ["d", "b", "none", "a", "c"], {}, SERVER);
}

function take(tx: Tx, one: Step): void {
  if (one.kind === "look") {
    outcomes();
    listed();
  } else if (one.kind === "save")
    service.save(tx, PROJECT, { flag_key: one.key, enabled: true, ...one.fields });
  else if ([...service.keys(PROJECT)].includes(one.key)) service.delete(tx, PROJECT, one.key);
}

test("the next evaluation uses a change, individually and in bulk, in any order", async () => {
  for (const key of ["b", "d"]) await save(key);
  expect(keysSeen()).toEqual(["b", "d"]);
  for (const key of ["c", "a", "e"]) await save(key);
  expect(keysSeen()).toEqual(["a", "b", "c", "d", "e"]);
  await save("c", { default: { variant: "off" }, variants: { on: true, off: false } });
  expect(outcomes()[2]).toMatchObject({ key: "c", value: false });
  await inUnit((tx) => service.delete(tx, PROJECT, "a"));
  await save("e", { archived: true });
  expect(keysSeen()).toEqual(["b", "c", "d"]);
});

test("a change during a bulk read is not hidden by earlier reads", async () => {
  // More than one step reads.
  for (let at = 100; at < 140; at += 1) await save(`f${at}`);
  service = newService();
  const steps = service.outcomes(PROJECT, {}, SERVER);
  steps.next();
  await save("f100", { enabled: false });
  await save("f139", { enabled: false });
  const rest = [...steps];
  expect(rest).toHaveLength(39);
  expect(rest.at(-1)).toMatchObject({ key: "f139", value: false });
  expect(
    outcomes()
      .filter(({ value }) => value === false)
      .map(({ key }) => key),
  ).toEqual(["f100", "f139"]);
});

test(`the definitions of a project have ${DEFINITIONS_BYTES_MAX} bytes at most; after a deletion, another can be created`, async () => {
  const value = "x".repeat(16_000);
  const large = {
    type: "string",
    variants: { a: value, b: value, c: value, d: value },
    default: { variant: "a" },
  };
  const body = large as Partial<FlagBody>;
  await save("f0", body);
  const { bytes } = flagStore(bench.kernel.db).project(PROJECT) ?? { bytes: 0 };
  expect(bytes).toBe(Buffer.byteLength(JSON.stringify(large)));
  const fitting = Math.floor(DEFINITIONS_BYTES_MAX / bytes);
  await inUnit((tx) => {
    for (let index = 1; index < fitting; index += 1)
      service.save(tx, PROJECT, { flag_key: `f${index}`, enabled: true, ...body });
    return {};
  });
  const rejected = await save("one-more", body).catch((error: unknown) => error);
  expect(rejected).toBeInstanceOf(ApiError);
  expect((rejected as ApiError).code).toBe("forbidden");
  // A switch has no definition, and existing definitions can shrink.
  await save("switch");
  await save("f1", { variants: { a: "small" } as never });
  await save("one-more", body);
  await inUnit((tx) => service.delete(tx, PROJECT, "f2"));
  expect(flagStore(bench.kernel.db).project(PROJECT)?.bytes).toBeLessThanOrEqual(DEFINITIONS_BYTES_MAX);
});

test("flags with large definitions count as several in memory", async () => {
  const value = "x".repeat(16_000);
  const body = { type: "string", variants: { a: value }, default: { variant: "a" } } as Partial<FlagBody>;
  for (let index = 0; index < 20; index += 1) await save(`f${index}`, body);
  const store = flagStore(bench.kernel.db);
  let reads = 0;
  const find: typeof store.find = (...expected) => {
    reads += 1;
    return store.find(...expected);
  };
  // Each has a weight of 63.
  const small = flagServiceOn(bench.kernel, { ...store, find }, 200);
  for (let round = 0; round < 3; round += 1)
    for (let index = 0; index < 20; index += 1) small.outcomeOf(PROJECT, `f${index}`, {}, SERVER);
  expect(reads).toBeGreaterThanOrEqual(50);
});

test("a deleted project's flags, versions and evaluations are removed", async () => {
  for (const key of ["a", "b", "c"]) await save(key, { tags: ["x"] });
  await inUnit((tx) => service.save(tx, 2, { flag_key: "kept", enabled: true }));
  expect(keysSeen()).toEqual(["a", "b", "c"]);
  expect(listed().map((outcome) => outcome?.key)).toEqual([undefined, "b", undefined, "a", "c"]);
  const removed = await inUnit((tx) => ({ count: service.removeRows(tx, PROJECT, 2) }));
  expect(removed.count).toBe(2);
  await inUnit((tx) => ({ count: service.removeRows(tx, PROJECT, 2) }));
  expect(keysSeen()).toEqual([]);
  expect(listed()).toEqual(Array.from({ length: 5 }, () => undefined));
  expect(service.version(PROJECT, SERVER)).toBe(0);
  const rows = (table: string) => bench.kernel.db.number(`SELECT count(*) AS n FROM ${table}`)();
  expect([rows("flags"), rows("flag_projects"), rows("flag_uses")]).toEqual([1, 1, 0]);
});
