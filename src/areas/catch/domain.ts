import { ApiError, type ErrorMeaning, registerErrors } from "../../kernel/errors.ts";
import {
  type AttemptResult,
  afterAttempt,
  isSuccess,
  type NextStep,
  type RetryRule,
  WEBHOOK_RULE,
} from "../../kernel/outbound/retries.ts";

const codes = registerErrors({
  "catch.bucket_not_found": [
    404,
    "The bucket does not exist, or belongs to another project.",
    "Check the ID of the bucket and the project of the key.",
  ],
  "catch.event_not_found": [
    404,
    "The bucket has no event with this ID.",
    "Check the ID. Events are deleted after the retention of their bucket.",
  ],
  "catch.provider_unsupported": [
    400,
    "The provider is not supported; the message lists those that are.",
    "Use a provider that the message lists, or describe the signature with `signature`.",
  ],
  "catch.signature_invalid": [
    400,
    "The event's signature is invalid: it cannot be forwarded or replayed.",
    "Check the signing secret of the bucket against the sender's ([troubleshooting](troubleshooting.md#invalid-signature)). Then let the sender send the event again.",
  ],
  "catch.loop_detected": [
    508,
    "The delivery of an event cannot replay events: that would never end.",
    "Do not call the API from the target of its own events.",
  ],
  "catch.replay_failed": [
    500,
    "The target did not respond. Nothing was charged.",
    "Check that the target runs and is reachable, then replay the event again.",
  ],
  "catch.confirmation_failed": [
    500,
    "The sender did not confirm the subscription. Nothing was charged.",
    "Send the request again. If the confirmation is older than three days, request a new one from the sender.",
  ],
  bucket_limit_exceeded: [
    403,
    "The account has reached its tier's limit of buckets.",
    "Delete buckets that are not used, or request another tier from the operator.",
  ],
  bucket_name_taken: [
    409,
    "Another bucket of the project has this name; `bucket_id` identifies it.",
    "Use the bucket in `bucket_id`, or another name.",
  ],
  bucket_paused: [
    400,
    "The bucket is paused. Set its state to `live` first.",
    "Set `state` to `live`: `PATCH /v1/catch/buckets/{bucket_id}` ([troubleshooting](troubleshooting.md#a-bucket-forwards-nothing)).",
  ],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** The providers that are detected by headers when a bucket has no provider. */
export const DETECTED_PROVIDERS = ["stripe", "github", "shopify", "svix"] as const;
/** The providers that a bucket can have. Their order is stored: append new ones. */
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
  "adyen",
  "mailgun",
  "event-grid",
  "paypal",
  "sns",
] as const;
export type Provider = (typeof PROVIDERS)[number];
/** Aliases of `standard`: senders that sign by Standard Webhooks. */
const STANDARD_SENDERS = ["clerk", "resend", "gitlab-signed", "openai", "polar"] as const;

export const EVENT_STATUSES = ["pending", "delivered", "failed"] as const;
export type EventStatus = (typeof EVENT_STATUSES)[number];

/** Result of the signature check: `none` when the bucket cannot check signatures. */
export const VERIFICATIONS = ["none", "valid", "invalid"] as const;
export type Verification = (typeof VERIFICATIONS)[number];

/** Result of a request to a bucket's public path. */
export const INGEST_STATUSES = [
  "accepted",
  "rate_limited",
  "panic_mode",
  "insufficient_balance",
  "too_large",
  "ignored",
  "rejected",
  "duplicate",
  "loop_detected",
] as const;

/** How an attempt was made: forwarded, replayed, fetched and acknowledged by a client, or a confirmation at the sender. */
export const ATTEMPT_KINDS = ["forward", "replay", "pull", "confirm"] as const;

/** Stored attempts of an event: five rounds of forwarding with all retries. */
export const ATTEMPTS_STORED_MAX = 20;
/** Stored bytes of a response's body: enough for an error message, little compared with events. */
export const RESPONSE_BYTES_STORED_MAX = 2 * 1024;

/** Statuses of a delivery to an endpoint. */
export const DELIVERY_STATUSES = ["scheduled", "delivering", "delivered", "failed", "cancelled"] as const;

/** Whether a bucket forwards its events. */
export const BUCKET_STATES = ["paused", "live"] as const;

/** Whether a bucket forwards its events, or clients fetch them. */
export const DELIVERIES = ["push", "pull"] as const;

/**
 * Endpoints that one bucket delivers to. The deliveries of an event are stored in the unit of work that accepts it, which many
 * requests share: ten take less than a millisecond.
 */
export const TARGETS_MAX = 10;

/** Results that a client acknowledges. */
export const ACK_RESULTS = ["delivered", "failed"] as const;

/** Window of a bucket's rate limit. */
export const TRAFFIC_WINDOW_MS = 60_000;
/** A bucket that receives more than this many times its limit within the window enters panic mode. */
export const PANIC_FACTOR = 5;
/** Duration of panic mode. */
export const PANIC_MS = 10 * 60 * 1000;

/** Longest signing secret: those of the providers have at most 200 characters, public keys among them. */
export const SIGNING_SECRET_LENGTH_MAX = 512;

const MIB = 1024 * 1024;

/** The MiB of a body that have begun, at least one: what it is counted and charged as. */
export function mebibytesOf(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / MIB));
}

/** Recent traffic of a bucket. */
export interface Traffic {
  /** Start of the current window, in epoch milliseconds. */
  readonly windowStart: number;
  /** Requests within it. */
  readonly count: number;
  /** Start of panic mode; null outside of it. */
  readonly panicSince: number | null;
}

/** The traffic of a bucket without requests. */
export const NO_TRAFFIC: Traffic = { windowStart: Number.NEGATIVE_INFINITY, count: 0, panicSince: null };

/** Result of a bucket's rate limit for a request. */
export type Admission = "admitted" | "rate_limited" | "panic_mode";

/**
 * Counts a request, by the MiB of its body that have begun. The window starts with its first request. Requests in panic mode do not count: they do
 * not prolong it.
 */
export function admit(
  traffic: Traffic,
  now: number,
  perMinute: number,
  mebibytes = 1,
): { traffic: Traffic; admission: Admission } {
  const { panicSince } = traffic;
  if (panicSince !== null && isWithin(now, panicSince, PANIC_MS)) return { traffic, admission: "panic_mode" };
  const sameWindow = panicSince === null && isWithin(now, traffic.windowStart, TRAFFIC_WINDOW_MS);
  const windowStart = sameWindow ? traffic.windowStart : now;
  const count = (sameWindow ? traffic.count : 0) + mebibytes;
  if (count > PANIC_FACTOR * perMinute) {
    return { traffic: { windowStart, count, panicSince: now }, admission: "panic_mode" };
  }
  const admission = count > perMinute ? "rate_limited" : "admitted";
  return { traffic: { windowStart, count, panicSince: null }, admission };
}

/** A window that starts in the future is over: the wall clock was set back. */
function isWithin(now: number, since: number, lengthMs: number): boolean {
  return now >= since && now < since + lengthMs;
}

/** Delays before the retries of a forward, in milliseconds, each from the end of the previous attempt. */
const RETRY_DELAYS_MS: readonly number[] = [1_000, 5_000, 25_000];
/** Without a retry schedule of its own, a bucket repeats every failure after exactly these delays. */
const FORWARD_RULE: RetryRule = {
  successBelow: 300,
  repeats: "all",
  jitter: false,
  heedsRetryAfter: false,
};

/** The next step after attempt number `number` of a pending event. `waits`: the bucket's retry schedule, in milliseconds. */
export function afterForward(
  waits: readonly number[] | null,
  number: number,
  result: AttemptResult,
  fraction: number,
): NextStep {
  return waits === null
    ? afterAttempt(FORWARD_RULE, RETRY_DELAYS_MS, number, result, fraction)
    : afterAttempt(WEBHOOK_RULE, waits, number, result, fraction);
}

/** Whether a response means that the target accepted the event; null for no response. */
export function isDelivered(responseStatus: number | null): boolean {
  return isSuccess(FORWARD_RULE, responseStatus);
}

/** The provider with a name; null without a name. @throws ApiError `catch.provider_unsupported` */
export function knownProvider(name: string | null | undefined): Provider | null {
  const provider = PROVIDERS.find((known) => known === name);
  if (provider !== undefined) return provider;
  if (name === null || name === undefined) return null;
  if (STANDARD_SENDERS.some((sender) => sender === name)) return "standard";
  throw new ApiError("catch.provider_unsupported", `provider must be one of ${PROVIDERS.join(", ")}.`);
}

/** @throws ApiError `bucket_limit_exceeded` when an account with `buckets` buckets has reached its limit */
export function assertBelowBucketLimit(buckets: number, bucketsMax: number): void {
  if (buckets < bucketsMax) return;
  throw new ApiError(
    "bucket_limit_exceeded",
    `Your tier allows ${bucketsMax} bucket(s), and you have ${buckets}. Delete one, or move to a larger tier.`,
  );
}

/** The properties of a bucket that decide whether its events can be replayed. */
interface Sending {
  readonly live: boolean;
  readonly target_url: string | null;
  readonly settings: { readonly targets: readonly unknown[] };
}

/** @throws ApiError `bucket_paused`; `conflict` without a target */
export function assertSending({ live, target_url, settings }: Sending): void {
  const paused = 'The bucket is paused. Set its state to "live" before replaying its events.';
  if (!live) throw new ApiError("bucket_paused", paused);
  if (target_url !== null || settings.targets.length > 0) return;
  throw new ApiError(
    "conflict",
    "The bucket has no target_url to replay to. Fetch its stream again instead.",
  );
}

/** Types of messages of Amazon SNS about a subscription: they are stored, and never forwarded. */
const SUBSCRIPTION_TYPES: readonly (string | null)[] = [
  "SubscriptionConfirmation",
  "UnsubscribeConfirmation",
];

/** Whether an event of a bucket is about the subscription itself, and not one of its events. */
export function isAboutSubscription(
  provider: Provider | null,
  { event_type }: { readonly event_type: string | null },
): boolean {
  return provider === "sns" && SUBSCRIPTION_TYPES.includes(event_type);
}

/** @throws ApiError `bucket_paused`, `conflict`, `catch.signature_invalid` */
export function assertReplayable(
  bucket: Sending & { readonly provider: Provider | null },
  event: { readonly verification: Verification; readonly event_type: string | null },
): void {
  const { verification } = event;
  assertSending(bucket);
  if (isAboutSubscription(bucket.provider, event))
    throw new ApiError(
      "conflict",
      "This event is about the subscription and is never forwarded. Confirm it instead.",
    );
  const message =
    "The signature of this event was invalid when it was received: it cannot be forwarded or replayed.";
  if (verification === "invalid") throw new ApiError("catch.signature_invalid", message);
}
