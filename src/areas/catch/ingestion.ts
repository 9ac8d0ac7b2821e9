import { ApiError, type ErrorCode } from "../../kernel/errors.ts";
import type { OpenCall } from "../../kernel/http/call.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isUnlimited } from "../../kernel/tiers.ts";
import type { BucketActor, Buckets, CatchDeps } from "./buckets.ts";
import { type Admission, admit, INGEST_STATUSES } from "./domain.ts";
import { storedHeaders } from "./event-headers.ts";
import type { Forwarder } from "./forwarder.ts";
import { eventIdOf } from "./ids.ts";
import type { Removal } from "./removal.ts";
import type { Ingested } from "./schema.ts";
import { detectProvider, verify } from "./signatures.ts";
import type { NewEvent } from "./store.ts";

/** A request at a bucket's public path. */
type Inbound = Pick<OpenCall, "request" | "readBytes">;

/** An event, verified and not yet stored. */
type Arrival = Omit<NewEvent, "sequence" | "status" | "error">;

/** The reason, on an event's row, why it is not forwarded. */
const INVALID_SIGNATURE = "the signature is not valid";

/** Takes in what providers send. */
export class Ingestion {
  private readonly counts;

  constructor(
    private readonly deps: CatchDeps,
    private readonly buckets: Buckets,
    private readonly removal: Removal,
    private readonly forwarder: Forwarder,
  ) {
    this.counts = deps.metrics.counters(
      { name: "ninefold_webhooks_ingested_total", help: "Webhooks received, by what became of them." },
      "status",
      INGEST_STATUSES,
    );
  }

  /**
   * Stores a request's exact bytes as an event of a bucket. The event, its price and its place in the queue of
   * forwards are committed before the promise settles.
   *
   * @throws ApiError `service_unavailable` when nothing can be stored: the provider then tries again.
   */
  async receive(bucketId: string, inbound: Inbound): Promise<Ingested> {
    const answer = await this.take(bucketId, inbound);
    this.counts[answer.status].add();
    return answer;
  }

  private async take(bucketId: string, inbound: Inbound): Promise<Ingested> {
    const bucket = this.buckets.find(bucketId);
    if (bucket === undefined || this.deps.accounts.account(bucket.account_ref).suspended) {
      return refused("ignored");
    }
    const admission = this.admit(bucket);
    if (admission !== "admitted") return refused(admission);
    const body = await inbound.readBytes().catch((error) => nullFor(error, "request_too_large"));
    if (body === null) return refused("too_large");
    const arrival = this.examine(bucket, inbound.request.headers, body);
    return this.deps.writer.submit((tx) => this.store(tx, bucketId, arrival));
  }

  private admit(bucket: BucketActor): Admission {
    const { accounts, tiers, clock } = this.deps;
    const { tier } = accounts.account(bucket.account_ref);
    if (isUnlimited(tier)) return "admitted";
    const { traffic, admission } = admit(bucket.traffic, clock.now(), tiers[tier].catchPerMinute);
    bucket.traffic = traffic;
    return admission;
  }

  private examine(bucket: BucketActor, headers: Headers, body: Uint8Array): Arrival {
    const provider = bucket.provider ?? detectProvider(headers);
    const received = { headers, body, receivedAt: this.deps.clock.now() };
    return {
      provider,
      verification: verify(provider, bucket.signing_secret, received),
      headers: storedHeaders(headers, this.deps.vault, bucket.id),
      body,
    };
  }

  private store(tx: Tx, bucketId: string, arrival: Arrival): Ingested {
    const { accounts, charger, events, sequence, activity } = this.deps;
    // Looked up again: the bucket may have been deleted since the request came in.
    const bucket = this.buckets.find(bucketId);
    if (bucket === undefined) return refused("ignored");
    try {
      charger.charge(tx, accounts.account(bucket.account_ref), "catch.ingest", 1);
    } catch (error) {
      nullFor(error, "insufficient_balance");
      return refused("insufficient_balance");
    }
    const { verification } = arrival;
    // What is not authentic is never forwarded.
    const status = verification === "invalid" ? "failed" : "pending";
    const number = sequence.next(tx.now);
    const error = verification === "invalid" ? INVALID_SIGNATURE : null;
    events.insert(tx, bucket.ref, { ...arrival, sequence: number, status, error });
    this.buckets.count(tx, bucket, null, status);
    activity.changed(tx, bucket.project_ref);
    this.removal.trim(tx, bucket);
    if (status === "pending") this.forwarder.arrived(tx, bucket);
    return { status: "accepted", verification, event_id: eventIdOf(number) };
  }
}

function refused(status: Exclude<Ingested["status"], "accepted">): Ingested {
  return { status, verification: "none" };
}

/** Null for a refusal with this code. @throws whatever else the error is */
function nullFor(error: unknown, code: ErrorCode): null {
  if (error instanceof ApiError && error.code === code) return null;
  throw error;
}
