import { type Static, Type } from "@sinclair/typebox";
import { NextCursor, pageQuery } from "../../kernel/http/pagination.ts";
import { named, oneOf, orNull } from "../../kernel/schema.ts";

/** Deliveries on a page unless asked otherwise. */
export const LIST_LIMIT = 50;

/** Body of a delivery to be scheduled. */
export const RelayBody = named("RelayBody", {
  target_url: Type.String({
    minLength: 1,
    errorMessage: "must be an http or https URL such as https://example.com/hooks",
    examples: ["https://example.com/hooks"],
  }),
  method: oneOf(["GET", "POST", "PUT", "PATCH", "DELETE"]),
  delay: Type.String({
    pattern: "^[0-9]+[smhd]$",
    errorMessage: "must be a number of seconds, minutes, hours or days such as 0s, 90s, 15m, 12h or 3d",
    description: "From 0s, which is at once, to 30d.",
    examples: ["15m"],
  }),
  payload: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        errorMessage: "must be a JSON object",
        description: "Sent as the body, except with GET; `{}` unless given.",
      },
    ),
  ),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String({ errorMessage: "must be a text" }), {
      errorMessage: "must be an object of header names to texts",
      description:
        "`X-Svc-*`, `Host`, `Content-Length`, `Connection` and `Transfer-Encoding` are ignored: the delivery has its own.",
    }),
  ),
});
export type RelayBody = Static<typeof RelayBody>;

/** Answer to a scheduled delivery. */
export const RelayScheduled = named("RelayScheduled", {
  relay_id: Type.String({ format: "uuid" }),
  scheduled_for: Type.Integer({ description: "Epoch milliseconds." }),
  status: Type.Literal("scheduled"),
});
export type RelayScheduled = Static<typeof RelayScheduled>;

/** Path of a delivery. */
export const RelayParams = Type.Object({ relay_id: Type.String({ maxLength: 64 }) });

/** Every status of a delivery. */
export const RELAY_STATUSES = ["scheduled", "delivering", "delivered", "failed", "cancelled"] as const;
const RelayStatus = oneOf(RELAY_STATUSES);
/** How far a delivery has come. From its first attempt on it is `delivering` until it ends. */
export type RelayStatus = Static<typeof RelayStatus>;

/** Every origin of a delivery. */
export const RELAY_KINDS = ["scheduled", "pulse"] as const;
/** Where a delivery comes from: a request of the user's, or a monitor. */
export type RelayKind = (typeof RELAY_KINDS)[number];

/** Query of a list of deliveries. */
export const RelayQuery = named("RelayQuery", {
  filter: Type.Optional(
    Type.Literal("pulse", {
      errorMessage: "must be pulse, or be left out for all deliveries",
      description: "`pulse`: only notifications of monitors.",
    }),
  ),
  status: Type.Optional(RelayStatus),
  ...pageQuery(LIST_LIMIT).properties,
});
export type RelayQuery = Static<typeof RelayQuery>;

const DELIVERY = {
  relay_id: Type.String({ format: "uuid", description: "Also sent as `X-Svc-Delivery-Id`." }),
  kind: oneOf(RELAY_KINDS, {}),
  event: orNull(Type.String({ description: "Of a monitor's notification.", examples: ["monitor.down"] })),
  monitor_id: orNull(Type.String({ format: "uuid" })),
  target_url: Type.String({ examples: ["https://example.com/hooks"] }),
  method: Type.String({ examples: ["POST"] }),
  status: RelayStatus,
  attempts: Type.Integer({ description: "Attempts that have ended." }),
  response_status: orNull(Type.Integer({ description: "Of the last attempt.", examples: [200] })),
  error: orNull(Type.String({ description: "What went wrong in the last attempt." }), { examples: [null] }),
  scheduled_for: Type.Integer({ description: "Epoch milliseconds." }),
  finished_at: orNull(Type.Integer({ description: "Epoch milliseconds." }), { examples: [null] }),
  created_at: Type.Integer({ description: "Epoch milliseconds." }),
};

/** A delivery, as lists show it. */
export const RelayItem = named("RelayItem", DELIVERY);
export type RelayItem = Static<typeof RelayItem>;

/** A page of deliveries, newest first. */
export const RelayPage = named("RelayPage", { deliveries: Type.Array(RelayItem), cursor: NextCursor });
export type RelayPage = Static<typeof RelayPage>;

/** An attempt at a delivery. */
export const RelayAttempt = named("RelayAttempt", {
  attempt: Type.Integer({ description: "From 1." }),
  started_at: Type.Integer({ description: "Epoch milliseconds." }),
  duration_ms: Type.Integer({ examples: [84] }),
  response_status: orNull(Type.Integer({ examples: [200] })),
  error: orNull(Type.String(), { examples: [null] }),
});
export type RelayAttempt = Static<typeof RelayAttempt>;

/** A delivery with each of its attempts. */
export const Relay = named("Relay", { ...DELIVERY, attempt_log: Type.Array(RelayAttempt) });
export type Relay = Static<typeof Relay>;

/** Answer to a cancellation. */
export const RelayCancelled = named("RelayCancelled", {
  relay_id: Type.String({ format: "uuid" }),
  status: Type.Literal("cancelled"),
});
export type RelayCancelled = Static<typeof RelayCancelled>;
