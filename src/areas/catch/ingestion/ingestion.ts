import { slices } from "../../../kernel/background/time-slices.ts";
import { networkOf } from "../../../kernel/data/addresses.ts";
import { decodedBytes } from "../../../kernel/data/content.ts";
import { ApiError, type ErrorCode } from "../../../kernel/errors.ts";
import { AttemptLimiter } from "../../../kernel/http/access/guard.ts";
import { BODY_BYTES_MAX } from "../../../kernel/http/operation.ts";
import type { OpenCall } from "../../../kernel/http/requests/call.ts";
import type { LargeBody } from "../../../kernel/http/requests/large-body.ts";
import { targetOf } from "../../../kernel/http/requests/request-target.ts";
import { type AdditionalReply, additionalReply } from "../../../kernel/http/responses/response.ts";
import { isUnlimited, type TierLimits } from "../../../kernel/limits/tiers.ts";
import { HOPS_HEADER, HOPS_MAX, hopsOf, LOOP_DETECTED } from "../../../kernel/outbound/hops.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import { type BucketActor, type Buckets, hasTargets, type SharedDeps } from "../buckets/buckets.ts";
import type { Removal } from "../buckets/removal.ts";
import { invalidStatus, secretsOf } from "../buckets/settings.ts";
import { bodyOfTokenDigest, digestOfId, tokenDigest } from "../deduplication-store.ts";
import { type Admission, admit, INGEST_STATUSES, isAboutSubscription, mebibytesOf } from "../domain.ts";
import { storedHeaders } from "../event-headers.ts";
import { eventIdOf } from "../event-ids.ts";
import type { Forwarder, MatchedTargets } from "../forwarding/forwarder.ts";
import type { Targets } from "../forwarding/targets.ts";
import { BodyHashes } from "../providers/body-hashes.ts";
import type { OwnSignature } from "../providers/body-signatures.ts";
import { SigningCertificates } from "../providers/certificates.ts";
import { bodyDigest, type Received } from "../providers/extracted-fields.ts";
import { detectProvider, PRESETS, verify } from "../providers/presets.ts";
import type { Ingested } from "../schema.ts";
import { DEFAULT_METHODS } from "../settings-schema.ts";
import type { LargePayload, NewEvent, WayRow } from "../store.ts";
import { respondToBody, respondToOrigin, respondToQuery, respondUnverified } from "./challenges.ts";
import type { Confirmations } from "./confirmations.ts";
import { storePieces } from "./large-arrival.ts";

/** Longest path below that of a bucket, in characters. */
export const PATH_LENGTH_MAX = 1_024;
/** Longest query: a common limit of servers. */
export const QUERY_LENGTH_MAX = 8 * 1024;
/** Requests of one network to buckets that do not exist, within {@link MISSES_WINDOW_MS}: it limits searches for ids. */
export const MISSES_MAX = 30;
const MISSES_WINDOW_MS = 60_000;
/** Retry time for requests beyond a bucket's limits. */
const OVERLOADED = { "retry-after": "60" };
/** The body of a bucket's `response` must not run as a page of this origin. */
const SANDBOX_HEADERS = { "content-security-policy": "sandbox" };

/** A request at a bucket's public path. */
type InboundRequest = Pick<
  OpenCall,
  "request" | "readBytesOr" | "deps" | "knownClientAddress" | "clientAddress" | "headers"
>;

/** An event, verified and not yet stored. */
type Arrival = NewEvent & {
  /** Digest of the sender's id, if repeats are detected. */
  readonly digest: Uint8Array | null;
  /** Digests of a token that its sender uses for one body only; null for other signatures. */
  readonly token: { readonly digest: Uint8Array; readonly withBody: Uint8Array } | null;
  /** The endpoints that accept it; null when the bucket has no targets. */
  readonly matched: MatchedTargets | null;
};

/** Method, path, query and address of a request, as stored and as sent. */
interface Way extends WayRow {
  readonly target: string;
}

/** Error of an event that is not forwarded. */
const INVALID_SIGNATURE = "the signature is not valid";
/** Time for which a token is known: three times as long as its sender repeats a webhook. */
export const TOKEN_HOURS = 24;

/** Receives and stores requests to buckets. */
export class Ingestion {
  private readonly counts;
  private readonly misses: AttemptLimiter;
  private readonly certificates: SigningCertificates;

  constructor(
    private readonly deps: SharedDeps,
    private readonly buckets: Buckets,
    private readonly removal: Removal,
    private readonly forwarder: Forwarder,
    private readonly targets: Targets,
    private readonly confirmations: Confirmations,
  ) {
    this.misses = new AttemptLimiter(deps.clock, MISSES_MAX, MISSES_WINDOW_MS);
    this.certificates = new SigningCertificates(deps);
    this.counts = deps.metrics.counters(
      {
        name: "ninefold_webhooks_ingested_total",
        help: "Webhooks received, by result.",
      },
      "status",
      INGEST_STATUSES,
    );
  }

  /**
   * Stores a request's exact bytes as an event of a bucket, or responds to its sender's challenge. The
   * event, its charge and its forwarding job are committed before the promise settles.
   *
   * @throws ApiError `service_unavailable` when the database is not writable: the provider retries.
   */
  async receive(bucketId: string, inbound: InboundRequest): Promise<Ingested | AdditionalReply> {
    const bucket = this.buckets.find(bucketId);
    if (bucket === undefined) return this.receiveForNone(inbound);
    const way = originOf(inbound);
    const { headers } = inbound.request;
    let result = this.resultBeforeBody(bucket, way, headers);
    let isBodyTooLarge = false;
    try {
      // One async function from here to the commit: each further promise costs half a microsecond.
      if (result === null) {
        const { eventBytes } = this.limitsOf(bucket);
        const body = await inbound.readBytesOr(eventBytes, (large) =>
          this.keepLarge(bucket, way, headers, large),
        );
        if (!(body instanceof Uint8Array)) result = body;
        else if (body.length > eventBytes) throw tooLargeForTier();
        else
          result = await (headers.has("content-encoding")
            ? this.keepDecoded(bucket, way, headers, body)
            : this.keep(bucket, way, headers, body));
      }
    } catch (error) {
      nullFor(error, "request_too_large");
      result = notStored("too_large");
      isBodyTooLarge = true;
    }
    if (!("verification" in result)) return result;
    this.counts[result.status].add();
    if (result.status === "too_large") {
      await this.countTooLarge(bucketId);
      // The rest of the body is not read.
      inbound.headers = { connection: "close" };
    }
    return isBodyTooLarge ? additionalReply(TOO_LARGE, result) : responseOf(bucket, result);
  }

  /** Stores a body above 1 MiB while it arrives. It is not parsed, and what follows from its hashes is known at its end. */
  private async keepLarge(
    bucket: BucketActor,
    way: Way,
    headers: Headers,
    body: LargeBody,
  ): Promise<Ingested | AdditionalReply> {
    const mebibytes = mebibytesOf(body.declared ?? 1);
    // The first one is counted.
    const admission = mebibytes > 1 ? this.admit(bucket, mebibytes - 1) : "admitted";
    if (admission !== "admitted") return notStored(admission);
    const account = this.deps.accounts.account(bucket.account_ref);
    if (!isUnlimited(account.tier) && account.balance < mebibytes) return notStored("insufficient_balance");
    const hashes = new BodyHashes();
    const received: Received = {
      ...this.receivedOf(way, headers, new Uint8Array(), null),
      hashes,
      json: { value: undefined },
    };
    const { ownSignature } = bucket.settings.preset ?? {};
    if (ownSignature?.certificate !== undefined && bucket.signing_secret !== null)
      await this.fetchCertificate(bucket, received, ownSignature.certificate);
    this.verificationOf(bucket, received);
    const upload = this.deps.large.begin();
    try {
      let rejected: Exclude<Admission, "admitted"> = "rate_limited";
      const large = await storePieces({
        body,
        upload,
        hashes,
        admit: (more) => {
          const further = this.admit(bucket, more);
          if (further !== "admitted") rejected = further;
          return further === "admitted";
        },
      });
      if (large === null) return notStored(rejected);
      // A signature that stands in the body is near its start.
      const start =
        ownSignature === undefined || headers.has("content-encoding")
          ? received.body
          : this.deps.large.startOf(upload.ref, BODY_BYTES_MAX);
      return await this.keepReceived(bucket, way, { ...received, decoded: start }, large);
    } finally {
      upload.end();
    }
  }

  /** Leaves a trace of a request that could not be stored: its sender may not tell anyone. */
  private countTooLarge(bucketId: string): Promise<void> {
    return this.deps.writer.submit((tx) => {
      const bucket = this.buckets.find(bucketId);
      if (bucket === undefined) return;
      tx.affects = bucket.account_ref;
      this.buckets.countTooLarge(tx, bucket);
    });
  }

  /** The response to a request for a bucket that does not exist. */
  private receiveForNone(inbound: InboundRequest): Ingested | AdditionalReply {
    const waitSeconds = this.misses.take(networkOf(inbound.clientAddress));
    if (waitSeconds > 0)
      return additionalReply(429, notStored("rate_limited"), { "retry-after": String(waitSeconds) });
    this.counts.ignored.add();
    return notStored("ignored");
  }

  /** The result of a request whose body is not needed for it; null for others. @throws ApiError as {@link respondToQuery} */
  private resultBeforeBody(
    bucket: BucketActor,
    way: Way,
    headers: Headers,
  ): Ingested | AdditionalReply | null {
    if (this.deps.accounts.account(bucket.account_ref).suspended) return notStored("ignored");
    if (hopsOf(headers.get(HOPS_HEADER)) >= HOPS_MAX) return notStored("loop_detected");
    const method = way.method ?? "POST";
    const challenge = this.challengeBeforeBody(bucket, method, way, headers);
    if (challenge !== null) return challenge;
    const methods: readonly string[] = bucket.settings.stored.methods ?? DEFAULT_METHODS;
    if (!methods.includes(method)) return notStored("ignored");
    const admission = this.admit(bucket);
    if (admission !== "admitted") return notStored(admission);
    return isLonger(way.path, PATH_LENGTH_MAX) || isLonger(way.query, QUERY_LENGTH_MAX)
      ? notStored("too_large")
      : null;
  }

  /** The response to a challenge in the query or the headers; null for other requests. @throws ApiError as {@link respondToQuery} */
  private challengeBeforeBody(
    bucket: BucketActor,
    method: string,
    { query }: Way,
    headers: Headers,
  ): AdditionalReply | null {
    if (method !== "OPTIONS") return respondToQuery(bucket, method, query ?? "");
    const { tier } = this.deps.accounts.account(bucket.account_ref);
    const perMinute = isUnlimited(tier) ? null : this.deps.tiers[tier].catchPerMinute;
    return respondToOrigin(bucket, headers, perMinute);
  }

  /** Leaves the event loop to others after decoding a body, which may take as long as everything else. */
  private async keepDecoded(
    bucket: BucketActor,
    way: Way,
    headers: Headers,
    body: Uint8Array,
  ): Promise<Ingested | AdditionalReply> {
    const decoded = decodedBytes(body, headers.get("content-encoding"));
    await slices.next();
    return this.keep(bucket, way, headers, body, decoded);
  }

  private keep(
    bucket: BucketActor,
    way: Way,
    headers: Headers,
    body: Uint8Array,
    decoded: Uint8Array | null = body,
  ): Promise<Ingested | AdditionalReply> | Ingested | AdditionalReply {
    const received = this.receivedOf(way, headers, body, decoded);
    const certificate = bucket.settings.preset?.ownSignature?.certificate;
    return certificate === undefined || bucket.signing_secret === null
      ? this.keepReceived(bucket, way, received)
      : this.keepCertified(bucket, way, received, certificate);
  }

  private receivedOf(way: Way, headers: Headers, body: Uint8Array, decoded: Uint8Array | null): Received {
    return {
      headers,
      body,
      decoded,
      receivedAt: this.deps.clock.now(),
      method: way.method ?? "POST",
      target: way.target,
      publicUrl: this.deps.publicUrl(),
    };
  }

  private async keepCertified(
    bucket: BucketActor,
    way: Way,
    received: Received,
    certificate: NonNullable<OwnSignature["certificate"]>,
  ): Promise<Ingested | AdditionalReply> {
    await this.fetchCertificate(bucket, received, certificate);
    return this.keepReceived(bucket, way, received);
  }

  /** Fetches the certificate that a request is signed with, unless it is known. @throws ApiError `service_unavailable` */
  private async fetchCertificate(
    bucket: BucketActor,
    received: Received,
    certificate: NonNullable<OwnSignature["certificate"]>,
  ): Promise<void> {
    received.certificateKey = await this.certificates.keyAt(
      certificate.urlOf(received),
      certificate,
      bucket.id,
    );
  }

  private keepReceived(
    bucket: BucketActor,
    way: Way,
    received: Received,
    large: LargePayload | null = null,
  ): Promise<Ingested> | Ingested | AdditionalReply {
    const unsigned =
      received.method === "POST" && large === null ? respondUnverified(bucket, received) : null;
    if (unsigned !== null) return unsigned;
    const { stored } = bucket.settings;
    const arrival = this.arrivalOf(bucket, way, received, large);
    const { verification } = arrival;
    if (verification === "invalid" && stored.verification_mode === "reject")
      return { status: "rejected", verification };
    const challenge =
      verification === "valid" && received.method === "POST" && large === null
        ? respondToBody(bucket, received)
        : null;
    if (challenge !== null) return challenge;
    const isForwarded = verification !== "invalid" && !isAboutSubscription(arrival.provider, arrival);
    if (hasTargets(bucket) && !bucket.pull && isForwarded) return this.keepForTargets(bucket, arrival);
    return this.deps.writer.submit((tx) => this.store(tx, bucket.id, arrival));
  }

  /** Finds the endpoints that accept an event before its unit of work, since filters parse the body. */
  private async keepForTargets(bucket: BucketActor, arrival: Arrival): Promise<Ingested> {
    const { targets } = bucket.settings;
    const recipients = await this.targets.matching(bucket, arrival);
    const matched = { targets, recipients };
    return this.deps.writer.submit((tx) => this.store(tx, bucket.id, { ...arrival, matched }));
  }

  private limitsOf({ account_ref }: BucketActor): TierLimits {
    return this.deps.tiers[this.deps.accounts.account(account_ref).tier];
  }

  private admit(bucket: BucketActor, mebibytes = 1): Admission {
    const { accounts, tiers, clock } = this.deps;
    const { tier } = accounts.account(bucket.account_ref);
    if (isUnlimited(tier)) return "admitted";
    const { catchPerMinute } = tiers[tier];
    const { traffic, admission } = admit(bucket.traffic, clock.now(), catchPerMinute, mebibytes);
    bucket.traffic = traffic;
    return admission;
  }

  /** Without copies of objects, which would take a microsecond each for every webhook. */
  private arrivalOf(bucket: BucketActor, way: Way, received: Received, large: LargePayload | null): Arrival {
    const { headers, body } = received;
    const { stored } = bucket.settings;
    const { provider, preset, verification } = this.verificationOf(bucket, received);
    const provider_event_id = preset === null ? null : preset.eventId(received);
    const notices = provider_event_id !== null && (stored.deduplicate_hours ?? 0) > 0;
    const { signedTarget, token } = received;
    return {
      provider,
      verification,
      event_type: preset === null ? null : preset.eventType(received),
      provider_event_id,
      headers: storedHeaders(headers, this.deps.vault, bucket.id),
      body,
      large,
      // The signature tells how the target was sent.
      way:
        signedTarget === undefined || signedTarget === way.target
          ? way
          : { ...way, ...partsOf(signedTarget) },
      matched: null,
      digest: notices ? digestOfId(provider_event_id) : null,
      token:
        token === undefined || verification !== "valid"
          ? null
          : { digest: tokenDigest(token), withBody: bodyOfTokenDigest(token, bodyDigest(received)) },
    };
  }

  private verificationOf(bucket: BucketActor, received: Received) {
    const { stored, preset: bucketPreset } = bucket.settings;
    const provider = bucket.provider ?? detectProvider(received.headers);
    const preset = bucketPreset ?? (provider === null ? null : PRESETS[provider]);
    const secrets = preset === null ? [] : secretsOf(bucket.signing_secret, stored, received.receivedAt);
    return { provider, preset, verification: verify(preset, secrets, received) };
  }

  /** Invalidates the signature of a request whose token was used for another body, and remembers a new token. */
  private withTokenChecked(tx: Tx, { ref: bucket_ref }: BucketActor, arrival: Arrival): Arrival {
    const { token } = arrival;
    if (token === null) return arrival;
    const { events } = this.deps;
    const isKnown = (digest: Uint8Array) => events.findReceived(bucket_ref, digest, tx.now) !== null;
    if (isKnown(token.withBody)) return arrival;
    if (isKnown(token.digest)) return { ...arrival, verification: "invalid", matched: null };
    for (const digest of [token.digest, token.withBody])
      events.addReceivedId(tx, {
        bucket_ref,
        digest,
        sequence: 0,
        expires_at: tx.now + TOKEN_HOURS * HOUR_MS,
      });
    return arrival;
  }

  private store(tx: Tx, bucketId: string, received: Arrival): Ingested {
    const { accounts, charger, events, sequence, activity } = this.deps;
    // The bucket may have been deleted since the request arrived.
    const bucket = this.buckets.find(bucketId);
    if (bucket === undefined) return notStored("ignored");
    tx.affects = bucket.account_ref;
    const arrival = this.withTokenChecked(tx, bucket, received);
    if (arrival.verification === "invalid" && bucket.settings.stored.verification_mode === "reject")
      return { status: "rejected", verification: "invalid" };
    // Ids of forged requests must not count as received.
    const digest = arrival.verification === "invalid" ? null : arrival.digest;
    const first = digest === null ? null : events.findReceived(bucket.ref, digest, tx.now);
    // A sender repeats an event that failed for good on request: it has not been received yet.
    if (first !== null && events.find(bucket.ref, first.sequence)?.status !== "failed") {
      events.addDuplicate(tx, bucket.ref, first.sequence);
      return {
        status: "duplicate",
        verification: arrival.verification,
        event_id: eventIdOf(first.sequence),
      };
    }
    const bytes = arrival.large?.body_bytes ?? arrival.body.length;
    try {
      const deliveries = Math.max(1, arrival.matched?.recipients.length ?? 1);
      const cost = deliveries * mebibytesOf(bytes);
      charger.charge(tx, accounts.account(bucket.account_ref), "catch.ingest", cost);
    } catch (error) {
      nullFor(error, "insufficient_balance");
      return notStored("insufficient_balance");
    }
    const { verification } = arrival;
    // Events with invalid signatures are never forwarded.
    const isForwarded = !isAboutSubscription(arrival.provider, arrival);
    const status = verification === "invalid" ? "failed" : isForwarded ? "pending" : "delivered";
    const number = sequence.next(tx.now);
    const error = verification === "invalid" ? INVALID_SIGNATURE : null;
    events.insert(tx, bucket.ref, number, { status, error }, arrival);
    if (digest !== null) {
      const expires_at = tx.now + (bucket.settings.stored.deduplicate_hours ?? 0) * HOUR_MS;
      events.addReceivedId(tx, {
        bucket_ref: bucket.ref,
        digest,
        sequence: number,
        expires_at,
      });
    }
    this.buckets.count(tx, bucket, null, status);
    this.buckets.countBytes(tx, bucket, bytes);
    activity.changed(tx, bucket.project_ref);
    this.removal.trim(tx, bucket);
    if (status === "pending") this.forwarder.arrived(tx, bucket, arrival.matched);
    if (status === "delivered") this.confirmations.arrived(tx, bucket, { ...arrival, sequence: number });
    return { status: "accepted", verification, event_id: eventIdOf(number) };
  }
}

function tooLargeForTier(): ApiError {
  return new ApiError("request_too_large", "The body is larger than the tier of the bucket allows.");
}

/** HTTP status of a body that is too large. A path or a query that is too long has 200, since its sender cannot shorten it. */
const TOO_LARGE = 413;

/** Method, path, query and address of a request; null for usual values. */
function originOf(inbound: InboundRequest): Way {
  const { request } = inbound;
  const { method } = request;
  const target = targetOf(request.url);
  return {
    target,
    method: method === "POST" ? null : method,
    ...partsOf(target),
    remote_address: inbound.knownClientAddress,
  };
}

/** The path below `/v1/in/<bucket id>`, and the query; null for none. */
function partsOf(target: string): Pick<Way, "path" | "query"> {
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const below = path.startsWith(BELOW) ? path.indexOf("/", BELOW.length) : -1;
  return {
    path: below < 0 ? null : path.slice(below),
    query: mark < 0 || mark === target.length - 1 ? null : target.slice(mark + 1),
  };
}

const BELOW = "/v1/in/";

function isLonger(text: string | null, most: number): boolean {
  return text !== null && text.length > most;
}

const OVERLOADS: ReadonlySet<string> = new Set(["rate_limited", "panic_mode", "insufficient_balance"]);

/** The response to the sender, according to the bucket's settings. */
function responseOf({ provider, settings }: BucketActor, result: Ingested): Ingested | AdditionalReply {
  const { stored, preset } = settings;
  const { status, verification } = result;
  const { response = null, overload_status = 200 } = stored;
  // Nothing of these is stored, whatever the bucket responds with.
  if (status === "loop_detected") return additionalReply(LOOP_DETECTED, result);
  const code = verification === "invalid" ? invalidStatus(provider, stored) : 200;
  if (code !== 200) return additionalReply(code, result);
  if (OVERLOADS.has(status) && overload_status !== 200)
    return additionalReply(overload_status, result, OVERLOADED);
  if (status !== "accepted" && status !== "duplicate") return result;
  const acknowledgement = preset?.acknowledgement ?? null;
  if (response === null && acknowledgement !== null)
    return additionalReply(200, acknowledgement, { ...SANDBOX_HEADERS, "content-type": "text/plain" });
  if (response === null) return result;
  const { content_type = "text/plain", body = null } = response;
  const headers = { ...SANDBOX_HEADERS, "content-type": content_type };
  return additionalReply(response.status ?? 200, body ?? "", headers);
}

function notStored(status: Exclude<Ingested["status"], "accepted">): Ingested {
  return { status, verification: "none" };
}

/** Returns null for an error with this code, and throws every other one. */
function nullFor(error: unknown, code: ErrorCode): null {
  if (error instanceof ApiError && error.code === code) return null;
  throw error;
}
