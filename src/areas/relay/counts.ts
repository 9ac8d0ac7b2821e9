import type { Counter } from "../../kernel/metrics/instruments.ts";
import type { Metrics } from "../../kernel/metrics/metrics.ts";
import type { RelayKind } from "./domain.ts";

/** How a delivery can end. */
type Ending = "delivered" | "failed" | "cancelled";

const KINDS: readonly RelayKind[] = ["scheduled", "pulse"];
const ENDINGS: readonly Ending[] = ["delivered", "failed", "cancelled"];

/** What is counted of deliveries. */
export interface DeliveryCounts {
  readonly ended: Readonly<Record<RelayKind, Readonly<Record<Ending, Counter>>>>;
  readonly retries: Readonly<Record<RelayKind, Counter>>;
}

/** Declares the metrics of deliveries. */
export function declareDeliveryCounts(metrics: Metrics): DeliveryCounts {
  return {
    ended: metrics.counterTable(
      { name: "ninefold_relay_deliveries_total", help: "Deliveries that have ended, by how." },
      { label: "kind", values: KINDS },
      { label: "outcome", values: ENDINGS },
    ),
    retries: metrics.counters(
      { name: "ninefold_relay_retries_total", help: "Attempts that failed and will be made again." },
      "kind",
      KINDS,
    ),
  };
}
