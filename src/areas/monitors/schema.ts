import { type Static, Type } from "@sinclair/typebox";
import { ProbeState } from "../../kernel/data/probe-state.ts";
import {
  clearable,
  duration,
  flag,
  integer,
  NextCursor,
  name,
  named,
  oneOf,
  orNull,
  refersTo,
  text,
  uuid,
} from "../../kernel/data/schema.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { MANAGED, SECRET_DIGEST } from "../../kernel/resources/managed.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../kernel/time/units.ts";
import { CLIENT_KEY_LENGTH_MAX } from "./client-certificate.ts";
import { HEARTBEAT_CREATE, HEARTBEAT_UPDATE, HEARTBEAT_VIEW } from "./heartbeat-fields.ts";
import { IcmpResult } from "./icmp-result.ts";
import { OPTION_FIELDS, SHOWN_OPTIONS } from "./options.ts";
import { MonitorType, requiredFor } from "./types.ts";

/** Shortest and longest interval of a request; the tier can raise it. */
export const INTERVAL_MS_MIN = 15_000;
/** See {@link INTERVAL_MS_MIN}: a day, as for the expiry of a certificate or a record. */
export const INTERVAL_MS_MAX = DAY_MS;
/** Maximum length of the body of a check. */
export const BODY_LENGTH_MAX = 10_000;
/** Channels of a monitor. */
export const MONITOR_CHANNELS_MAX = 10;
/** Default number of monitors or checks on a page. */
export const LIST_LIMIT = 50;

const url = (description: string) =>
  Type.String({
    minLength: 1,
    errorMessage: "must be an http or https URL such as https://example.com/health",
    description,
  });
const Name = name({
  description: "Name of the monitor, unique in the project. Without one, the host is shown.",
});
const Url = url(`URL to check. ${requiredFor("url")}`);
const Interval = duration({
  unit: "ms",
  min: INTERVAL_MS_MIN,
  max: INTERVAL_MS_MAX,
  description:
    "Time between checks, in milliseconds; raised to the minimum of the tier, with a `warning`. Required for `http`, `tcp`, `dns` and `icmp`; a `domain` is checked once a day.",
});
const Headers = Type.Record(Type.String(), Type.String({ errorMessage: "must be a text" }), {
  errorMessage: "must be an object of header names to texts",
  description: "Headers that each check sends. Tiers pro and scale.",
});
const Body = Type.String({
  maxLength: BODY_LENGTH_MAX,
  errorMessage: `must be a text of at most ${BODY_LENGTH_MAX} characters`,
  description: "Body that checks send, except with the methods `GET` and `HEAD`.",
});
const WebhookUrl = url("URL that receives alerts as signed webhooks. Tier starter and higher.");

/** Ids of the channels of a monitor. */
const MonitorChannels = Type.Array(
  { ...text({ min: 1, max: 64 }), ...refersTo("channels") },
  {
    maxItems: MONITOR_CHANNELS_MAX,
    uniqueItems: true,
    errorMessage: `must be at most ${MONITOR_CHANNELS_MAX} ids of channels, or null`,
    description: "Ids of the channels that are notified; null for the project's default channels.",
    examples: [[]],
  },
);

/** Tokens in capital letters (RFC 9110, section 9.1). */
const METHOD = "^[A-Z][A-Z0-9_-]{0,31}$";

const ClientKey = {
  ...text({
    min: 1,
    max: CLIENT_KEY_LENGTH_MAX,
    description:
      "Private key of `tls_client_certificate`, PEM without a passphrase. Stored encrypted, and never shown.",
    examples: [],
  }),
  writeOnly: true,
};

const OPTIONAL = {
  method: Type.Optional(
    Type.String({
      pattern: METHOD,
      errorMessage:
        "must be an HTTP method in capital letters, such as GET or PROPFIND, and not CONNECT or TRACE",
      description: "HTTP method of checks, in capital letters; `GET` by default. Not `CONNECT` or `TRACE`.",
      examples: ["GET"],
    }),
  ),
  timeout: Type.Optional(
    duration({
      unit: "ms",
      min: 1_000,
      max: 30_000,
      description: "Timeout of a check, in milliseconds; 10000 by default.",
    }),
  ),
  consecutive_threshold: Type.Optional(
    integer({
      min: 1,
      max: 10,
      description: "Consecutive failures after which the target is down; 1 by default.",
    }),
  ),
  cooldown_ms: Type.Optional(
    duration({
      unit: "ms",
      min: MINUTE_MS,
      max: HOUR_MS,
      description:
        "Time before the alert to `webhook_url` is repeated while the target stays down, in milliseconds; 300000 by default.",
    }),
  ),
  email_alert: Type.Optional(
    flag({
      description:
        "Whether the e-mail address of the account is notified once per outage. Tiers pro and scale.",
    }),
  ),
  notify_recovery: Type.Optional(
    flag({ description: "Whether the webhook and the e-mail also report recovery." }),
  ),
  ...OPTION_FIELDS,
  channels: Type.Optional(orNull(MonitorChannels, { errorMessage: MonitorChannels["errorMessage"] })),
};

const DependsOn = Type.String({
  maxLength: 64,
  errorMessage: "must be the id of a monitor",
  ...refersTo("monitors"),
  description:
    "Id of the monitor that this one depends on. While that one fails, failures of this one cause no alerts.",
  examples: [],
});

/** Body of a monitor's creation. */
export const MonitorCreateBody = named("MonitorCreateBody", {
  ...MANAGED,
  url: Type.Optional(Url),
  interval: Type.Optional(Interval),
  ...HEARTBEAT_CREATE,
  ...OPTIONAL,
  name: Type.Optional(Name),
  headers: Type.Optional(Headers),
  tls_client_key: Type.Optional(ClientKey),
  body: Type.Optional(Body),
  webhook_url: Type.Optional(WebhookUrl),
  depends_on: clearable(DependsOn),
});

/** Body of a monitor's update. */
export const MonitorUpdateBody = named("MonitorUpdateBody", {
  url: Type.Optional(Url),
  interval: Type.Optional(Interval),
  ...HEARTBEAT_UPDATE,
  ...OPTIONAL,
  name: clearable(Name),
  headers: clearable(Headers),
  tls_client_key: clearable(ClientKey),
  body: clearable(Body),
  webhook_url: clearable(WebhookUrl),
  depends_on: clearable(DependsOn),
  active: Type.Optional(
    flag({ description: "Whether the monitor is active: checked, or waiting for pings." }),
  ),
});
export type MonitorUpdateBody = Static<typeof MonitorUpdateBody>;

/** Path of a monitor. */
export const MonitorParams = Type.Object({ monitorId: Type.String({ maxLength: 64 }) });

/** Status of a target. */
export type TargetStatus = ProbeState["status"];

const StatusFilter = oneOf(["up", "down", "unknown", "degraded", "overdue"]);
/** Status filter of lists. Degraded targets are up, and overdue heartbeats unknown. */
export type StatusFilter = Static<typeof StatusFilter>;

/** Query of a list of monitors. */
export const MonitorQuery = Type.Composite(
  [
    Type.Object({
      status: Type.Optional(StatusFilter),
      active: Type.Optional(
        flag({ description: "Returns only active monitors (`true`) or only paused ones (`false`)." }),
      ),
      name: Type.Optional(name({ description: "Returns only the monitor with exactly this `name`." })),
      details: Type.Optional(
        flag({ description: "Whether to add `uptime` and `hours` of the last day to each monitor." }),
      ),
    }),
    pageQuery(LIST_LIMIT),
  ],
  { $id: "MonitorQuery" },
);
export type MonitorQuery = Static<typeof MonitorQuery>;

const LAST_CHECK = {
  status: oneOf(["up", "down", "unknown", "degraded"], {
    description:
      "Status of the target; `degraded` only for monitors of several probes, of which some see it down, and fewer than needed.",
  }),
  latency_ms: orNull(Type.Integer({ examples: [84] }), {
    description: "Latency of the last check, in milliseconds; the timeout if it timed out.",
  }),
  last_checked_at: Type.Union([Type.Integer(), Type.Null()], {
    description: "Time of the last check, Unix seconds.",
  }),
  degraded: Type.Boolean({
    description:
      "Whether the target is up, but slow (three consecutive checks took longer than `degraded_ms`), or down for some probes: see `degraded_reason`.",
    examples: [false],
  }),
  degraded_reason: orNull(oneOf(["probes", "slow", "incident"], {}), {
    description:
      "Why it is degraded: `probes` if some probes see it down, `incident` if an open incident says so of a manual monitor; null if it is not degraded.",
    examples: [null],
  }),
  probe_states: Type.Array(ProbeState, {
    description: "What each probe sees; empty for monitors that only the server checks.",
    examples: [[]],
  }),
  overdue: Type.Boolean({
    description:
      "Whether it is a heartbeat without a success since it was created or resumed, for longer than its period and grace. Its `status` is `unknown`.",
    examples: [false],
  }),
  failing: Type.Boolean({
    description: "Whether the last check failed, but the target is not down yet.",
    examples: [false],
  }),
  certificate: orNull(
    Type.Object({
      not_after: Type.Integer({
        description:
          "Expiry of the certificate, or of the intermediate certificate that expires before it, Unix seconds.",
      }),
      days_left: Type.Integer({ description: "Whole days until expiry; negative after it.", examples: [61] }),
      issuer: Type.String({ examples: ["Let's Encrypt"] }),
      intermediate: Type.Optional(
        Type.String({
          description:
            "Name of the intermediate certificate that expires first. Omitted if the target's own certificate does.",
          examples: ["R3"],
        }),
      ),
    }),
    { description: "Certificate seen by the last check (`https`, and `tcp` with `tls`)." },
  ),
  icmp: Type.Optional(
    orNull(IcmpResult, {
      description: "Only for `icmp`. Packets of the last check; null before one.",
      examples: [null],
    }),
  ),
  domain: Type.Optional(
    orNull(
      Type.Object({
        expires_at: Type.Integer({ description: "End of the registration, Unix seconds." }),
        days_left: Type.Integer({
          description: "Whole days until then; negative after it.",
          examples: [211],
        }),
      }),
      {
        description: "Only for `domain`. Registration that the last successful check saw; null before one.",
        examples: [null],
      },
    ),
  ),
  error: orNull(Type.String(), {
    description:
      "Why the last check failed, or why it could not be made, so that the `status` is `unknown`. If it succeeded, but other probes see the target down, the error of one of them; otherwise null.",
    examples: [null],
  }),
  incident_id: orNull(Type.String(), {
    description: "Id of the open incident; null while the target is not down.",
    examples: [null],
  }),
};

/** The last 24 hours of a monitor. */
export const LAST_DAY = {
  uptime: orNull(Type.Number(), {
    description: "Share of the last 24 hours that was up, in percent.",
    examples: [99.93],
  }),
  hours: Type.Array(orNull(Type.Number()), {
    description:
      "Share of the time that was up, in percent, of each of the last 24 hours, the current one last; null without checks.",
    examples: [[100, 98.4]],
  }),
};

/** Reasons for suppressed alerts. */
const SUPPRESSION = {
  depends_on: orNull(uuid(), { examples: [null] }),
  flapping: Type.Boolean({
    description:
      "Whether the monitor is flapping: channels are notified once, and again when its status is stable.",
    examples: [false],
  }),
  maintenance: Type.Boolean({ description: "Whether a maintenance window is open.", examples: [false] }),
};

/** Settings of a monitor in every response. */
const CONFIGURED = {
  type: MonitorType,
  url: Type.String({
    description:
      "URL that is checked, or that names the target, such as `tcp://db.example.com:5432`; for heartbeats `heartbeat:` and the id.",
    examples: ["https://example.com/health"],
  }),
  name: Type.String({
    description: "Name of the monitor, else the host of its target, else `Heartbeat`.",
    examples: ["example.com"],
  }),
  has_name: Type.Boolean({
    description: "Whether the monitor has a `name` of its own; otherwise its host is shown.",
    examples: [false],
  }),
  method: Type.String({ examples: ["GET"] }),
  body: orNull(Type.String(), { examples: [null] }),
  timeout: Type.Integer({ examples: [10_000] }),
  interval: orNull(Type.Integer({ examples: [60_000] }), {
    description:
      "Time between checks, in milliseconds; a day for `domain`, and null for heartbeats and manual monitors.",
  }),
  consecutive_threshold: Type.Integer({ examples: [3] }),
  cooldown_ms: Type.Integer({ examples: [300_000] }),
  webhook_url: orNull(Type.String({ examples: ["https://example.com/alerts"] })),
  email_alert: Type.Boolean({ examples: [false] }),
  notify_recovery: Type.Boolean(),
  ...SHOWN_OPTIONS,
  channels: orNull(MonitorChannels, {
    description: "Ids of the notification channels; null for the project's default channels.",
  }),
  active: Type.Boolean(),
  created_at: Type.Integer({ description: "Time of creation, Unix seconds." }),
  updated_at: Type.Integer({ description: "Time of the last update, Unix seconds." }),
  ...HEARTBEAT_VIEW,
  ...MANAGED,
  ...SECRET_DIGEST,
};

/** A monitor with its headers. */
export const Monitor = named("Monitor", {
  id: uuid(),
  ...CONFIGURED,
  headers: orNull(Type.Record(Type.String(), Type.String())),
  ...LAST_CHECK,
  ...SUPPRESSION,
  warning: Type.Optional(
    Type.String({
      description: "Notice that an interval was raised to the minimum of the tier.",
      examples: [],
    }),
  ),
});
export type Monitor = Static<typeof Monitor>;

/** A monitor with its current status, without header values. */
export const MonitorStatus = named("MonitorStatus", {
  monitor_id: uuid(),
  ...CONFIGURED,
  header_names: Type.Array(Type.String({ examples: ["X-Probe-Token"] }), {
    description: "Names of `headers`; their values can be secret.",
  }),
  ...LAST_CHECK,
  ...SUPPRESSION,
  consecutive_failures: Type.Integer({ examples: [0] }),
  uptime: Type.Optional({
    ...LAST_DAY.uptime,
    description: `${LAST_DAY.uptime.description} Only in lists with \`details\`.`,
  }),
  hours: Type.Optional({
    ...LAST_DAY.hours,
    description: `${LAST_DAY.hours.description} Only in lists with \`details\`.`,
  }),
});
export type MonitorStatus = Static<typeof MonitorStatus>;

/** A page of monitors, newest first. */
export const MonitorPage = named("MonitorPage", { monitors: Type.Array(MonitorStatus), cursor: NextCursor });
export type MonitorPage = Static<typeof MonitorPage>;

/** Query of a manual check. */
export const MonitorCheckQuery = named("MonitorCheckQuery", {
  probe: Type.Optional(
    Type.String({
      maxLength: 32,
      description: "Name of the probe that makes the check, or `local`.",
      examples: [],
    }),
  ),
});

/** Response to a deletion. */
export const MonitorDeleted = named("MonitorDeleted", { deleted: Type.Literal(true) });
export type MonitorDeleted = Static<typeof MonitorDeleted>;

/** A stored check. */
export const MonitorCheck = named("MonitorCheck", {
  checked_at: Type.Integer({ description: "Time of the check, Unix seconds." }),
  status: oneOf(["up", "down", "unknown"], {
    description: "Result; `unknown` for a check that could not be made, which counts in no uptime.",
  }),
  latency_ms: Type.Integer({ examples: [84] }),
  response_status: orNull(Type.Integer({ examples: [200] })),
  error: orNull(Type.String(), { examples: [null] }),
  manual: Type.Boolean({ examples: [false] }),
  probe: Type.String({
    description: "Name of the probe that made the check; `local` for the server.",
    examples: ["local"],
  }),
  observer_offline: Type.Boolean({
    description: "Whether the check is ignored because Ninefold was offline.",
    examples: [false],
  }),
  maintenance: Type.Boolean({
    description: "Whether the check was made in a maintenance window and does not count in the uptime.",
    examples: [false],
  }),
  icmp: Type.Optional({ ...IcmpResult, description: "Packets of the check, for `icmp`." }),
});
export type MonitorCheck = Static<typeof MonitorCheck>;

const Percent = orNull(Type.Number({ examples: [99.98] }), {
  description: "Share of the time that was up, in percent; null without checks.",
});

const OutageTotal = Type.Object({
  count: Type.Integer({ description: "Number of outages.", examples: [1] }),
  duration_ms: Type.Integer({
    description: "Duration of the outages within the range, in milliseconds.",
    examples: [3_570_000],
  }),
});

const MonitorRange = oneOf(["24h", "7d", "30d", "90d"], {
  description: "Range of `series`; without it, there is no `series`.",
});
/** A time range up to now. */
export type MonitorRange = Static<typeof MonitorRange>;

/** Query of a monitor's history. */
export const MonitorHistoryQuery = Type.Composite(
  [
    Type.Object({
      range: Type.Optional(MonitorRange),
      probe: Type.Optional(
        Type.String({
          maxLength: 32,
          description: "Returns only checks of the probe with this name, or of the server (`local`).",
          examples: [],
        }),
      ),
    }),
    pageQuery(LIST_LIMIT),
  ],
  { $id: "MonitorHistoryQuery" },
);
export type MonitorHistoryQuery = Static<typeof MonitorHistoryQuery>;

/** Availability and latency of a monitor over time. */
export const MonitorSeries = named("MonitorSeries", {
  from: Type.Integer({ description: "Start of the first bucket, Unix seconds." }),
  to: Type.Integer({ description: "End of the last bucket, which contains the current time, Unix seconds." }),
  bucket_ms: Type.Integer({
    description: "Length of a bucket, in milliseconds.",
    examples: [600_000],
  }),
  buckets: Type.Array(
    Type.Object({
      at: Type.Integer({ description: "Start of the bucket, Unix seconds." }),
      checks: Type.Integer({ description: "Number of checks that count in the uptime.", examples: [10] }),
      up: Type.Integer({ description: "Number of these checks that were up.", examples: [10] }),
      latency_ms: orNull(Type.Integer({ examples: [84] }), {
        description: "Average latency of the checks that were up, in milliseconds; null if it is not known.",
      }),
      p95_ms: orNull(Type.Integer({ examples: [120] }), {
        description:
          "Latency that 95 % of the checks that were up did not exceed, in milliseconds, within 5 %; null if it is not known.",
      }),
    }),
    { description: "Buckets with checks, oldest first." },
  ),
  latency: Type.Object(
    {
      p50_ms: orNull(Type.Integer({ examples: [82] })),
      p95_ms: orNull(Type.Integer({ examples: [120] })),
      p99_ms: orNull(Type.Integer({ examples: [310] })),
    },
    {
      description:
        "Latency that 50, 95 and 99 % of the checks of the range that were up did not exceed, in milliseconds, within 5 %; null if it is not known for all of them.",
    },
  ),
});
export type MonitorSeries = Static<typeof MonitorSeries>;

/** A page of a monitor's checks, newest first. */
export const MonitorHistory = named("MonitorHistory", {
  checks: Type.Array(MonitorCheck),
  uptime: Type.Object({ "24h": Percent, "7d": Percent, "30d": Percent, "90d": Percent }),
  outages: Type.Object(
    { "24h": OutageTotal, "7d": OutageTotal, "30d": OutageTotal, "90d": OutageTotal },
    {
      description:
        "Number and duration of outages, which are the incidents of the monitor; the newest 1000 at most.",
    },
  ),
  series: Type.Optional(MonitorSeries),
  series_by_probe: Type.Optional(
    Type.Record(Type.String(), MonitorSeries, {
      description:
        "Series of each probe, for monitors of several probes: with the range `24h`, from their last 6000 checks.",
      examples: [],
    }),
  ),
  cursor: NextCursor,
});
export type MonitorHistory = Static<typeof MonitorHistory>;
