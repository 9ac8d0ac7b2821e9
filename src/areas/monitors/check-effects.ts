import type { MonitorEvent, MonitorState } from "./domain.ts";
import type { CompletedCheck, MonitorRow } from "./store.ts";

/** A check that changes the status of a monitor or repeats an alert. */
export interface CheckOutcome {
  readonly before: MonitorRow;
  readonly after: MonitorState;
  readonly made: CompletedCheck;
  /** Event for the monitor's own webhook; the first of an outage, and recovery, also for its e-mail alert. Null for none. */
  readonly event: MonitorEvent | null;
  /** Incident, else monitor, that explains the failure: no alert is sent. */
  readonly suppressedBy?: string | null;
  /** Whether channels are not notified. */
  readonly isSilenced?: boolean;
}

/** A notification about a monitor whose status has not changed. */
export interface HealthNotification {
  readonly event: "monitor.degraded" | "monitor.recovered" | "monitor.certificate";
  readonly text: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** What a check causes beyond the state of its monitor, as data: checks decide it, and alerting carries it out. */
export interface CheckEffects {
  /** The monitor after the check. */
  readonly monitor: MonitorRow;
  /** Null: the status is the same, and no alert is due. */
  readonly outcome: CheckOutcome | null;
  readonly health: readonly HealthNotification[];
}
