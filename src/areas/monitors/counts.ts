import type { Counter } from "../../kernel/metrics/instruments.ts";
import type { Metrics } from "../../kernel/metrics/metrics.ts";

/** Who asks for a check. */
const TRIGGERS = ["scheduled", "manual"] as const;
/** What a check found. `unknown`: this server was held up each time, so that the check says nothing and is left out. */
const OUTCOMES = ["up", "down", "unknown"] as const;

/** What is counted of checks. */
export type CheckCounts = Readonly<
  Record<(typeof TRIGGERS)[number], Readonly<Record<(typeof OUTCOMES)[number], Counter>>>
>;

/** Declares the metrics of checks. */
export function declareCheckCounts(metrics: Metrics): CheckCounts {
  return metrics.counterTable(
    { name: "ninefold_monitor_checks_total", help: "Checks of monitors, by what they found." },
    { label: "trigger", values: TRIGGERS },
    { label: "outcome", values: OUTCOMES },
  );
}
