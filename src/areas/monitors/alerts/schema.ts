import { type Static, Type } from "@sinclair/typebox";
import { name, named, oneOf, orNull, text } from "../../../kernel/data/schema.ts";
import { NextCursor, pageQuery } from "../../../kernel/http/requests/pagination.ts";

/** Channels of a project: a change of a monitor looks at all of them. */
export const CHANNELS_MAX = 50;
/** Channels that a monitor names. */
export const MONITOR_CHANNELS_MAX = 10;
/** Addresses of a channel that writes e-mails. */
const RECIPIENTS_MAX = 5;
const LIST_LIMIT = 50;

/** Where people can be told. */
const CHANNEL_KINDS = [
  ...(["webhook", "slack", "discord", "telegram", "ntfy", "gotify", "apprise", "email"] as const),
] as const;
/** A kind of channel. */
export type ChannelKind = (typeof CHANNEL_KINDS)[number];

/** What a channel can be told of. */
export const CHANNEL_EVENTS = [
  ...(["monitor.down", "monitor.up", "monitor.degraded", "monitor.recovered"] as const),
  ...(["monitor.certificate", "monitor.flapping", "monitor.acknowledged"] as const),
  ...(["observer.offline", "maintenance.started", "maintenance.ended"] as const),
] as const;
/** One of {@link CHANNEL_EVENTS}. */
export type ChannelEvent = (typeof CHANNEL_EVENTS)[number];

/** What a channel is told of where its user names nothing. */
export const DEFAULT_EVENTS: readonly ChannelEvent[] = [
  ...(["monitor.down", "monitor.up", "monitor.certificate", "observer.offline"] as const),
];

const string = (maxLength: number, what: string) =>
  Type.String({ minLength: 1, maxLength, errorMessage: `must be ${what}` });

const CONFIG = {
  url: Type.Optional({
    ...string(2_048, "an http or https URL such as https://example.com/hooks"),
    description: "Of all kinds but `email`; `telegram` needs none.",
    examples: ["https://hooks.slack.com/services/T0/B0/x"],
  }),
  token: Type.Optional({
    ...string(256, "a token of at most 256 characters"),
    description: "Of `telegram` and `gotify`; `ntfy` can do without.",
    examples: [],
  }),
  chat_id: Type.Optional({
    ...string(64, "a chat's number, or @ and the name of a channel"),
    description: "Of `telegram`.",
    examples: [],
  }),
  to: Type.Optional(
    Type.Array(Type.String({ minLength: 3, maxLength: 254 }), {
      minItems: 1,
      maxItems: RECIPIENTS_MAX,
      uniqueItems: true,
      errorMessage: `must be 1 to ${RECIPIENTS_MAX} e-mail addresses`,
      description: "Of `email`: the account's own address; the operator's channels write to any.",
      examples: [],
    }),
  ),
};
const Config = Type.Object(CONFIG, { description: "What its kind needs. Secrets are shown as `[secret]`." });
/** Where exactly a channel leads. */
export type ChannelConfig = Static<typeof Config>;

const Events = Type.Array(oneOf(CHANNEL_EVENTS), {
  minItems: 1,
  maxItems: CHANNEL_EVENTS.length,
  uniqueItems: true,
  errorMessage: `must be some of ${CHANNEL_EVENTS.join(", ")}`,
  description: "What it is told of.",
  examples: [DEFAULT_EVENTS],
});
const IsDefault = Type.Boolean({
  errorMessage: "must be true or false",
  description: "Whether monitors use it that name no channels.",
});
const Kind = oneOf(CHANNEL_KINDS);
const Name = name("What people call it.");

/** Body of a channel's creation. */
export const ChannelCreateBody = named("ChannelCreateBody", {
  name: Name,
  kind: Kind,
  config: Config,
  default: Type.Optional({ ...IsDefault, default: true }),
  events: Type.Optional(Events),
});
export type ChannelCreateBody = Static<typeof ChannelCreateBody>;

/** Body of a channel's change: any of these. */
export const ChannelPatch = named("ChannelPatch", {
  name: Type.Optional(Name),
  config: Type.Optional(Config),
  default: Type.Optional(IsDefault),
  events: Type.Optional(Events),
});
export type ChannelPatch = Static<typeof ChannelPatch>;

const RFC_3339 = Type.String({ format: "date-time" });
const CHANNEL_ID = Type.String({ examples: ["chn_01a1fc2c30c071d9bf080e3cb4a7b202"] });

/** A channel. */
export const Channel = named("Channel", {
  id: CHANNEL_ID,
  name: Type.String({ examples: ["Team chat"] }),
  kind: Kind,
  config: Config,
  default: IsDefault,
  events: Type.Array(oneOf(CHANNEL_EVENTS)),
  created_at: RFC_3339,
  updated_at: RFC_3339,
});
export type Channel = Static<typeof Channel>;

/** Path of a channel. */
export const ChannelParams = Type.Object({ channel_id: Type.String({ maxLength: 64 }) });

/** Query of a list of channels. */
export const ChannelQuery = pageQuery(LIST_LIMIT);
export type ChannelQuery = Static<typeof ChannelQuery>;

/** A page of channels, newest first. */
export const ChannelPage = named("ChannelPage", { channels: Type.Array(Channel), cursor: NextCursor });
export type ChannelPage = Static<typeof ChannelPage>;

/** Answer to a deletion. */
export const ChannelDeleted = named("ChannelDeleted", { deleted: Type.Literal(true) });
export type ChannelDeleted = Static<typeof ChannelDeleted>;

/** What became of a test. */
export const ChannelTested = named("ChannelTested", {
  status: oneOf(["sent", "failed"], {}),
  response_status: orNull(Type.Integer({ examples: [200] }), {
    description: "Null without an answer, and of `email`, which the mail queue has taken.",
  }),
  error: orNull(Type.String(), { examples: [null] }),
});
export type ChannelTested = Static<typeof ChannelTested>;

/** The channels that a monitor names. */
export const MonitorChannels = Type.Array(text({ min: 1, max: 64 }), {
  maxItems: MONITOR_CHANNELS_MAX,
  uniqueItems: true,
  errorMessage: `must be at most ${MONITOR_CHANNELS_MAX} ids of channels, or null`,
  description: "Who is told of it, by the ids of channels; null: the project's default ones.",
  examples: [[]],
});
