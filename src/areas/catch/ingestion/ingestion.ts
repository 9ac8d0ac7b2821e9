import { ApiError, type ErrorCode } from "../../../kernel/errors.ts";
import { networkOf } from "../../../kernel/http/access/addresses.ts";
import { AttemptLimiter } from "../../../kernel/http/access/guard.ts";
import type { OpenCall } from "../../../kernel/http/requests/call.ts";
import { targetOf } from "../../../kernel/http/requests/request-target.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import { isUnlimited } from "../../../kernel/limits/tiers.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { BucketActor, Buckets, CatchDeps } from "../buckets/buckets.ts";
import type { Removal } from "../buckets/removal.ts";
import { invalidStatus, type StoredSettings, secretsOf } from "../buckets/settings.ts";
import { USUAL_METHODS } from "../buckets/settings-schema.ts";
import { type Admission, admit, INGEST_STATUSES, type Provider } from "../domain.ts";
import type { Forwarder } from "../forwarding/forwarder.ts";
import { eventIdOf } from "../ids.ts";
import type { Ingested } from "../schema.ts";
import type { NewEvent, WayRow } from "../store.ts";
import { type Answered, answerToBody, answerToQuery } from "./challenges.ts";
import { storedHeaders } from "./event-headers.ts";
import type { Received } from "./extracted-fields.ts";
import { detectProvider, PRESETS, verify } from "./presets.ts";

/** Longest path below a bucket's own, in characters. */
export const PATH_LENGTH_MAX = 1_024;
/** Longest query: what servers commonly take. */
export const QUERY_LENGTH_MAX = 8 * 1024;
/** Requests of one network to buckets that do not exist, within {@link MISSES_WINDOW_MS}: whoever searches for ids sends more. */
export const MISSES_MAX = 30;
const MISSES_WINDOW_MS = 60_000;
/** When a sender may come again that the bucket has no room for. */
const OVERLOADED = { "retry-after": "60" };
/** What a bucket's owner has written must not run as a page of this server. */
const OWN_RESPONSE = { "content-security-policy": "sandbox" };
/** Bytes of an id's SHA-256 that are kept: no two ids have the same. */
const DIGEST_BYTES = 16;

/** A request at a bucket's public path. */
type Inbound = Pick<
  OpenCall,
  "request" | "readBytes" | "deps" | "socketAddress" | "clientAddress" | "headers"
>;

/** An event, verified and not yet stored. */
type Arrival = Omit<NewEvent, "sequence" | "status" | "error"> & {
  /** Of the sender's id, where repeats are to be noticed. */
  readonly digest: Uint8Array | null;
};

/** How a request came: what is stored of it, and path and query as they were sent. */
interface Way extends WayRow {
  readonly target: string;
}

/** The reason, on an event's row, why it is not forwarded. */
const INVALID_SIGNATURE = "the signature is not valid";

/** Takes in what providers send. */
export class Ingestion {
  private readonly counts;
  private readonly misses: AttemptLimiter;

  constructor(
    private readonly deps: CatchDeps,
    private readonly buckets: Buckets,
    private readonly removal: Removal,
    private readonly forwarder: Forwarder,
  ) {
    this.misses = new AttemptLimiter(deps.clock, MISSES_MAX, MISSES_WINDOW_MS);
    this.counts = deps.metrics.counters(
      {
        name: "ninefold_webhooks_ingested_total",
        help: "Webhooks received, by what became of them.",
      },
      "status",
      INGEST_STATUSES,
    );
  }

  /**
   * Stores a request's exact bytes as an event of a bucket, or answers what its sender asks before it sends anything. The
   * event, its price and its place in the queue of forwards are committed before the promise settles.
   *
   * @throws ApiError `service_unavailable` when nothing can be stored: the provider then tries again.
   */
  async receive(bucketId: string, inbound: Inbound): Promise<Ingested | Answered> {
    const bucket = this.buckets.find(bucketId);
    const taken = await this.take(bucket, inbound);
    if (!("verification" in taken)) return taken;
    this.counts[taken.status].add();
    // As with a 413, nobody waits for the rest of the body.
    if (taken.status === "too_large") inbound.headers = { connection: "close" };
    return bucket === undefined ? taken : shown(bucket.provider, bucket.settings.stored, taken);
  }

  private async take(bucket: BucketActor | undefined, inbound: Inbound): Promise<Ingested | Answered> {
    const waitSeconds = bucket === undefined ? this.misses.take(networkOf(inbound.clientAddress)) : 0;
    if (waitSeconds > 0)
      return reply(429, refused("rate_limited"), {
        "retry-after": String(waitSeconds),
      }) as unknown as Answered;
    if (bucket === undefined || this.deps.accounts.account(bucket.account_ref).suspended) {
      return refused("ignored");
    }
    const way = wayOf(inbound);
    const method = way.method ?? "POST";
    const asked = answerToQuery(bucket, method, way.query ?? "");
    if (asked !== null) return asked;
    const methods: readonly string[] = bucket.settings.stored.methods ?? USUAL_METHODS;
    if (!methods.includes(method)) return refused("ignored");
    const admission = this.admit(bucket);
    if (admission !== "admitted") return refused(admission);
    if (isLonger(way.path, PATH_LENGTH_MAX) || isLonger(way.query, QUERY_LENGTH_MAX))
      return refused("too_large");
    const body = await inbound.readBytes().catch((error) => nullFor(error, "request_too_large"));
    if (body === null) return refused("too_large");
    return this.keep(bucket, way, inbound.request.headers, body);
  }

  private keep(
    bucket: BucketActor,
    way: Way,
    headers: Headers,
    body: Uint8Array,
  ): Promise<Ingested> | Ingested | Answered {
    const { stored } = bucket.settings;
    const received: Received = {
      headers,
      body,
      receivedAt: this.deps.clock.now(),
      method: way.method ?? "POST",
      target: way.target,
      publicUrl: this.deps.publicUrl,
    };
    const arrival = this.examine(bucket, way, received);
    const { verification } = arrival;
    if (verification === "invalid" && stored.verification_mode === "reject")
      return { status: "rejected", verification };
    const asked =
      verification === "valid" && received.method === "POST" ? answerToBody(bucket, received) : null;
    return asked ?? this.deps.writer.submit((tx) => this.store(tx, bucket.id, arrival));
  }

  private admit(bucket: BucketActor): Admission {
    const { accounts, tiers, clock } = this.deps;
    const { tier } = accounts.account(bucket.account_ref);
    if (isUnlimited(tier)) return "admitted";
    const { traffic, admission } = admit(bucket.traffic, clock.now(), tiers[tier].catchPerMinute);
    bucket.traffic = traffic;
    return admission;
  }

  /** Written out: every webhook comes by here, and copies of objects would take a microsecond each. */
  private examine(bucket: BucketActor, way: Way, received: Received): Arrival {
    const { headers, body, receivedAt } = received;
    const { stored, preset: own } = bucket.settings;
    const provider = bucket.provider ?? detectProvider(headers);
    const preset = own ?? (provider === null ? null : PRESETS[provider]);
    const provider_event_id = preset === null ? null : preset.eventId(received);
    const notices = provider_event_id !== null && (stored.deduplicate_hours ?? 0) > 0;
    const secrets = preset === null ? [] : secretsOf(bucket.signing_secret, stored, receivedAt);
    return {
      provider,
      verification: verify(preset, secrets, received),
      event_type: preset === null ? null : preset.eventType(received),
      provider_event_id,
      headers: storedHeaders(headers, this.deps.vault, bucket.id),
      body,
      way,
      digest: notices ? Bun.CryptoHasher.hash("sha256", provider_event_id).subarray(0, DIGEST_BYTES) : null,
    };
  }

  private store(tx: Tx, bucketId: string, arrival: Arrival): Ingested {
    const { accounts, charger, events, sequence, activity } = this.deps;
    // Candidate up again: the bucket may have been deleted since the request came in.
    const bucket = this.buckets.find(bucketId);
    if (bucket === undefined) return refused("ignored");
    // Anybody could name an id: only what is not forged is noticed.
    const digest = arrival.verification === "invalid" ? null : arrival.digest;
    const first = digest === null ? null : events.seen(bucket.ref, digest, tx.now);
    if (first !== null) {
      events.addDuplicate(tx, bucket.ref, first.sequence);
      return {
        status: "duplicate",
        verification: arrival.verification,
        event_id: eventIdOf(first.sequence),
      };
    }
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
    events.insert(tx, bucket.ref, {
      ...arrival,
      sequence: number,
      status,
      error,
    });
    if (digest !== null) {
      const expires_at = tx.now + (bucket.settings.stored.deduplicate_hours ?? 0) * HOUR_MS;
      events.addSeen(tx, {
        bucket_ref: bucket.ref,
        digest,
        sequence: number,
        expires_at,
      });
    }
    this.buckets.count(tx, bucket, null, status);
    activity.changed(tx, bucket.project_ref);
    this.removal.trim(tx, bucket);
    if (status === "pending") this.forwarder.arrived(tx, bucket);
    return { status: "accepted", verification, event_id: eventIdOf(number) };
  }
}

const HOUR_MS = 60 * 60 * 1000;

/** How a request came. What is usual is null. */
function wayOf(inbound: Inbound): Way {
  const { request } = inbound;
  const { method } = request;
  const target = targetOf(request.url);
  const socket = inbound.socketAddress;
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  // `/v1/in/<bucket id>`, and what is below it.
  const below = path.startsWith(BELOW) ? path.indexOf("/", BELOW.length) : -1;
  return {
    target,
    method: method === "POST" ? null : method,
    path: below < 0 ? null : path.slice(below),
    query: mark < 0 || mark === target.length - 1 ? null : target.slice(mark + 1),
    remote_address: socket === null ? null : inbound.clientAddress,
  };
}

const BELOW = "/v1/in/";

function isLonger(text: string | null, most: number): boolean {
  return text !== null && text.length > most;
}

const OVERLOADS: ReadonlySet<string> = new Set(["rate_limited", "panic_mode", "insufficient_balance"]);

/** What became of a request, as the bucket's owner wants its sender to read it. */
function shown(provider: Provider | null, stored: StoredSettings, taken: Ingested): Ingested | Answered {
  const { status, verification } = taken;
  const { response = null, overload_status = 200 } = stored;
  const code = verification === "invalid" ? invalidStatus(provider, stored) : 200;
  // The statuses stand in the operation's description: to its schema, all of them are the one answer.
  if (code !== 200) return reply(code, taken) as unknown as Answered;
  if (OVERLOADS.has(status) && overload_status !== 200)
    return reply(overload_status, taken, OVERLOADED) as unknown as Answered;
  if (response === null || (status !== "accepted" && status !== "duplicate")) return taken;
  const { content_type = "text/plain", body = null } = response;
  const headers = { ...OWN_RESPONSE, "content-type": content_type };
  return reply(response.status ?? 200, body ?? "", headers) as unknown as Answered;
}

function refused(status: Exclude<Ingested["status"], "accepted">): Ingested {
  return { status, verification: "none" };
}

/** Null for a refusal with this code. @throws whatever else the error is */
function nullFor(error: unknown, code: ErrorCode): null {
  if (error instanceof ApiError && error.code === code) return null;
  throw error;
}
