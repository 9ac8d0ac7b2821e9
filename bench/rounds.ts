import type { Benchmark, Competitor, Measurement } from "./benchmark.ts";
import { RIVALS } from "./responses.ts";
import { coldName, type Results, rivalName, type Series, seriesKey } from "./results.ts";
import type { Player, Stage } from "./stage.ts";
import { runWrk, type WrkResult } from "./wrk.ts";

/**
 * Seconds of load before the first round, to fill the caches of the disk. The servers are started again for each
 * measurement.
 */
const WARM_UP_SECONDS = 1;
/** Connections of the competitors' own load generators. Rows are compared with them at this number. */
const COMPETITOR_CONNECTIONS = 32;

/** Settings of the rounds. */
export interface RoundsPlan {
  readonly stage: Stage;
  readonly benchmarks: readonly Benchmark[];
  readonly competitors: readonly Competitor[];
  readonly rounds: number;
  readonly seconds: number;
  /** Seconds of load after which a server is warm. 0: all servers are measured cold only. */
  readonly warmSeconds: number;
  readonly say: (text: string) => void;
}

/** Results of the rounds. */
export interface RoundsResult {
  readonly results: Results;
  /** Unexpected responses, one line per series. */
  readonly faults: readonly string[];
}

interface Runner {
  readonly warm: Series;
  /** Null if only the warm server is measured. */
  readonly cold: Series | null;
  /** Measures for `seconds`, before and after `warmSeconds` of load in total. */
  measure(
    seconds: number,
    warmSeconds: number,
  ): Promise<{ readonly warm: Measurement; readonly cold: Measurement }>;
}

/** Measures everything once per round, so that a slow phase of the machine affects all of it. */
export async function runRounds(plan: RoundsPlan): Promise<RoundsResult> {
  const faults: string[] = [];
  const runners = [
    ...plan.benchmarks.flatMap((benchmark) => rowRunners(plan, benchmark, faults)),
    ...plan.competitors.map(competitorRunner),
  ];
  plan.say("warming up");
  for (const runner of runners) await runner.measure(WARM_UP_SECONDS, 0);
  for (let round = 1; round <= plan.rounds; round += 1) {
    plan.say(`round ${round} of ${plan.rounds}`);
    // Every second round is in reverse order: a machine that gets slower favours neither end of the list.
    for (const runner of round % 2 === 1 ? runners : [...runners].reverse()) {
      const { warm, cold } = await runner.measure(plan.seconds, plan.warmSeconds);
      runner.warm.rounds.push(warm);
      runner.cold?.rounds.push(cold);
    }
  }
  const series = runners.flatMap(({ warm, cold }) => (cold === null ? [warm] : [cold, warm]));
  return { results: new Map(series.map((one) => [seriesKey(one.name, one.connections), one])), faults };
}

/** Runners for a row and for the servers that it is compared with, one for each number of connections. */
function rowRunners(plan: RoundsPlan, benchmark: Benchmark, faults: string[]): Runner[] {
  const { stage } = plan;
  const { name, connections, requires, otherStatusesExpected = false } = benchmark;
  const runner = (who: Player, connections: number): Runner => {
    const called = who === "ninefold" ? name : rivalName(who, name);
    const mayFail = otherStatusesExpected && who === "ninefold";
    const measure = (seconds: number, warmSeconds: number) =>
      stage.fresh(who, async () => {
        const { url, folder } = stage;
        const run = async (seconds: number): Promise<WrkResult> => {
          const result = await runWrk({
            url,
            connections,
            seconds,
            request: benchmark.request(stage),
            folder,
          });
          noteFaults(faults, `${called}, ${connections} connections`, result, mayFail);
          return result;
        };
        const cold = await run(seconds);
        if (warmSeconds === 0) return { cold, warm: cold };
        if (warmSeconds > seconds) await run(warmSeconds - seconds);
        return { cold, warm: await run(seconds) };
      });
    const hasCold = who === "ninefold" && plan.warmSeconds > 0;
    return {
      warm: { name: called, connections, rounds: [] },
      cold: hasCold ? { name: coldName(called), connections, rounds: [] } : null,
      measure,
    };
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
  const measure = async (seconds: number) => {
    const warm = await competitor.measure(seconds);
    return { warm, cold: warm };
  };
  const warm = { name: competitor.name, connections: COMPETITOR_CONNECTIONS, rounds: [] };
  return { warm, cold: null, measure };
}

function noteFaults(faults: string[], what: string, result: WrkResult, mayFail: boolean): void {
  const { requests, otherStatuses, broken } = result;
  if (requests > 0 && broken + (mayFail ? 0 : otherStatuses) === 0) return;
  faults.push(
    `${what}: of ${requests} requests ${otherStatuses} got an unexpected status, ${broken} no response`,
  );
}
