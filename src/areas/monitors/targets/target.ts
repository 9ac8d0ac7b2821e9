import type { Answered, Failed } from "../../../kernel/outbound/outcome.ts";
import type { AreaDeps } from "../ports.ts";
import type { MonitorRow, MonitorSettings } from "../store.ts";

/** What a check found, for all types of targets. */
export type TargetOutcome =
  | Failed
  | (Pick<Answered, "answered" | "latencyMs" | "stalledMs" | "certificate"> & {
      /** Address that the target responded from; null if another server responded for it. */
      readonly address: string | null;
      /** HTTP status; null for other protocols. */
      readonly status: number | null;
      /** Why the target is down in spite of its response; null: it is up. */
      readonly error: string | null;
    });

/** What the checks need to reach their targets. */
export type TargetDeps = Pick<AreaDeps, "outbound" | "vault">;

/** How monitors of one type check their targets. */
export interface TargetKind {
  /** URL that identifies the target in responses and alerts. */
  urlOf(settings: MonitorSettings): string;
  check(deps: TargetDeps, monitor: MonitorRow): Promise<TargetOutcome>;
  /**
   * URL of a TCP port of the target, with the scheme of HTTP: whether it accepts connections shows whether the server is
   * online. Null if the target has none.
   */
  probeUrlOf(url: string): string | null;
}
