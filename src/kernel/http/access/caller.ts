import type { TSchema } from "@sinclair/typebox";
import { ApiError, type ErrorCode, echoed } from "../../errors.ts";
import { isUnlimited, type TierName } from "../../limits/tiers.ts";
import type { ResourceFacts } from "../../resources/facts.ts";
import type { FileFacts } from "../../resources/managed.ts";
import type { Tx } from "../../storage/tx.ts";
import { type BodyLimits, SMALL_BODY } from "../requests/body.ts";
import type { AddressRanges } from "./address-ranges.ts";
import type { PageRequest } from "./peers.ts";

/** A scope that an operation can require: the area's word, and whether it is changed. */
export type Scope = `${string}:${"read" | "write"}`;

/** Who may call: anyone, the operator, a key with whatever scopes, one with all of them, or one with this scope. */
export type Access = "public" | "operator" | "any" | "*" | Scope;

/** When an operation writes an entry of the audit log: never, after a change, or after a change or a rejection. */
export type AuditColumn = "no" | "yes" | "failure";

/** The properties of an operation that its route declares alongside its schemas. Defaults follow from `access`. */
export interface OperationSpec {
  /** Its name in the ledger, the metrics and the OpenAPI document. */
  readonly name: string;
  /** One line for lists of endpoints. */
  readonly summary: string;
  /** More, where one line is not enough. Markdown. */
  readonly description?: string;
  readonly access: Access;
  /** Credits, charged in the same transaction as the work; 0 when omitted. */
  readonly cost?: number;
  /** Whether what it starts is charged later: portal links count it like a request that costs credits. */
  readonly chargesLater?: boolean;
  /** Which token bucket of the caller's key counts the request. */
  readonly limit?: "general" | "monitor" | "none";
  /** Whether keys of one project are rejected. */
  readonly accountOnly?: boolean;
  /**
   * Whether the response is a platform key, which has every scope and never expires: keys without the scope `*` and keys
   * that expire are rejected, since no key can grant what it lacks.
   */
  readonly grantsEverything?: boolean;
  /** Whether it creates, changes or revokes keys: platform keys in their grace period are rejected. */
  readonly changesKeys?: boolean;
  /** Whether it is a monitoring endpoint: not in the API document, and open to the clients that `--metrics-access` allows. */
  readonly monitoring?: boolean;
  /** Whether it says how this process is, so that its response waits for no commit log. */
  readonly ofProcess?: boolean;
  /** Whether the response shows no stored data, so that it never waits for the disk. */
  readonly showsNothing?: boolean;
  /** Whether the response holds a secret: only the same credential gets a stored response, and no cache may store it. */
  readonly secret?: boolean;
  /** Whether the response is a stored document, to which no `warnings` are added. */
  readonly exactResponse?: boolean;
  /** Whether success is a change in the caller's project. Operations on projects and keys note the change themselves. */
  readonly changesProject?: boolean;
  /** When the audit log gets an entry. */
  readonly audit?: AuditColumn;
  /**
   * Whether `Idempotency-Key` is honoured: on every change by a key, except where the request has a token with the same effect.
   * Not by portal links: the keys belong to the project, and customers must not learn which are used.
   */
  readonly idempotent?: boolean;
  /** Lists: the cursor is a value that the items show anyway, so it is not sealed. */
  readonly openCursor?: boolean;
  /** Whether a key may also be sent as `X-API-Key`, as some standard protocols require. */
  readonly takesApiKeyHeader?: boolean;
  /**
   * Whether its responses carry an `ETag`, and `If-None-Match` with that tag returns 304. The tag is a digest of the
   * response's bytes; with `by-handler`, the handler sends tag and 304 itself.
   */
  readonly tagged?: boolean | "by-handler";
  /** Additional fields of error bodies, as some standard protocols require. */
  readonly rejectionFields?: (refusal: ApiError, call: RejectedCall) => Readonly<Record<string, string>>;
  /** Limits of the body; {@link SMALL_BODY} by default. */
  readonly bodyLimits?: BodyLimits;
  /** Media types of a response that is a streamed text instead of JSON. */
  readonly responseTypes?: readonly string[];
  /** Plain-text responses by status, as some standard protocols require. */
  readonly textResponses?: Readonly<Record<string, string>>;
  /**
   * Responses that the route's schemas do not have, for the API document: content by media type, by status. They are added to the responses that follow from the other properties.
   */
  readonly additionalResponses?: Readonly<Record<string, AdditionalResponse>>;
  /** Whether only pages of this server may send it: they set the header `X-Ninefold-Session`. */
  readonly fromOwnPage?: boolean;
  /** Error codes of this endpoint, in addition to those of every endpoint of its kind. */
  readonly errors?: readonly ErrorCode[];
  /** The resource that it lists, reads or changes, if one declares it. */
  readonly resource?: ResourceFacts;
  /** Creations: how the resource stands in a configuration file, if a file can have it. */
  readonly file?: FileFacts;
  /** An example of a valid body. */
  readonly example?: Readonly<Record<string, unknown>>;
  /**
   * Description of the body of public endpoints that accept any bytes instead of a JSON object. Nothing is read before
   * the handler reads it, and no input is rejected.
   */
  readonly anyBody?: string;
  /**
   * Whether reverse proxies call it for their clients: the proxy sends its key in a separate header and uses it from its
   * own address. Errors of the proxy are 503, since its client would take any other status for its own error.
   */
  readonly forProxies?: boolean;
  /**
   * Whether it is called with the token of a portal link in place of a key, by a customer of the account. The `access` is the
   * scope that the key of the link must have.
   */
  readonly byPortal?: boolean;
  /** Whether it accepts every method, at its path and below it. The API document lists the declared method only. */
  readonly everyMethod?: boolean;
  /** Whether it also serves GET and HEAD of the paths below its own, whose parts its handler reads from the URL. */
  readonly belowPath?: boolean;
  /** The path that accepts the methods that this one does not, as errors show it. */
  readonly otherMethodsAt?: string;
  /** The error of every other method at its path; 404 when omitted. */
  readonly rejectMethod?: () => ApiError;
  /** Public endpoints: a check of every request before its input is read. Throws an ApiError to reject. */
  readonly admit?: (clientAddress: string) => void;
}

/** A response as the API document describes it, in addition to those of its route's schemas. */
export interface AdditionalResponse {
  /** One sentence. */
  readonly description: string;
  /** Schemas by media type; null for a text. Without content there is no body. */
  readonly content?: Readonly<Record<string, TSchema | null>>;
}

/** The parts of a rejected request that an error body can repeat. */
export interface RejectedCall {
  readonly request: Request;
  /** The exact text of the body; empty where it has not been read. */
  readonly bodyText: string;
}

/** Properties without a default. */
type OptionalFields =
  | "description"
  | "errors"
  | "example"
  | "resource"
  | "file"
  | "anyBody"
  | "admit"
  | "rejectMethod"
  | "otherMethodsAt"
  | "responseTypes"
  | "textResponses"
  | "additionalResponses"
  | "rejectionFields";

/** An operation with its defaults filled in. */
export type Operation = OperationSpec &
  Required<Omit<OperationSpec, OptionalFields>> & {
    /** The area of the required scope; null without one. */
    readonly area: string | null;
  };

/** Fills in the defaults that follow from `access`. */
export function operationOf(spec: OperationSpec): Operation {
  const { access } = spec;
  const colon = access.indexOf(":");
  return {
    area: colon < 0 ? null : access.slice(0, colon),
    cost: 0,
    chargesLater: false,
    limit: access === "public" ? "none" : "general",
    accountOnly: false,
    grantsEverything: false,
    changesKeys: access === "keys:write",
    monitoring: false,
    ofProcess: false,
    showsNothing: false,
    secret: false,
    exactResponse: false,
    changesProject: access.endsWith(":write"),
    audit: "no",
    idempotent: access !== "public" && spec.byPortal !== true,
    openCursor: false,
    takesApiKeyHeader: false,
    tagged: false,
    fromOwnPage: false,
    bodyLimits: SMALL_BODY,
    forProxies: false,
    byPortal: false,
    everyMethod: false,
    belowPath: false,
    ...spec,
  };
}

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
}

/** A portal link, which gives a customer of the account access to what it owns in one project. */
export interface CallerPortal {
  /** Id of the customer, chosen by the account. */
  readonly ownerId: string;
  /** The credential of the key that created the link, as {@link Caller.credential} has it. */
  readonly credential: string;
}

/** A browser session, which stands for the key that it was opened with. */
export interface CallerSession {
  /** Not a secret. */
  readonly id: number;
  /** The key's, as {@link Caller.credential} has it. */
  readonly credential: string;
  /** SHA-256 of the key, hex. */
  readonly digest: string;
  /** Epoch milliseconds; the key may expire earlier. */
  readonly endsAt: number;
}

/** Finds the caller of a key. Implemented by the areas that store keys. */
export interface Authenticator {
  /**
   * The caller of the key with this SHA-256 (hex), or null when it is unknown, revoked, expired or past its grace.
   * The format and checksum of the key are already verified.
   */
  authenticate(digest: string): Caller | null;
}

/** Finds the caller behind a browser session's cookie. Implemented by the area that stores sessions. */
export interface SessionAuthenticator {
  /**
   * Null if the request has no cookie of this server, or its session has expired.
   * @throws ApiError `forbidden` when the cookie came from another page than this server's own, `not_found` for a project
   *   that the request names and the caller does not see.
   */
  authenticateSession(from: PageRequest): Caller | null;
}

/** Finds the caller behind the token of a portal link. Implemented by the area that stores the links. */
export interface PortalAuthenticator {
  /** Null if the token is unknown, expired or revoked, or if its key or project has gone. */
  authenticatePortal(token: string): Caller | null;
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

/**
 * A leaked key must not outlive its expiry: in its grace period a platform key cannot change keys, and a key that expires
 * cannot obtain one that does not.
 *
 * @throws ApiError `forbidden`
 */
export function assertMayChangeKeys(caller: Caller, operation: Operation): void {
  if (!operation.changesKeys) return;
  if (caller.superseded) {
    throw new ApiError(
      "forbidden",
      "This platform key has been replaced: it serves requests until it expires, but cannot change keys. Use the newest platform key.",
    );
  }
  if (operation.grantsEverything && caller.endsAt !== null) {
    throw new ApiError(
      "forbidden",
      "This key expires, but the new one would not. Use a key without an expiry.",
    );
  }
}

/** Whether the caller is the operator: by its platform key, or by a key of the whole account with every scope. */
export function isOperator({ account, projectBound, scopes }: Caller): boolean {
  return isUnlimited(account.tier) && !projectBound && scopes.has("*");
}

/** Whether the caller's key carries a scope: itself, the area's `*`, or `*`. */
export function hasScope(caller: Caller, scope: Scope | string): boolean {
  const scopes = caller.scopes;
  if (scopes.has("*") || scopes.has(scope)) return true;
  return scopes.has(`${scope.slice(0, scope.indexOf(":"))}:*`);
}
