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

/** The accounts that monitors belong to. */
export interface MonitorOwners {
  /** An account as it is now. */
  account(accountRef: number): {
    readonly email: string;
    readonly tier: TierName;
    readonly suspended: boolean;
  };
}

/** A notification that is to be delivered. */
export interface MonitorNotification {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly event: string;
  readonly monitor_id: string | null;
  /** As it may be shown. */
  readonly target_url: string;
  readonly body: string;
  /** Where it really goes, unsigned, with headers of its own; left out: to `target_url`, signed. */
  readonly destination?: { readonly url: string; readonly headers: RequestHeaders };
  /** Waits before its retries; left out: four attempts within 21 s. */
  readonly retry_schedule?: readonly string[];
}

/** What became of a notification that was sent once. */
export interface TrialResult {
  /** Null without an answer. */
  readonly status: number | null;
  /** Null when it arrived. */
  readonly error: string | null;
}

/** Delivers notifications, signed and retried. */
export interface Notifier {
  /** Queues a notification in the unit of work that causes it. Returns its id. */
  notify(tx: Tx, notification: MonitorNotification): string;
  /** Cancels a notification that has not arrived yet. Returns whether it was still pending. */
  withdraw(tx: Tx, id: string): boolean;
  /** Sends a notification at once, once only, and keeps nothing of it. */
  trial(notification: MonitorNotification): Promise<TrialResult>;
}

/** What monitors need from the other areas and the kernel's optional parts. */
export interface MonitorPorts {
  readonly owners: MonitorOwners;
  readonly notifier: Notifier;
  readonly outbox: Outbox;
  readonly tiers: Tiers;
  /** How browsers reach the server; null where nobody has said. */
  readonly publicUrl: string | null;
  /** What the key behind a credential is called; null for a platform key. */
  readonly keyName: (credential: string) => string | null;
  /** Hosts, with their ports, that show whether this server's own line is up. */
  readonly observerTargets: readonly string[];
  /** The id of a project, which metrics name it by. */
  readonly projectIdOf: (projectRef: number) => string | null;
  /** The name of the status pages' stylesheet, beside which they stand. */
  readonly statusStyle: string;
}

/** All that the parts of this area are built on. */
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
