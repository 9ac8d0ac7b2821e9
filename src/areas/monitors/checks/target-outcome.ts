import type { Answered, Failed } from "../../../kernel/outbound/outcome.ts";
import type { MonitorParts } from "../ports.ts";

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
export type TargetParts = Pick<MonitorParts, "outbound" | "vault">;
