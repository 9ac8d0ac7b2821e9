import type { Metrics } from "../kernel/metrics/metrics.ts";

/** Place of a node in its cluster now. */
export interface NodePlace {
  /** Whether this node leads, and can confirm it. */
  readonly isLeading: boolean;
  /** Term of the present leader; null when no node leads. */
  readonly epoch: number | null;
  /** Last entry of the commit log on this node. */
  readonly seq: number;
  /** Entries that a follower has not applied, or that no follower of a leader has on its disk; null without a database. */
  readonly lag: number | null;
}

/** Declares the metrics of a node, the same whether it leads or follows. */
export function declareNodeMetrics(metrics: Metrics, place: () => NodePlace): void {
  metrics.number(
    "ninefold_cluster_leader",
    "Whether this node leads: 1, or 0 while it cannot confirm it.",
    () => (place().isLeading ? 1 : 0),
  );
  metrics.number("ninefold_cluster_epoch", "Number of the present leader's term.", () => place().epoch);
  metrics.number(
    "ninefold_cluster_position",
    "Last entry of the commit log on this node.",
    () => place().seq,
  );
  metrics.number(
    "ninefold_cluster_lag_entries",
    "Entries of the commit log that this node has not applied; of a leader: that no other node has on its disk.",
    () => place().lag,
  );
}
