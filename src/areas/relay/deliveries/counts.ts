import type { Metrics } from "../../../kernel/metrics/metrics.ts";
import { RELAY_KINDS } from "../domain.ts";

/** Final statuses of a delivery. */
const ENDINGS = ["delivered", "failed", "cancelled"] as const;

/** The metrics of deliveries. */
export type DeliveryCounts = ReturnType<typeof declareDeliveryCounts>;

export function declareDeliveryCounts(metrics: Metrics) {
  return {
    finished: metrics.counterTable(
      { name: "ninefold_relay_deliveries_total", help: "Finished deliveries, by final status." },
      { label: "kind", values: RELAY_KINDS },
      { label: "outcome", values: ENDINGS },
    ),
    retries: metrics.counters(
      { name: "ninefold_relay_retries_total", help: "Failed attempts that will be retried." },
      "kind",
      RELAY_KINDS,
    ),
  };
}
