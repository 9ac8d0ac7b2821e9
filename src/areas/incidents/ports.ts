import type { AuditTrail } from "../../kernel/audit/trail.ts";
import type { AlertEvent } from "../../kernel/data/incident-words.ts";
import type { ProbeState } from "../../kernel/data/probe-state.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Incident } from "./schema.ts";
import type { IncidentRow } from "./store.ts";

/** A monitor that incidents are about. */
export interface IncidentMonitor {
  readonly ref: number;
  readonly monitorId: string;
  readonly accountRef: number;
  readonly projectRef: number;
  /** As people see it. */
  readonly name: string;
  /** Whether a person has named it. */
  readonly isNamed: boolean;
  readonly url: string;
  /** Whether it requests a target. */
  readonly hasTarget: boolean;
  /** URL of its own webhook; null for none. */
  readonly webhookUrl: string | null;
  /** Whether the account gets an e-mail. */
  readonly emailAlert: boolean;
  /** Time that it must be down before anyone is notified, milliseconds. */
  readonly notifyAfterMs: number;
  readonly isActive: boolean;
  readonly status: "up" | "down" | "unknown";
  readonly degraded: boolean;
  readonly overdue: boolean;
  readonly latencyMs: number | null;
  /** Epoch milliseconds; null before the first check. */
  readonly lastCheckedAt: number | null;
  readonly consecutiveFailures: number;
  /** When the last alert of the current outage was sent, epoch milliseconds; null without one. */
  readonly alertedAt: number | null;
}

/** Monitors by their ids and references; null for none. */
export interface IncidentMonitors {
  find(monitorId: string): IncidentMonitor | null;
  monitor(ref: number): IncidentMonitor | null;
  /** What each probe of a monitor sees now; empty where only the server checks it. */
  probeStates(ref: number): ProbeState[];
}

/** A period, epoch milliseconds. */
export interface Period {
  readonly from: number;
  /** Null: it continues. */
  readonly until: number | null;
}

/** A check whose result differs from that of the check before it. */
interface CheckChange {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly monitorId: string;
  readonly status: "up" | "degraded" | "down";
  readonly latencyMs: number;
  readonly responseStatus: number | null;
  readonly error: string | null;
}

/** The newest changes of the results of monitors in a period, at most `changesMax`, oldest first. */
export type CheckChanges = (
  monitors: readonly IncidentMonitor[],
  period: Period,
  changesMax: number,
) => readonly CheckChange[];

/** A notification of an incident, or of a monitor. */
export interface IncidentNotification {
  readonly projectRef: number;
  /** Null: it is about the project. */
  readonly monitor: IncidentMonitor | null;
  readonly event: AlertEvent;
  /** Subject, on one line; the name of the monitor by default. */
  readonly title?: string;
  readonly text: string;
  readonly detail?: string | null;
  /** Whether channels are notified; true by default. */
  readonly toChannels?: boolean;
  /** Whether the e-mail address of the account is notified too; false by default. */
  readonly toAccount?: boolean;
  /** Whether the monitor's own webhook is notified too; false by default. */
  readonly toWebhook?: boolean;
  readonly incidentId?: string | null;
  readonly facts?: Readonly<Record<string, unknown>>;
}

/** The alerts of the server. */
export interface IncidentAlerts {
  notifyChannels(tx: Tx, notification: IncidentNotification): void;
  hasChannels(projectRef: number): boolean;
  /** Delays the alert of an outage until a time, epoch milliseconds; nobody is notified if the outage ends before. */
  delay(tx: Tx, alert: IncidentNotification & { readonly monitor: IncidentMonitor }, until: number): void;
  /** Notifies the channels of a monitor again at a time, epoch milliseconds, if its outage continues until then. */
  notifyAgainAt(tx: Tx, monitor: IncidentMonitor, at: number): void;
  /** The name of a channel; null for one that is gone. */
  channelName(channelRef: number): string | null;
  /** Whether the alert of a monitor's outage is delayed. */
  isDelayed(monitorRef: number): boolean;
  /** Drops the alert that is delayed. Returns whether there was one. */
  dropDelayed(tx: Tx, monitorRef: number): boolean;
}

/** Status pages, as far as incidents concern them. */
export interface IncidentPages {
  /** The monitors with the states that pages show. */
  monitors(
    projectRef: number,
    monitors: readonly IncidentMonitor[],
    now: number,
  ): NonNullable<Incident["monitors"]>;
  /** The newest pages of the project that show the incident, or would show it if it were public. */
  statusPages(
    incident: Pick<IncidentRow, "id" | "projectRef">,
    monitors: readonly IncidentMonitor[],
  ): NonNullable<Incident["status_pages"]>;
  /** Queues the notification of subscribers in the unit of work of a change, unless the incident has never been public. */
  announce(
    tx: Tx,
    incident: Pick<IncidentRow, "projectRef" | "id" | "status" | "announced">,
    message?: string,
  ): void;
}

/** What incidents need of other areas. */
export interface IncidentDeps {
  readonly monitors: IncidentMonitors;
  readonly checkChanges: CheckChanges;
  readonly alerts: IncidentAlerts;
  readonly pages: IncidentPages;
  /** Gives the manual monitors among some of one project the states of the open incidents that name them. */
  readonly followIncidents: (tx: Tx, monitorIds: readonly string[]) => void;
  /** Name of the key of a credential; null for a platform key. */
  readonly keyName: (credential: string) => string | null;
  /** The time zone of texts of a project. */
  readonly timeZoneOf: (projectRef: number) => string;
  /** Whether a project is deleted. */
  readonly isStopped: (projectRef: number) => boolean;
  /** Who an account is, for the audit log. */
  readonly owners: { account(accountRef: number): { readonly userId: string } };
  /** Writes the audit entry of somebody who has no key. */
  readonly trail: Pick<AuditTrail, "recordPublic">;
  /** Name of the stylesheet of public pages. */
  readonly statusStyle: string;
  /** Public base URL of the server now; null if it is not configured. */
  readonly publicUrl: () => string | null;
}
