import { ApiError, type ErrorCode, isUnavailable } from "../../../kernel/errors.ts";
import {
  type BucketRate,
  TokenBuckets,
  takeTokens,
  waitForTokens,
} from "../../../kernel/http/access/token-buckets.ts";
import type { OpenCall } from "../../../kernel/http/requests/call.ts";
import { targetOf } from "../../../kernel/http/requests/request-target.ts";
import { constantHeaders, type Reply, reply } from "../../../kernel/http/responses/response.ts";
import { isUnlimited } from "../../../kernel/limits/tiers.ts";
import { keyDigest } from "../../../kernel/secrets/key-format.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { MINUTE_MS } from "../../../kernel/time/units.ts";
import type { AreaDeps } from "../ports.ts";
import type { HeartbeatChecks, PingMade } from "./heartbeat-checks.ts";
import { PING_BODY_BYTES_MAX, type PushAccepted } from "./schema.ts";
import { type PingRequest, readPing, readPush } from "./state.ts";
import type { HeartbeatStore, PingKeyRow } from "./store.ts";

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST"]);
/** Pings of one heartbeat per minute: cron is no more frequent, and a faulty loop must not fill the disk. */
export const PINGS_PER_MINUTE = 60;
const RATE: BucketRate = { capacity: PINGS_PER_MINUTE, parts: MINUTE_MS, gainPerMs: PINGS_PER_MINUTE };
/** Heartbeats that pings of one account create per minute: enough for a rollout of jobs, and a limit for random slugs. */
export const CREATIONS_PER_MINUTE = 30;
const CREATION_RATE: BucketRate = {
  capacity: CREATIONS_PER_MINUTE,
  parts: MINUTE_MS,
  gainPerMs: CREATIONS_PER_MINUTE,
};
/** Token buckets in memory, about 10 MB. */
const BUCKETS_MAX = 100_000;
/** `Retry-After` of a ping that could not be stored. */
const RETRY_SECONDS = "5";

/** Headers of every response. The URL is a secret, and no cache may respond instead of the server. */
const HEADERS = {
  "content-type": "text/plain; charset=utf-8",
  "access-control-allow-origin": "*",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};
/** Errors of rejected pushes; a push creates nothing. */
const PUSH_REJECTIONS: Readonly<Record<Exclude<PingStatus, 200>, readonly [ErrorCode, string]>> = {
  201: ["internal_error", "A push creates no heartbeat."],
  400: ["invalid_request", "The path must be /api/push/ and a push token of 10 to 64 characters."],
  403: ["forbidden", "The account has reached the monitor limit of its tier."],
  404: ["not_found", "No heartbeat has this push token. Copy the push_url of the heartbeat again."],
  405: ["method_not_allowed", "Push by GET, HEAD or POST."],
  429: [
    "rate_limit_exceeded",
    "The heartbeat receives too many pings. Wait the number of seconds in Retry-After, and retry.",
  ],
  503: [
    "service_unavailable",
    "The ping could not be stored. Wait the number of seconds in Retry-After, and retry.",
  ],
};
const PING_HEADERS = constantHeaders({ ...HEADERS, "ping-body-limit": String(PING_BODY_BYTES_MAX) });

/** The heartbeat of a ping: an existing one, or one to be created. */
type Target = { readonly ref: number } | { readonly ref: null; readonly owner: Owner; readonly slug: string };
type Owner = Pick<PingKeyRow, "projectRef" | "accountRef">;
/** Body of a response, as in Healthchecks. */
type ResponseText = "OK" | "Created" | "not found";
const STATUSES = { OK: 200, Created: 201, "not found": 404 } as const;

type PingDeps = Pick<AreaDeps, "clock" | "monitors" | "owners" | "scheduler" | "stopped" | "writer"> & {
  readonly heartbeats: HeartbeatStore;
};

/** Creates a heartbeat with a slug. Returns its reference. @throws ApiError `monitor_limit_exceeded` */
export type CreateHeartbeat = (tx: Tx, owner: Owner, slug: string) => number;

/** The public side of heartbeats: the ping API of Healthchecks. Each ping is durable before its response. */
export class Pings {
  private readonly buckets = new TokenBuckets<number>(BUCKETS_MAX);
  /** By account. */
  private readonly creations = new TokenBuckets<number>(BUCKETS_MAX);

  constructor(
    private readonly deps: PingDeps,
    private readonly checks: Pick<HeartbeatChecks, "recordPing">,
    private readonly createHeartbeat: CreateHeartbeat,
  ) {}

  /** Receives a ping. Its path says which heartbeat it is for, and its kind. */
  async receive(call: OpenCall): Promise<Reply<number, string>> {
    const { status, words, headers } = await this.received(call, readPing);
    return reply(status, words, headers);
  }

  /** The same for a ping as Uptime Kuma receives it, with its response. */
  async receivePush(call: OpenCall): Promise<Reply<200, PushAccepted>> {
    const { status, words, headers } = await this.received(call, readPush);
    const { "content-type": _, "retry-after": retryAfter, ...others } = headers;
    if (status === 200) return reply(200, { ok: true }, others);
    const [code, message] = PUSH_REJECTIONS[status];
    throw new ApiError(code, message, {
      extras: { ok: false, msg: words },
      ...(retryAfter === undefined ? {} : { retryAfterSeconds: Number(retryAfter) }),
    });
  }

  private async received(
    call: OpenCall,
    read: (target: string) => PingRequest | null,
  ): Promise<TextResponse> {
    const { request } = call;
    const { method } = request;
    if (!METHODS.has(method))
      return textResponse(405, "method not allowed", { ...HEADERS, allow: "GET, HEAD, POST" });
    const ping = read(targetOf(request.url));
    if (ping === null) return textResponse(400, "invalid url format");
    const target = this.targetOf(ping);
    if (target === null) return textResponse(404, "not found");
    const waitMs = target.ref === null ? this.takeCreation(target.owner) : this.takeToken(target.ref);
    if (waitMs > 0)
      return textResponse(429, "rate limited", {
        ...HEADERS,
        "retry-after": String(Math.ceil(waitMs / 1_000)),
      });
    const body = method === "POST" ? await bodyOf(call) : null;
    return this.store(target, { ...ping, ip: call.knownClientAddress, body: body ?? ping.message });
  }

  private async store(target: Target, ping: PingMade): Promise<TextResponse> {
    try {
      const words = await this.deps.writer.submit((tx) => this.record(tx, target, ping));
      return textResponse(STATUSES[words], words, PING_HEADERS);
    } catch (error) {
      if (isUnavailable(error))
        return textResponse(503, "try again", { ...HEADERS, "retry-after": RETRY_SECONDS });
      if (error instanceof ApiError && error.code === "monitor_limit_exceeded")
        return textResponse(403, "the account has reached the monitor limit of its tier");
      throw error;
    }
  }

  private record(tx: Tx, target: Target, ping: PingMade): ResponseText {
    if (target.ref !== null) return this.checks.recordPing(tx, target.ref, ping) ? "OK" : "not found";
    const { owner, slug } = target;
    // Looked up again: another ping may have made it meanwhile.
    const known = this.deps.heartbeats.withSlug(owner.projectRef, slug)?.ref;
    const ref = known ?? this.createHeartbeat(tx, owner, slug);
    if (!this.checks.recordPing(tx, ref, ping)) return "not found";
    return known === undefined ? "Created" : "OK";
  }

  private targetOf({ check, creates }: PingRequest): Target | null {
    const { heartbeats, scheduler, stopped } = this.deps;
    if ("pingId" in check) {
      const ref = heartbeats.refOf(check.pingId);
      return ref === null ? null : { ref };
    }
    if ("pushToken" in check) {
      const ref = heartbeats.refOfToken(check.pushToken);
      return ref === null ? null : { ref };
    }
    const owner = heartbeats.ownerOf(keyDigest(check.pingKey));
    if (owner === null || stopped.has(owner.projectRef) || scheduler.suspended.has(owner.accountRef))
      return null;
    const { slug } = check;
    const ref = heartbeats.withSlug(owner.projectRef, slug)?.ref;
    if (ref !== undefined) return { ref };
    return creates ? { ref: null, owner, slug } : null;
  }

  /** Milliseconds until pings of an account may create another heartbeat; 0: now. A creation that the tier rejects takes a token too. */
  private takeCreation({ accountRef }: Owner): number {
    const { clock, owners } = this.deps;
    if (isUnlimited(owners.account(accountRef).tier)) return 0;
    const bucket = this.creations.at(accountRef, CREATION_RATE, clock.now());
    const waitMs = waitForTokens(bucket, 1);
    if (waitMs === 0) takeTokens(bucket, 1);
    return waitMs;
  }

  /** Milliseconds until a heartbeat may be pinged again; 0: now. The tier `unlimited` has no limit. */
  private takeToken(ref: number): number {
    const { clock, monitors, owners } = this.deps;
    const bucket = this.buckets.at(ref, RATE, clock.now());
    const waitMs = waitForTokens(bucket, 1);
    if (waitMs === 0) takeTokens(bucket, 1);
    if (waitMs === 0) return 0;
    const monitor = monitors.monitor(ref);
    return monitor !== null && isUnlimited(owners.account(monitor.accountRef).tier) ? 0 : waitMs;
  }
}

/** The statuses of a response to a ping. */
type PingStatus = 200 | 201 | 400 | 403 | 404 | 405 | 429 | 503;

interface TextResponse {
  readonly status: PingStatus;
  readonly words: string;
  readonly headers: Readonly<Record<string, string>>;
}

function textResponse(
  status: PingStatus,
  words: string,
  headers: Readonly<Record<string, string>> = HEADERS,
): TextResponse {
  return { status, words, headers };
}

/** The first part of a ping's body; null without one, and for a body beyond the limit of requests. */
async function bodyOf(call: OpenCall): Promise<string | null> {
  try {
    const bytes = await call.readBytes();
    if (bytes.length === 0) return null;
    // As a stream, so that a truncated character at the end is dropped.
    return new TextDecoder().decode(bytes.subarray(0, PING_BODY_BYTES_MAX), { stream: true });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "request_too_large") throw error;
    // The rest of the body is not read.
    call.headers = { connection: "close" };
    return null;
  }
}
