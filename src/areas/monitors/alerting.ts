import type { Impact } from "../../kernel/data/incident-words.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { MonitorEvent, MonitorState } from "./domain.ts";
import type { MonitorFacts } from "./facts.ts";
import type { CompletedCheck, MonitorRow } from "./store.ts";

/** A check that changes the status of a monitor or repeats an alert. */
export interface CheckOutcome {
  readonly before: MonitorFacts;
  readonly after: MonitorState;
  readonly check: CompletedCheck;
  /** Event for the monitor's own webhook; the first of an outage, and recovery, also for its e-mail alert. Null for none. */
  readonly event: MonitorEvent | null;
  /** Incident, else monitor, that explains the failure: no alert is sent. */
  readonly suppressedBy?: string | null;
  /** Whether channels are not notified. */
  readonly isSilenced?: boolean;
}

/** A notification about a monitor whose status has not changed. */
export interface HealthNotification {
  readonly event:
    | ("monitor.degraded" | "monitor.recovered" | "monitor.certificate" | "monitor.overdue")
    | ("monitor.runs_exceeded" | "monitor.unknown" | "monitor.domain");
  readonly text: string;
  /** Whether the webhook and the e-mail alert of the monitor itself are notified, too. */
  readonly isAlert?: boolean;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** What a check causes beyond the state of its monitor, as data: checks decide it, and alerting carries it out. */
export interface CheckEffects {
  /** The monitor after the check. */
  readonly monitor: MonitorFacts;
  /** Null: the status is the same, and no alert is due. */
  readonly outcome: CheckOutcome | null;
  readonly health: readonly HealthNotification[];
}

/** A notification to the channels of a monitor, or to the default channels of a project. */
export interface MonitorNotification {
  readonly projectRef: number;
  /** Null: it is about the project. */
  readonly monitor: MonitorFacts | null;
  readonly event:
    | MonitorEvent
    | "monitor.flapping"
    | "probe.offline"
    | "probe.online"
    | "observer.offline"
    | "maintenance.started"
    | "maintenance.ended";
  /** Subject, on one line; the name of the monitor by default. */
  readonly title?: string;
  readonly text: string;
  readonly incidentId?: string | null;
  readonly facts?: Readonly<Record<string, unknown>>;
}

/** An open incident of a monitor. */
export interface OpenIncident {
  readonly id: string;
  /** Incident, else monitor, that explains it; null for none. */
  readonly suppressedBy: string | null;
}

/** Outages of a monitor that are searched for, and where. */
export interface OutageQuery {
  readonly ref: number;
  readonly monitorId: string;
  /** Whether its outages are manual incidents, instead of those that it opens. */
  readonly isManual: boolean;
  /** Epoch milliseconds: outages that ended before it are omitted. */
  readonly since: number;
  readonly rowsMax: number;
}

type MonitorKey = Pick<MonitorRow, "ref" | "projectRef">;

/** What monitors need of incidents and channels: monitors say what happened, and alerting decides who is notified. */
export interface Alerting {
  /** Carries out what a check causes, in its unit of work. */
  carryOut(tx: Tx, effects: CheckEffects): void;
  notifyChannels(tx: Tx, notification: MonitorNotification): void;
  hasChannels(projectRef: number): boolean;
  /** The ids of the channels of a monitor; null for the project's default channels. */
  channelIdsOf(monitor: MonitorKey): string[] | null;
  /** `channelIds`: null for the default channels. @throws ApiError `validation_error` for a channel of another project */
  chooseChannels(tx: Tx, monitor: MonitorKey, channelIds: readonly string[] | null): void;
  openIncidentOf(monitorRef: number): OpenIncident | null;
  /** Worst impact of the open manual incidents of a project, by the ids of the monitors that they name. */
  impactsIn(projectRef: number): ReadonlyMap<string, Impact>;
  /** Resolves the open incident of a monitor, if any, without a notification. */
  resolveIncident(tx: Tx, monitorRef: number): void;
  /** The newest outages of a monitor, epoch milliseconds. `to`: null for one that continues. */
  outagesOf(query: OutageQuery): readonly { readonly from: number; readonly to: number | null }[];
  /** Ends what concerns a monitor that is deleted: its incident, its reminders, its channels. */
  monitorRemoved(tx: Tx, monitor: MonitorKey): void;
}

/** An incident in the overview. */
export interface IncidentSummary {
  readonly id: string;
  readonly title: string;
  /** Monitor that opened it; null for a manual one. */
  readonly monitorRef: number | null;
  readonly cause: string | null;
  readonly status: string;
  readonly isPublic: boolean;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly acknowledgedAt: number | null;
  /** Time of the last posted update; null without one. */
  readonly updatedAt: number | null;
}

/** What needs attention beside monitors, for the overview. */
export interface Attention {
  /** The newest incidents of a project; `isOpen` null: open and resolved ones. */
  newestIncidents(projectRef: number, isOpen: boolean | null, rowsMax: number): readonly IncidentSummary[];
  /** Channels of a project whose last message could not be delivered. */
  failingChannels(
    projectRef: number,
    channelsMax: number,
  ): readonly { readonly id: string; readonly name: string; readonly error: string }[];
}
