import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { LruMap } from "../../../src/kernel/limits/lru-map.ts";

describe("a map that drops the least recently used entries", () => {
  test("has at most its maximum of entries, and at least the most recently used half", () => {
    const uses = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 30 })), { maxLength: 300 });
    fc.assert(
      fc.property(uses, (all) => {
        const map = new LruMap<number, string>(8);
        let last: number[] = [];
        for (const [isUse, key] of all) {
          last = last.filter((one) => one !== key);
          if (isUse) {
            expect(map.getOrAdd(key, () => `value ${key}`)).toBe(`value ${key}`);
            last = [...last, key].slice(-4);
          } else map.delete(key);
          expect(map.size).toBeLessThanOrEqual(8);
          // Reading them uses them in this order.
          for (const one of last) expect(map.get(one)).toBe(`value ${one}`);
        }
      }),
    );
  });

  test("creates a value once while it is in use", () => {
    const map = new LruMap<string, { at: number }>(4);
    const first = map.getOrAdd("a", () => ({ at: 1 }));
    for (let at = 2; at < 100; at += 1) {
      map.set(`other ${at}`, { at });
      expect(map.getOrAdd("a", () => ({ at }))).toBe(first);
    }
    for (let at = 0; at < 4; at += 1) map.set(`more ${at}`, { at });
    expect(map.get("a")).toBeUndefined();
  });

  test("stores null, and creates nothing twice", () => {
    const map = new LruMap<number, string | null>(4);
    expect(map.getOrAdd(1, () => null)).toBeNull();
    expect(map.getOrAdd(1, () => "again")).toBeNull();
    map.set(2, "a");
    map.set(3, "b");
    map.set(1, "c");
    expect([map.get(1), map.size]).toEqual(["c", 3]);
  });
});
