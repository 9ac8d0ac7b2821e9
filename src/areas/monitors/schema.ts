import { Type } from "@sinclair/typebox";

/** Shortest and longest interval that can be asked for; the tier may raise it. */
export const INTERVAL_MS_MIN = 15_000;
/** See {@link INTERVAL_MS_MIN}. */
export const INTERVAL_MS_MAX = 300_000;
/** Longest body of a check. */
export const BODY_LENGTH_MAX = 10_000;

const integer = (minimum: number, maximum: number, description: string) =>
  Type.Integer({
    minimum,
    maximum,
    errorMessage: `must be an integer from ${minimum} to ${maximum}`,
    description,
  });
const flag = (description: string) => Type.Boolean({ errorMessage: "must be true or false", description });
const url = (description: string) =>
  Type.String({
    minLength: 1,
    errorMessage: "must be an http or https URL such as https://example.com/health",
    description,
  });

const Url = url("What is checked.");
const Interval = integer(
  INTERVAL_MS_MIN,
  INTERVAL_MS_MAX,
  "Milliseconds between checks; raised to the tier's minimum, with a `warning`.",
);
const Headers = Type.Record(Type.String(), Type.String({ errorMessage: "must be a text" }), {
  errorMessage: "must be an object of header names to texts",
  description: "Sent with each check. Tiers pro and scale.",
});
const Body = Type.String({
  maxLength: BODY_LENGTH_MAX,
  errorMessage: `must be a text of at most ${BODY_LENGTH_MAX} characters`,
  description: "Sent with `POST`.",
});
const WebhookUrl = url("Where notifications go. Tier starter and higher.");

const OPTIONAL = {
  method: Type.Optional(
    Type.Union([Type.Literal("GET"), Type.Literal("HEAD"), Type.Literal("POST")], {
      errorMessage: "must be one of GET, HEAD, POST",
      description: "`GET` unless given.",
    }),
  ),
  timeout: Type.Optional(integer(1_000, 30_000, "Milliseconds; 10000 unless given.")),
  consecutive_threshold: Type.Optional(
    integer(1, 10, "Failures in a row that make it down; 1 unless given."),
  ),
  cooldown_ms: Type.Optional(
    integer(
      60_000,
      3_600_000,
      "Milliseconds before a target that stays down is told of again; 300000 unless given.",
    ),
  ),
  email_alert: Type.Optional(flag("Whether to write to the account's e-mail address. Tiers pro and scale.")),
  notify_recovery: Type.Optional(flag("Whether to tell of recovery as well.")),
};

/** A schema that also takes null. */
const orNull = <T extends typeof Headers | typeof Body | typeof WebhookUrl>(schema: T) =>
  Type.Union([schema, Type.Null()], { errorMessage: `${String(schema.errorMessage)}, or null` });

/** Body of a monitor's creation. */
export const MonitorCreateBody = Type.Object({
  url: Url,
  interval: Interval,
  ...OPTIONAL,
  headers: Type.Optional(Headers),
  body: Type.Optional(Body),
  webhook_url: Type.Optional(WebhookUrl),
});

/** Body of a monitor's change: any of these. */
export const MonitorUpdateBody = Type.Object({
  url: Type.Optional(Url),
  interval: Type.Optional(Interval),
  ...OPTIONAL,
  headers: Type.Optional(orNull(Headers)),
  body: Type.Optional(orNull(Body)),
  webhook_url: Type.Optional(orNull(WebhookUrl)),
  active: Type.Optional(flag("Whether it is checked.")),
});

/** Path of a monitor. */
export const MonitorParams = Type.Object({ monitorId: Type.String({ maxLength: 64 }) });

const Status = Type.Union([Type.Literal("up"), Type.Literal("down"), Type.Literal("unknown")], {
  errorMessage: "must be one of up, down, unknown",
});

/** What a list of monitors is narrowed by. */
export const MonitorFilter = Type.Object({ status: Type.Optional(Status) });

const Latency = Type.Union([Type.Integer(), Type.Null()], {
  description: "Milliseconds of the last check; the time-out on a time-out.",
});
const LastCheckedAt = Type.Union([Type.Integer(), Type.Null()], { description: "Unix seconds." });

/** A monitor, whole. */
export const Monitor = Type.Object({
  id: Type.String({ format: "uuid" }),
  url: Type.String(),
  method: Type.String(),
  headers: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()]),
  body: Type.Union([Type.String(), Type.Null()]),
  timeout: Type.Integer(),
  interval: Type.Integer(),
  consecutive_threshold: Type.Integer(),
  cooldown_ms: Type.Integer(),
  webhook_url: Type.Union([Type.String(), Type.Null()]),
  email_alert: Type.Boolean(),
  notify_recovery: Type.Boolean(),
  active: Type.Boolean(),
  status: Status,
  latency_ms: Latency,
  last_checked_at: LastCheckedAt,
  created_at: Type.Integer({ description: "Unix seconds." }),
  updated_at: Type.Integer({ description: "Unix seconds." }),
  warning: Type.Optional(Type.String({ description: "The interval was raised to the tier's minimum." })),
});

/** What a monitor says of its target. */
export const MonitorStatusView = Type.Object({
  monitor_id: Type.String({ format: "uuid" }),
  url: Type.String(),
  status: Status,
  latency_ms: Latency,
  last_checked_at: LastCheckedAt,
  consecutive_failures: Type.Integer(),
});

/** A page of monitors, newest first. */
export const MonitorPage = Type.Object({
  monitors: Type.Array(MonitorStatusView),
  cursor: Type.Optional(Type.String()),
});

/** Answer to a deletion. */
export const MonitorDeleted = Type.Object({ deleted: Type.Literal(true) });

const Percent = Type.Union([Type.Number(), Type.Null()], { description: "Percent; null without checks." });

/** A page of a monitor's checks, newest first. */
export const MonitorHistory = Type.Object({
  checks: Type.Array(
    Type.Object({
      checked_at: Type.Integer({ description: "Unix seconds." }),
      status: Type.Union([Type.Literal("up"), Type.Literal("down")]),
      latency_ms: Type.Integer(),
      response_status: Type.Union([Type.Integer(), Type.Null()]),
      error: Type.Union([Type.String(), Type.Null()]),
      manual: Type.Boolean(),
    }),
  ),
  uptime: Type.Object({ "24h": Percent, "7d": Percent, "30d": Percent }),
  cursor: Type.Optional(Type.String()),
});
