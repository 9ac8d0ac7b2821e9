import { type Static, Type } from "@sinclair/typebox";
import { name, named, oneOf, orNull } from "../../kernel/data/schema.ts";
import { NextCursor, pageQuery } from "../../kernel/http/requests/pagination.ts";
import { compileValidator } from "../../kernel/http/requests/validate.ts";
import { MonitorChannels } from "./alerts/schema.ts";
import { clearable, flag, integer, milliseconds } from "./fields.ts";
import { HEARTBEAT_CREATE, HEARTBEAT_UPDATE, HEARTBEAT_VIEW, MonitorType } from "./heartbeats/schema.ts";
import { OPTION_FIELDS, SHOWN_OPTIONS } from "./options.ts";

/** Shortest and longest interval that can be asked for; the tier may raise it. */
export const INTERVAL_MS_MIN = 15_000;
/** See {@link INTERVAL_MS_MIN}. */
export const INTERVAL_MS_MAX = 300_000;
/** Longest body of a check. */
export const BODY_LENGTH_MAX = 10_000;
/** Monitors and checks on a page unless asked otherwise. */
export const LIST_LIMIT = 50;

const MINUTE_MS = 60_000;
const url = (description: string) =>
  Type.String({
    minLength: 1,
    errorMessage: "must be an http or https URL such as https://example.com/health",
    description,
  });
const Name = name("Unique in the project. The host of `url` stands in its place where none is given.");
const Url = url("What is checked. Required, but for heartbeats.");
const Interval = milliseconds(
  INTERVAL_MS_MIN,
  INTERVAL_MS_MAX,
  "Milliseconds between checks; raised to the tier's minimum, with a `warning`. Required, but for heartbeats.",
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
    oneOf(["GET", "HEAD", "POST"], {
      errorMessage: "must be one of GET, HEAD, POST",
      description: "`GET` unless given.",
    }),
  ),
  timeout: Type.Optional(milliseconds(1_000, 30_000, "Milliseconds; 10000 unless given.")),
  consecutive_threshold: Type.Optional(
    integer(1, 10, "Failures in a row that make it down; 1 unless given."),
  ),
  cooldown_ms: Type.Optional(
    milliseconds(
      MINUTE_MS,
      3_600_000,
      "Milliseconds before a target that stays down is told of again; 300000 unless given.",
    ),
  ),
  email_alert: Type.Optional(flag("Whether to write to the account's e-mail address. Tiers pro and scale.")),
  notify_recovery: Type.Optional(flag("Whether to tell of recovery as well.")),
  ...OPTION_FIELDS,
  channels: Type.Optional(orNull(MonitorChannels, { errorMessage: MonitorChannels["errorMessage"] })),
};

const DependsOn = Type.String({
  maxLength: 64,
  errorMessage: "must be the id of a monitor",
  description:
    "The monitor without which this one cannot be up: while that has failed, this one fails silently.",
  examples: [],
});

/** Body of a monitor's creation. */
export const MonitorCreateBody = named("MonitorCreateBody", {
  url: Type.Optional(Url),
  interval: Type.Optional(Interval),
  ...HEARTBEAT_CREATE,
  ...OPTIONAL,
  name: Type.Optional(Name),
  headers: Type.Optional(Headers),
  body: Type.Optional(Body),
  webhook_url: Type.Optional(WebhookUrl),
  depends_on: clearable(DependsOn),
});

/** Body of a monitor's change: any of these. */
export const MonitorUpdateBody = named("MonitorUpdateBody", {
  url: Type.Optional(Url),
  interval: Type.Optional(Interval),
  ...HEARTBEAT_UPDATE,
  ...OPTIONAL,
  name: clearable(Name),
  headers: clearable(Headers),
  body: clearable(Body),
  webhook_url: clearable(WebhookUrl),
  depends_on: clearable(DependsOn),
  active: Type.Optional(flag("Whether it is checked.")),
});
export type MonitorUpdateBody = Static<typeof MonitorUpdateBody>;

/** @throws ApiError `validation_error` naming what a new monitor of a URL lacks. */
export const assertHttpTerms = compileValidator(
  Type.Object({ url: Url, interval: Interval }, { additionalProperties: true }),
);

/** Path of a monitor. */
export const MonitorParams = Type.Object({ monitorId: Type.String({ maxLength: 64 }) });

const TargetStatus = oneOf(["up", "down", "unknown"]);
/** Whether a target is up, as far as its monitor knows. */
export type TargetStatus = Static<typeof TargetStatus>;

const StatusFilter = oneOf(["up", "down", "unknown", "degraded"]);
/** Of which status monitors are listed: those that are degraded are up. */
export type StatusFilter = Static<typeof StatusFilter>;

/** Query of a list of monitors. */
export const MonitorQuery = Type.Composite(
  [
    Type.Object({
      status: Type.Optional(StatusFilter),
      active: Type.Optional(flag("Only those that are checked, or only those that are paused.")),
      name: Type.Optional(name("Only the monitor that was given this name.")),
    }),
    pageQuery(LIST_LIMIT),
  ],
  { $id: "MonitorQuery" },
);
export type MonitorQuery = Static<typeof MonitorQuery>;

const LAST_CHECK = {
  status: TargetStatus,
  latency_ms: orNull(Type.Integer({ examples: [84] }), {
    description: "Milliseconds of the last check; the time-out on a time-out.",
  }),
  last_checked_at: Type.Union([Type.Integer(), Type.Null()], { description: "Unix seconds." }),
  degraded: Type.Boolean({
    description: "Up, but slow: three checks in a row took longer than `degraded_ms`.",
    examples: [false],
  }),
  failing: Type.Boolean({
    description: "The last check failed, and it takes more of them to be down.",
    examples: [false],
  }),
  certificate: orNull(
    Type.Object({
      not_after: Type.Integer({ description: "When it ends, Unix seconds." }),
      days_left: Type.Integer({ description: "Whole days; negative once it has ended.", examples: [61] }),
      issuer: Type.String({ examples: ["Let's Encrypt"] }),
    }),
    { description: "The one that the last check met, of `https` alone." },
  ),
  incident_id: orNull(Type.String(), { description: "Of the outage that lasts.", examples: [null] }),
};

/** What keeps its alerts quiet. */
const QUIET = {
  depends_on: orNull(Type.String({ format: "uuid" }), { examples: [null] }),
  flapping: Type.Boolean({
    description: "It goes up and down so often that channels are told once, and then where it stays.",
    examples: [false],
  }),
  maintenance: Type.Boolean({ description: "Planned work is under way.", examples: [false] }),
};

/** What was set about a monitor, as every answer shows it. */
const CONFIGURED = {
  type: MonitorType,
  url: Type.String({
    description: "Of a heartbeat `heartbeat:` and its id.",
    examples: ["https://example.com/health"],
  }),
  name: Type.String({
    description: "The given name, else the host of `url`; of a heartbeat `Heartbeat`.",
    examples: ["example.com"],
  }),
  method: Type.String({ examples: ["GET"] }),
  body: orNull(Type.String(), { examples: [null] }),
  timeout: Type.Integer({ examples: [10_000] }),
  interval: orNull(Type.Integer({ examples: [60_000] }), { description: "Null for heartbeats." }),
  consecutive_threshold: Type.Integer({ examples: [3] }),
  cooldown_ms: Type.Integer({ examples: [300_000] }),
  webhook_url: orNull(Type.String({ examples: ["https://example.com/alerts"] })),
  email_alert: Type.Boolean({ examples: [false] }),
  notify_recovery: Type.Boolean(),
  ...SHOWN_OPTIONS,
  channels: orNull(MonitorChannels, {
    description: "Who is told of it; null: the project's default channels.",
  }),
  active: Type.Boolean(),
  created_at: Type.Integer({ description: "Unix seconds." }),
  updated_at: Type.Integer({ description: "Unix seconds." }),
  ...HEARTBEAT_VIEW,
};

/** A monitor, whole. */
export const Monitor = named("Monitor", {
  id: Type.String({ format: "uuid" }),
  ...CONFIGURED,
  headers: orNull(Type.Record(Type.String(), Type.String())),
  ...LAST_CHECK,
  ...QUIET,
  warning: Type.Optional(
    Type.String({ description: "The interval was raised to the tier's minimum.", examples: [] }),
  ),
});
export type Monitor = Static<typeof Monitor>;

/** What a monitor says of its target, and what was set about it. */
export const MonitorStatus = named("MonitorStatus", {
  monitor_id: Type.String({ format: "uuid" }),
  ...CONFIGURED,
  header_names: Type.Array(Type.String({ examples: ["X-Probe-Token"] }), {
    description: "The names of `headers`, whose values may be secret.",
  }),
  ...LAST_CHECK,
  ...QUIET,
  consecutive_failures: Type.Integer({ examples: [0] }),
});
export type MonitorStatus = Static<typeof MonitorStatus>;

/** A page of monitors, newest first. */
export const MonitorPage = named("MonitorPage", { monitors: Type.Array(MonitorStatus), cursor: NextCursor });
export type MonitorPage = Static<typeof MonitorPage>;

/** Answer to a deletion. */
export const MonitorDeleted = named("MonitorDeleted", { deleted: Type.Literal(true) });
export type MonitorDeleted = Static<typeof MonitorDeleted>;

/** A check that was made. */
export const MonitorCheck = named("MonitorCheck", {
  checked_at: Type.Integer({ description: "Unix seconds." }),
  status: oneOf(["up", "down"], {}),
  latency_ms: Type.Integer({ examples: [84] }),
  response_status: orNull(Type.Integer({ examples: [200] })),
  error: orNull(Type.String(), { examples: [null] }),
  manual: Type.Boolean({ examples: [false] }),
  observer_offline: Type.Boolean({
    description: "The line of this server itself was cut: the check counts for nothing.",
    examples: [false],
  }),
  maintenance: Type.Boolean({
    description: "Made during planned work: the check does not count in the uptime.",
    examples: [false],
  }),
});
export type MonitorCheck = Static<typeof MonitorCheck>;

const Percent = orNull(Type.Number({ examples: [99.98] }), { description: "Percent; null without checks." });

/** A page of a monitor's checks, newest first. */
export const MonitorHistory = named("MonitorHistory", {
  checks: Type.Array(MonitorCheck),
  uptime: Type.Object({ "24h": Percent, "7d": Percent, "30d": Percent }),
  cursor: NextCursor,
});
export type MonitorHistory = Static<typeof MonitorHistory>;
