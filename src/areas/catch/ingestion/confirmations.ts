import { ApiError } from "../../../kernel/errors.ts";
import type { AcrossNetwork } from "../../../kernel/http/operations/perform.ts";
import { sendAttempt } from "../../../kernel/outbound/attempt.ts";
import type { OutboundOutcome } from "../../../kernel/outbound/outcome.ts";
import { errorOf } from "../../../kernel/outbound/retries.ts";
import { laneName } from "../../../kernel/scheduler/dispatcher.ts";
import type { Job, JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { monotonicMs } from "../../../kernel/time/clock.ts";
import { MINUTE_MS, SECOND_MS } from "../../../kernel/time/units.ts";
import type { BucketActor, Buckets, SharedDeps } from "../buckets/buckets.ts";
import { isDelivered } from "../domain.ts";
import { eventIdOf } from "../event-ids.ts";
import type { EventService, Found } from "../events/events.ts";
import { startOf } from "../forwarding/exchange.ts";
import { isAtSender } from "../providers/certificates.ts";
import { SNS_SOURCE, SNS_SUBSCRIPTION, snsSubscribeUrl } from "../providers/certified-signatures.ts";
import type { EventConfirmed } from "../schema.ts";

const CONFIRM = "catch.confirm";
/** Delays before the second and the third attempt of an automatic confirmation. */
const RETRY_DELAYS_MS: readonly number[] = [10 * SECOND_MS, MINUTE_MS];
/** Concurrent automatic confirmations. */
const CONCURRENT_MAX = 4;

interface Outcome {
  readonly at: number;
  readonly durationMs: number;
  readonly outcome: OutboundOutcome;
}

/** Confirms subscriptions to topics of Amazon SNS, on request or automatically. */
export class Confirmations {
  constructor(
    private readonly deps: SharedDeps,
    private readonly buckets: Buckets,
    private readonly events: EventService,
  ) {
    deps.scheduler.register(CONFIRM, { concurrency: CONCURRENT_MAX, run: (job) => this.run(job) });
  }

  /** Schedules the confirmation of a new event, if its bucket confirms automatically and its signature is valid. */
  arrived(
    tx: Tx,
    bucket: BucketActor,
    event: { sequence: number; event_type: string | null; verification: string },
  ) {
    const { auto_confirm = false } = bucket.settings.stored;
    if (!auto_confirm || event.verification !== "valid" || event.event_type !== SNS_SUBSCRIPTION) return;
    const payload = { bucket: bucket.ref, sequence: event.sequence };
    const lane = laneName(bucket.account_ref, "");
    this.deps.scheduler.enqueue(tx, CONFIRM, eventIdOf(event.sequence), tx.now, payload, lane);
  }

  /**
   * Confirms the subscription of an event.
   * @throws ApiError, from its parts: `catch.bucket_not_found`, `catch.event_not_found`, `catch.signature_invalid`, `conflict`,
   * `catch.confirmation_failed`
   */
  confirm(
    projectRef: number,
    bucketId: string,
    eventId: string,
  ): AcrossNetwork<{ readonly found: Found; readonly url: string }, Outcome, EventConfirmed> {
    return {
      claim: () => {
        const found = this.events.find(projectRef, bucketId, eventId);
        return { found, url: this.urlOf(found) };
      },
      outside: async ({ found, url }) => {
        const outcome = await this.request(found.bucket, url);
        // The error below rolls back its unit of work: the attempt is stored in a separate one.
        if (!isConfirming(outcome))
          await this.deps.writer.submit((tx) => {
            tx.affects = found.bucket.account_ref;
            this.store(tx, found, outcome);
          });
        return outcome;
      },
      settle: (tx, { found }, outcome) => {
        if (!isConfirming(outcome))
          throw new ApiError(
            "catch.confirmation_failed",
            `The sender did not confirm: ${failureOf(outcome)}.`,
          );
        this.store(tx, found, outcome);
        this.audit(tx, found);
        return { status: "confirmed" };
      },
    };
  }

  private async run({ payload, attempt }: Job): Promise<JobOutcome> {
    const { bucket: ref, sequence } = payload as { bucket: number; sequence: number };
    const bucket = this.buckets.withRef(ref);
    const found = bucket === undefined ? null : this.events.stored(bucket, sequence);
    if (found === null) return {};
    let url: string;
    try {
      url = this.urlOf(found);
    } catch (error) {
      // It was confirmed in the meantime, or cannot be.
      if (error instanceof ApiError) return {};
      throw error;
    }
    const outcome = await this.request(found.bucket, url);
    const delay = isConfirming(outcome) ? undefined : RETRY_DELAYS_MS[attempt];
    return {
      record: (tx) => {
        this.store(tx, found, outcome);
      },
      ...(delay !== undefined && { retryAt: this.deps.clock.now() + delay }),
    };
  }

  /** The URL that confirms a subscription. @throws ApiError `catch.signature_invalid`, `conflict` */
  private urlOf({ bucket, row, payload }: Found): string {
    if (bucket.provider !== "sns" || row.event_type !== SNS_SUBSCRIPTION)
      throw new ApiError("conflict", "This event is not a confirmation of a subscription.");
    if (row.verification === "invalid")
      throw new ApiError(
        "catch.signature_invalid",
        "The signature of this event is invalid: it cannot be confirmed.",
      );
    if (row.verification !== "valid")
      throw new ApiError(
        "conflict",
        "The signature of this event was not verified. Set signing_secret to the ARN of the topic, then request another confirmation.",
      );
    const isConfirmed = this.deps.events
      .attempts(row.sequence)
      .some(({ kind, response_status }) => kind === "confirm" && isDelivered(response_status));
    if (isConfirmed) throw new ApiError("conflict", "This subscription is already confirmed.");
    const url = URL.parse(snsSubscribeUrl(payload.body));
    if (url === null || !isAtSender(url, SNS_SOURCE, this.deps.certificateHosts))
      throw new ApiError("conflict", "The SubscribeURL of this event is not at a host of Amazon SNS.");
    return url.href;
  }

  private async request(bucket: BucketActor, url: string): Promise<Outcome> {
    const { outbound, clock } = this.deps;
    const at = clock.now();
    const startedAt = monotonicMs();
    const outcome = await sendAttempt(outbound, {
      account: bucket.account_ref,
      method: "GET",
      url,
      requireHttps: true,
      headers: {},
      body: null,
    });
    return { at, durationMs: Math.round(monotonicMs() - startedAt), outcome };
  }

  private store(tx: Tx, { bucket, row }: Found, outcome: Outcome): void {
    const { events, changes } = this.deps;
    if (events.find(bucket.ref, row.sequence) === null) return;
    const { answered } = outcome.outcome;
    events.addAttempt(tx, row.sequence, {
      at: outcome.at,
      kind: "confirm",
      duration_ms: outcome.durationMs,
      response_status: outcome.outcome.answered ? outcome.outcome.status : null,
      error: isConfirming(outcome) ? null : failureOf(outcome),
      response_body: answered ? startOf(outcome.outcome.body) : null,
    });
    changes.inProject(tx, bucket.project_ref, "catch", bucket.id);
  }

  private audit(tx: Tx, { bucket, row }: Found): void {
    tx.audit({
      summary: `Subscription confirmed for bucket ${bucket.name ?? bucket.id}`,
      target: { type: "event", id: eventIdOf(row.sequence) },
      before: null,
      after: { bucket_id: bucket.id },
    });
  }
}

function isConfirming({ outcome }: Outcome): boolean {
  return outcome.answered && isDelivered(outcome.status);
}

function failureOf({ outcome }: Outcome): string {
  return outcome.answered
    ? errorOf({ status: outcome.status, failure: null })
    : errorOf({ status: null, failure: outcome.failure });
}
