import type { Charger } from "../../kernel/callers/caller.ts";
import type { Tiers } from "../../kernel/limits/tiers.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** The alerts of the server. */
interface MeterAlerts {
  /** Queues an alert to a webhook in the unit of work of the event, signed and retried. `facts`: its body. */
  notifyWebhook(
    tx: Tx,
    alert: {
      readonly accountRef: number;
      readonly projectRef: number;
      readonly event: "meter.low";
      readonly url: string;
      readonly title: string;
      readonly text: string;
      readonly facts: Readonly<Record<string, unknown>>;
    },
  ): void;
}

/** Dependencies on other areas. */
export interface MeterDeps {
  readonly alerts: MeterAlerts;
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
