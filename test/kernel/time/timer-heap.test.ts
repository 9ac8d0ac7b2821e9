import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type HeapEntry, TimerHeap } from "../../../src/kernel/time/timer-heap.ts";

/** Removes and runs everything that is due at `now`. */
function runDue(heap: TimerHeap, now: number): void {
  for (let run = heap.takeDue(now); run !== undefined; run = heap.takeDue(now)) run();
}

describe("timer heap", () => {
  test("has nothing due if it is empty", () => {
    const heap = new TimerHeap();
    expect(heap.size).toBe(0);
    expect(heap.earliest()).toBeUndefined();
    expect(heap.takeDue(Number.MAX_SAFE_INTEGER)).toBeUndefined();
  });

  test("returns the earliest first, equal times in the order of insertion", () => {
    const heap = new TimerHeap();
    const ran: string[] = [];
    for (const [due, name] of [
      [30, "c"],
      [10, "a1"],
      [20, "b1"],
      [10, "a2"],
      [20, "b2"],
      [10, "a3"],
    ] as const) {
      heap.push(due, () => ran.push(name));
    }
    expect(heap.earliest()).toBe(10);
    runDue(heap, 9);
    expect(ran).toEqual([]);
    runDue(heap, 20);
    expect(ran).toEqual(["a1", "a2", "a3", "b1", "b2"]);
    expect(heap.size).toBe(1);
    expect(heap.earliest()).toBe(30);
  });

  test("keeps the order of a hundred entries of one time", () => {
    const heap = new TimerHeap();
    const ran: number[] = [];
    for (let index = 0; index < 100; index += 1) heap.push(7, () => ran.push(index));
    runDue(heap, 7);
    expect(ran).toEqual(Array.from({ length: 100 }, (_, index) => index));
  });

  test("never returns a cancelled entry; cancelling twice changes nothing", () => {
    const heap = new TimerHeap();
    const ran: number[] = [];
    const first = heap.push(1, () => ran.push(1));
    const second = heap.push(2, () => ran.push(2));
    heap.push(3, () => ran.push(3));
    heap.cancel(first);
    heap.cancel(first);
    expect(heap.size).toBe(2);
    expect(heap.earliest()).toBe(2);
    heap.takeDue(2)?.();
    heap.cancel(second);
    expect(heap.size).toBe(1);
    runDue(heap, 3);
    expect(ran).toEqual([2, 3]);
    expect(heap.size).toBe(0);
  });

  test("releases cancelled entries", async () => {
    const heap = new TimerHeap();
    // Created and cancelled in a separate function: only the heap may refer to them afterwards.
    const made = (() => {
      const entries = Array.from({ length: 10_000 }, (_, due) => heap.push(due, () => {}));
      for (const entry of entries) if (entry.due > 0) heap.cancel(entry);
      const references = entries.map((entry) => new WeakRef(entry));
      // The collector may take what is left on the stack for a reference to the list.
      entries.length = 0;
      return references;
    })();
    expect(heap.size).toBe(1);
    // A weak reference keeps its target alive until the end of its turn.
    await new Promise((resolve) => setImmediate(resolve));
    Bun.gc(true);
    const held = made.filter((entry) => entry.deref() !== undefined).length;
    expect(held).toBeGreaterThanOrEqual(1);
    // 130 by the heap's own rule; the collector may overlook a few more.
    expect(held).toBeLessThan(1_000);
    expect(heap.earliest()).toBe(0);
  });

  test("property: behaves as a sorted list", () => {
    const action = fc.oneof(
      fc.record({ kind: fc.constant("push" as const), at: fc.integer({ min: 0, max: 20 }) }),
      fc.record({ kind: fc.constant("cancel" as const), at: fc.nat(400) }),
      fc.record({ kind: fc.constant("run" as const), at: fc.integer({ min: 0, max: 22 }) }),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 400 }), (actions) => {
        const heap = new TimerHeap();
        const entries: HeapEntry[] = [];
        let live: { due: number; id: number }[] = [];
        const ran: number[] = [];
        const expected: number[] = [];
        for (const { kind, at } of actions) {
          if (kind === "push") {
            const id = entries.length;
            entries.push(heap.push(at, () => ran.push(id)));
            live.push({ due: at, id });
          } else if (kind === "cancel") {
            const entry = entries[at];
            if (entry !== undefined) heap.cancel(entry);
            live = live.filter(({ id }) => id !== at);
          } else {
            runDue(heap, at);
            live.sort((a, b) => a.due - b.due || a.id - b.id);
            expected.push(...live.filter(({ due }) => due <= at).map(({ id }) => id));
            live = live.filter(({ due }) => due > at);
          }
          expect(heap.size).toBe(live.length);
        }
        expect(ran).toEqual(expected);
        expect(heap.earliest()).toBe(live.length === 0 ? undefined : Math.min(...live.map(({ due }) => due)));
      }),
      { numRuns: 100 },
    );
  });
});
