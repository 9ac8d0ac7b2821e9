import type { Kernel } from "../../kernel/kernel.ts";
import type { TierName, Tiers } from "../../kernel/limits/tiers.ts";
import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { RequestHeaders } from "../../kernel/outbound/headers.ts";
import type { StoppedProjects } from "../../kernel/projects/stopped-projects.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { ChannelStore } from "./alerts/store.ts";
import type { SteadyHeartbeats } from "./heartbeats/steady.ts";
import type { HeartbeatStore } from "./heartbeats/store.ts";
import type { DayStore } from "./history/day-store.ts";
import type { IncidentStore } from "./incidents/store.ts";
import type { CheckStore, MonitorStore } from "./store.ts";

/** Accounts that own monitors. */
export interface MonitorOwners {
  /** The current state of an account. */
  account(accountRef: number): {
    readonly email: string;
    readonly tier: TierName;
    readonly suspended: boolean;
  };
}

/** A notification to deliver. */
export interface MonitorNotification {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly event: string;
  readonly monitor_id: string | null;
  /** URL as responses show it. */
  readonly target_url: string;
  readonly body: string;
  /** Real destination: an unsigned request with these headers. Without it, a signed request goes to `target_url`. */
  readonly destination?: { readonly url: string; readonly headers: RequestHeaders };
  /** Delays before retries; four attempts within 21 s by default. */
  readonly retry_schedule?: readonly string[];
}

/** Result of a notification that was sent once. */
export interface TrialResult {
  /** Response status; null without a response. */
  readonly status: number | null;
  /** Error; null if it was delivered. */
  readonly error: string | null;
}

/** Delivers notifications, signed and retried. */
export interface Notifier {
  /** Queues a notification in the unit of work that causes it. Returns its id. */
  notify(tx: Tx, notification: MonitorNotification): string;
  /** Cancels a pending notification. Returns whether it was still pending. */
  withdraw(tx: Tx, id: string): boolean;
  /** Sends a notification immediately, without retries, and stores nothing. */
  trial(notification: MonitorNotification): Promise<TrialResult>;
}

/** What monitors need from the other areas and the kernel's optional parts. */
export interface MonitorPorts {
  readonly owners: MonitorOwners;
  readonly notifier: Notifier;
  readonly outbox: Outbox;
  readonly tiers: Tiers;
  /** Public base URL of the server; null if it is not configured. */
  readonly publicUrl: string | null;
  /** Name of the key of a credential; null for a platform key. */
  readonly keyName: (credential: string) => string | null;
  /** Hosts with ports that show whether this server is online. */
  readonly observerTargets: readonly string[];
  /** The id of a project, a label of metrics. */
  readonly projectIdOf: (projectRef: number) => string | null;
  /** File name of the stylesheet of status pages. */
  readonly statusStyle: string;
}

/** Dependencies of the parts of this area. */
export interface MonitorParts
  extends MonitorPorts,
    Pick<Kernel, "db" | "clock" | "ids" | "vault" | "scheduler" | "metrics" | "changes" | "writer" | "log"> {
  readonly outbound: OutboundClient;
  readonly monitors: MonitorStore;
  readonly checks: CheckStore;
  readonly channels: ChannelStore;
  readonly incidents: IncidentStore;
  readonly dayCounts: DayStore;
  readonly heartbeats: HeartbeatStore;
  readonly steady: SteadyHeartbeats;
  readonly stopped: StoppedProjects;
}
