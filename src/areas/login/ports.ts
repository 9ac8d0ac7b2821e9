import type { AuditedRequest } from "../../kernel/audit/trail.ts";
import type { LoginMethod } from "../../kernel/callers/caller.ts";
import type { Role } from "../../kernel/callers/role.ts";
import type { PageRequest } from "../../kernel/http/access/peers.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A provider of logins by OpenID Connect, as the configuration describes it. */
export interface ProviderSettings {
  readonly name: string;
  /** Text of its button. */
  readonly label: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scopes: readonly string[];
  /** In lower case. Empty: any. */
  readonly allowedDomains: readonly string[];
  /** Empty: any. */
  readonly allowedGroups: readonly string[];
  readonly groupsClaim: string;
  /** Role of each group, and of everyone else (`*`); empty: the provider sets no role. */
  readonly roles: ReadonlyMap<string, Role>;
  /** Whether people who are unknown are created. */
  readonly create: boolean;
  /** Whether addresses count as verified without a claim that says so. */
  readonly trustEmail: boolean;
  /** The account of its people, as `user_id` or e-mail address; null: any account in which a person exists. */
  readonly account: string | null;
}

/** The request of a browser that logs in. */
export type LoginRequest = PageRequest &
  Pick<AuditedRequest, "requestId" | "requestOrigin"> & {
    readonly clientAddress: string;
    /** Hash of the token of the session that the browser had when the login began; null without one. */
    readonly sessionAtStart: Uint8Array | null;
  };

/** An identity that a provider has proven, and what its login may change. */
export interface IdentityLogin {
  readonly issuer: string;
  readonly subject: string;
  /** Null for an address that the provider has not verified. */
  readonly email: string | null;
  readonly name: string | null;
  /** When the person logged in at the provider, epoch milliseconds; null if it does not say so. */
  readonly authenticatedAt: number | null;
  /** The only account whose people log in; null: any. */
  readonly accountRef: number | null;
  /** The role that the provider gives; null: it gives none. */
  readonly role: Role | null;
  /** The role of people who are created; null: unknown people are rejected. */
  readonly createsAs: Role | null;
  /** Why the provider's rules reject it; null: they do not. */
  readonly rejection: string | null;
  /** The person whose session this login confirms; null for a login of its own. */
  readonly stepUpOf: number | null;
}

/** What logins need of people. `Verified`: a person as sessions open for them. */
export interface LoginPeople<Verified> {
  /** The person of an identity, in the unit of work that opens the session. @throws ApiError `unauthorized` */
  logIn(tx: Tx, identity: IdentityLogin, request: LoginRequest): Verified;
}

/** What logins need of sessions. */
export interface LoginSessions<Verified> {
  /** Opens a session once `prove` has verified who logs in; what it returns runs in the unit of work that opens it. */
  openPerson(
    login: LoginRequest,
    prove: () => Promise<(tx: Tx) => Verified>,
    method: LoginMethod,
  ): Promise<{ readonly cookie: string }>;
  /** @throws ApiError `rate_limit_exceeded` */
  assertPersonMayAttempt(clientAddress: string): void;
  /** The hash of the token in a request's cookie; null without one. */
  tokenHashOf(from: PageRequest): Uint8Array | null;
  /** The person of a browser's session, by the hash of its token; null without one. */
  readonly personWithToken: (hashOfToken: Uint8Array) => number | null;
  /** The value of a cookie; null without it. */
  readonly readCookie: (header: string | null, name: string) => string | null;
  /** Names of the cookie with logins in progress: over HTTP, and over HTTPS. */
  readonly loginCookies: { readonly plain: string; readonly secure: string };
}

/** What logins need of accounts. */
export interface LoginAccounts {
  /** The reference of the account with this user id or e-mail address; 0 when there is none. */
  refOf(name: string): number;
}
