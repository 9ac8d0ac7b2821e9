import type { AuditedRequest } from "../../kernel/audit/trail.ts";
import type { CallerAccount, LoginMethod } from "../../kernel/callers/caller.ts";
import type { Role } from "../../kernel/callers/role.ts";
import type { PageRequest } from "../../kernel/http/access/peers.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A person as sessions use them, as of now. */
export interface SessionPerson {
  readonly ref: number;
  readonly id: string;
  readonly accountRef: number;
  readonly email: string;
  readonly name: string | null;
  /** The role for the account; null: roles in single projects. */
  readonly role: Role | null;
  /** Roles by the reference of the project. */
  readonly projects: ReadonlyMap<number, Role>;
  /** Whether the person can log in: neither invited nor disabled. */
  readonly isActive: boolean;
  /** How the person can log in again for a step-up. */
  readonly stepUpMethods: readonly LoginMethod[];
}

/**
 * What a login has proven beyond one person: it also opens the other accounts in which this identity, or this address, is
 * that of an active person.
 */
export type LoginProof =
  | { readonly type: "oidc"; readonly issuer: string; readonly subject: string }
  | { readonly type: "header" | "email"; readonly email: string };

/** Types of ways to log in that the login page offers. */
export const OFFERED_METHODS = ["passkey", "oidc", "header", "email", "key"] as const;

/** A way to log in that the login page offers. */
export interface OfferedMethod {
  readonly type: (typeof OFFERED_METHODS)[number];
  /** What the button shows. */
  readonly name?: string;
  /** Where the button leads, from the server's origin. */
  readonly url?: string;
}

/** A login by an address that is proven. */
export interface ProvenAddress {
  readonly email: string;
  /** Null: the login does not say. */
  readonly name: string | null;
  /** Groups that a trusted proxy sends; null for none. */
  readonly groups: readonly string[] | null;
  /** The person of the browser's session, who is preferred; null without one. */
  readonly currentRef: number | null;
}

/** The request of a login, as its audit entries show it. */
export type ProvenRequest = PageRequest &
  Pick<AuditedRequest, "requestId" | "requestOrigin"> & { readonly clientAddress: string };

/** What sessions need of people. */
export interface SessionPeople {
  /** A person; null if there is none, or it has been removed. */
  person(ref: number): SessionPerson | null;
  /** The scopes that a role stands for, for what looks at scopes instead of operations. */
  scopesOf(role: Role): ReadonlySet<string>;
  /** Uses up a login link. Returns the person; null for any that is not valid. */
  consumeLoginLink(tx: Tx, token: string): SessionPerson | null;
  /** Creates a login link of a person. Returns its token. */
  createLoginLink(tx: Tx, personRef: number, expiresAt: number): string;
  /**
   * The person whom a trusted proxy names, with the role of their groups. Accepts their invitations.
   * @throws ApiError `unauthorized`
   */
  logInByHeader(tx: Tx, login: ProvenAddress, request: ProvenRequest): SessionPerson;
  /** The person of an address that a link by e-mail has proven. Accepts their invitations. @throws ApiError `unauthorized` */
  logInByEmail(tx: Tx, login: ProvenAddress, request: ProvenRequest): SessionPerson;
  /** Creates a link for an address, which works in one browser; null if nobody has the address. */
  createEmailLink(
    tx: Tx,
    email: string,
    link: { readonly browserHash: Uint8Array; readonly expiresAt: number },
  ): { readonly token: string; readonly accountRef: number; readonly email: string } | null;
  /** Uses up such a link in its browser. Returns the address that it proves; null for any that is not valid there. */
  useEmailLink(tx: Tx, token: string, browserHash: Uint8Array | null): string | null;
  /** The active people whom a login has proven, one for each account. */
  provenBy(proof: LoginProof): readonly SessionPerson[];
  /** Records that a person was seen. */
  recordSeen(tx: Tx, personRef: number): void;
  /** Ways to log in, in the order in which the login page offers them. */
  offeredMethods(): readonly OfferedMethod[];
}

/** What sessions need of the accounts. */
export interface SessionAccounts {
  account(accountRef: number): CallerAccount & { readonly email: string };
}
