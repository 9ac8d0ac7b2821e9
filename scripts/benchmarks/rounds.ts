import { RIVALS } from "./answers.ts";
import type { Benchmark, Competitor, Measurement } from "./benchmark.ts";
import { type Results, rivalName, type Series, seriesKey } from "./figures.ts";
import type { Player, Stage } from "./stage.ts";
import { runWrk, type WrkResult } from "./wrk.ts";

/** Seconds of load before anything counts: what the disk caches is there by then. The servers are started anew each time. */
const WARM_UP_SECONDS = 1;
/** Connections of the competitors' own load generators; rows are compared with them at this number. */
const COMPETITOR_CONNECTIONS = 32;

/** How the rounds are made. */
export interface RoundsPlan {
  readonly stage: Stage;
  readonly benchmarks: readonly Benchmark[];
  readonly competitors: readonly Competitor[];
  readonly rounds: number;
  readonly seconds: number;
  /** Load on each server before it is measured. */
  readonly warmSeconds: number;
  readonly say: (text: string) => void;
}

/** What the rounds came to. */
export interface RoundsResult {
  readonly results: Results;
  /** Answers that should not have been, a line per series. */
  readonly faults: readonly string[];
}

interface Runner extends Series {
  measure(seconds: number): Promise<Measurement>;
}

/** Measures everything once per round, so that a slow moment of the machine meets all of it. */
export async function runRounds(plan: RoundsPlan): Promise<RoundsResult> {
  const faults: string[] = [];
  const runners = [
    ...plan.benchmarks.flatMap((benchmark) => rowRunners(plan, benchmark, faults)),
    ...plan.competitors.map(competitorRunner),
  ];
  plan.say("warming up");
  for (const runner of runners) await runner.measure(WARM_UP_SECONDS);
  for (let round = 1; round <= plan.rounds; round += 1) {
    plan.say(`round ${round} of ${plan.rounds}`);
    // There and back: a machine that gets slower all the time favours neither end of the list.
    for (const runner of round % 2 === 1 ? runners : [...runners].reverse()) {
      runner.rounds.push(await runner.measure(plan.seconds));
    }
  }
  return { results: new Map(runners.map((one) => [seriesKey(one.name, one.connections), one])), faults };
}

/** A row, and the rivals that it is compared with, at the connections at which it is. */
function rowRunners({ stage, warmSeconds }: RoundsPlan, benchmark: Benchmark, faults: string[]): Runner[] {
  const { name, connections, requires, otherStatusesExpected = false } = benchmark;
  const runner = (who: Player, connections: number): Runner => {
    const called = who === "ninefold" ? name : rivalName(who, name);
    const mayRefuse = otherStatusesExpected && who === "ninefold";
    const measure = async (seconds: number): Promise<Measurement> => {
      const result = await stage.fresh(who, async () => {
        const { url, folder } = stage;
        const run = (seconds: number): Promise<WrkResult> =>
          runWrk({ url, connections, seconds, request: benchmark.request(stage), folder });
        if (warmSeconds > 0) await run(warmSeconds);
        return run(seconds);
      });
      noteFaults(faults, `${called}, ${connections} connections`, result, mayRefuse);
      return result;
    };
    return { name: called, connections, rounds: [], measure };
  };
  const rivals = RIVALS.flatMap((rival) =>
    connections
      .filter((count) =>
        requires.some((one) => one.kind === "ratio" && one.to === rival && one.connections.includes(count)),
      )
      .map((count) => runner(rival, count)),
  );
  return [...rivals, ...connections.map((count) => runner("ninefold", count))];
}

function competitorRunner(competitor: Competitor): Runner {
  const measure = (seconds: number) => competitor.measure(seconds);
  return { name: competitor.name, connections: COMPETITOR_CONNECTIONS, rounds: [], measure };
}

function noteFaults(faults: string[], what: string, result: WrkResult, mayRefuse: boolean): void {
  const { requests, otherStatuses, broken } = result;
  if (requests > 0 && broken + (mayRefuse ? 0 : otherStatuses) === 0) return;
  faults.push(`${what}: of ${requests} requests ${otherStatuses} were refused, ${broken} got no answer`);
}
