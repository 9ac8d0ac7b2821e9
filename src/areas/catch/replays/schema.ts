import { type Static, Type } from "@sinclair/typebox";
import { BULK_IDS_MAX, BULK_STATUSES, BULK_TERMS } from "../../../kernel/bulk/bulk.ts";
import { listOf, named, oneOf, orNull } from "../../../kernel/data/schema.ts";
import { EVENT_STATUSES } from "../domain.ts";
import { BucketParams, EVENT_ID, ID_LENGTH_MAX, OfType, ProviderName, Time } from "../schema.ts";

/** Body of a bulk replay. */
export const ReplayBody = named("CatchReplayBody", {
  since: Type.Optional(
    Type.String({
      maxLength: ID_LENGTH_MAX,
      description: "Start of the time of receipt, inclusive, as RFC 3339.",
      examples: ["2026-03-10T12:00:00Z"],
    }),
  ),
  until: Type.Optional(
    Type.String({
      maxLength: ID_LENGTH_MAX,
      description: "End of the time of receipt, exclusive, as RFC 3339.",
      examples: ["2026-03-11T12:00:00Z"],
    }),
  ),
  status: Type.Optional(oneOf(EVENT_STATUSES)),
  provider: Type.Optional(ProviderName),
  event_type: Type.Optional(OfType),
  event_ids: Type.Optional(
    listOf(Type.String({ maxLength: ID_LENGTH_MAX, examples: [EVENT_ID] }), {
      min: 1,
      max: BULK_IDS_MAX,
      of: "ids of events",
      description: "IDs of the events to replay. Replaces the other filters.",
    }),
  ),
  endpoint_id: Type.Optional(
    Type.String({
      maxLength: ID_LENGTH_MAX,
      description:
        "Target of the bucket: only events that it would accept now and never got are sent, and only to it.",
      examples: [],
    }),
  ),
  ...BULK_TERMS,
});
export type ReplayBody = Static<typeof ReplayBody>;

const Matched = {
  matched: Type.Integer({ description: "Number of events that match, at most 10,000.", examples: [42] }),
  more: Type.Optional(Type.Literal(true, { description: "Present when more events match.", examples: [] })),
};

/** Response to a dry run of a bulk replay. */
export const ReplayMatched = named("CatchReplayMatched", Matched);
export type ReplayMatched = Static<typeof ReplayMatched>;

const ReplayId = Type.String({ examples: ["rpl_01a1fc2c30c071d9bf080e3cb4a7b202"] });

/** Response to a bulk replay. */
export const ReplayStarted = named("CatchReplayStarted", { replay_id: ReplayId, ...Matched });
export type ReplayStarted = Static<typeof ReplayStarted>;

/** Path of a bulk replay. */
export const ReplayParams = Type.Object({
  ...BucketParams.properties,
  replay_id: Type.String({ maxLength: ID_LENGTH_MAX }),
});

/** The progress of a bulk replay. */
export const CatchReplay = named("CatchReplay", {
  replay_id: ReplayId,
  bucket_id: BucketParams.properties.bucket_id,
  status: oneOf(BULK_STATUSES, {}),
  ...Matched,
  delivered: Type.Integer({
    description: "Number of events that the target accepted, for 1 credit each.",
    examples: [40],
  }),
  failed: Type.Integer({
    description:
      "Number of events that the target did not accept, free of charge; their status is unchanged.",
    examples: [2],
  }),
  queued: Type.Integer({
    description:
      "Number of events that were queued for the bucket's endpoints, for 1 credit per delivery; their deliveries are in the events.",
    examples: [0],
  }),
  skipped: Type.Integer({
    description:
      "Number of events not sent because of an invalid signature, and, after the end, those that the replay did not reach.",
    examples: [0],
  }),
  error: orNull(Type.String({ description: "Reason why the replay stopped early." }), { examples: [null] }),
  created_at: Time,
  finished_at: orNull(Time),
});
export type CatchReplay = Static<typeof CatchReplay>;
