import type { Kernel } from "../../kernel/kernel.ts";
import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { StoppedProjects } from "../../kernel/stopped-projects.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { TierName, Tiers } from "../../kernel/tiers.ts";
import type { HeartbeatStore } from "./heartbeat-store.ts";
import type { CheckStore, MonitorStore } from "./store.ts";

/** The accounts that monitors belong to. */
export interface MonitorOwners {
  /** An account as it is now. */
  account(accountRef: number): { readonly email: string; readonly tier: TierName };
}

/** A notification that is to be delivered. */
export interface MonitorNotification {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly event: string;
  readonly monitor_id: string;
  readonly target_url: string;
  readonly body: string;
}

/** Delivers notifications, signed and retried. */
export interface Notifier {
  /** Queues a notification in the unit of work that causes it. */
  notify(tx: Tx, notification: MonitorNotification): void;
}

/** What monitors need from the other areas and the kernel's optional parts. */
export interface MonitorPorts {
  readonly owners: MonitorOwners;
  readonly notifier: Notifier;
  readonly outbox: Outbox;
  readonly tiers: Tiers;
}

/** All that the parts of this area are built on. */
export interface MonitorParts
  extends MonitorPorts,
    Pick<Kernel, "db" | "clock" | "ids" | "vault" | "scheduler" | "metrics" | "changes"> {
  readonly outbound: OutboundClient;
  readonly monitors: MonitorStore;
  readonly checks: CheckStore;
  readonly heartbeats: HeartbeatStore;
  readonly stopped: StoppedProjects;
}
