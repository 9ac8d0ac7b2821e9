import type { JobOutcome } from "../scheduler/scheduler.ts";
import type { Tx } from "../storage/tx.ts";
import type { Clock } from "../time/clock.ts";
import { type AttemptRequest, isLocalFailure, LOCAL_RETRY_MS, resultOf, sendAttempt } from "./attempt.ts";
import type { OutboundClient } from "./client.ts";
import { type RequestHeaders, withDefaults } from "./headers.ts";
import type { OutboundOutcome } from "./outcome.ts";
import type { AttemptResult, NextStep } from "./retries.ts";

/** The request of a webhook. */
export interface WebhookRequest extends Omit<AttemptRequest, "headers"> {
  /** The user's headers; of an inbound event, its sender's. */
  readonly custom: RequestHeaders;
  /** The headers that the server sets, with the signatures of an attempt at this time. They replace those of the user. */
  readonly headers: (now: number) => Promise<RequestHeaders>;
}

/** An attempt to send a webhook. */
export interface Attempt {
  /** Start, in epoch milliseconds. */
  readonly at: number;
  readonly custom: RequestHeaders;
  /** The headers that the server set. */
  readonly serverHeaders: RequestHeaders;
  readonly outcome: OutboundOutcome;
  readonly result: AttemptResult;
}

interface Retry {
  /** Error of this attempt. */
  readonly error: string;
  /** Time of the next attempt, in epoch milliseconds. */
  readonly at: number;
}

/** What follows an attempt. */
export type AttemptStep<Payload = unknown> =
  | Exclude<NextStep, { kind: "retry" }>
  /** The job of the attempt makes the next one, with this payload, or with its own. */
  | (Retry & { readonly kind: "repeat"; readonly payload?: Payload })
  /** {@link DueDelivery.record} creates the job of the next attempt, or parks the delivery. */
  | (Retry & { readonly kind: "requeue" });

/** A delivery whose attempt is due: what follows the attempt, and how it is recorded. */
export interface DueDelivery {
  /** Attempts before this one. */
  readonly attempts: number;
  /** Called when the attempt has ended. */
  next(result: AttemptResult): AttemptStep;
  /** Called in the unit of work that postpones an attempt that this server had no capacity for. */
  postponed(tx: Tx): void;
  /** Called in the unit of work that records the attempt. */
  record(tx: Tx, attempt: Attempt, step: AttemptStep): void;
}

export interface SendingDeps {
  readonly outbound: Pick<OutboundClient, "send">;
  readonly clock: Pick<Clock, "now">;
}

/** Signs and sends a webhook once. */
export async function attemptWebhook(
  { outbound, clock }: SendingDeps,
  { custom, headers, ...request }: WebhookRequest,
): Promise<Attempt> {
  const at = clock.now();
  const serverHeaders = await headers(at);
  const outcome = await sendAttempt(outbound, { ...request, headers: withDefaults(serverHeaders, custom) });
  return { at, custom, serverHeaders, outcome, result: resultOf(outcome, clock.now()) };
}

/** Makes an attempt of a delivery, and returns the outcome of its job. The only way by which webhooks are retried. */
export async function deliver(
  deps: SendingDeps,
  request: WebhookRequest,
  delivery: DueDelivery,
): Promise<JobOutcome & Required<Pick<JobOutcome, "record">>> {
  const attempt = await attemptWebhook(deps, request);
  if (isLocalFailure(attempt.outcome))
    return {
      record: (tx) => delivery.postponed(tx),
      retryAt: deps.clock.now() + LOCAL_RETRY_MS,
      attempt: delivery.attempts,
    };
  // Settings may change before the outcome is recorded.
  const step = delivery.next(attempt.result);
  const record = (tx: Tx): void => delivery.record(tx, attempt, step);
  return step.kind === "repeat" ? { record, retryAt: step.at, payload: step.payload } : { record };
}
