import { processorMs } from "../test/harness/processes/usage.ts";
import type { Benchmark, Finding } from "./benchmark.ts";
import { CHECK } from "./checks.ts";
import { median } from "./results.ts";
import { deductRequest } from "./rows.ts";
import type { Stage } from "./stage.ts";
import { runWrk } from "./wrk.ts";

/** Name that selects this measurement. */
export const CHECK_COST = "check: processor time of one, compared with a deduct";

const CONNECTIONS = 32;
const ROUNDS = 3;
const WARM_SECONDS = 5;
const MEASURED_SECONDS = 3;
/** It verifies a key with two limits and evaluates five flags in addition to the same deduct. */
const RATIO_MAX = 1.5;

/** Processor time that the server takes for a check that includes everything, and for a deduct alone. */
export async function measureCheckCost(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  say(`${CHECK_COST}: ${ROUNDS} rounds`);
  // The rows have filled it if they were measured.
  if (stage.key === "") await stage.fillOwn(0);
  await stage.fresh("ninefold", async () => CHECK.prepare?.(stage));
  const checks: number[] = [];
  const deducts: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    checks.push(await microsecondsOf(stage, CHECK.request));
    deducts.push(await microsecondsOf(stage, deductRequest));
  }
  const [checkUs, deductUs] = [median(checks), median(deducts)];
  const ratio = checkUs / deductUs;
  return [
    {
      what: CHECK_COST,
      measured: `× ${ratio.toFixed(2)} (${checkUs.toFixed(0)} and ${deductUs.toFixed(0)} µs)`,
      required: `≤ × ${RATIO_MAX}`,
      ok: ratio <= RATIO_MAX,
    },
  ];
}

function microsecondsOf(stage: Stage, request: Benchmark["request"]): Promise<number> {
  return stage.fresh("ninefold", async () => {
    const { url, folder } = stage;
    const run = (seconds: number) =>
      runWrk({ url, connections: CONNECTIONS, seconds, request: request(stage), folder });
    await run(WARM_SECONDS);
    const before = processorMs(stage.pid);
    const { requests, otherStatuses, broken } = await run(MEASURED_SECONDS);
    if (otherStatuses + broken > 0) throw new Error(`${otherStatuses + broken} requests failed`);
    return ((processorMs(stage.pid) - before) * 1_000) / requests;
  });
}
