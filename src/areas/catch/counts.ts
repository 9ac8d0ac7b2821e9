import type { Counter } from "../../kernel/metrics/instruments.ts";
import type { Metrics } from "../../kernel/metrics/metrics.ts";
import { INGEST_STATUSES, type IngestStatus } from "./domain.ts";

/** How a try to forward an event can end. */
const FORWARD_OUTCOMES = ["delivered", "retry", "failed"] as const;

/** What is counted of webhooks. */
export interface WebhookCounts {
  readonly ingested: Readonly<Record<IngestStatus, Counter>>;
  readonly forwarded: Readonly<Record<(typeof FORWARD_OUTCOMES)[number], Counter>>;
}

/** Declares the metrics of webhooks. */
export function declareWebhookCounts(metrics: Metrics): WebhookCounts {
  return {
    ingested: metrics.counters(
      { name: "ninefold_webhooks_ingested_total", help: "Webhooks received, by what became of them." },
      "status",
      INGEST_STATUSES,
    ),
    forwarded: metrics.counters(
      { name: "ninefold_webhook_forwards_total", help: "Tries to forward a webhook, by how they ended." },
      "outcome",
      FORWARD_OUTCOMES,
    ),
  };
}
