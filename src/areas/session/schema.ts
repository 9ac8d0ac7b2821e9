import { type Static, Type } from "@sinclair/typebox";
import { LOGIN_METHODS } from "../../kernel/callers/caller.ts";
import { ROLES } from "../../kernel/callers/role.ts";
import { dateTime, duration, named, oneOf, orNull, uuid } from "../../kernel/data/schema.ts";
import { EXAMPLE_KEY } from "../../kernel/http/document/openapi-security.ts";
import { TIER_NAMES } from "../../kernel/limits/tiers.ts";
import { EMAIL_LENGTH_MAX, EMAIL_PATTERN } from "../../kernel/mail/address.ts";
import { LINK_MINUTES, LINK_MINUTES_MAX } from "./domain.ts";
import { OFFERED_METHODS } from "./ports.ts";

/** Longest key or link that is checked: both are far shorter. */
const SECRET_LENGTH_MAX = 255;

const Secret = (description: string, examples: readonly string[]) =>
  Type.Optional(
    Type.String({ maxLength: SECRET_LENGTH_MAX, errorMessage: "must be a text", description, examples }),
  );

export const SessionBody = named("SessionBody", {
  key: Secret("A key of this API.", [EXAMPLE_KEY]),
  link: Secret("The token of a login link, which follows `#/setup/`. Alternative to `key`.", []),
  email_link: Secret(
    "The token of a login link that was sent by e-mail, which follows `#/login/`. Only in the browser that requested it. Alternative to `key`.",
    [],
  ),
  proxy: Type.Optional(
    Type.Literal(true, {
      errorMessage: "must be true",
      description: "Logs in the person whom the header of a trusted proxy names. Alternative to `key`.",
    }),
  ),
});
export type SessionBody = Static<typeof SessionBody>;

export const Session = named("Session", {
  user_id: Type.String({ examples: ["usr_3vQ8Zk2mX7cB4nL9pS1t"] }),
  email: Type.String({ examples: ["ada@example.com"] }),
  tier: oneOf(TIER_NAMES),
  operator: Type.Boolean({ description: "Whether the session can use the operator's endpoints." }),
  key_id: orNull(uuid(), {
    description: "Id of the session's managed key. Null for a platform key.",
  }),
  key_name: orNull(Type.String({ examples: ["CI"] })),
  scopes: Type.Array(Type.String({ examples: ["*"] })),
  project_id: orNull(Type.String({ examples: ["proj_8sK2mX7cB4nL9pS1t3vQ"] }), {
    description: "Id of the only project of the session's key. Null for a key of the account.",
  }),
  expires_at: dateTime({
    description: "Time at which the session expires. It also expires after 24 hours without a request.",
  }),
  version: Type.String({ description: "Version of the server.", examples: ["1.0.0"] }),
  session_id: Type.Optional(
    Type.Integer({ description: "Number of the session. Only for a person.", examples: [7] }),
  ),
  method: Type.Optional(
    oneOf(LOGIN_METHODS, { description: "How the person logged in.", examples: ["passkey"] }),
  ),
  authenticated_at: Type.Optional(
    dateTime({ description: "Time of the person's last login, including one that confirmed a session." }),
  ),
  person: Type.Optional(
    named("SessionPerson", {
      person_id: Type.String({ examples: ["psn_3vQ8Zk2mX7cB4nL9pS1t"] }),
      email: Type.String({ examples: ["ann@example.com"] }),
      name: orNull(Type.String({ examples: ["Ann"] })),
      role: orNull(oneOf(ROLES), {
        description: "Role for the account. Null if `projects` is a list.",
        examples: ["editor"],
      }),
      projects: Type.Union(
        [Type.Literal("all"), Type.Array(Type.Object({ project_id: Type.String(), role: oneOf(ROLES) }))],
        { description: "`all`, or the projects in which the person has a role.", examples: ["all"] },
      ),
    }),
  ),
  accounts: Type.Optional(
    Type.Array(Type.Object({ user_id: Type.String(), email: Type.String() }), {
      description: "Other accounts that this login opens: see `POST /v1/session/account`.",
      examples: [[]],
    }),
  ),
});
export type Session = Static<typeof Session>;

const LoginMethods = named("LoginMethods", {
  methods: Type.Array(
    Type.Object({
      type: oneOf(OFFERED_METHODS, { examples: ["passkey"] }),
      name: Type.Optional(Type.String({ description: "Text of the button.", examples: ["Google"] })),
      url: Type.Optional(
        Type.String({
          description: "Where the button leads, from the server's origin.",
          examples: ["/login/oidc/google"],
        }),
      ),
    }),
    { description: "Ways to log in, in the order in which the login page offers them." },
  ),
});

export const CurrentSession = named("CurrentSession", { session: orNull(Session), login: LoginMethods });

export const EmailLinkBody = named("EmailLinkBody", {
  email: Type.String({
    maxLength: EMAIL_LENGTH_MAX,
    pattern: EMAIL_PATTERN,
    errorMessage: "must be an e-mail address",
    description: "Address that the link is sent to.",
    examples: ["ann@example.com"],
  }),
});

export const EmailLinkRequested = named("EmailLinkRequested", {
  expires_at: dateTime({ description: "Time until which a link that was sent is valid." }),
});

export const SessionAccountBody = named("SessionAccountBody", {
  user_id: Type.String({
    maxLength: 64,
    errorMessage: "must be the user_id of an account",
    description: "Account of `session.accounts`.",
    examples: ["usr_3vQ8Zk2mX7cB4nL9pS1t"],
  }),
});
export type CurrentSession = Static<typeof CurrentSession>;

export const SessionsEnded = named("SessionsEnded", {
  ended: Type.Integer({ description: "Number of sessions that were ended.", examples: [2] }),
});

export const LoginLinkBody = named("LoginLinkBody", {
  minutes: Type.Optional(
    duration({
      unit: "minutes",
      min: 1,
      max: LINK_MINUTES_MAX,
      description: `Minutes for which the link is valid. Default ${LINK_MINUTES}.`,
    }),
  ),
});

export const LoginLink = named("LoginLink", {
  url: Type.String({
    description: "URL that opens one session of the calling key, once.",
    examples: ["https://ninefold.example.com/dashboard/#/setup/9rT4…"],
  }),
  expires_at: dateTime(),
});
export type LoginLink = Static<typeof LoginLink>;
