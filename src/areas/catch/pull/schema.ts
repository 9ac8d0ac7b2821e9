import { type Static, Type } from "@sinclair/typebox";
import { BULK_STATUSES, BULK_TERMS } from "../../../kernel/background/bulk.ts";
import { named, oneOf, orNull, text } from "../../../kernel/data/schema.ts";
import { PAGE_LIMIT_MAX } from "../../../kernel/http/requests/pagination.ts";
import { ACK_RESULTS, EVENT_STATUSES, VERIFICATIONS } from "../domain.ts";
import { BucketParams, CaughtEvent, EVENT_ID, ID_LENGTH_MAX, OfType, ProviderName, Time } from "../schema.ts";

/** Events of a stream that are handed out at once, unless asked otherwise. */
export const STREAM_LIMIT = 20;
/** Longest wait for an event: shorter than the minute after which proxies cut a silent request off. */
export const WAIT_MS_MAX = 55_000;
/** The wait unless given. */
export const WAIT_MS = 25_000;
/** Longest reason that an acknowledgement gives. */
export const ACK_ERROR_LENGTH_MAX = 500;
/** Longest time that an acknowledgement says that it took: a day. */
export const ACK_DURATION_MS_MAX = 86_400_000;

/** Query of a stream. */
export const StreamQuery = named("EventStreamQuery", {
  after: Type.String({
    maxLength: ID_LENGTH_MAX,
    errorMessage: "must be an event's id, now or beginning",
    description:
      "Events behind this one: an id, `beginning` for all, `now` for those to come. Then the `cursor` of the last answer.",
    examples: [EVENT_ID],
  }),
  wait_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: WAIT_MS_MAX,
      default: WAIT_MS,
      errorMessage: `must be an integer from 0 to ${WAIT_MS_MAX}`,
      description: "How long to wait for an event when there is none.",
      // Who tries an example does not want to wait.
      examples: [0],
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PAGE_LIMIT_MAX,
      default: STREAM_LIMIT,
      errorMessage: `must be an integer from 1 to ${PAGE_LIMIT_MAX}`,
      description: "How many events to return at most.",
    }),
  ),
  provider: Type.Optional(ProviderName),
  event_type: Type.Optional(OfType),
  verification: Type.Optional(oneOf(VERIFICATIONS)),
});
export type StreamQuery = Static<typeof StreamQuery>;

/** Events of a stream, oldest first. */
export const StreamPage = named("EventStreamPage", {
  events: Type.Array(CaughtEvent),
  cursor: Type.String({
    description: "Where the next request goes on: an event's id, or `beginning`.",
    examples: [EVENT_ID],
  }),
});
export type StreamPage = Static<typeof StreamPage>;

/** What became of an event that was fetched. */
export const EventAckBody = named("EventAckBody", {
  result: oneOf(ACK_RESULTS),
  response_status: Type.Optional(
    Type.Integer({
      minimum: 100,
      maximum: 599,
      errorMessage: "must be an integer from 100 to 599",
      description: "What it was answered with.",
      examples: [200],
    }),
  ),
  error: Type.Optional(
    text({ min: 1, max: ACK_ERROR_LENGTH_MAX, description: "Why it failed.", examples: ["no answer"] }),
  ),
  duration_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: ACK_DURATION_MS_MAX,
      errorMessage: `must be an integer from 0 to ${ACK_DURATION_MS_MAX}`,
      examples: [31],
    }),
  ),
});
export type EventAckBody = Static<typeof EventAckBody>;

/** Events that a replay names, at most. */
export const REPLAY_IDS_MAX = 100;

/** Which events are replayed, and how fast. */
export const ReplayBody = named("CatchReplayBody", {
  since: Type.Optional(
    Type.String({
      maxLength: ID_LENGTH_MAX,
      description: "Received at this moment or later, RFC 3339.",
      examples: ["2026-03-10T12:00:00Z"],
    }),
  ),
  until: Type.Optional(
    Type.String({
      maxLength: ID_LENGTH_MAX,
      description: "Received before this moment, RFC 3339.",
      examples: ["2026-03-11T12:00:00Z"],
    }),
  ),
  status: Type.Optional(oneOf(EVENT_STATUSES)),
  provider: Type.Optional(ProviderName),
  event_type: Type.Optional(OfType),
  event_ids: Type.Optional(
    Type.Array(Type.String({ maxLength: ID_LENGTH_MAX, examples: [EVENT_ID] }), {
      minItems: 1,
      maxItems: REPLAY_IDS_MAX,
      errorMessage: `must be a list of 1 to ${REPLAY_IDS_MAX} ids of events`,
      description: "These and no others: instead of the other filters.",
    }),
  ),
  ...BULK_TERMS,
});
export type ReplayBody = Static<typeof ReplayBody>;

const Matched = {
  matched: Type.Integer({ description: "How many are sent, 10,000 at most.", examples: [42] }),
  more: Type.Optional(Type.Literal(true, { description: "More would match.", examples: [] })),
};

/** What a replay of many would send. */
export const ReplayMatched = named("CatchReplayMatched", Matched);
export type ReplayMatched = Static<typeof ReplayMatched>;

const ReplayId = Type.String({ examples: ["rpl_01a1fc2c30c071d9bf080e3cb4a7b202"] });

/** Answer to a replay of many. */
export const ReplayStarted = named("CatchReplayStarted", { replay_id: ReplayId, ...Matched });
export type ReplayStarted = Static<typeof ReplayStarted>;

/** Path of a replay of many. */
export const ReplayParams = Type.Object({
  ...BucketParams.properties,
  replay_id: Type.String({ maxLength: ID_LENGTH_MAX }),
});

/** How far a replay of many has come. */
export const CatchReplay = named("CatchReplay", {
  replay_id: ReplayId,
  bucket_id: BucketParams.properties.bucket_id,
  status: oneOf(BULK_STATUSES, {}),
  ...Matched,
  delivered: Type.Integer({ description: "Taken by the target: 1 credit each.", examples: [40] }),
  failed: Type.Integer({ description: "Not taken: free, and left as they were.", examples: [2] }),
  skipped: Type.Integer({
    description:
      "Not sent: their signatures do not hold; once it has ended, also those that it did not get to.",
    examples: [0],
  }),
  error: orNull(Type.String({ description: "Why it ended early." }), { examples: [null] }),
  created_at: Time,
  finished_at: orNull(Time),
});
export type CatchReplay = Static<typeof CatchReplay>;
