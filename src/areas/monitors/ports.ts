import type { Tx } from "../../kernel/storage/tx.ts";
import type { TierName } from "../../kernel/tiers.ts";

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
