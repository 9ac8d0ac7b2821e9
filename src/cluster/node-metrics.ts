import type { Metrics, Sample } from "../kernel/metrics/metrics.ts";
import { ENGINE_ERROR_KINDS, type EngineErrors } from "./commit-log.ts";
import type { Leadership } from "./leadership.ts";
import type { Replication } from "./replication.ts";

/**
 * What a node does now: it leads and can confirm it, it leads and cannot (`suspended`), it follows, or it has no database yet
 * (`empty`).
 */
const ROLES = ["leader", "suspended", "follower", "empty"] as const;
export type NodeRole = (typeof ROLES)[number];

/** Place of a node in its cluster now. */
export interface NodePlace {
  readonly role: NodeRole;
  /** Term of the present leader; null when no node leads. */
  readonly epoch: number | null;
  /** Last entry of the commit log on this node. */
  readonly seq: number;
  /** Entries that a follower has not applied, or that no follower of a leader has on its disk; null without a database. */
  readonly lag: number | null;
}

/** What the metrics of a node are read from. */
export interface NodeSources {
  readonly place: () => NodePlace;
  readonly errors: EngineErrors;
  /** Changes of the leader that this process has seen. */
  readonly elections: () => number;
}

/** Declares the metrics of a node, the same whether it leads or follows. */
export function declareNodeMetrics(metrics: Metrics, { place, errors, elections }: NodeSources): void {
  metrics.number(
    "ninefold_cluster_leader",
    "Whether this node leads: 1, or 0 while it cannot confirm it.",
    () => (place().role === "leader" ? 1 : 0),
  );
  metrics.declare({
    name: "ninefold_cluster_role",
    help: "1 for what this node does now: leader, suspended (it cannot confirm that it leads), follower, or empty (it has no database).",
    type: "gauge",
    labels: ["role"],
    samples: (): Sample[] => {
      const { role } = place();
      return ROLES.map((known) => ({ labels: { role: known }, value: known === role ? 1 : 0 }));
    },
  });
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
  metrics.number(
    "ninefold_cluster_elections_total",
    "Changes of the leader that this process has seen.",
    elections,
  );
  metrics.declare({
    name: "ninefold_cluster_engine_errors_total",
    help: "Calls that the engine of the commit log did not confirm, by why: unreachable, rejected, no_space, not_durable.",
    type: "counter",
    labels: ["kind"],
    samples: (): Sample[] =>
      ENGINE_ERROR_KINDS.map((kind) => ({ labels: { kind }, value: errors.counts[kind] })),
  });
}

/** Declares the metrics that only a leader has. */
export function declareLeaderMetrics(
  metrics: Metrics,
  leadership: Leadership,
  replication: Replication,
): void {
  metrics.histogram(
    "ninefold_cluster_append_duration_seconds",
    "Time until the commit log has confirmed a batch.",
    leadership.appendSeconds,
  );
  const numbers: readonly Parameters<Metrics["number"]>[] = [
    [
      "ninefold_cluster_unconfirmed_batches",
      "Batches that are committed here, and that the commit log has not confirmed.",
      () => leadership.unconfirmed,
    ],
    [
      "ninefold_cluster_lease_seconds",
      "Time for which this node can still confirm that it leads, without another renewal of its lease.",
      () => leadership.leaseLeftMs / 1_000,
    ],
    [
      "ninefold_cluster_successors",
      "Other nodes that run, have the data, and could lead.",
      () => replication.successors,
    ],
    [
      "ninefold_cluster_log_bytes",
      "Space that the commit log takes in its engine; in etcd, with everything else that it stores.",
      () => replication.engineSpace?.used ?? null,
    ],
    [
      "ninefold_cluster_log_quota_bytes",
      "Space that the engine of the commit log may take, where it has a quota.",
      () => replication.engineSpace?.quota ?? null,
    ],
  ];
  for (const number of numbers) metrics.number(...number);
}
