import type { Metrics } from "../../../kernel/metrics/metrics.ts";
import { RELAY_KINDS } from "./schema.ts";

/** How a delivery can end. */
const ENDINGS = ["delivered", "failed", "cancelled"] as const;

/** What is counted of deliveries. */
export type DeliveryCounts = ReturnType<typeof declareDeliveryCounts>;

/** Declares the metrics of deliveries. */
export function declareDeliveryCounts(metrics: Metrics) {
  return {
    ended: metrics.counterTable(
      { name: "ninefold_relay_deliveries_total", help: "Deliveries that have ended, by how." },
      { label: "kind", values: RELAY_KINDS },
      { label: "outcome", values: ENDINGS },
    ),
    retries: metrics.counters(
      { name: "ninefold_relay_retries_total", help: "Attempts that failed and will be made again." },
      "kind",
      RELAY_KINDS,
    ),
  };
}
