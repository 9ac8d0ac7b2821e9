import { type Static, Type } from "@sinclair/typebox";
import { named, orNull } from "../../../kernel/data/schema.ts";
import { NextCursor, pageQuery } from "../../../kernel/http/requests/pagination.ts";
import { LIST_LIMIT, NARROWED, RELAY_ID, RelayBody, RelayItem } from "../deliveries/schema.ts";
import { Channels, MessageType } from "../endpoints/schema.ts";

/** Messages in one request: with ten endpoints, a thousand deliveries in one commit. */
export const BATCH_MAX = 100;
/** Deliveries of one request: they are one unit of work, and nothing else is done in the half second that it takes. */
export const BATCH_DELIVERIES_MAX = 10_000;
/** A longer payload gets a warning: receivers may refuse it (Standard Webhooks advises it). */
export const PAYLOAD_ADVISED_BYTES = 20_000;

/** Body of a message. */
export const RelayMessageBody = named("RelayMessageBody", {
  event_type: MessageType,
  payload: Type.Object(
    {},
    {
      additionalProperties: true,
      errorMessage: "must be a JSON object",
      examples: [{ invoice: "in_1042", amount: 120 }],
    },
  ),
  channels: Type.Optional(Channels),
  message_id: Type.Optional(
    Type.String({
      pattern: "^[A-Za-z0-9_-]{1,64}$",
      maxLength: 64,
      errorMessage: "must be 1 to 64 letters, digits, _ and -",
      description: "One of your own; sent as `webhook-id`. A second message with it is none.",
      examples: ["invoice-1042-paid"],
    }),
  ),
  delay: RelayBody.properties.delay,
  at: RelayBody.properties.at,
  deduplication_id: RelayBody.properties.deduplication_id,
});
export type RelayMessageBody = Static<typeof RelayMessageBody>;

/** Body of many messages. */
export const RelayMessagesBody = named("RelayMessagesBody", {
  messages: Type.Array(RelayMessageBody, {
    minItems: 1,
    maxItems: BATCH_MAX,
    errorMessage: `must be a list of 1 to ${BATCH_MAX} messages`,
  }),
});
export type RelayMessagesBody = Static<typeof RelayMessagesBody>;

const MessageId = Type.String({
  description: "Also sent as `webhook-id`.",
  examples: ["msg_01a1fc2c30c071d9bf080e3cb4a7b202"],
});
const EndpointId = Type.String({ examples: ["ep_01a1fc2c30c071d9bf080e3cb4a7b202"] });

const SENT = {
  message_id: MessageId,
  deliveries: Type.Array(Type.Object({ relay_id: RELAY_ID, endpoint_id: EndpointId }), {
    description: "One for each endpoint that it goes to.",
  }),
  warning: Type.Optional(Type.String({ description: "The payload is long for a webhook.", examples: [] })),
};
const Deduplicated = Type.Optional(
  Type.Literal(true, { description: "It was sent before; this request sent nothing.", examples: [] }),
);

/** Answer to a message. */
export const RelayMessageSent = named("RelayMessageSent", SENT);
export type RelayMessageSent = Static<typeof RelayMessageSent>;

/** Answer to a message that was sent before. */
export const RelayMessageDeduplicated = named("RelayMessageDeduplicated", {
  ...SENT,
  deduplicated: Type.Literal(true),
});

/** Answer to many messages, in their order. */
export const RelayMessagesSent = named("RelayMessagesSent", {
  messages: Type.Array(Type.Object({ ...SENT, deduplicated: Deduplicated })),
});
export type RelayMessagesSent = Static<typeof RelayMessagesSent>;

const MESSAGE = {
  message_id: MessageId,
  event_type: MessageType,
  channels: Channels,
  scheduled_for: Type.Integer({ description: "Epoch milliseconds." }),
  created_at: Type.Integer({ description: "Epoch milliseconds." }),
};

const { relay_id, status, attempts, response_status, error, finished_at } = RelayItem.properties;

/** A message with its deliveries. */
export const RelayMessage = named("RelayMessage", {
  ...MESSAGE,
  payload: orNull(Type.Object({}, { additionalProperties: true }), {
    description: "Null once its time is over.",
    examples: [{ invoice: "in_1042" }],
  }),
  deliveries: Type.Array(
    Type.Object({
      relay_id,
      endpoint_id: EndpointId,
      status,
      attempts,
      response_status,
      error,
      finished_at,
    }),
  ),
});
export type RelayMessage = Static<typeof RelayMessage>;

/** Path of a message. */
export const RelayMessageParams = Type.Object({ message_id: Type.String({ maxLength: 64 }) });

/** Query of a list of messages. */
export const RelayMessageQuery = named("RelayMessageQuery", {
  ...NARROWED,
  ...pageQuery(LIST_LIMIT).properties,
});
export type RelayMessageQuery = Static<typeof RelayMessageQuery>;

/** A page of messages, newest first. */
export const RelayMessagePage = named("RelayMessagePage", {
  messages: Type.Array(named("RelayMessageItem", MESSAGE)),
  cursor: NextCursor,
});
export type RelayMessagePage = Static<typeof RelayMessagePage>;

/** Body of a resend. */
export const RelayMessageResendBody = named("RelayMessageResendBody", {
  endpoint_id: Type.Optional(
    Type.String({
      maxLength: 64,
      errorMessage: "must be the id of an endpoint",
      description: "Only to this one, delivered or not. Without it: all deliveries that have failed.",
      examples: [],
    }),
  ),
});
export type RelayMessageResendBody = Static<typeof RelayMessageResendBody>;

/** Answer to a resend. */
export const RelayMessageResent = named("RelayMessageResent", {
  resent: Type.Integer({ description: "Deliveries that are sent again.", examples: [1] }),
});
export type RelayMessageResent = Static<typeof RelayMessageResent>;
