import type { ShownState } from "../../kernel/data/incident-words.ts";
import type { PageIncident } from "./event-reader.ts";

/** Status of a monitor, as pages and badges show it. */
export const STATE_LABELS: Readonly<Record<ShownState, string>> = {
  up: "Operational",
  degraded: "Degraded performance",
  down: "Down",
  maintenance: "Under maintenance",
  overdue: "Overdue",
  paused: "Paused",
  unknown: "No data",
};

/** Severity of an incident, as pages and feeds show it. */
export const IMPACT_LABELS: Readonly<Record<PageIncident["impact"], string>> = {
  degraded: "Degraded performance",
  outage: "Outage",
};
