import type { Benchmark, Competitor, Measurement } from "./benchmark.ts";
import { type Results, type Series, seriesKey } from "./figures.ts";
import { deductRequest, logRequest, ownBalanceRequest } from "./rows.ts";
import type { Stage } from "./stage.ts";
import { WEBHOOK_IN } from "./webhooks.ts";
import { runWrk, type WrkRun } from "./wrk.ts";

/** Seconds of load before anything counts: compilers and caches have warmed up by then. */
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
    ...bareRunners(plan, faults),
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

/** The baselines, at the connections at which a row is compared with them. */
function bareRunners({ stage, benchmarks }: RoundsPlan, faults: string[]): Runner[] {
  const requests = {
    "bare GET": ownBalanceRequest,
    "bare POST": deductRequest,
    "bare POST of 1 KB": ({ key }: Stage) => logRequest(key),
    "bare POST of a webhook": WEBHOOK_IN.request,
  };
  return Object.entries(requests).flatMap(([name, request]) => {
    const wanted = benchmarks.flatMap(({ requires }) =>
      requires.flatMap((one) => (one.kind === "ratio" && one.to === name ? one.connections : [])),
    );
    return [...new Set(wanted)]
      .sort((a, b) => a - b)
      .map((connections) => {
        const run = (seconds: number): WrkRun => ({
          url: stage.bareUrl,
          connections,
          seconds,
          request: request(stage),
          folder: stage.folder,
        });
        const measure = (seconds: number) => measureWrk(stage, "bare", run(seconds), faults, name, false);
        return { name, connections, rounds: [], measure };
      });
  });
}

function rowRunners({ stage }: RoundsPlan, benchmark: Benchmark, faults: string[]): Runner[] {
  const { name, otherStatusesExpected = false } = benchmark;
  return benchmark.connections.map((connections) => {
    const run = (seconds: number): WrkRun => ({
      url: stage.url,
      connections,
      seconds,
      request: benchmark.request(stage),
      folder: stage.folder,
    });
    const measure = (seconds: number) =>
      measureWrk(stage, "ninefold", run(seconds), faults, name, otherStatusesExpected);
    return { name, connections, rounds: [], measure };
  });
}

function competitorRunner(competitor: Competitor): Runner {
  const measure = (seconds: number) => competitor.measure(seconds);
  return { name: competitor.name, connections: COMPETITOR_CONNECTIONS, rounds: [], measure };
}

async function measureWrk(
  stage: Stage,
  who: "bare" | "ninefold",
  run: WrkRun,
  faults: string[],
  name: string,
  otherStatusesExpected: boolean,
): Promise<Measurement> {
  const result = await stage.alone(who, () => runWrk(run));
  const bad = result.broken + (otherStatusesExpected ? 0 : result.otherStatuses);
  if (bad > 0 || result.requests === 0) {
    faults.push(
      `${name}, ${run.connections} connections: of ${result.requests} requests ` +
        `${result.otherStatuses} were refused, ${result.broken} got no answer`,
    );
  }
  return result;
}
