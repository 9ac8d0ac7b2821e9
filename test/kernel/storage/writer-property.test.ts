import { afterAll, expect, test } from "bun:test";
import fc from "fast-check";
import { ApiError } from "../../../src/kernel/errors.ts";
import type { Tx } from "../../../src/kernel/storage/tx.ts";
import { type CommitFault, TestStorage } from "../support.ts";

/** One action of a unit of work. */
type Step =
  | { readonly kind: "write"; readonly key: number; readonly value: number }
  | { readonly kind: "remember"; readonly key: number; readonly value: number }
  | { readonly kind: "after"; readonly mark: number }
  | { readonly kind: "throw" }
  | { readonly kind: "attempt"; readonly swallow: boolean; readonly steps: readonly Step[] };

/** Units that are submitted during one turn, those of requests and those in the background, and the outcome of their COMMIT. */
interface Batch {
  readonly requests: readonly (readonly Step[])[];
  readonly background: readonly (readonly Step[])[];
  readonly fault: CommitFault;
}

/** The expected state after each batch: rows and memory contain the same kind of data. */
interface State {
  readonly rows: Map<number, number>;
  readonly memory: Map<number, number>;
  readonly after: number[];
}

const number = fc.integer({ min: 0, max: 5 });
const { steps } = fc.letrec<{ step: Step; steps: Step[] }>((tie) => ({
  step: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    { arbitrary: fc.record({ kind: fc.constant("write" as const), key: number, value: number }), weight: 4 },
    {
      arbitrary: fc.record({ kind: fc.constant("remember" as const), key: number, value: number }),
      weight: 4,
    },
    { arbitrary: fc.record({ kind: fc.constant("after" as const), mark: fc.nat(1000) }), weight: 1 },
    { arbitrary: fc.record({ kind: fc.constant("throw" as const) }), weight: 1 },
    {
      arbitrary: fc.record({
        kind: fc.constant("attempt" as const),
        swallow: fc.boolean(),
        steps: tie("steps"),
      }),
      weight: 3,
    },
  ),
  steps: fc.array(tie("step"), { maxLength: 6 }),
}));
const batch: fc.Arbitrary<Batch> = fc.record({
  requests: fc.array(steps, { minLength: 1, maxLength: 6 }),
  background: fc.array(steps, { maxLength: 3 }),
  fault: fc.oneof(
    { arbitrary: fc.constant("none" as const), weight: 6 },
    { arbitrary: fc.constant("stays-open" as const), weight: 1 },
    { arbitrary: fc.constant("rolled-back" as const), weight: 1 },
  ),
});

class Refused extends Error {}

/** The model: each unit works on a copy, which replaces the state when it gets through. */
function runInModel(state: State, work: readonly Step[]): State {
  let now: State = { rows: new Map(state.rows), memory: new Map(state.memory), after: [...state.after] };
  for (const step of work) {
    if (step.kind === "write") now.rows.set(step.key, step.value);
    else if (step.kind === "remember") now.memory.set(step.key, step.value);
    else if (step.kind === "after") now.after.push(step.mark);
    else if (step.kind === "throw") throw new Refused();
    else {
      try {
        now = runInModel(now, step.steps);
      } catch (error) {
        if (!step.swallow) throw error;
      }
    }
  }
  return now;
}

const storage = new TestStorage();
storage.db.execute("CREATE TABLE cells (key INTEGER PRIMARY KEY, value INTEGER NOT NULL)");
const put = storage.db.change<[number, number]>("INSERT OR REPLACE INTO cells (key, value) VALUES (?, ?)");
const clear = storage.db.change("DELETE FROM cells");
afterAll(() => storage.close());

function runForReal(tx: Tx, real: State, work: readonly Step[]): void {
  for (const step of work) {
    if (step.kind === "write") put(tx, step.key, step.value);
    else if (step.kind === "remember") rememberForReal(tx, real.memory, step.key, step.value);
    else if (step.kind === "after") tx.afterCommit(() => real.after.push(step.mark));
    else if (step.kind === "throw") throw new Refused();
    else {
      try {
        tx.savepoint(() => runForReal(tx, real, step.steps));
      } catch (error) {
        if (!step.swallow) throw error;
      }
    }
  }
}

function rememberForReal(tx: Tx, memory: Map<number, number>, key: number, value: number): void {
  const before = memory.get(key);
  memory.set(key, value);
  tx.onRollback(() => {
    if (before === undefined) memory.delete(key);
    else memory.set(key, before);
  });
}

function outcomeName(settled: PromiseSettledResult<unknown>): string {
  if (settled.status === "fulfilled") return "done";
  if (settled.reason instanceof Refused) return "refused";
  return settled.reason instanceof ApiError ? settled.reason.code : String(settled.reason);
}

/** Runs a batch in the model and returns the state after it, with the expected outcome of each unit. */
function expectBatch(
  state: State,
  { requests, background, fault }: Batch,
): { state: State; outcomes: string[] } {
  let after = state;
  const units = [...requests, ...background];
  const outcomes = units.map((work) => {
    try {
      after = runInModel(after, work);
      return "done";
    } catch {
      return "refused";
    }
  });
  if (fault === "none") return { state: after, outcomes };
  return { state, outcomes: units.map(() => "read_only") };
}

const sorted = (map: ReadonlyMap<number, number>) => [...map].sort(([a], [b]) => a - b);

test("rows, memory and effects after a commit match the successful units, whatever fails", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 4 }), async (batches) => {
      storage.db.fault = "none";
      await storage.writer.submit((tx) => clear(tx));
      let expected: State = { rows: new Map(), memory: new Map(), after: [] };
      const real: State = { rows: new Map(), memory: new Map(), after: [] };
      for (const batch of batches) {
        const model = expectBatch(expected, batch);
        expected = model.state;
        storage.db.fault = batch.fault;
        // Handed in first, and yet they run after the requests.
        const background = batch.background.map((work) =>
          storage.writer.submitInBackground((tx) => runForReal(tx, real, work)),
        );
        const requests = batch.requests.map((work) =>
          storage.writer.submit((tx) => runForReal(tx, real, work)),
        );
        const settled = await Promise.allSettled([...requests, ...background]);
        expect(settled.map(outcomeName)).toEqual(model.outcomes);
        const rows = storage.rows<{ key: number; value: number }>(
          "SELECT key, value FROM cells ORDER BY key",
        );
        expect(rows.map(({ key, value }) => [key, value])).toEqual(sorted(expected.rows));
        expect(sorted(real.memory)).toEqual(sorted(expected.memory));
        expect(real.after).toEqual(expected.after);
        expect(storage.db.inTransaction).toBe(false);
      }
    }),
    { numRuns: 400 },
  );
});
