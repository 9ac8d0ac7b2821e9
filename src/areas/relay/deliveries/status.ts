import type { Metrics } from "../../../kernel/metrics/metrics.ts";
import { RELAY_KINDS } from "../domain.ts";
import { shownTarget } from "./callback-urls.ts";
import type { RelayItem, RelayStatus } from "./schema.ts";
import type { RelayRow } from "./store.ts";

/** Deliveries with an attempt in flight. Rows do not record it: it would be wrong after a crash. */
export class InFlight {
  /** The project of each delivery, by reference. */
  private readonly projects = new Map<number, number>();

  add({ ref, projectRef }: Pick<RelayRow, "ref" | "projectRef">): void {
    this.projects.set(ref, projectRef);
  }

  remove(ref: number): void {
    this.projects.delete(ref);
  }

  has(ref: number): boolean {
    return this.projects.has(ref);
  }

  /** References of a project's deliveries with an attempt in flight. */
  ofProject(projectRef: number): number[] {
    return [...this.projects].filter(([, project]) => project === projectRef).map(([ref]) => ref);
  }
}

/** A delivery's status. The row does not record a first attempt that is in flight. */
export function statusOf({ ref, item: { status } }: RelayRow, inFlight: InFlight): RelayStatus {
  return status === "scheduled" && inFlight.has(ref) ? "delivering" : status;
}

export function itemOf(row: RelayRow, inFlight: InFlight): RelayItem {
  return {
    ...row.item,
    target_url: shownTarget(row.item),
    status: statusOf(row, inFlight),
    next_attempt_at: nextAttemptOf(row, inFlight),
  };
}

/** Time of the next attempt; null when none is planned, and during an attempt. */
function nextAttemptOf({ ref, item }: RelayRow, inFlight: InFlight): number | null {
  const { status, scheduled_for, next_attempt_at } = item;
  if (inFlight.has(ref)) return null;
  if (status === "scheduled") return scheduled_for;
  return status === "delivering" ? next_attempt_at : null;
}

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
