import { beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Actor, ActorRegistry } from "../../../src/kernel/actors/registry.ts";

class TestActor implements Actor {
  private isIdle = true;
  recent = false;
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  get idle(): boolean {
    return this.isIdle;
  }

  set idle(idle: boolean) {
    this.isIdle = idle;
  }
}

let passivated: string[];
let activated: string[];
beforeEach(() => {
  passivated = [];
  activated = [];
});

function registryOf(actorsMax: number): ActorRegistry<string, TestActor> {
  return new ActorRegistry<string, TestActor>(actorsMax, (actor) => passivated.push(actor.name));
}

function use(registry: ActorRegistry<string, TestActor>, name: string): TestActor {
  return registry.get(name, () => {
    activated.push(name);
    return new TestActor(name);
  });
}

function names(registry: ActorRegistry<string, TestActor>): string[] {
  return [...registry.values()].map(({ name }) => name).sort();
}

describe("actor registry", () => {
  test("activates an actor on its first use and returns the same one afterwards", () => {
    const registry = registryOf(10);
    expect(registry.peek("a")).toBeUndefined();
    const actor = use(registry, "a");
    expect(use(registry, "a")).toBe(actor);
    expect(registry.peek("a")).toBe(actor);
    expect(activated).toEqual(["a"]);
    expect(registry.size).toBe(1);
  });

  test("stores nothing if no actor is created", () => {
    const registry = registryOf(10);
    expect(registry.get("a", () => undefined)).toBeUndefined();
    expect(registry.size).toBe(0);
    expect(registry.peek("a")).toBeUndefined();
  });

  test("adds created actors, and drops rolled back ones without passivating them", () => {
    const registry = registryOf(10);
    const actor = new TestActor("made");
    registry.insert("made", actor);
    expect(use(registry, "made")).toBe(actor);
    registry.drop("made");
    registry.drop("made");
    expect(registry.peek("made")).toBeUndefined();
    expect(passivated).toEqual([]);
    expect(activated).toEqual([]);
  });

  test("keeps all at the limit; above it drops the least recently used, which is activated again", () => {
    const registry = registryOf(4);
    for (const name of ["a", "b", "c", "d"]) use(registry, name);
    expect(registry.size).toBe(4);
    expect(passivated).toEqual([]);
    use(registry, "e");
    expect(registry.size).toBe(4);
    expect(passivated).toEqual(["a"]);
    const again = use(registry, "a");
    expect(again.name).toBe("a");
    expect(activated).toEqual(["a", "b", "c", "d", "e", "a"]);
    expect(passivated).toEqual(["a", "b"]);
  });

  test("keeps actors that are used repeatedly", () => {
    const registry = registryOf(8);
    const hot = use(registry, "hot");
    for (let index = 0; index < 1_000; index += 1) {
      use(registry, `cold ${index}`);
      expect(use(registry, "hot")).toBe(hot);
      expect(registry.size).toBeLessThanOrEqual(8);
    }
    expect(activated.filter((name) => name === "hot")).toHaveLength(1);
    expect(passivated).toHaveLength(1_001 - 8);
  });

  test("keeps busy actors above the limit until they are idle", () => {
    const registry = registryOf(4);
    const busy = Array.from({ length: 100 }, (_, index) => {
      const actor = use(registry, `busy ${index}`);
      actor.idle = false;
      return actor;
    });
    expect(passivated).toEqual([]);
    expect(registry.size).toBe(100);
    for (const actor of busy) expect(registry.peek(actor.name)).toBe(actor);
    for (const actor of busy) actor.idle = true;
    for (let index = 0; index < 10; index += 1) use(registry, `idle ${index}`);
    expect(registry.size).toBe(4);
  });

  test("an insertion looks at a limited number of busy actors", () => {
    let looks = 0;
    class BusyActor extends TestActor {
      override get idle(): boolean {
        looks += 1;
        return false;
      }
      override set idle(_: boolean) {}
    }
    const registry = registryOf(10);
    for (let index = 0; index < 3_000; index += 1) registry.insert(`${index}`, new BusyActor(`${index}`));
    expect(registry.size).toBe(3_000);
    // Checking every actor each time would take four and a half million steps.
    expect(looks).toBeLessThanOrEqual(3_000 * 256);
    expect(looks).toBeGreaterThan(0);
  });

  test("a limit of one keeps one", () => {
    const registry = registryOf(1);
    use(registry, "a");
    use(registry, "b");
    expect(names(registry)).toEqual(["b"]);
  });

  test("property: no busy actor is lost, keys are unique, and the limit holds while all are idle", () => {
    const action = fc.record({
      kind: fc.constantFrom("use" as const, "toggle" as const, "drop" as const),
      key: fc.nat(30).map(String),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.array(action, { maxLength: 300 }), (max, actions) => {
        const gone = new Set<TestActor>();
        const registry = new ActorRegistry<string, TestActor>(max, (actor) => gone.add(actor));
        const busy = new Map<string, TestActor>();
        const step = {
          use: (key: string) => {
            const actor = registry.get(key, () => new TestActor(key));
            expect(gone.has(actor)).toBe(false);
            expect(registry.peek(key)).toBe(actor);
            if (busy.size === 0) expect(registry.size).toBeLessThanOrEqual(max);
          },
          drop: (key: string) => {
            registry.drop(key);
            busy.delete(key);
          },
          toggle: (key: string) => {
            const actor = registry.peek(key);
            if (actor === undefined) return;
            actor.idle = !actor.idle;
            if (actor.idle) busy.delete(key);
            else busy.set(key, actor);
          },
        };
        for (const { kind, key } of actions) {
          step[kind](key);
          for (const [name, actor] of busy) expect(registry.peek(name)).toBe(actor);
          expect(new Set(registry.values()).size).toBe(registry.size);
        }
      }),
      { numRuns: 100 },
    );
  });
});
