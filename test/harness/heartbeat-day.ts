// Simulates a day on a test clock for thousands of monitors. Half of them are heartbeats whose pings come on time,
// late, or not at all. Every missing ping must be detected on time, and no other.
//   scripts/harness heartbeat-day                10,000 monitors, 24 hours
//   scripts/harness heartbeat-day --monitors N   number of monitors (10,000)
//   scripts/harness heartbeat-day --hours N      duration in hours (24)
//   scripts/harness heartbeat-day --seed N       repeats the choices of an earlier run
import { parseArgs } from "node:util";
import { simulateDay } from "./heartbeats/day.ts";
import { SOURCE_COMMAND } from "./processes/server-process.ts";

const { values } = parseArgs({
  options: {
    monitors: { type: "string", default: "10000" },
    hours: { type: "string", default: "24" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
  },
});

/** Maximum growth of memory after the warm-up. */
const GROWTH_MAX = 1.2;
const PROBLEMS_SHOWN = 20;

const [monitors, hours, seed] = [Number(values.monitors), Number(values.hours), Number(values.seed)];
console.log(`${monitors} monitors, ${hours} hours, seed ${seed}`);
const { pings, missed, problems, memory } = await simulateDay({
  command: SOURCE_COMMAND,
  monitors,
  hours,
  seed,
});
for (const problem of problems.slice(0, PROBLEMS_SHOWN)) console.log(`  ${problem}`);
const grown = memory !== null && memory[1] > memory[0] * GROWTH_MAX;
const ok = problems.length === 0 && !grown;
const growth =
  memory === null ? "too short to compare memory" : `${memory[0]} MiB once warm, ${memory[1]} MiB at the end`;
console.log(
  `${pings} pings, ${missed} missing, ${problems.length} problems, ${growth}: ${ok ? "ok" : "FAILED"}`,
);
process.exitCode = ok ? 0 : 1;
process.exit();
