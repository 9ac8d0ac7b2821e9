import type { AddressRanges } from "../data/address-ranges.ts";
import { ApiError, echoed } from "../errors.ts";
import { isUnlimited, type TierName } from "../limits/tiers.ts";
import type { Tx } from "../storage/tx.ts";
import { isAtLeast, type Role } from "./role.ts";

/** A scope that an operation can require: the area's word, and whether it is changed. */
export type Scope = `${string}:${"read" | "write"}`;

/** The account of a request, live: a change of tier or balance is visible immediately. */
export interface CallerAccount {
  /** The row's number; never shown. */
  readonly ref: number;
  readonly userId: string;
  readonly tier: TierName;
  /** Time of the last tier change, in epoch milliseconds; 0 if none since the account was loaded. */
  readonly tierSince: number;
  readonly balance: number;
  readonly suspended: boolean;
  /** Whether it is deleted: no key of it works, and its rows are being removed. */
  readonly deleted: boolean;
  /** The project that credentials of the whole account use. */
  readonly defaultProject: CallerProject;
}

/** The project of a request. */
export interface CallerProject {
  /** The row's number; never shown. */
  readonly ref: number;
  readonly id: string;
}

/** The identity behind a request's key. */
export interface Caller {
  readonly account: CallerAccount;
  readonly project: CallerProject;
  /** Identifies the key, not its secret: `platform:7`, `managed:12`. */
  readonly credential: string;
  /** Scopes of a managed key; the platform key has `*`. */
  readonly scopes: ReadonlySet<string>;
  /** Whether the key belongs to one project and sees only that. */
  readonly projectBound: boolean;
  /** Whether that project has been deleted; live. */
  readonly projectDeleted: boolean;
  /** Whether the key has been revoked since it was looked up; live. */
  readonly revoked: boolean;
  /** Expiry of the key, in epoch milliseconds; null if it does not expire. Live. */
  readonly endsAt: number | null;
  /** Whether it is a platform key in its grace period, replaced by a rotation. Live. */
  readonly superseded: boolean;
  /** The addresses that may use the key; null or omitted: any. Live. */
  readonly allowedIps?: AddressRanges | null;
  /** The browser session that stands for the key, if one does. */
  readonly session?: CallerSession;
  /** The portal link that stands for the key, if one does: the caller is a customer of the account. */
  readonly portal?: CallerPortal;
  /** The person who logged in, if the session is a person's: then there is no key. */
  readonly person?: CallerPerson;
}

/** Ways in which a browser can log in. */
export const LOGIN_METHODS = ["key", "link", "invitation", "passkey", "oidc", "header", "email"] as const;
/** One of {@link LOGIN_METHODS}. */
export type LoginMethod = (typeof LOGIN_METHODS)[number];

/** A person of the account, as the request has them. Live: a changed role counts immediately. */
export interface CallerPerson {
  /** The row's number; never shown. */
  readonly ref: number;
  readonly id: string;
  readonly email: string;
  readonly name: string | null;
  /** The role that counts for this request: that of the account, or that of the project. */
  readonly role: Role;
  /** Whether the role is that of the account. Other people see nothing of the account itself. */
  readonly isOfAccount: boolean;
  /** Projects in which the person has a role; null: all of the account. */
  readonly projects: ReadonlyMap<number, Role> | null;
  /** Whether the project of the request is one that neither the request nor a role selects. */
  readonly lacksProject: boolean;
  /** Time of the login, or of the last step-up, in epoch milliseconds. */
  readonly authenticatedAt: number;
  /** How the browser logged in. */
  readonly method: LoginMethod;
  /** How the person can log in again for a step-up. */
  readonly stepUpMethods: () => readonly LoginMethod[];
}

/** A portal link, which gives a customer of the account access to what it owns in one project. */
export interface CallerPortal {
  /** Id of the customer, chosen by the account. */
  readonly ownerId: string;
  /** The credential of the key that created the link, as {@link Caller.credential} has it. */
  readonly credential: string;
}

/** A browser session, which stands for a person, or for the key that it was opened with. */
export interface CallerSession {
  /** Not a secret. */
  readonly id: number;
  /** The key's, as {@link Caller.credential} has it; `person:3` for a person. */
  readonly credential: string;
  /** SHA-256 of the key, hex; null for the session of a person. */
  readonly digest: string | null;
  /** Epoch milliseconds; the key may expire earlier. */
  readonly endsAt: number;
}

/** Whose login was rejected, and why, for the log of their account. */
export interface RejectedPerson {
  readonly id: string;
  readonly email: string;
  readonly accountRef: number;
  /** One or a few words, such as `disabled`. */
  readonly reason: string;
}

/** The error of a login that is rejected. `person`: whose it is, if that is known; the response does not say it. */
export class RejectedLogin extends ApiError {
  constructor(readonly person: RejectedPerson | null) {
    super(
      "unauthorized",
      "This login was rejected. Log in another way, or request a new invitation from an admin of the account.",
    );
  }
}

/** The error of a login that is rejected: the same whatever was wrong, so that nobody learns who is known. */
export function loginRejected(person: RejectedPerson | null = null): RejectedLogin {
  return new RejectedLogin(person);
}

/** Charges credits. Implemented by the area that stores accounts. */
export interface Charger {
  /**
   * Charges `cost` credits for an operation within the unit of work; accounts of tier `unlimited` are not charged.
   * @throws ApiError `insufficient_balance` with `balance` and `user_id`.
   */
  charge(tx: Tx, account: CallerAccount, operation: string, cost: number): void;
  /** Refunds a {@link charge} in a later unit of work. */
  refund(tx: Tx, account: CallerAccount, operation: string, cost: number): void;
}

/**
 * Checks what may change at any time, at the gates and again within the unit of work: the body may have taken long to
 * arrive, and a unit queued earlier may have revoked the key or deleted the project.
 *
 * @throws ApiError `unauthorized`, `forbidden`
 */
export function assertStillValid(caller: Caller): void {
  if (caller.portal !== undefined) assertLinkStillValid(caller);
  if (caller.account.deleted) throw new ApiError("unauthorized", "This account has been deleted.");
  if (caller.revoked && caller.person !== undefined) throw new ApiError("unauthorized", SESSION_OVER);
  if (caller.revoked) throw new ApiError("unauthorized", "This key was revoked or disabled just now.");
  if (caller.account.suspended) throw new ApiError("forbidden", "This account is suspended.");
  if (caller.projectDeleted) {
    throw new ApiError("forbidden", "The project of this key has been deleted. Use a key of another one.");
  }
}

/** The error of a portal link that has ended, as the customer of the account reads it. */
export const PORTAL_LINK_OVER =
  "This portal link is unknown, revoked or expired. Open the page again where you found it.";
/** The error of a portal link that does not permit a request at present: customers know neither keys nor accounts. */
export const PORTAL_LINK_FORBIDS =
  "This portal link does not permit this. Contact the provider of this page.";

/** The same for a portal link: its errors say nothing about the key and the account behind it. */
function assertLinkStillValid({ account, revoked, projectDeleted }: Caller): void {
  if (account.deleted || revoked || projectDeleted) throw new ApiError("unauthorized", PORTAL_LINK_OVER);
  if (account.suspended) throw new ApiError("forbidden", PORTAL_LINK_FORBIDS);
}

/** @throws ApiError `forbidden` when the caller's key does not work from an address. */
export function assertAllowedFrom({ allowedIps }: Caller, address: string): void {
  if (!allowedIps || allowedIps.includes(address)) return;
  throw new ApiError(
    "forbidden",
    `This key does not work from ${echoed(address)}: its allowed_ips do not include this address.`,
  );
}

/** The error of a person's session that has ended, or whose person has another role since the request began. */
const SESSION_OVER = "This session has ended, or the role of its person has changed just now. Log in again.";

/**
 * Whether the caller is the operator: by its platform key, by a key of the whole account with every scope, or as an owner of
 * its account.
 */
export function isOperator({ account, projectBound, scopes, person }: Caller): boolean {
  return (
    isUnlimited(account.tier) &&
    !projectBound &&
    scopes.has("*") &&
    (person === undefined || person.role === "owner")
  );
}

/** Start of the credentials of managed keys. */
export const MANAGED = "managed:";

/** Whether the caller acts with a managed key, or with a session of one. */
export function hasManagedKey({ session, credential }: Caller): boolean {
  return (session?.credential ?? credential).startsWith(MANAGED);
}

/**
 * Whether the caller may read URLs that give access to whoever knows them, such as those of heartbeats: not people who only
 * read, or only respond to incidents.
 */
export function seesSecretUrls({ person }: Caller): boolean {
  return person === undefined || isAtLeast(person.role, "editor");
}

/** Whether the caller's key carries a scope: itself, the area's `*`, or `*`. */
export function hasScope(caller: Caller, scope: Scope | string): boolean {
  const scopes = caller.scopes;
  if (scopes.has("*") || scopes.has(scope)) return true;
  return scopes.has(`${scope.slice(0, scope.indexOf(":"))}:*`);
}
