import { ApiError } from "../../../kernel/errors.ts";
import { HOPS_HEADER } from "../../../kernel/outbound/hops.ts";

/** The header with which each delivery of an event names it. */
const EVENT_HEADER = "X-Svc-Event-Id";

/**
 * Rejects a replay that is requested by the delivery of an event: the replay would be delivered, and request the next one.
 * Nothing counts these, since the event stays the same.
 * @throws ApiError `catch.loop_detected`
 */
export function assertNoLoop(headers: Headers): void {
  if (!headers.has(HOPS_HEADER) || !headers.has(EVENT_HEADER)) return;
  throw new ApiError(
    "catch.loop_detected",
    "The delivery of an event cannot replay events, because that would never end. Replay them from your own program.",
  );
}
