import { type Static, Type } from "@sinclair/typebox";
import { dateTime, named, oneOf, orNull, uuid } from "../../../kernel/data/schema.ts";
import { registerErrorFields } from "../../../kernel/errors.ts";

/** Pings that are stored of each heartbeat. */
export const PINGS_STORED = 100;
/** Bytes of a ping's body that are stored, as in Healthchecks. */
export const PING_BODY_BYTES_MAX = 10_000;

const PING_KINDS = ["success", "fail", "start", "log"] as const;
export type PingKind = (typeof PING_KINDS)[number];

const Ping = named("HeartbeatPing", {
  at: dateTime(),
  kind: oneOf(PING_KINDS, {}),
  exit: orNull(Type.Integer({ examples: [0] }), {
    description: "Exit status of the run, if the ping has one.",
  }),
  duration_ms: orNull(Type.Integer(), {
    description: "Milliseconds since the start of the run, if the start was reported.",
  }),
  rid: orNull(uuid(), { description: "Id of the run, if the ping has one." }),
  ip: orNull(Type.String(), { examples: ["192.0.2.10"] }),
  body: orNull(Type.String(), {
    description: `First ${PING_BODY_BYTES_MAX} bytes of the body.`,
    examples: ["42 files"],
  }),
});

export const PingList = named("HeartbeatPings", { pings: Type.Array(Ping) });
export type PingList = Static<typeof PingList>;

export const PingKey = named("PingKey", {
  ping_key: Type.String({
    description: "Key in the ping URLs of the project, before the slug. The previous key stops working.",
    examples: ["Q2nTx0hYbV8cLr5ZsK1wGd"],
  }),
});
export type PingKey = Static<typeof PingKey>;

/** Response of Uptime Kuma to a push that it accepts. */
export const PushAccepted = named("PushAccepted", { ok: Type.Literal(true) });
export type PushAccepted = Static<typeof PushAccepted>;

registerErrorFields({
  ok: Type.Boolean({ description: "Pushes: false, as Uptime Kuma responds.", examples: [] }),
  msg: Type.String({ description: "Pushes: reason, as Uptime Kuma responds.", examples: [] }),
});

export const PushParams = Type.Object({
  token: Type.String({
    description: "The `push_token` of a heartbeat.",
    examples: ["k7Xw2pQ9sL"],
  }),
});

/** The public path of pings. The rest of the target is parsed by `readPing`. */
export const PingParams = Type.Object({ check: Type.String() });
