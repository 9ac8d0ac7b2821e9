import { type Static, Type } from "@sinclair/typebox";
import { ALERT_EVENTS, type AlertEvent } from "../../kernel/data/incident-words.ts";
import {
  clearable,
  dateTime,
  duration,
  flag,
  name,
  named,
  oneOf,
  orNull,
  patchOf,
  refersTo,
  secretOf,
  text,
  timeZone,
} from "../../kernel/data/schema.ts";
import { DAY_MS, MINUTE_MS } from "../../kernel/time/units.ts";

/** Channels of a project: each alert reads all of them. */
export const CHANNELS_MAX = 50;
/** Recipients of a channel of the kind `email`. */
const RECIPIENTS_MAX = 5;

/** All kinds of channels. */
const KINDS = ["webhook", "slack", "discord", "telegram", "ntfy", "gotify", "apprise", "email"] as const;
/** A kind of channel. */
export type ChannelKind = (typeof KINDS)[number];

/** Events of a channel by default. */
export const DEFAULT_EVENTS: readonly AlertEvent[] = [
  "monitor.down",
  "monitor.up",
  "monitor.certificate",
  "observer.offline",
  "monitor.overdue",
  "monitor.runs_exceeded",
  "probe.offline",
  "probe.online",
  "monitor.unknown",
  "monitor.domain",
];

/** Intervals of reminders. */
export const REMIND = ["never", "1h", "6h", "1d"] as const;
/** One of {@link REMIND}. */
export type Remind = (typeof REMIND)[number];

const string = (maxLength: number, what: string) =>
  Type.String({ minLength: 1, maxLength, errorMessage: `must be ${what}` });

const CONFIG = {
  url: Type.Optional({
    ...string(2_048, "an http or https URL such as https://example.com/hooks"),
    description: "URL that receives the messages. All kinds except `email`; optional for `telegram`.",
    examples: ["https://hooks.slack.com/services/T0/B0/x"],
  }),
  token: Type.Optional({
    ...string(256, "a token of at most 256 characters"),
    description: "Access token, for `telegram` and `gotify`; optional for `ntfy`.",
    examples: [],
  }),
  chat_id: Type.Optional({
    ...string(64, "the number of a chat, or @ and the name of a channel"),
    description: "Telegram chat: its number, or `@` and the name of a channel. Only for `telegram`.",
    examples: [],
  }),
  to: Type.Optional(
    Type.Array(Type.String({ minLength: 3, maxLength: 254 }), {
      minItems: 1,
      maxItems: RECIPIENTS_MAX,
      uniqueItems: true,
      errorMessage: `must be an array of 1 to ${RECIPIENTS_MAX} e-mail addresses`,
      description:
        "Recipients, for `email`: the e-mail address of the account, or addresses of its people. Channels of the operator can use any addresses.",
      examples: [],
    }),
  ),
};
const Config = Type.Object(CONFIG, {
  description: "Configuration that the kind requires. Responses show secrets as `[secret]`.",
});
/** Configuration of a channel. */
export type ChannelConfig = Static<typeof Config>;

/** Kinds whose URL is a secret. */
export const SECRET_URL_KINDS: readonly ChannelKind[] = ["slack", "discord", "ntfy", "apprise"];
const GivenConfig = Type.Object(
  {
    ...CONFIG,
    url: { ...CONFIG.url, ...secretOf("kind", SECRET_URL_KINDS) },
    token: { ...CONFIG.token, writeOnly: true },
  },
  { description: Config.description ?? "" },
);

const Events = Type.Array(oneOf(ALERT_EVENTS), {
  minItems: 1,
  maxItems: ALERT_EVENTS.length,
  uniqueItems: true,
  errorMessage: `must be some of ${ALERT_EVENTS.join(", ")}`,
  description: "Events that the channel is notified of.",
  examples: [DEFAULT_EVENTS],
});
const IsDefault = flag({
  description: "Whether monitors without `channels` use the channel.",
});
const Reminders = {
  ...oneOf(REMIND),
  description: "Time after which an alert is repeated while a target stays down; `never` by default.",
  examples: ["6h"],
};

/** Steps of an escalation. */
const STEPS_MAX = 5;
/** Channels of a step. */
const STEP_CHANNELS_MAX = 10;
/** Shortest time before a step. */
const STEP_MS_MIN = MINUTE_MS;
/** Longest time before a step. */
const STEP_MS_MAX = 7 * DAY_MS;

const Escalate = Type.Array(
  Type.Object({
    after_ms: duration({
      unit: "ms",
      min: STEP_MS_MIN,
      max: STEP_MS_MAX,
      description: "Time since the alert of this channel, in milliseconds; more than in the step before.",
      examples: [600_000],
    }),
    channel_ids: Type.Array(
      { ...text({ min: 1, max: 64 }), ...refersTo("channels") },
      {
        minItems: 1,
        maxItems: STEP_CHANNELS_MAX,
        uniqueItems: true,
        errorMessage: `must be 1 to ${STEP_CHANNELS_MAX} ids of channels`,
        description:
          "Ids of the channels that are notified in this step, whatever their `events` and `default`.",
        examples: [["chn_01a1fc2c30c071d9bf080e3cb4a7b203"]],
      },
    ),
  }),
  {
    maxItems: STEPS_MAX,
    errorMessage: `must be at most ${STEPS_MAX} steps`,
    description:
      "Who else is notified while an outage is neither acknowledged nor over. Channels that were notified also get the recovery.",
    examples: [[]],
  },
);

/** A time of day on a clock of 24 hours. */
const TIME_OF_DAY = "^([01][0-9]|2[0-3]):[0-5][0-9]$";

const timeOfDay = (description: string, example: string) =>
  Type.String({
    pattern: TIME_OF_DAY,
    errorMessage: "must be a time of day such as 22:00",
    description,
    examples: [example],
  });

const QuietHours = Type.Object(
  {
    from: timeOfDay("Start of the quiet hours, as `HH:MM`.", "22:00"),
    to: timeOfDay("End of the quiet hours, as `HH:MM`; before `from` if they span midnight.", "07:00"),
    time_zone: timeZone({
      description: "Time zone of both, as an IANA name. Changes between summer and winter time are followed.",
      examples: ["Europe/Berlin"],
    }),
  },
  {
    errorMessage: "must be an object with from, to and time_zone",
    description:
      "Hours of every day in which the channel gets nothing, and its escalation waits. What it missed follows in one message at their end. Null: none.",
    examples: [null],
  },
);
/** Hours of every day in which a channel gets nothing. */
export type QuietHours = Static<typeof QuietHours>;

/** Longest time for which alerts are collected. */
const GROUP_MS_MAX = 5 * MINUTE_MS;
const GroupMs = duration({
  unit: "ms",
  min: 0,
  max: GROUP_MS_MAX,
  description:
    "Time for which the alerts of several monitors are collected into one message, in milliseconds, from the first one on. 0: each is sent immediately.",
  examples: [30_000],
});

const Kind = oneOf(KINDS);
const Name = name({ description: "Name of the channel." });

/** Body of a channel's creation. */
export const ChannelCreateBody = named("ChannelCreateBody", {
  name: Name,
  kind: Kind,
  config: GivenConfig,
  default: Type.Optional({ ...IsDefault, default: true }),
  events: Type.Optional(Events),
  remind: Type.Optional({ ...Reminders, default: "never" }),
  escalate: Type.Optional(Escalate),
  quiet_hours: clearable(QuietHours),
  group_ms: Type.Optional({ ...GroupMs, default: 0 }),
});

/** Body of a channel's update. */
export const ChannelPatch = patchOf("ChannelPatch", ChannelCreateBody, ["kind"]);

const CHANNEL_ID = Type.String({ examples: ["chn_01a1fc2c30c071d9bf080e3cb4a7b202"] });

export const Channel = named("Channel", {
  id: CHANNEL_ID,
  name: Type.String({ examples: ["Team chat"] }),
  kind: Kind,
  config: Config,
  default: IsDefault,
  events: Type.Array(oneOf(ALERT_EVENTS)),
  remind: Reminders,
  escalate: Escalate,
  quiet_hours: orNull(QuietHours, { description: QuietHours.description ?? "", examples: [null] }),
  group_ms: GroupMs,
  last_sent_at: orNull(dateTime(), {
    description: "Time at which the last message was delivered. Null before the first.",
  }),
  last_error: orNull(Type.String(), {
    description: "Error of the last attempt to deliver a message. Null if it succeeded.",
    examples: [null],
  }),
  created_at: dateTime(),
  updated_at: dateTime(),
});
export type Channel = Static<typeof Channel>;
/** Steps of an escalation in requests and responses. */
export type Escalation = Static<typeof Escalate>;

/** Response to a deletion. */
export const ChannelDeleted = named("ChannelDeleted", { deleted: Type.Literal(true) });

/** Result of a test. */
export const ChannelTested = named("ChannelTested", {
  status: oneOf(["sent", "failed"], {}),
  response_status: orNull(Type.Integer({ examples: [200] }), {
    description: "Status of the response, for `email` of the mail server; null without a response.",
  }),
  response: orNull(Type.String(), {
    description: "Response of the mail server, for `email`; null for other kinds.",
    examples: [null],
  }),
  error: orNull(Type.String(), { examples: [null] }),
});
export type ChannelTested = Static<typeof ChannelTested>;
