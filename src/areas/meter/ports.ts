import type { Charger } from "../../kernel/callers/caller.ts";
import type { Tiers } from "../../kernel/limits/tiers.ts";
import type { Notifier } from "../../kernel/outbound/notification.ts";

/** Dependencies on other areas. */
export interface MeterDeps {
  /** Delivers alerts, signed and retried. */
  readonly notifier: Pick<Notifier, "notify">;
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
