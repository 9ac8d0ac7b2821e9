import type { OutboundClient, OutboundRequest } from "./client.ts";
import type { OutboundOutcome } from "./outcome.ts";
import type { AttemptResult } from "./retries.ts";

/** Default timeout of an attempt, in milliseconds of real time. */
export const ATTEMPT_TIMEOUT_MS = 15_000;
/** Bytes of a response's body that are read, to reuse the connection. */
export const RESPONSE_BYTES_MAX = 64 * 1024;
/** Delay before an attempt is repeated that this server had no capacity for. It does not count as an attempt. */
export const LOCAL_RETRY_MS = 1_000;
/** The request of an attempt, without what all attempts have in common. */
export type AttemptRequest = Pick<
  OutboundRequest,
  "account" | "method" | "url" | "below" | "requireHttps" | "headers" | "body"
> &
  Partial<Pick<OutboundRequest, "timeoutMs" | "bodyBytesMax" | "storedBytesMax">>;

/**
 * Makes one attempt. The caller decides whether it is repeated (`afterAttempt`), in a job of its own. Redirects are not followed,
 * and long bodies are cut.
 */
export function sendAttempt(
  client: Pick<OutboundClient, "send">,
  request: AttemptRequest,
): Promise<OutboundOutcome> {
  return client.send({
    timeoutMs: ATTEMPT_TIMEOUT_MS,
    bodyBytesMax: RESPONSE_BYTES_MAX,
    keepsBody: true,
    longerBody: "truncate",
    redirectsMax: 0,
    reuseConnection: true,
    ...request,
  });
}

/** The result of an attempt that ended at `finishedAt`, in epoch milliseconds. */
export function resultOf(outcome: OutboundOutcome, finishedAt: number): AttemptResult {
  if (!outcome.answered) return { status: null, failure: outcome.failure, retryAfter: undefined, finishedAt };
  const { status, headers } = outcome;
  return { status, failure: null, retryAfter: headers["retry-after"], finishedAt };
}

/** Whether this machine could not open a connection: nothing is known of the target, and nothing was sent. */
export function isLocalFailure(outcome: OutboundOutcome): boolean {
  return !outcome.answered && outcome.failure.kind === "local";
}
