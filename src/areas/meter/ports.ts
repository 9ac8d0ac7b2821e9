import type { Charger } from "../../kernel/http/access/caller.ts";
import type { Tiers } from "../../kernel/limits/tiers.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A notice that is to be delivered. */
export interface MeterNotice {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly event: "meter.low";
  /** Null: it is about no monitor. */
  readonly monitor_id: null;
  readonly target_url: string;
  readonly body: string;
}

/** What meters need from others. */
export interface MeterPorts {
  /** Delivers notices, signed and retried. */
  readonly notifier: {
    /** Queues a notice in the unit of work that causes it. */
    notify(tx: Tx, notice: MeterNotice): void;
  };
  /** Owners of projects. */
  readonly projects: {
    /** The reference of a project's account; null once the project is removed. */
    accountOf(projectRef: number): number | null;
  };
  /** Takes the credits of operations that cost something in some cases only. */
  readonly charger: Charger;
  /** What accounts are granted every month. */
  readonly tiers: Tiers;
  /** Where notices may go. */
  readonly policy: {
    /** @throws ApiError `validation_error` naming the field. */
    assertUrl(field: string, text: string, rules: { readonly requireHttps: boolean }): unknown;
  };
}
