import type { Clock } from "../../kernel/clock.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Charger } from "../../kernel/http/caller.ts";
import type { ProjectActivity } from "../../kernel/project-activity.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import { isUnlimited, type Tiers } from "../../kernel/tiers.ts";
import type { Bucket } from "./bucket.ts";
import type { Buckets } from "./buckets.ts";
import type { WebhookCounts } from "./counts.ts";
import {
  type Admission,
  type IngestStatus,
  initialStatus,
  type Provider,
  type Verification,
} from "./domain.ts";
import { storedHeaders } from "./event-headers.ts";
import { type EventSequence, eventIdOf } from "./event-id.ts";
import type { EventStore } from "./event-store.ts";
import type { Forwarder } from "./forwarder.ts";
import type { BucketAccounts } from "./ports.ts";
import type { Removal } from "./removal.ts";
import { detectProvider, verify } from "./signatures.ts";

/** The answer to a request; its status is always 200. */
export interface IngestAnswer {
  readonly status: IngestStatus;
  /** Of an accepted event; `none` otherwise, since nothing was looked at. */
  readonly verification: Verification;
  readonly event_id?: string;
}

/** A request at a bucket's public path. */
export interface InboundRequest {
  readonly headers: Headers;
  /** @throws ApiError `request_too_large` */
  readBytes(): Promise<Uint8Array>;
}

/** What ingestion is built on. */
export interface IngestionDeps {
  readonly buckets: Buckets;
  readonly events: EventStore;
  readonly sequence: EventSequence;
  readonly removal: Removal;
  readonly forwarder: Forwarder;
  readonly accounts: BucketAccounts;
  readonly charger: Charger;
  readonly activity: ProjectActivity;
  readonly tiers: Tiers;
  readonly writer: Writer;
  readonly clock: Clock;
  readonly vault: Vault;
  readonly counts: WebhookCounts;
}

/** An event, verified and not yet stored. */
interface Arrival {
  readonly bucketId: string;
  readonly provider: Provider | null;
  readonly verification: Verification;
  /** As they are stored. */
  readonly headers: string;
  readonly body: Uint8Array;
}

/** Says on the row of an event why it is not forwarded. */
const INVALID_SIGNATURE = "the signature is not valid";

/** Takes in what providers send. */
export class Ingestion {
  constructor(private readonly deps: IngestionDeps) {}

  /**
   * Stores a request's exact bytes as an event of a bucket. The event, its price and its place in the queue of
   * forwards are committed before the promise settles.
   *
   * @throws ApiError `service_unavailable` when nothing can be stored: the provider then tries again.
   */
  async receive(bucketId: string, request: InboundRequest): Promise<IngestAnswer> {
    const answer = await this.take(bucketId, request);
    this.deps.counts.ingested[answer.status].add();
    return answer;
  }

  private async take(bucketId: string, request: InboundRequest): Promise<IngestAnswer> {
    const bucket = this.deps.buckets.find(bucketId);
    if (bucket === undefined || this.deps.accounts.account(bucket.accountRef).suspended) {
      return refused("ignored");
    }
    const admission = this.admit(bucket);
    if (admission !== "admitted") return refused(admission);
    const body = await bytesOf(request);
    if (body === null) return refused("too_large");
    const arrival = this.examine(bucket, request.headers, body);
    return this.deps.writer.submit((tx) => this.store(tx, arrival));
  }

  private admit(bucket: Bucket): Admission {
    const { accounts, tiers, clock } = this.deps;
    const { tier } = accounts.account(bucket.accountRef);
    return isUnlimited(tier) ? "admitted" : bucket.admit(clock.now(), tiers[tier].catchPerMinute);
  }

  private examine(bucket: Bucket, headers: Headers, body: Uint8Array): Arrival {
    const provider = bucket.provider ?? detectProvider(headers);
    const received = { headers, body, receivedAt: this.deps.clock.now() };
    return {
      bucketId: bucket.id,
      provider,
      verification: verify(provider, bucket.signingSecret, received),
      headers: storedHeaders(headers, this.deps.vault, bucket.id),
      body,
    };
  }

  private store(tx: Tx, arrival: Arrival): IngestAnswer {
    const { buckets, events, sequence, removal, forwarder, activity } = this.deps;
    // Asked for again: since the request came in, the bucket may have been deleted.
    const bucket = buckets.find(arrival.bucketId);
    if (bucket === undefined) return refused("ignored");
    if (!this.charge(tx, bucket)) return refused("insufficient_balance");
    const { verification, provider, headers, body } = arrival;
    const status = initialStatus(verification);
    const number = sequence.next(tx.now);
    const error = verification === "invalid" ? INVALID_SIGNATURE : null;
    events.insert(tx, bucket.ref, { sequence: number, status, provider, verification, error, headers, body });
    buckets.count(tx, bucket, null, status);
    activity.changed(tx, bucket.projectRef);
    removal.trim(tx, bucket);
    if (status === "pending") forwarder.arrived(tx, bucket);
    return { status: "accepted", verification, event_id: eventIdOf(number) };
  }

  /** Charges the bucket's account. False: it has nothing left, and nothing was changed. */
  private charge(tx: Tx, bucket: Bucket): boolean {
    try {
      this.deps.charger.charge(tx, this.deps.accounts.account(bucket.accountRef), "catch.ingest", 1);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.code === "insufficient_balance") return false;
      throw error;
    }
  }
}

function refused(status: Exclude<IngestStatus, "accepted">): IngestAnswer {
  return { status, verification: "none" };
}

/** The body, or null when it is too large. */
async function bytesOf(request: InboundRequest): Promise<Uint8Array | null> {
  try {
    return await request.readBytes();
  } catch (error) {
    if (error instanceof ApiError && error.code === "request_too_large") return null;
    throw error;
  }
}
