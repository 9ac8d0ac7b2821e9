import type { OutboundOutcome } from "../../../kernel/outbound/outcome.ts";
import { ANSWER_BYTES_KEPT, isDelivered } from "../domain.ts";
import type { AttemptRow } from "../store.ts";

/** A try to deliver an event. */
export interface Tried {
  /** When it began, epoch milliseconds. */
  readonly at: number;
  readonly outcome: OutboundOutcome;
}

/** What is kept of a try. */
export function attemptOf(kind: AttemptRow["kind"], { at, outcome }: Tried): AttemptRow {
  return {
    at,
    kind,
    duration_ms: outcome.latencyMs,
    response_status: outcome.answered ? outcome.status : null,
    error: problemOf(outcome),
    response_body: outcome.answered ? beginningOf(outcome.body) : null,
  };
}

/** Why a try did not deliver the event; null when it did. */
export function problemOf(outcome: OutboundOutcome): string | null {
  if (!outcome.answered) return outcome.failure.message;
  return isDelivered(outcome.status) ? null : `the target answered with status ${outcome.status}`;
}

/** The beginning of a body as text. A character that the cut goes through is left out. */
function beginningOf(body: Uint8Array): string {
  const stream = body.length > ANSWER_BYTES_KEPT;
  return new TextDecoder().decode(body.subarray(0, ANSWER_BYTES_KEPT), { stream });
}
