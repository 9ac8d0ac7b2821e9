import { durationMs } from "../../kernel/data/duration-text.ts";
import { type ErrorMeaning, invalidField, registerErrors } from "../../kernel/errors.ts";
import {
  type AttemptResult,
  afterAttempt,
  type NextStep,
  type RetryRule,
  readWaits,
  WEBHOOK_RULE,
} from "../../kernel/outbound/retries.ts";
import { DAY_MS } from "../../kernel/time/units.ts";

const codes = registerErrors({
  endpoint_name_taken: [
    409,
    "Another endpoint of the project has this name; `endpoint_id` identifies it.",
    "Use the endpoint in `endpoint_id`, or another name.",
  ],
  endpoint_in_use: [
    409,
    "Buckets deliver their events to this endpoint; `bucket_id` identifies one of them.",
    "Remove the endpoint from the bucket in `bucket_id` first.",
  ],
  endpoint_limit_exceeded: [
    403,
    "The project has reached its tier's limit of endpoints.",
    "Delete endpoints that are not used, or request another tier from the operator. A deleted endpoint with deliveries counts for another day.",
  ],
  event_type_limit_exceeded: [
    403,
    "The project has reached its tier's limit of event types.",
    "Archive types that are not used, or request another tier from the operator.",
  ],
  schedule_name_taken: [
    409,
    "Another schedule of the project has this name; `schedule_id` identifies it.",
    "Use the schedule in `schedule_id`, or another name.",
  ],
  schedule_limit_exceeded: [
    403,
    "The project has reached its tier's limit of schedules.",
    "Delete schedules that are not used, or request another tier from the operator.",
  ],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** The kind of notifications, by its historical name in responses, filters, metrics and exports. */
export const NOTIFICATION = "pulse";
export const RELAY_KINDS = ["scheduled", NOTIFICATION, "endpoint", "callback"] as const;
/**
 * Origin of a delivery: `scheduled` by a request or a schedule; {@link NOTIFICATION} for every `Notification`, whether of a
 * monitor, a channel or a meter; `endpoint` for a message or an event to an endpoint; `callback` for the outcome of a delivery.
 */
export type RelayKind = (typeof RELAY_KINDS)[number];

export const RELAY_FAILURES = ["timeout", "network", "http", "blocked", "disabled"] as const;
/** Why a delivery failed: timeout, network error, error response, blocked address, or disabled endpoint. */
export type RelayFailure = (typeof RELAY_FAILURES)[number];

/**
 * The job of one attempt. Its payload is the delivery's reference; to an endpoint, a `DeliveryJob` if needed. It is never
 * cancelled: when it is due and its delivery is cancelled or deleted, it does nothing.
 */
export const DELIVER = "relay.deliver";

/** What is wrong with a delay that cannot be read. */
export const DELAY_EXPECTED =
  'must be a text such as "0s", "90s", "15m", "12h" or "3d", or whole seconds in milliseconds such as 90000';

/** The retry schedule of Standard Webhooks. */
export const STANDARD_RETRIES = ["5s", "5m", "30m", "2h", "5h", "10h", "14h", "20h", "24h"] as const;

/** Longest delay of a first attempt: 30 days. */
export const DELAY_MS_MAX = 30 * DAY_MS;

/** Time for which a `deduplication_id` creates no second delivery, unless `deduplicate_hours` is given. */
export const DEDUPLICATION_MS = DAY_MS;
/** Longest `deduplicate_hours`: as long as deliveries are stored. */
export const DEDUPLICATE_HOURS_MAX = 168;

/** Retention of finished deliveries. */
export const RELAY_RETENTION_MS = 7 * DAY_MS;

/** The header with the time of a schedule's run, in epoch milliseconds. */
export const DUE_HEADER = "X-Ninefold-Scheduled-At";

/**
 * Parses a delay such as `90s`, `15m`, `12h` or `30d` to milliseconds.
 * @throws ApiError `validation_error` beyond 30 days.
 */
export function readDelay(text: string): number {
  const ms = durationMs(text);
  if (ms <= DELAY_MS_MAX) return ms;
  throw invalidField("delay", `${DELAY_EXPECTED}: at most 30d`);
}

/** When a caller wants a delivery: after a delay, or at a time in epoch milliseconds. */
interface DueTime {
  readonly delay?: string;
  readonly at?: number;
}

/**
 * When a delivery is due that is created now: after `delay`, or `at` a time. One of them is required.
 * @throws ApiError `validation_error` beyond 30 days.
 */
export function dueAt({ delay, at }: DueTime): (now: number) => number {
  if (at === undefined) {
    const ms = readDelay(delay ?? "");
    return (now) => now + ms;
  }
  if (delay !== undefined) throw invalidField("at", "cannot be combined with delay: omit one of them");
  return (now) => {
    if (at > now + DELAY_MS_MAX) throw invalidField("at", "must be at most 30 days ahead");
    return Math.max(now, at);
  };
}

/** Except to endpoints, any response below 400 is a success, and only failures that may be temporary are repeated. */
const RULES: Readonly<Record<RelayKind, RetryRule>> = {
  scheduled: { successBelow: 400, repeats: "temporary", jitter: true, heedsRetryAfter: true },
  [NOTIFICATION]: { successBelow: 400, repeats: "temporary", jitter: false, heedsRetryAfter: true },
  endpoint: WEBHOOK_RULE,
  callback: WEBHOOK_RULE,
};
const WAITS_MS: Readonly<Record<RelayKind, readonly number[]>> = {
  scheduled: [1_000, 5_000, 25_000],
  [NOTIFICATION]: [1_000, 5_000, 15_000],
  endpoint: [],
  callback: readWaits(STANDARD_RETRIES),
};

/**
 * The next step after attempt number `number` of a delivery, from 1, counted since the last resend. `waits`: the retry schedule
 * of the delivery or its endpoint, in milliseconds.
 */
export function afterRelayAttempt(
  kind: RelayKind,
  number: number,
  result: AttemptResult,
  fraction: number,
  waits: readonly number[] | null = null,
): NextStep {
  return afterAttempt(RULES[kind], waits ?? WAITS_MS[kind], number, result, fraction);
}

/** The kind of failure of an unsuccessful attempt. */
export function failureOf({ status, failure }: AttemptResult): RelayFailure {
  if (status !== null) return "http";
  if (failure?.kind === "timeout") return "timeout";
  return failure?.kind === "blocked" || failure?.kind === "invalid" ? "blocked" : "network";
}
