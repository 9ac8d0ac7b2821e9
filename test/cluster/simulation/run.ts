import type { EngineKind } from "./engine.ts";
import { History, type Outcome } from "./history.ts";
import type { MachineFaults } from "./machine.ts";
import { SCENARIOS, type ScenarioName } from "./scenarios.ts";
import { Random, Violation } from "./world.ts";

/** Which history it is: the same one happens again. */
export interface HistoryName {
  readonly scenario: ScenarioName;
  readonly engine: EngineKind;
  readonly seed: number;
}

const NAMES = Object.keys(SCENARIOS) as ScenarioName[];
const WEIGHTS = NAMES.reduce((sum, name) => sum + SCENARIOS[name].weight, 0);

/** The history that a seed stands for. */
export function historyOf(seed: number): HistoryName {
  const random = new Random(seed);
  let left = random.next() * WEIGHTS;
  const scenario = NAMES.find((name) => {
    left -= SCENARIOS[name].weight;
    return left < 0;
  });
  const found = scenario ?? "chaos";
  return { scenario: found, engine: random.pick<EngineKind>(SCENARIOS[found].engines), seed };
}

/** Lives through a history. @throws Violation, whose message says how to repeat it. */
export function live({ scenario, engine, seed }: HistoryName, faults: MachineFaults = {}): Outcome {
  const history = new History(seed, engine, faults);
  try {
    return SCENARIOS[scenario].run(history);
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    const lines = history.machines.flatMap((machine) => machine.lines);
    const last = lines.toSorted((a, b) => Number.parseFloat(a) - Number.parseFloat(b)).slice(-40);
    const again = `${scenario} ${engine} ${seed}`;
    throw new Violation(
      error.property,
      `${error.detail}\nAgain: NINEFOLD_HISTORY="${again}"\n${last.join("\n")}`,
    );
  }
}

/** The first of some histories in which a property is violated, and how; null: in none. */
export function findViolation(
  names: readonly HistoryName[],
  property: string,
  faults: MachineFaults = {},
): Violation | null {
  for (const name of names) {
    try {
      live(name, faults);
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      if (error.property === property) return error;
    }
  }
  return null;
}
