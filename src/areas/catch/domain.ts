import { ApiError, type ErrorMeaning, registerErrors } from "../../kernel/errors.ts";

const codes = registerErrors({
  "catch.bucket_not_found": [404, "There is no such bucket, or it is not yours."],
  "catch.event_not_found": [404, "The bucket has no such event."],
  "catch.provider_unsupported": [400, "The provider is not one of those in the guide."],
  "catch.signature_invalid": [400, "The event's signature did not hold, so it is not sent on."],
  "catch.replay_failed": [500, "The target gave no answer. Nothing was charged."],
  bucket_limit_exceeded: [403, "The account has as many buckets as its tier allows."],
  bucket_name_taken: [409, "Another bucket of the project has this name; `bucket_id` says which."],
  bucket_paused: [400, "The bucket is paused; set its state to `live` first."],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** The senders that a request's headers show, where its bucket names none. */
export const DETECTED_PROVIDERS = ["stripe", "github", "shopify", "svix"] as const;
/** The senders that a bucket can name. Their order is stored: new ones go to the end. */
export const PROVIDERS = [
  ...DETECTED_PROVIDERS,
  "custom",
  "standard",
  "slack",
  "twilio",
  "linear",
  "lemonsqueezy",
  "bitbucket",
  "discord",
  "paddle",
  "sendgrid",
  "square",
  "zoom",
  "intercom",
  "gitlab",
  "zendesk",
  "typeform",
  "meta",
  "strava",
  "websub",
  "microsoft-graph",
  "x",
  "dropbox",
] as const;
/** One of {@link PROVIDERS}. */
export type Provider = (typeof PROVIDERS)[number];
/** Senders that sign by Standard Webhooks, which is what a bucket of theirs is stored as. */
const STANDARD_SENDERS = ["clerk", "resend", "gitlab-signed", "openai", "polar"] as const;

/** What became of an event so far. */
export const EVENT_STATUSES = ["pending", "delivered", "failed"] as const;
/** One of {@link EVENT_STATUSES}. */
export type EventStatus = (typeof EVENT_STATUSES)[number];

/** What became of checking its signature: `none` when there was nothing to check it with. */
export const VERIFICATIONS = ["none", "valid", "invalid"] as const;
/** One of {@link VERIFICATIONS}. */
export type Verification = (typeof VERIFICATIONS)[number];

/** What became of a request at a bucket's public path. */
export const INGEST_STATUSES = [
  "accepted",
  "rate_limited",
  "panic_mode",
  "insufficient_balance",
  "too_large",
  "ignored",
  "rejected",
  "duplicate",
] as const;

/** How an event comes to its target: in its turn, because somebody asked for it once more, or by who fetched and acknowledged it. */
export const ATTEMPT_KINDS = ["forward", "replay", "pull"] as const;

/** Tries of an event that are kept: five rounds of forwards, whatever is replayed by hand. */
export const ATTEMPTS_KEPT = 20;
/** What is kept of a target's answer: enough for an error's text, little beside the events themselves. */
export const ANSWER_BYTES_KEPT = 2 * 1024;

/** Whether a bucket sends its events on. */
export const BUCKET_STATES = ["paused", "live"] as const;

/** Whether a bucket sends its events on itself, or keeps them for who fetches them. */
export const DELIVERIES = ["push", "pull"] as const;

/** What who has fetched an event says of it. */
export const ACK_RESULTS = ["delivered", "failed"] as const;

/** Waits before the second, third and fourth try of a forward, each from the end of the try before. */
export const RETRY_DELAYS_MS = [1_000, 5_000, 25_000] as const;

/** The time that a bucket's limit counts over. */
export const TRAFFIC_WINDOW_MS = 60_000;
/** A bucket that gets more than this many times its limit within the window panics. */
export const PANIC_FACTOR = 5;
/** How long a panic lasts. */
export const PANIC_MS = 10 * 60 * 1000;

/** Longest signing secret: those of the providers have at most 200 characters, public keys among them. */
export const SIGNING_SECRET_LENGTH_MAX = 512;

/** What a bucket has been sent lately. */
export interface Traffic {
  /** When the current window began, epoch milliseconds. */
  readonly windowStart: number;
  /** Requests within it. */
  readonly count: number;
  /** When the panic began; null outside a panic. */
  readonly panicSince: number | null;
}

/** The traffic of a bucket that has been sent nothing. */
export const NO_TRAFFIC: Traffic = { windowStart: Number.NEGATIVE_INFINITY, count: 0, panicSince: null };

/** What a bucket's limit makes of a request. */
export type Admission = "admitted" | "rate_limited" | "panic_mode";

/**
 * Counts a request. The window begins with its first request; requests during a panic do not count, so they do
 * not prolong it.
 */
export function admit(
  traffic: Traffic,
  now: number,
  perMinute: number,
): { traffic: Traffic; admission: Admission } {
  const { panicSince } = traffic;
  if (panicSince !== null && isWithin(now, panicSince, PANIC_MS)) return { traffic, admission: "panic_mode" };
  const sameWindow = panicSince === null && isWithin(now, traffic.windowStart, TRAFFIC_WINDOW_MS);
  const windowStart = sameWindow ? traffic.windowStart : now;
  const count = sameWindow ? traffic.count + 1 : 1;
  if (count > PANIC_FACTOR * perMinute) {
    return { traffic: { windowStart, count, panicSince: now }, admission: "panic_mode" };
  }
  const admission = count > perMinute ? "rate_limited" : "admitted";
  return { traffic: { windowStart, count, panicSince: null }, admission };
}

/** After the wall clock was set back, what began in its future is over. */
function isWithin(now: number, since: number, lengthMs: number): boolean {
  return now >= since && now < since + lengthMs;
}

/** The transition of a pending event. `tries`: how many there have been, this one included. */
export function afterTry(tries: number, delivered: boolean): { status: EventStatus; retryInMs?: number } {
  if (delivered) return { status: "delivered" };
  const retryInMs = RETRY_DELAYS_MS[tries - 1];
  return retryInMs === undefined ? { status: "failed" } : { status: "pending", retryInMs };
}

/** Whether a target's answer means that it has taken the event; null for no answer. */
export function isDelivered(responseStatus: number | null): boolean {
  return responseStatus !== null && responseStatus >= 200 && responseStatus <= 299;
}

/** The provider of a name; null without one. @throws ApiError `catch.provider_unsupported` */
export function knownProvider(name: string | null | undefined): Provider | null {
  const provider = PROVIDERS.find((known) => known === name);
  if (provider !== undefined) return provider;
  if (name === null || name === undefined) return null;
  if (STANDARD_SENDERS.some((sender) => sender === name)) return "standard";
  throw new ApiError("catch.provider_unsupported", `provider must be one of ${PROVIDERS.join(", ")}.`);
}

/** @throws ApiError `bucket_limit_exceeded` when an account that has `buckets` may have no more. */
export function assertRoomForBucket(buckets: number, bucketsMax: number): void {
  if (buckets < bucketsMax) return;
  throw new ApiError(
    "bucket_limit_exceeded",
    `Your tier allows ${bucketsMax} bucket(s), and you have ${buckets}. Delete one, or move to a larger tier.`,
  );
}

/** @throws ApiError `bucket_paused`, and `conflict` without a target. */
export function assertSending(bucket: { live: boolean; target_url: string | null }): void {
  const { live, target_url } = bucket;
  const paused = 'The bucket is paused. Set its state to "live" before replaying its events.';
  if (!live) throw new ApiError("bucket_paused", paused);
  if (target_url !== null) return;
  throw new ApiError(
    "conflict",
    "The bucket has no target_url to replay to: fetch its stream again instead.",
  );
}

/** @throws ApiError `bucket_paused`, `conflict`, `catch.signature_invalid` */
export function assertReplayable(
  bucket: { live: boolean; target_url: string | null },
  verification: Verification,
): void {
  assertSending(bucket);
  const forged = "The signature of this event did not hold when it was received, so it is not sent on.";
  if (verification === "invalid") throw new ApiError("catch.signature_invalid", forged);
}
