import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { clearable, dateTime, duration, optional, text, timeZone } from "../../kernel/data/schema.ts";
import { MINUTE_MS } from "../../kernel/time/units.ts";
import { MonitorType } from "./types.ts";

/** Minimum of periods and graces. */
export const WAIT_MS_MIN = MINUTE_MS;
/** Maximum of periods and graces: a year. */
export const WAIT_MS_MAX = 365 * 24 * 60 * MINUTE_MS;
/** Default period. */
export const PERIOD_MS = 24 * 60 * MINUTE_MS;
/** Default grace. */
export const GRACE_MS = 60 * MINUTE_MS;
/** Maximum of `max_runs_per_period`: beyond it, a limit of runs watches nothing that a person would look at. */
export const RUNS_MAX = 10_000;

const wait = (description: string) =>
  duration({ unit: "ms", min: WAIT_MS_MIN, max: WAIT_MS_MAX, description });
const SLUG = "^[a-z0-9_-]{1,64}$";
const Slug = Type.String({
  pattern: SLUG,
  errorMessage: "must be 1 to 64 lower-case letters, digits, dashes and underscores",
  description: "Heartbeats only: name in `ping_slug_url`, unique within the project.",
  examples: ["nightly-backup"],
});

/** Settings of heartbeats beyond those of every monitor. */
const TIMING = {
  period_ms: Type.Optional(
    wait(`Heartbeats only: time between pings, in milliseconds. Default ${PERIOD_MS}.`),
  ),
  schedule: Type.Optional(
    text({
      min: 1,
      max: 256,
      description:
        "Heartbeats only, instead of `period_ms`: times of pings, as a cron expression with five fields.",
      examples: ["30 2 * * *"],
    }),
  ),
  tz: Type.Optional(
    timeZone({
      description: "Time zone of `schedule`, as an IANA name. Default `UTC`.",
      examples: ["Europe/Berlin"],
    }),
  ),
  grace_ms: Type.Optional(
    wait(
      `Heartbeats only: maximum delay of a ping, and maximum duration of a run without \`start_grace_ms\`, in milliseconds. Default ${GRACE_MS}.`,
    ),
  ),
  start_grace_ms: clearable(
    wait(
      "Heartbeats only: maximum duration of a run from its start, in milliseconds. A run that starts in time postpones the deadline of its success. Null: `grace_ms`, and nothing is postponed.",
    ),
  ),
  max_runs_per_period: clearable(
    Type.Integer({
      minimum: 1,
      maximum: RUNS_MAX,
      errorMessage: `must be an integer from 1 to ${RUNS_MAX}`,
      description:
        "Heartbeats only: runs that may begin in a period, or between two times of the `schedule`. One more is an alert, once per period. Null: any number.",
      examples: [1],
    }),
  ),
};

/** Length of push tokens: those of Uptime Kuma have 32 characters, the oldest ones 10. */
export const PUSH_TOKEN_LENGTHS = { min: 10, max: 64 } as const;
const PUSH_TOKEN_PATTERN = `^[A-Za-z0-9_-]{${PUSH_TOKEN_LENGTHS.min},${PUSH_TOKEN_LENGTHS.max}}$`;

const UUID = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";

/** The addresses that a new heartbeat brings along from another product, so that its jobs change the host only. */
const ADDRESSES = {
  ping_id: Type.Optional(
    Type.String({
      pattern: UUID,
      errorMessage: "must be a UUID such as 31365bce-8da9-4729-8ff3-aaa71d56b712",
      description:
        "Heartbeats only: UUID of `ping_url`, such as that of a check of Healthchecks. It must not be in use on the server. Default: a new one.",
      examples: [],
    }),
  ),
  push_token: Type.Optional(
    Type.String({
      pattern: PUSH_TOKEN_PATTERN,
      errorMessage: `must be ${PUSH_TOKEN_LENGTHS.min} to ${PUSH_TOKEN_LENGTHS.max} letters, digits, dashes and underscores`,
      description:
        "Heartbeats only: token of a push monitor of Uptime Kuma, whose URL `/api/push/{token}` then pings the heartbeat. It must not be in use on the server.",
      examples: [],
    }),
  ),
};

/** Fields of a monitor's update that belong to heartbeats. */
export const HEARTBEAT_UPDATE = {
  type: Type.Optional(MonitorType),
  slug: clearable(Slug),
  ...TIMING,
};

/** Fields of a monitor's creation that belong to heartbeats. */
export const HEARTBEAT_CREATE = {
  type: Type.Optional(MonitorType),
  slug: Type.Optional(Slug),
  ...TIMING,
  ...ADDRESSES,
};

const shown = <S extends TSchema>(schema: S, description: string) =>
  optional(schema, { description: `Heartbeats only. ${description}` });
const time = (description: string) =>
  shown(dateTime({ examples: ["2030-01-31T02:30:00.000Z"] }), description);
const address = (path: string, description: string) =>
  shown(Type.String({ examples: [`https://ninefold.example.com/${path}`] }), description);

/** Fields of a monitor's view that belong to heartbeats. */
export const HEARTBEAT_VIEW = {
  slug: shown(Type.String({ examples: ["nightly-backup"] }), "Name in `ping_slug_url`."),
  period_ms: shown(
    Type.Integer({ examples: [PERIOD_MS] }),
    "Time between pings, in milliseconds. Null with a `schedule`.",
  ),
  schedule: shown(
    Type.String({ examples: ["30 2 * * *"] }),
    "Cron expression with five fields. Null with a `period_ms`.",
  ),
  tz: shown(Type.String({ examples: ["UTC"] }), "Time zone of `schedule`, as an IANA name."),
  grace_ms: Type.Optional(
    Type.Integer({
      description:
        "Heartbeats only. Maximum delay of a ping, and maximum duration of a run without `start_grace_ms`, in milliseconds.",
      examples: [GRACE_MS],
    }),
  ),
  start_grace_ms: shown(
    Type.Integer({ examples: [GRACE_MS] }),
    "Maximum duration of a run from its start, in milliseconds. Null: `grace_ms`.",
  ),
  max_runs_per_period: shown(
    Type.Integer({ examples: [1] }),
    "Runs that may begin in a period. Null: any number.",
  ),
  ping_url: address(
    "ping/0c5cd6f4-6e0c-4a4f-8f0c-6f2f6b1a2d3e",
    "Ping URL. It is a secret; only keys with `pulse:write` receive it.",
  ),
  ping_slug_url: address(
    "ping/Q2nTx0hYbV8cLr5ZsK1wGd/nightly-backup",
    "Ping URL with the slug, in projects with a ping key. Only keys with `pulse:write` receive it.",
  ),
  push_url: address(
    "api/push/k7Xw2pQ9sL",
    "Ping URL with the `push_token`, for heartbeats that have one. Only keys with `pulse:write` receive it.",
  ),
  last_ping_at: time("Time of the last ping of any kind."),
  started_at: time("Start of the current run."),
  expected_at: time(
    "Time at which the next success is expected. It is missed when the grace has passed as well.",
  ),
  last_duration_ms: shown(
    Type.Integer({ examples: [84_000] }),
    "Duration of the last run in milliseconds. Null if its start was not reported.",
  ),
};

export type HeartbeatView = Static<ReturnType<typeof heartbeatView>>;
const heartbeatView = () => Type.Required(Type.Object(HEARTBEAT_VIEW));
