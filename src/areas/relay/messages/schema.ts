import { type Static, Type } from "@sinclair/typebox";
import { idParams, listOf, NextCursor, named, OwnerId, orNull, text } from "../../../kernel/data/schema.ts";
import { pageQuery } from "../../../kernel/http/requests/pagination.ts";
import { FILTERS, LIST_LIMIT, RELAY_ID, RelayBody, RelayItem } from "../deliveries/schema.ts";
import { Channels, MessageType, ORDER_KEY_LENGTH_MAX } from "../endpoints/schema.ts";

/** Messages in one request. */
export const BATCH_MAX = 100;
/** Deliveries of one request: the response lists all of them. */
export const BATCH_DELIVERIES_MAX = 10_000;
/** A longer payload returns a warning: receivers may reject it (recommendation of Standard Webhooks). */
export const PAYLOAD_ADVISED_BYTES = 20_000;

const Owner = Type.Unsafe<string>({
  ...OwnerId,
  description:
    "Id of the customer to whose endpoints the message goes. Without it, the message goes to endpoints without an owner.",
});

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
  owner_id: Type.Optional(Owner),
  channels: Type.Optional(Channels),
  message_id: Type.Optional(
    Type.String({
      pattern: "^[A-Za-z0-9_-]{1,64}$",
      maxLength: 64,
      errorMessage: "must be 1 to 64 letters, digits, _ and -",
      description:
        "ID of the message, chosen by you and sent as `webhook-id`. Sending the same ID again creates nothing.",
      examples: ["invoice-1042-paid"],
    }),
  ),
  order_key: Type.Optional(
    text({
      min: 1,
      max: ORDER_KEY_LENGTH_MAX,
      description:
        "Key of the order: an endpoint receives messages with the same key one after another, as they were accepted.",
      examples: ["customer-17"],
    }),
  ),
  delay: RelayBody.properties.delay,
  at: RelayBody.properties.at,
  deduplication_id: RelayBody.properties.deduplication_id,
});
export type RelayMessageBody = Static<typeof RelayMessageBody>;

/** Body of a batch. */
export const RelayMessagesBody = named("RelayMessagesBody", {
  messages: listOf(RelayMessageBody, {
    min: 1,
    max: BATCH_MAX,
    of: "messages",
  }),
});
export type RelayMessagesBody = Static<typeof RelayMessagesBody>;

const MessageId = Type.String({
  description: "ID of the message, also sent as `webhook-id`.",
  examples: ["msg_01a1fc2c30c071d9bf080e3cb4a7b202"],
});
const EndpointId = Type.String({ examples: ["ep_01a1fc2c30c071d9bf080e3cb4a7b202"] });

/** What of a payload does not fit the schema of its type. */
const SchemaErrors = Type.Optional(
  Type.Array(
    Type.Object({
      field: Type.String({ description: "Place in the message.", examples: ["payload.amount"] }),
      message: Type.String({ description: "What is wrong there.", examples: ["must be a number"] }),
    }),
    {
      description:
        "What of the payload does not fit the schema of its event type, at most 5 errors; omitted for nothing.",
      examples: [],
    },
  ),
);
const SENT = {
  message_id: MessageId,
  deliveries: Type.Array(Type.Object({ relay_id: RELAY_ID, endpoint_id: EndpointId }), {
    description: "One delivery for each endpoint that receives the message.",
  }),
  warning: Type.Optional(
    Type.String({
      description: "Warning about a payload that receivers may reject because of its size.",
      examples: [],
    }),
  ),
  schema_errors: SchemaErrors,
};
const Deduplicated = Type.Optional(
  Type.Literal(true, {
    description: "Present when the message was sent before; this request sent nothing.",
    examples: [],
  }),
);

export const RelayMessageSent = named("RelayMessageSent", SENT);
export type RelayMessageSent = Static<typeof RelayMessageSent>;

/** Response to a message that was sent before. */
export const RelayMessageDeduplicated = named("RelayMessageDeduplicated", {
  ...SENT,
  deduplicated: Type.Literal(true),
});

/** Response to a batch, in the order of its messages. */
export const RelayMessagesSent = named("RelayMessagesSent", {
  messages: Type.Array(Type.Object({ ...SENT, deduplicated: Deduplicated })),
});
export type RelayMessagesSent = Static<typeof RelayMessagesSent>;

const MESSAGE = {
  message_id: MessageId,
  event_type: MessageType,
  owner_id: orNull(OwnerId, { description: "Customer to whose endpoints the message goes; null for none." }),
  channels: Channels,
  order_key: orNull(Type.String(), {
    description: "Key of the order that the message was sent with; null for none.",
    examples: [null],
  }),
  scheduled_for: Type.Integer({ description: "Time of the first attempts, in epoch milliseconds." }),
  created_at: Type.Integer({ description: "Time of creation, in epoch milliseconds." }),
};

const { relay_id, status, attempts, response_status, error, finished_at } = RelayItem.properties;

/** A message with its deliveries. */
export const RelayMessage = named("RelayMessage", {
  ...MESSAGE,
  payload: orNull(Type.Object({}, { additionalProperties: true }), {
    description: "Payload of the message; null when its retention is over.",
    examples: [{ invoice: "in_1042" }],
  }),
  schema_errors: SchemaErrors,
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
export const RelayMessageParams = idParams("message");

/** Query of a list of messages. */
export const RelayMessageQuery = named("RelayMessageQuery", {
  owner_id: Type.Optional(
    Type.Unsafe<string>({ ...OwnerId, description: "Only messages to this customer." }),
  ),
  ...FILTERS,
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
      description:
        "Endpoint to send to, whether its delivery failed or not, or it has none. Default: all endpoints where it failed.",
      examples: [],
    }),
  ),
});
export type RelayMessageResendBody = Static<typeof RelayMessageResendBody>;

export const RelayMessageResent = named("RelayMessageResent", {
  resent: Type.Integer({ description: "Number of deliveries resent.", examples: [1] }),
});
export type RelayMessageResent = Static<typeof RelayMessageResent>;
