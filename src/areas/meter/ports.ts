import type { Charger } from "../../kernel/http/access/caller.ts";
import type { Tiers } from "../../kernel/limits/tiers.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** An alert to deliver. */
export interface MeterNotice {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly event: "meter.low";
  /** Always null: the alert is not about a monitor. */
  readonly monitor_id: null;
  readonly target_url: string;
  readonly body: string;
}

/** Dependencies on other areas. */
export interface MeterPorts {
  /** Delivers alerts, signed and retried. */
  readonly notifier: {
    /** Queues an alert in the unit of work that causes it. */
    notify(tx: Tx, notice: MeterNotice): void;
  };
  /** Owners of projects. */
  readonly projects: {
    /** Returns the reference of a project's account; null once the project is removed. */
    accountOf(projectRef: number): number | null;
  };
  /** Charges operations that cost credits only in some cases. */
  readonly charger: Charger;
  /** Monthly credits of accounts. */
  readonly tiers: Tiers;
  /** Addresses that are allowed for alerts. */
  readonly policy: {
    /** @throws ApiError `validation_error` naming the field. */
    assertUrl(field: string, text: string, rules: { readonly requireHttps: boolean }): unknown;
  };
}
