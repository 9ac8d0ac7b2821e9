import { ApiError, isUnavailable } from "../../../kernel/errors.ts";
import {
  type BucketRate,
  TokenBuckets,
  takeTokens,
  waitForTokens,
} from "../../../kernel/http/access/token-buckets.ts";
import type { OpenCall } from "../../../kernel/http/requests/call.ts";
import { targetOf } from "../../../kernel/http/requests/request-target.ts";
import { type Reply, reply } from "../../../kernel/http/responses/response.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { isUnlimited } from "../../../kernel/limits/tiers.ts";
import { keyDigest } from "../../../kernel/secrets/key-format.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { MonitorParts } from "../ports.ts";
import type { Heartbeats, PingMade } from "./heartbeats.ts";
import { PING_BODY_BYTES_MAX } from "./schema.ts";
import { type PingRequest, readPing } from "./state.ts";
import type { PingKeyRow } from "./store.ts";

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST"]);
/** Pings of one check within a minute: cron is no finer, and a loop that runs wild fills no disk. */
export const PINGS_PER_MINUTE = 60;
const MINUTE_MS = 60_000;
const RATE: BucketRate = { capacity: PINGS_PER_MINUTE, parts: MINUTE_MS, gainPerMs: PINGS_PER_MINUTE };
/** Heartbeats that pings of one account make within a minute: more than a rollout of jobs needs, and no flood of names. */
export const CREATIONS_PER_MINUTE = 30;
const CREATION_RATE: BucketRate = {
  capacity: CREATIONS_PER_MINUTE,
  parts: MINUTE_MS,
  gainPerMs: CREATIONS_PER_MINUTE,
};
/** Checks pinged lately whose pings are counted in memory: some 10 MB. */
const BUCKETS_MAX = 100_000;
/** When to come again where nothing could be stored. */
const RETRY_SECONDS = "5";

/** What every answer has: the address is a secret that goes nowhere else, and no cache may answer in our place. */
const HEADERS = {
  "content-type": "text/plain; charset=utf-8",
  "access-control-allow-origin": "*",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};
const TAKEN = { ...HEADERS, "ping-body-limit": String(PING_BODY_BYTES_MAX) };

/** A check that a ping is for: one that is there, or one to be made. */
type Target = { readonly ref: number } | { readonly ref: null; readonly owner: Owner; readonly slug: string };
type Owner = Pick<PingKeyRow, "projectRef" | "accountRef">;
/** The words of an answer, as Healthchecks has them. */
type Said = "OK" | "Created" | "not found";
const STATUSES = { OK: 200, Created: 201, "not found": 404 } as const;

/** Makes a heartbeat for a slug. Returns its reference. @throws ApiError `monitor_limit_exceeded` */
export type MakeHeartbeat = (tx: Tx, owner: Owner, slug: string) => number;

/** The public side of heartbeats: Healthchecks' ping API. Each ping is durable before it is answered. */
export class Pings {
  private readonly buckets = new TokenBuckets<number>(BUCKETS_MAX);
  /** By account. */
  private readonly creations = new TokenBuckets<number>(BUCKETS_MAX);

  constructor(
    private readonly deps: MonitorParts & Pick<Kernel, "writer">,
    private readonly heartbeats: Heartbeats,
    private readonly make: MakeHeartbeat,
  ) {}

  /** Takes a ping, at the path that it came to. */
  async receive(call: OpenCall): Promise<Reply<number, string>> {
    const { request } = call;
    const { method } = request;
    if (!METHODS.has(method))
      return said(405, "method not allowed", { ...HEADERS, allow: "GET, HEAD, POST" });
    const asked = readPing(targetOf(request.url));
    if (asked === null) return said(400, "invalid url format");
    const target = this.targetOf(asked);
    if (target === null) return said(404, "not found");
    const waitMs = target.ref === null ? this.takeCreation(target.owner) : this.takeToken(target.ref);
    if (waitMs > 0)
      return said(429, "rate limited", { ...HEADERS, "retry-after": String(Math.ceil(waitMs / 1_000)) });
    const body = method === "POST" ? await bodyOf(call) : null;
    return this.store(target, { ...asked, ip: call.knownClientAddress, body });
  }

  private async store(target: Target, ping: PingMade): Promise<Reply<number, string>> {
    try {
      const words = await this.deps.writer.submit((tx) => this.take(tx, target, ping));
      return said(STATUSES[words], words, TAKEN);
    } catch (error) {
      if (isUnavailable(error)) return said(503, "try again", { ...HEADERS, "retry-after": RETRY_SECONDS });
      if (error instanceof ApiError && error.code === "monitor_limit_exceeded")
        return said(403, "the account has as many checks as its tier allows");
      throw error;
    }
  }

  private take(tx: Tx, target: Target, ping: PingMade): Said {
    if (target.ref !== null) return this.heartbeats.take(tx, target.ref, ping) ? "OK" : "not found";
    const { owner, slug } = target;
    // Candidate up again: another ping may have made it meanwhile.
    const known = this.deps.heartbeats.withSlug(owner.projectRef, slug)?.ref;
    const ref = known ?? this.make(tx, owner, slug);
    if (!this.heartbeats.take(tx, ref, ping)) return "not found";
    return known === undefined ? "Created" : "OK";
  }

  private targetOf({ check, creates }: PingRequest): Target | null {
    const { heartbeats, scheduler, stopped } = this.deps;
    if ("pingId" in check) {
      const ref = heartbeats.refOf(check.pingId);
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

  /** Milliseconds until pings of an account may make another heartbeat; 0: now. Also what the tier rejects takes a token. */
  private takeCreation({ accountRef }: Owner): number {
    const { clock, owners } = this.deps;
    if (isUnlimited(owners.account(accountRef).tier)) return 0;
    const bucket = this.creations.at(accountRef, CREATION_RATE, clock.now());
    const waitMs = waitForTokens(bucket, 1);
    if (waitMs === 0) takeTokens(bucket, 1);
    return waitMs;
  }

  /** Milliseconds until a check may be pinged again; 0: now. The tier without bounds has none here either. */
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

function said(status: number, words: string, headers: Readonly<Record<string, string>> = HEADERS) {
  return reply(status, words, headers);
}

/** The first part of what a ping was sent with; null without any. Of more than a request may carry nothing is kept. */
async function bodyOf(call: OpenCall): Promise<string | null> {
  try {
    const bytes = await call.readBytes();
    if (bytes.length === 0) return null;
    // As a stream, so that a character cut in two is left out.
    return new TextDecoder().decode(bytes.subarray(0, PING_BODY_BYTES_MAX), { stream: true });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "request_too_large") throw error;
    // Nobody waits for the rest.
    call.headers = { connection: "close" };
    return null;
  }
}
