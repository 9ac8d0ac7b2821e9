import { type Static, type TObject, Type } from "@sinclair/typebox";
import { LOGIN_METHODS } from "../../kernel/callers/caller.ts";
import { ROLES } from "../../kernel/callers/role.ts";
import { dateTime, flag, listOf, NextCursor, name, named, oneOf, orNull } from "../../kernel/data/schema.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { EMAIL_LENGTH_MAX, EMAIL_PATTERN } from "../../kernel/mail/address.ts";
import { PROJECTS_MAX, STATUSES, TOKEN_LENGTH } from "./domain.ts";
import { PROJECT_ROLES } from "./roles.ts";

/** Default number of people per page. */
export const PEOPLE_LIMIT = 50;
/** Longest id that is looked up: ours are shorter. */
const ID_LENGTH_MAX = 64;
/** Longest text of a credential: an RSA key with its attestation is far shorter. */
const CREDENTIAL_TEXT_MAX = 16_384;

const PersonId = Type.String({ examples: ["psn_3vQ8Zk2mX7cB4nL9pS1t"] });
const ProjectId = Type.String({ maxLength: ID_LENGTH_MAX, examples: ["proj_8sK2mX7cB4nL9pS1t3vQ"] });

const ProjectRole = named("PersonProject", {
  project_id: ProjectId,
  role: oneOf(PROJECT_ROLES, {
    errorMessage: `must be one of ${PROJECT_ROLES.join(", ")}`,
    examples: ["editor"],
  }),
});

const Projects = Type.Union([Type.Literal("all"), Type.Array(ProjectRole)], {
  description: "`all`, or the projects in which the person has a role.",
  examples: ["all"],
});

const ROLE_NOTE = "Role for the account. Null if `projects` is a list.";

const PersonName = orNull(Type.String({ examples: ["Ann"] }));

const PERSON = {
  person_id: PersonId,
  email: Type.String({ examples: ["ann@example.com"] }),
  name: PersonName,
  role: orNull(oneOf(ROLES), { description: ROLE_NOTE, examples: ["editor"] }),
  projects: Projects,
  status: oneOf(STATUSES, { description: "`invited` until the first login.", examples: ["active"] }),
  login_methods: Type.Array(oneOf(LOGIN_METHODS), {
    description: "Ways in which the person can log in: `passkey`, `oidc`.",
    examples: [["passkey"]],
  }),
  identities: Type.Array(
    named("PersonIdentity", {
      identity_id: Type.String({ examples: ["idn_3vQ8Zk2mX7cB4nL9pS1t"] }),
      issuer: Type.String({ examples: ["https://accounts.google.com"] }),
      created_at: dateTime(),
      last_used_at: orNull(dateTime()),
    }),
    { description: "Identities at OpenID Connect providers. At most one per issuer.", examples: [[]] },
  ),
  from_file: Type.Boolean({
    description: "Whether the configuration file sets role and projects.",
    examples: [false],
  }),
  invited_by: orNull(PersonId, { description: "Who invited the person. Null for a key.", examples: [null] }),
  invitation_expires_at: orNull(dateTime(), {
    description: "Time at which the open invitation expires. Null without one.",
    examples: [null],
  }),
  created_at: dateTime(),
  last_seen_at: orNull(dateTime(), { description: "Time of the last request, within five minutes." }),
};

export const Person = named("Person", PERSON);
export type Person = Static<typeof Person>;

const InvitationUrl = orNull(
  Type.String({ examples: ["https://ninefold.example.com/dashboard/#/invitation/9rT4…"] }),
  {
    description: "Link of the invitation, if it was not sent by e-mail. It is valid for 7 days, once.",
    examples: [null],
  },
);

export const PersonInvited = named("PersonInvited", { ...PERSON, invitation_url: InvitationUrl });
export type PersonInvited = Static<typeof PersonInvited>;

export const Invitation = named("Invitation", {
  person_id: PersonId,
  invitation_url: InvitationUrl,
  expires_at: dateTime(),
});
export type Invitation = Static<typeof Invitation>;

export const PeoplePage = named("PeoplePage", { people: Type.Array(Person), cursor: NextCursor });
export type PeoplePage = Static<typeof PeoplePage>;

export const PeopleQuery = Type.Object({
  status: Type.Optional(
    oneOf(STATUSES, {
      errorMessage: `must be one of ${STATUSES.join(", ")}`,
      description: "Only people with this status.",
    }),
  ),
  role: Type.Optional(
    oneOf(ROLES, {
      errorMessage: `must be one of ${ROLES.join(", ")}`,
      description: "Only people with this role for the account.",
    }),
  ),
  ...pageQuery(PEOPLE_LIMIT).properties,
});
export type PeopleQuery = Static<typeof PeopleQuery>;

const GivenRole = orNull(oneOf(ROLES), {
  errorMessage: `must be one of ${ROLES.join(", ")}, or null with a list of projects`,
  description: `${ROLE_NOTE} Nobody grants a role above their own.`,
  examples: ["editor"],
});

const GivenProjects = Type.Union(
  [Type.Literal("all"), listOf(ProjectRole, { min: 1, max: PROJECTS_MAX, of: "projects with roles" })],
  {
    errorMessage: `must be "all", or 1 to ${PROJECTS_MAX} objects with project_id and role`,
    description: "`all`, the default, or the only projects in which the person has a role.",
    examples: ["all"],
  },
);

const GivenName = name({ description: "Name of the person.", examples: ["Ann"] });

export const PersonCreateBody = named("PersonCreateBody", {
  email: Type.String({
    maxLength: EMAIL_LENGTH_MAX,
    pattern: EMAIL_PATTERN,
    errorMessage: "must be an e-mail address",
    description: "Unique in the account, regardless of case.",
    examples: ["ann@example.com"],
  }),
  name: Type.Optional(GivenName),
  role: Type.Optional(GivenRole),
  projects: Type.Optional(GivenProjects),
});
export type PersonCreateBody = Static<typeof PersonCreateBody>;

export const PersonPatchBody = named("PersonPatchBody", {
  name: Type.Optional(orNull(GivenName, { description: "Name of the person; null removes it." })),
  role: Type.Optional(GivenRole),
  projects: Type.Optional(GivenProjects),
  disabled: Type.Optional(
    flag({ description: "Whether the person cannot log in. Disabling ends their sessions immediately." }),
  ),
});
export type PersonPatchBody = Static<typeof PersonPatchBody>;

export const PersonParams = Type.Object({ person_id: Type.String({ maxLength: ID_LENGTH_MAX }) });
export const IdentityParams = Type.Object({
  person_id: Type.String({ maxLength: ID_LENGTH_MAX }),
  identity_id: Type.String({ maxLength: ID_LENGTH_MAX }),
});

export const RevokeKeysQuery = Type.Object({
  revoke_keys: Type.Optional(
    Type.Union([Type.Literal("true"), Type.Literal("false")], {
      errorMessage: 'must be "true" or "false"',
      description: "Whether keys that the person created are revoked. By default they continue to work.",
    }),
  ),
});

export const PersonDeleted = named("PersonDeleted", {
  deleted_at: dateTime(),
  keys: Type.Array(Type.String(), {
    description:
      "Ids of up to 1,000 keys that the person created and that are not revoked before this request.",
    examples: [[]],
  }),
});

export const Roles = named("Roles", {
  roles: Type.Array(
    named("RoleFacts", {
      role: oneOf(ROLES, { examples: ["viewer"] }),
      description: Type.String({ examples: ["Reads."] }),
    }),
    { description: "The roles, each with everything that the ones before it may do." },
  ),
  operations: Type.Array(
    named("RoleOperation", {
      operation: Type.String({ examples: ["monitors.list"] }),
      method: Type.String({ examples: ["GET"] }),
      path: Type.String({ examples: ["/v1/pulse"] }),
      role: orNull(oneOf(ROLES), {
        description: "Least role that may call it. Null: only keys may.",
        examples: ["viewer"],
      }),
      step_up: Type.Boolean({
        description: "Whether it requires a login within the last 15 minutes.",
        examples: [false],
      }),
      account: Type.Boolean({
        description: "Whether people with roles in single projects are rejected.",
        examples: [false],
      }),
    }),
  ),
});
export type Roles = Static<typeof Roles>;

export const Me = named("Me", {
  ...PERSON,
  session_id: Type.Integer({ description: "Number of the current session.", examples: [7] }),
  authenticated_at: dateTime({ description: "Time of the login, or of the last step-up." }),
});
export type Me = Static<typeof Me>;

export const MePatchBody = named("MePatchBody", {
  name: Type.Optional(orNull(GivenName, { description: "Your name; null removes it." })),
});

export const PersonSessions = named("PersonSessions", {
  sessions: Type.Array(
    named("PersonSessionItem", {
      session_id: Type.Integer({ examples: [7] }),
      current: Type.Boolean({ description: "Whether it is the session of this request.", examples: [true] }),
      method: oneOf(LOGIN_METHODS, { examples: ["passkey"] }),
      created_at: dateTime(),
      last_used_at: dateTime(),
      expires_at: dateTime(),
      ip: orNull(Type.String({ examples: ["203.0.113.7"] })),
      user_agent: orNull(Type.String({ examples: ["Mozilla/5.0"] })),
    }),
    { description: "At most 20, newest first." },
  ),
});

export const SessionParams = Type.Object({
  session_id: Type.String({
    pattern: "^[1-9][0-9]{0,15}$",
    errorMessage: "must be the number of a session",
    examples: ["7"],
  }),
});

export const PersonSessionsEnded = named("PersonSessionsEnded", {
  ended: Type.Integer({ description: "Number of sessions that were ended.", examples: [2] }),
});

export const Passkey = named("Passkey", {
  passkey_id: Type.String({ examples: ["pky_3vQ8Zk2mX7cB4nL9pS1t"] }),
  name: Type.String({ examples: ["Phone"] }),
  relying_party: Type.String({
    description: "Host for which it was made.",
    examples: ["ninefold.example.com"],
  }),
  usable: Type.Boolean({
    description: "Whether it works at the server's present host. False after a change of `public_url`.",
    examples: [true],
  }),
  created_at: dateTime(),
  last_used_at: orNull(dateTime()),
});
export type Passkey = Static<typeof Passkey>;

export const PasskeyList = named("PasskeyList", { passkeys: Type.Array(Passkey) });
export const PasskeyParams = Type.Object({ passkey_id: Type.String({ maxLength: ID_LENGTH_MAX }) });
export const PasskeyPatchBody = named("PasskeyPatchBody", {
  name: name({ description: "Name of the passkey.", examples: ["Phone"] }),
});
export const PasskeyDeleted = named("PasskeyDeleted", { deleted_at: dateTime() });

/** An object whose fields the WebAuthn API defines. */
function webAuthn(description: string): TObject {
  return Type.Object(
    {},
    { additionalProperties: true, description, examples: [{ challenge: "UGljayBhIHJhbmRvbSBvbmU" }] },
  );
}

export const PasskeyOptions = named("PasskeyOptions", {
  options: webAuthn(
    "Options for the browser, in the JSON form of WebAuthn: for `PublicKeyCredential.parseCreationOptionsFromJSON` or `parseRequestOptionsFromJSON`.",
  ),
});

const text = (notes: { readonly description?: string } = {}) =>
  Type.String({ maxLength: CREDENTIAL_TEXT_MAX, errorMessage: "must be a base64url text", ...notes });

const CREDENTIAL = {
  id: Type.String({ minLength: 1, maxLength: 2_048, errorMessage: "must be the id of a credential" }),
  rawId: Type.String({ minLength: 1, maxLength: 2_048, errorMessage: "must be the id of a credential" }),
  type: Type.Literal("public-key", { errorMessage: 'must be "public-key"' }),
  clientExtensionResults: Type.Optional(Type.Object({}, { additionalProperties: true })),
  authenticatorAttachment: Type.Optional(Type.String({ maxLength: 64 })),
};

const RegistrationCredential = named(
  "RegistrationCredential",
  {
    ...CREDENTIAL,
    response: Type.Object(
      {
        clientDataJSON: text(),
        attestationObject: text(),
        transports: Type.Optional(Type.Array(Type.String({ maxLength: 32 }), { maxItems: 16 })),
      },
      { additionalProperties: true },
    ),
  },
  { additionalProperties: true, description: "The credential, as `toJSON()` of the browser returns it." },
);
export type RegistrationCredential = Static<typeof RegistrationCredential>;

const LoginCredential = named(
  "LoginCredential",
  {
    ...CREDENTIAL,
    response: Type.Object(
      {
        clientDataJSON: text(),
        authenticatorData: text(),
        signature: text(),
        userHandle: Type.Optional(orNull(text())),
      },
      { additionalProperties: true },
    ),
  },
  { additionalProperties: true, description: "The credential, as `toJSON()` of the browser returns it." },
);
export type LoginCredential = Static<typeof LoginCredential>;

export const PasskeyCreateBody = named("PasskeyCreateBody", {
  credential: RegistrationCredential,
  name: Type.Optional(name({ description: "Name of the passkey.", examples: ["Phone"] })),
});

export const PasskeyLoginBody = named("PasskeyLoginBody", { credential: LoginCredential });

const Token = Type.String({
  maxLength: 2 * TOKEN_LENGTH,
  errorMessage: "must be the token of an invitation",
  description: "Token of the invitation, which follows `#/invitation/`.",
});

export const InvitationBody = named("InvitationBody", { token: Token });

export const InvitationView = named("InvitationView", {
  email: Type.String({ examples: ["ann@example.com"] }),
  name: PersonName,
  account: Type.String({ description: "E-mail address of the account.", examples: ["ada@example.com"] }),
  role: orNull(oneOf(ROLES), { description: ROLE_NOTE, examples: ["editor"] }),
  expires_at: dateTime(),
  options: orNull(webAuthn("Options for the browser to create a passkey, in the JSON form of WebAuthn."), {
    description:
      "Options of the passkey. Null at an address where passkeys do not work: see `passkeys_unavailable`.",
  }),
  passkeys_unavailable: orNull(Type.String(), {
    description: "Why passkeys do not work at this address. Null if they do.",
    examples: [null],
  }),
});

export const InvitationAcceptBody = named("InvitationAcceptBody", {
  token: Token,
  credential: RegistrationCredential,
  name: Type.Optional(GivenName),
});
