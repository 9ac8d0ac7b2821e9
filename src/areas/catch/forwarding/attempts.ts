import type { OutboundOutcome } from "../../../kernel/outbound/outcome.ts";
import { isDelivered, RESPONSE_BYTES_STORED_MAX } from "../domain.ts";
import type { AttemptRow } from "../store.ts";

/** An attempt to deliver an event. */
export interface Attempt {
  /** Start of the attempt, in epoch milliseconds. */
  readonly at: number;
  readonly outcome: OutboundOutcome;
}

/** An attempt as it is stored. */
export function attemptOf(kind: AttemptRow["kind"], { at, outcome }: Attempt): AttemptRow {
  return {
    at,
    kind,
    duration_ms: outcome.latencyMs,
    response_status: outcome.answered ? outcome.status : null,
    error: problemOf(outcome),
    response_body: outcome.answered ? startOf(outcome.body) : null,
  };
}

/** Why an attempt failed; null when it succeeded. */
export function problemOf(outcome: OutboundOutcome): string | null {
  if (!outcome.answered) return outcome.failure.message;
  return isDelivered(outcome.status) ? null : `the target responded with status ${outcome.status}`;
}

/** The start of a body as text, without a character that the cut splits. */
function startOf(body: Uint8Array): string {
  const stream = body.length > RESPONSE_BYTES_STORED_MAX;
  return new TextDecoder().decode(body.subarray(0, RESPONSE_BYTES_STORED_MAX), { stream });
}
