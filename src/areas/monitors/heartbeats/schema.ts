import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { named, oneOf, orNull, text } from "../../../kernel/data/schema.ts";

const MINUTE_MS = 60_000;
/** Shortest and longest period and grace: a minute, and a year. */
export const WAIT_MS_MIN = MINUTE_MS;
/** See {@link WAIT_MS_MIN}. */
export const WAIT_MS_MAX = 365 * 24 * 60 * MINUTE_MS;
/** What a heartbeat waits for where its user says nothing. */
export const PERIOD_MS = 24 * 60 * MINUTE_MS;
/** How much later a ping may come. */
export const GRACE_MS = 60 * MINUTE_MS;
/** Pings of each heartbeat that are kept. */
export const PINGS_KEPT = 100;
/** Bytes of a ping's body that are kept: as many as Healthchecks does. */
export const PING_BODY_BYTES_MAX = 10_000;

/** What a monitor does. */
export const MonitorType = oneOf(["http", "heartbeat"], {
  errorMessage: "must be http or heartbeat",
  description: "`http` asks a URL, `heartbeat` waits for pings. `http` unless given; fixed after creation.",
});
export type MonitorType = Static<typeof MonitorType>;

const wait = (description: string) =>
  Type.Integer({
    minimum: WAIT_MS_MIN,
    maximum: WAIT_MS_MAX,
    errorMessage: `must be an integer from ${WAIT_MS_MIN} to ${WAIT_MS_MAX}, in milliseconds: ${MINUTE_MS} is a minute`,
    description,
  });
const SLUG = "^[a-z0-9_-]{1,64}$";
const Slug = Type.String({
  pattern: SLUG,
  errorMessage: "must be 1 to 64 lower-case letters, digits, dashes and underscores",
  description: "Heartbeats: the name in `ping_slug_url`, unique in the project.",
  examples: ["nightly-backup"],
});

/** What users set about heartbeats, besides what every monitor has. */
const TIMING = {
  period_ms: Type.Optional(wait(`Heartbeats: milliseconds between pings; ${PERIOD_MS} unless given.`)),
  schedule: Type.Optional(
    text({
      min: 1,
      max: 256,
      description:
        "Heartbeats, instead of `period_ms`: when pings come, as a cron expression of five fields.",
      examples: ["30 2 * * *"],
    }),
  ),
  tz: Type.Optional(
    text({
      min: 1,
      max: 64,
      description:
        "The time zone that `schedule` is read in, as the IANA database names it; `UTC` unless given.",
      examples: ["Europe/Berlin"],
    }),
  ),
  grace_ms: Type.Optional(
    wait(
      `Heartbeats: how much later a ping may come, and how long a run may take; ${GRACE_MS} unless given.`,
    ),
  ),
};

/** Fields of a monitor's creation. */
export const HEARTBEAT_CREATE = { type: Type.Optional(MonitorType), slug: Type.Optional(Slug), ...TIMING };

/** Fields of a monitor's change. */
export const HEARTBEAT_UPDATE = {
  ...HEARTBEAT_CREATE,
  slug: Type.Optional(orNull(Slug, { errorMessage: `${Slug.errorMessage}, or null` })),
};

const shown = <S extends TSchema>(schema: S, description: string) =>
  Type.Optional(orNull(schema, { description: `Heartbeats alone. ${description}` }));
const moment = (description: string) =>
  shown(Type.String({ format: "date-time", examples: ["2030-01-31T02:30:00.000Z"] }), description);
const address = (path: string, description: string) =>
  shown(Type.String({ examples: [`https://ninefold.example.com/ping/${path}`] }), description);

/** What views of a heartbeat show besides. */
export const HEARTBEAT_VIEW = {
  slug: shown(Type.String({ examples: ["nightly-backup"] }), "The name in `ping_slug_url`."),
  period_ms: shown(Type.Integer({ examples: [PERIOD_MS] }), "Null with a `schedule`."),
  schedule: shown(Type.String({ examples: ["30 2 * * *"] }), "Null with a `period_ms`."),
  tz: shown(Type.String({ examples: ["UTC"] }), "The time zone of `schedule`."),
  grace_ms: Type.Optional(Type.Integer({ description: "Heartbeats alone.", examples: [GRACE_MS] })),
  ping_url: address(
    "0c5cd6f4-6e0c-4a4f-8f0c-6f2f6b1a2d3e",
    "Where its pings go: a secret, shown to keys with `pulse:write`.",
  ),
  ping_slug_url: address(
    "Q2nTx0hYbV8cLr5ZsK1wGd/nightly-backup",
    "The same by its slug, in projects with a ping key. Shown to keys with `pulse:write`.",
  ),
  last_ping_at: moment("The last ping of any kind."),
  started_at: moment("When the run under way began."),
  expected_at: moment("When the next success is expected; it is missed once the grace has passed as well."),
  last_duration_ms: shown(
    Type.Integer({ examples: [84_000] }),
    "How long the last run took, if its start was told.",
  ),
};

/** What stands in views of heartbeats alone, as their fields. */
export type HeartbeatView = Static<ReturnType<typeof heartbeatView>>;
const heartbeatView = () => Type.Required(Type.Object(HEARTBEAT_VIEW));

/** What a ping says. */
const PING_KINDS = ["success", "fail", "start", "log"] as const;
export type PingKind = (typeof PING_KINDS)[number];

/** A ping, as it came. */
const Ping = named("HeartbeatPing", {
  at: Type.String({ format: "date-time" }),
  kind: oneOf(PING_KINDS, {}),
  exit: orNull(Type.Integer({ examples: [0] }), { description: "The exit status that it named." }),
  duration_ms: orNull(Type.Integer(), { description: "Since the start of its run, if that was told." }),
  rid: orNull(Type.String({ format: "uuid" }), { description: "The run that it named." }),
  ip: orNull(Type.String(), { examples: ["192.0.2.10"] }),
  body: orNull(Type.String(), {
    description: `The first ${PING_BODY_BYTES_MAX} bytes of what it was sent with.`,
    examples: ["42 files"],
  }),
});

/** The last pings of a heartbeat, newest first. */
export const PingList = named("HeartbeatPings", { pings: Type.Array(Ping) });
export type PingList = Static<typeof PingList>;

/** A project's ping key. */
export const PingKey = named("PingKey", {
  ping_key: Type.String({
    description: "What stands before the slug in the project's ping URLs. The one before it no longer works.",
    examples: ["Q2nTx0hYbV8cLr5ZsK1wGd"],
  }),
});
export type PingKey = Static<typeof PingKey>;

/** The public path of pings: the rest is read as it was sent. */
export const PingParams = Type.Object({ check: Type.String() });
