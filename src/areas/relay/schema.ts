import { Type } from "@sinclair/typebox";

const Url = Type.String({
  minLength: 1,
  errorMessage: "must be an http or https URL such as https://example.com/hooks",
  examples: ["https://example.com/hooks"],
});

/** Body of a delivery to be scheduled. */
export const ScheduleBody = Type.Object({
  target_url: Url,
  method: Type.Union(
    ["GET", "POST", "PUT", "PATCH", "DELETE"].map((method) => Type.Literal(method)),
    { errorMessage: "must be one of GET, POST, PUT, PATCH, DELETE" },
  ),
  delay: Type.String({
    pattern: "^[0-9]+[smhd]$",
    errorMessage: "must be a number of seconds, minutes, hours or days such as 90s, 15m, 12h or 3d",
    description: "From 1s to 30d.",
    examples: ["15m"],
  }),
  payload: Type.Object(
    {},
    {
      additionalProperties: true,
      errorMessage: "must be a JSON object",
      description: "Sent as the body, except with GET.",
    },
  ),
  headers: Type.Record(Type.String(), Type.String({ errorMessage: "must be a text" }), {
    errorMessage: "must be an object of header names to texts",
    description:
      "`X-Svc-*`, `Host`, `Content-Length`, `Connection` and `Transfer-Encoding` are ignored: the delivery has its own.",
  }),
});

/** Answer to a scheduled delivery. */
export const Scheduled = Type.Object({
  relay_id: Type.String({ format: "uuid" }),
  scheduled_for: Type.Integer({ description: "Epoch milliseconds." }),
  status: Type.Literal("scheduled"),
});

/** Path of a delivery. */
export const RelayParams = Type.Object({ relay_id: Type.String({ maxLength: 64 }) });

const Status = Type.Union(
  ["scheduled", "delivering", "delivered", "failed", "cancelled"].map((status) => Type.Literal(status)),
  { errorMessage: "must be one of scheduled, delivering, delivered, failed, cancelled" },
);

/** What a list of deliveries is narrowed by. */
export const RelayFilter = Type.Object({
  filter: Type.Optional(
    Type.Literal("pulse", {
      errorMessage: "must be pulse, or be left out for all deliveries",
      description: "`pulse`: only notifications of monitors.",
    }),
  ),
  status: Type.Optional(Status),
});

const nullable = <T extends ReturnType<typeof Type.String | typeof Type.Integer>>(schema: T) =>
  Type.Union([schema, Type.Null()]);

const DELIVERY = {
  relay_id: Type.String({ format: "uuid", description: "Also sent as `X-Svc-Delivery-Id`." }),
  kind: Type.Union([Type.Literal("scheduled"), Type.Literal("pulse")]),
  event: nullable(Type.String({ description: "Of a monitor's notification." })),
  monitor_id: nullable(Type.String({ format: "uuid" })),
  target_url: Type.String(),
  method: Type.String(),
  status: Status,
  attempts: Type.Integer({ description: "Attempts that have ended." }),
  response_status: nullable(Type.Integer({ description: "Of the last attempt." })),
  error: nullable(Type.String({ description: "What went wrong in the last attempt." })),
  scheduled_for: Type.Integer({ description: "Epoch milliseconds." }),
  finished_at: nullable(Type.Integer({ description: "Epoch milliseconds." })),
  created_at: Type.Integer({ description: "Epoch milliseconds." }),
};

/** A page of deliveries, newest first. */
export const RelayPage = Type.Object({
  deliveries: Type.Array(Type.Object(DELIVERY)),
  cursor: Type.Optional(Type.String()),
});

/** A delivery with each of its attempts. */
export const Relay = Type.Object({
  ...DELIVERY,
  attempt_log: Type.Array(
    Type.Object({
      attempt: Type.Integer({ description: "From 1." }),
      started_at: Type.Integer({ description: "Epoch milliseconds." }),
      duration_ms: Type.Integer(),
      response_status: nullable(Type.Integer()),
      error: nullable(Type.String()),
    }),
  ),
});

/** Answer to a cancellation. */
export const Cancelled = Type.Object({
  relay_id: Type.String({ format: "uuid" }),
  status: Type.Literal("cancelled"),
});
