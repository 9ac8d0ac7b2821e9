import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, orNull } from "../../kernel/data/schema.ts";
import { EXAMPLE_KEY } from "../../kernel/http/document/openapi-security.ts";
import { TIER_NAMES } from "../../kernel/limits/tiers.ts";
import { LINK_MINUTES, LINK_MINUTES_MAX } from "./domain.ts";

/** Longest key or link that is looked at: both are far shorter. */
const SECRET_LENGTH_MAX = 255;

const Secret = (description: string, examples: readonly string[]) =>
  Type.Optional(
    Type.String({ maxLength: SECRET_LENGTH_MAX, errorMessage: "must be a text", description, examples }),
  );

/** Body of a log-in. */
export const SessionBody = named("SessionBody", {
  key: Secret("A key of this API.", [EXAMPLE_KEY]),
  link: Secret("Or what stands in a log-in link behind `#/setup/`.", []),
});
export type SessionBody = Static<typeof SessionBody>;

/** A browser session. */
export const Session = named("Session", {
  user_id: Type.String({ examples: ["usr_3vQ8Zk2mX7cB4nL9pS1t"] }),
  email: Type.String({ examples: ["ada@example.com"] }),
  tier: oneOf(TIER_NAMES),
  operator: Type.Boolean({ description: "Whether the operator's endpoints are open to it." }),
  key_id: orNull(Type.String({ format: "uuid" }), { description: "Null for a platform key." }),
  key_name: orNull(Type.String({ examples: ["CI"] })),
  scopes: Type.Array(Type.String({ examples: ["*"] })),
  project_id: orNull(Type.String({ examples: ["proj_8sK2mX7cB4nL9pS1t3vQ"] }), {
    description: "The only project of its key; null for a key of the account.",
  }),
  expires_at: Type.String({ format: "date-time", description: "Or after 24 hours without a request." }),
  version: Type.String({ description: "Of the server.", examples: ["1.0.0"] }),
});
export type Session = Static<typeof Session>;

/** The session of a browser. */
export const CurrentSession = named("CurrentSession", { session: orNull(Session) });
export type CurrentSession = Static<typeof CurrentSession>;

/** Answer to the end of all sessions. */
export const SessionsEnded = named("SessionsEnded", {
  ended: Type.Integer({ description: "How many there were.", examples: [2] }),
});

/** Body of a log-in link's creation. */
export const LoginLinkBody = named("LoginLinkBody", {
  minutes: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LINK_MINUTES_MAX,
      errorMessage: `must be an integer from 1 to ${LINK_MINUTES_MAX}`,
      description: `How long it works: ${LINK_MINUTES} unless given.`,
    }),
  ),
});

/** A log-in link. */
export const LoginLink = named("LoginLink", {
  url: Type.String({
    description: "Opens a session of the calling key, once.",
    examples: ["https://ninefold.example.com/dashboard/#/setup/9rT4…"],
  }),
  expires_at: Type.String({ format: "date-time" }),
});
export type LoginLink = Static<typeof LoginLink>;
