import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { repeated } from "../support/long-form.ts";
import { FakeEngine, type Fault, NO_FAULT, World } from "./fake-engine.ts";
import { type Acknowledged, SimulatedNode } from "./simulated-node.ts";

/** As many histories as there is time for: about a thousand, or tens of thousands. */
const RUN_MS = repeated(3_000, 60_000);
const HISTORIES_MAX = 100_000;
/** Longest pause, and longest delay of a call. */
const MS_MAX = 6_000;
/**
 * Time after the last fault in which some node must lead: a call can have its effect late, and again as much later; then the
 * lease expires, and a process restarts.
 */
const RECOVERY_MS = 3 * MS_MAX;
const TEST_MS_MAX = 3_600_000;

type Act =
  | { readonly act: "change" | "show" | "kill" | "handOver"; readonly node: number }
  | { readonly act: "pause"; readonly node: number; readonly ms: number }
  | { readonly act: "wait"; readonly ms: number };

const NODE = fc.nat({ max: 1 });
const MS = fc.integer({ min: 1, max: MS_MAX });
const ACT: fc.Arbitrary<Act> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ act: fc.constant("change" as const), node: NODE }) },
  { weight: 3, arbitrary: fc.record({ act: fc.constant("show" as const), node: NODE }) },
  {
    weight: 6,
    arbitrary: fc.record({ act: fc.constant("wait" as const), ms: fc.integer({ min: 0, max: 900 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ act: fc.constantFrom("kill" as const, "handOver" as const), node: NODE }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("pause" as const), node: NODE, ms: MS }) },
);

const SHORT_DELAY = fc.integer({ min: 0, max: 40 });
const DELAY = fc.oneof({ weight: 8, arbitrary: SHORT_DELAY }, { weight: 1, arbitrary: MS });
const LOST_OR = (delay: fc.Arbitrary<number>) =>
  fc.oneof({ weight: 9, arbitrary: delay }, { weight: 1, arbitrary: fc.constant(null) });
const FAULT: fc.Arbitrary<Fault> = fc.record({
  effectMs: LOST_OR(DELAY),
  responseMs: LOST_OR(DELAY),
  againMs: fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: MS }),
});

const HISTORY = fc.record({
  acts: fc.array(ACT, { minLength: 10, maxLength: 60 }),
  faults: fc.array(FAULT, { minLength: 1, maxLength: 60 }),
  // The rates of two clocks may differ by less than a fifth.
  rates: fc.tuple(fc.constantFrom(0.85, 1, 1.15), fc.constantFrom(0.85, 1, 1.15)),
});
type History = typeof HISTORY extends fc.Arbitrary<infer T> ? T : never;

/** What came of some histories, to see that they reach what they are meant to test. */
const seen = { histories: 0, acknowledged: 0, shown: 0, seals: 0 };

async function live({ acts, faults, rates }: History): Promise<void> {
  const world = new World();
  const engine = new FakeEngine(world);
  let calls = 0;
  let isFaulty = true;
  const nextFault = (): Fault => {
    calls += 1;
    return isFaulty ? (faults[calls % faults.length] ?? NO_FAULT) : NO_FAULT;
  };
  const nodes = rates.map((rate, index) => new SimulatedNode(world, engine, nextFault, `n${index}`, rate));
  await world.run(1_000);
  for (const act of acts) {
    if (act.act === "wait") await world.run(act.ms);
    else if (act.act === "pause") nodes[act.node]?.pause(act.ms);
    else nodes[act.node]?.[act.act]();
  }
  isFaulty = false;
  await world.run(RECOVERY_MS);
  const leading = nodes.filter((node) => node.isLeading);
  expect(leading).toHaveLength(1);
  const before = allAcknowledged(nodes).length;
  leading[0]?.change();
  await world.run(1_000);
  expect(allAcknowledged(nodes)).toHaveLength(before + 1);
  check(engine, nodes);
}

function allAcknowledged(nodes: readonly SimulatedNode[]): Acknowledged[] {
  return nodes.flatMap(({ acknowledged }) => acknowledged).sort((a, b) => a.at - b.at || a.seq - b.seq);
}

function check(engine: FakeEngine, nodes: readonly SimulatedNode[]): void {
  const log = engine.read(1, Number.POSITIVE_INFINITY);
  // Nothing was written behind a gap, and no epoch after a later one.
  expect(log.length).toBe(engine.entries.size);
  log.reduce((last, { epoch }) => {
    expect(epoch).toBeGreaterThanOrEqual(last);
    return epoch;
  }, 0);
  const acknowledged = allAcknowledged(nodes);
  for (const { seq, epoch, text, at } of acknowledged) {
    const entry = engine.entries.get(seq);
    expect(entry?.epoch).toBe(epoch);
    expect(String(entry?.parts[0])).toBe(text);
    // A deposed leader says nothing after its successor has sealed the log.
    for (const later of engine.entries.values())
      if (later.epoch > epoch) expect(later.writtenAt).toBeGreaterThanOrEqual(at);
  }
  for (const [index, { seq }] of acknowledged.entries())
    expect(seq).toBeGreaterThan(acknowledged[index - 1]?.seq ?? 0);
  // A response shows everything that was acknowledged before its request.
  for (const { seq, sentAt } of nodes.flatMap(({ shown }) => shown))
    for (const known of acknowledged) if (known.at < sentAt) expect(seq).toBeGreaterThanOrEqual(known.seq);
  seen.histories += 1;
  seen.acknowledged += acknowledged.length;
  seen.shown += nodes.reduce((sum, { shown }) => sum + shown.length, 0);
  seen.seals += log.filter(({ parts }) => String(parts[0]) === "seal").length;
}

describe("random histories of two nodes whose calls are lost, delayed and doubled", () => {
  test(
    "keep everything that was acknowledged, in one order, and show nothing older",
    async () => {
      const limits = { numRuns: HISTORIES_MAX, interruptAfterTimeLimit: RUN_MS };
      await fc.assert(fc.asyncProperty(HISTORY, live), limits);
      const { histories, acknowledged, shown, seals } = seen;
      expect(histories).toBeGreaterThan(0);
      expect(acknowledged).toBeGreaterThan(histories);
      expect(shown).toBeGreaterThan(histories / 10);
      expect(seals).toBeGreaterThan(histories);
      console.info(
        `${histories} histories: ${acknowledged} changes acknowledged, ${shown} responses, ${seals} seals`,
      );
    },
    TEST_MS_MAX,
  );
});
