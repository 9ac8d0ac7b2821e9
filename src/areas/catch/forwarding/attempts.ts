import type { Attempt } from "../../../kernel/outbound/delivery.ts";
import { errorOf } from "../../../kernel/outbound/retries.ts";
import { isDelivered, RESPONSE_BYTES_STORED_MAX } from "../domain.ts";
import type { AttemptRow } from "../store.ts";

/** An attempt as it is stored. */
export function attemptOf(kind: AttemptRow["kind"], { at, outcome, result }: Attempt): AttemptRow {
  return {
    at,
    kind,
    duration_ms: outcome.latencyMs,
    response_status: result.status,
    error: isDelivered(result.status) ? null : errorOf(result),
    response_body: outcome.answered ? startOf(outcome.body) : null,
  };
}

/** The start of a body as text, without a character that the cut splits. */
export function startOf(body: Uint8Array): string {
  const stream = body.length > RESPONSE_BYTES_STORED_MAX;
  return new TextDecoder().decode(body.subarray(0, RESPONSE_BYTES_STORED_MAX), { stream });
}
