import type { TSchema } from "@sinclair/typebox";
import { ApiError, type ErrorCode, echoed } from "../../errors.ts";
import { isUnlimited, type TierName } from "../../limits/tiers.ts";
import type { Tx } from "../../storage/tx.ts";
import { type BodyLimits, SMALL_BODY } from "../requests/body.ts";
import type { AddressRanges } from "./address-ranges.ts";
import type { PageRequest } from "./peers.ts";

/** A scope that an operation can require: the area's word, and whether it is changed. */
export type Scope = `${string}:${"read" | "write"}`;

/** Who may call: anyone, the operator, a key with whatever scopes, one with all of them, or one with this scope. */
export type Access = "public" | "operator" | "any" | "*" | Scope;

/** Whether an operation writes entries of the audit log: none, one when it changes something, or also when it refuses. */
export type AuditColumn = "no" | "yes" | "failure";

/** What a route says of its operation beside its schemas. What is left out follows from `access`. */
export interface OperationSpec {
  /** What the ledger, the metrics and the OpenAPI document call it. */
  readonly name: string;
  /** One line for lists of endpoints. */
  readonly summary: string;
  /** More, where one line is not enough. Markdown. */
  readonly description?: string;
  readonly access: Access;
  /** Credits, charged in the same transaction as the work; 0 when left out. */
  readonly cost?: number;
  /** Which token bucket of the caller's key counts the request. */
  readonly limit?: "general" | "monitor" | "none";
  /** Refused to keys that are bound to one project. */
  readonly accountOnly?: boolean;
  /**
   * The answer is a platform key, which has every scope and no end: refused to keys without the scope `*` and to keys
   * that end, since no key can grant what it lacks.
   */
  readonly grantsEverything?: boolean;
  /** Whether it makes, changes or ends keys: refused to platform keys in their grace. */
  readonly changesKeys?: boolean;
  /** No part of the API but of running the server: not in its description, and answered to whom `--metrics-access` admits. */
  readonly monitoring?: boolean;
  /** Whether the answer holds a secret: then only the credential that got it gets it again, and no cache may keep it. */
  readonly secret?: boolean;
  /** Whether success is a change in the caller's project. Projects and keys say themselves which project they change. */
  readonly changesProject?: boolean;
  /** Whether the audit log has it: who changed what. */
  readonly audit?: AuditColumn;
  /** Whether `Idempotency-Key` is honoured: on every change by a key, but where the request's own token does it. */
  readonly idempotent?: boolean;
  /** Lists: the cursor is a value that the items show anyway, and goes out as it is. */
  readonly openCursor?: boolean;
  /** Whether a key may also come as `X-API-Key`, where a protocol that others have made has it so. */
  readonly takesApiKeyHeader?: boolean;
  /**
   * Whether its responses carry an `ETag`, and one that the caller names in `If-None-Match` is a 304. The tag is made
   * of the response's bytes; with `by-handler`, the handler sends tag and 304 itself.
   */
  readonly tagged?: boolean | "by-handler";
  /** What a refusal's body says besides, where a protocol that others have made wants it. */
  readonly rejectionFields?: (refusal: ApiError, call: RejectedCall) => Readonly<Record<string, string>>;
  /** Bounds of the body where {@link SMALL_BODY} does not do. */
  readonly bodyLimits?: BodyLimits;
  /** Media types of an answer that is no JSON, but a text made while it is sent. */
  readonly responseTypes?: readonly string[];
  /** What it answers as plain text, by status, where a protocol that others have made wants it. */
  readonly textResponses?: Readonly<Record<string, string>>;
  /**
   * Responses that the route's schemas do not have, for the API document: content by media type, by status or range of
   * statuses (`2XX`). They stand alongside those that the rest says of the operation.
   */
  readonly additionalResponses?: Readonly<Record<string, AdditionalResponse>>;
  /** Whether only pages of this server may send it: they set the header `X-Ninefold-Session`. */
  readonly fromOwnPage?: boolean;
  /** Codes that this endpoint adds to those which every endpoint of its kind can give. */
  readonly errors?: readonly ErrorCode[];
  /** A body that works. */
  readonly example?: Readonly<Record<string, unknown>>;
  /**
   * Public endpoints that take any bytes instead of a JSON object: says what they are. Nothing is read before the
   * handler asks for it, and no input is refused.
   */
  readonly anyBody?: string;
  /**
   * Asked by reverse proxies for their clients: the proxy's key stands in a header of its own and works from the proxy's
   * address, and whatever is refused to the proxy is 503, since its client would take anything else for its own.
   */
  readonly forProxies?: boolean;
  /** Whether it answers every method, at its path and below it; it is described by the one that it was declared with. */
  readonly everyMethod?: boolean;
  /** Public endpoints: a gate that every attempt passes before its input is looked at. Throws an ApiError to refuse. */
  readonly admit?: (clientAddress: string) => void;
}

/** A response as the API document describes it, besides what the schemas of its route say. */
export interface AdditionalResponse {
  /** One sentence. */
  readonly description: string;
  /** Schemas by media type; null for a text. Without content there is no body. */
  readonly content?: Readonly<Record<string, TSchema | null>>;
}

/** What a refusal's body can tell of its request. */
export interface RejectedCall {
  readonly request: Request;
  /** The exact text of the body; empty where it has not been read. */
  readonly bodyText: string;
}

/** What no operation has to say. */
type OptionalFields =
  | "description"
  | "errors"
  | "example"
  | "anyBody"
  | "admit"
  | "responseTypes"
  | "textResponses"
  | "additionalResponses"
  | "rejectionFields";

/** An operation with everything said. */
export type Operation = OperationSpec &
  Required<Omit<OperationSpec, OptionalFields>> & {
    /** The area whose scope it asks for; null where it asks for none. */
    readonly area: string | null;
  };

/** Fills in what an operation leaves to its access. */
export function operationOf(spec: OperationSpec): Operation {
  const { access } = spec;
  const colon = access.indexOf(":");
  return {
    area: colon < 0 ? null : access.slice(0, colon),
    cost: 0,
    limit: access === "public" ? "none" : "general",
    accountOnly: false,
    grantsEverything: false,
    changesKeys: access === "keys:write",
    monitoring: false,
    secret: false,
    changesProject: access.endsWith(":write"),
    audit: "no",
    idempotent: access !== "public",
    openCursor: false,
    takesApiKeyHeader: false,
    tagged: false,
    fromOwnPage: false,
    bodyLimits: SMALL_BODY,
    forProxies: false,
    everyMethod: false,
    ...spec,
  };
}

/** The account behind a request, live: a change of tier or balance shows at once. */
export interface CallerAccount {
  /** The row's number; never shown. */
  readonly ref: number;
  readonly userId: string;
  readonly tier: TierName;
  /** When the tier was last changed, epoch milliseconds; 0 when it was not since the account came into memory. */
  readonly tierSince: number;
  readonly balance: number;
  readonly suspended: boolean;
  /** Where credentials of the whole account work. */
  readonly defaultProject: CallerProject;
}

/** The project that a request works in. */
export interface CallerProject {
  /** The row's number; never shown. */
  readonly ref: number;
  readonly id: string;
}

/** Who makes a request, as its key says. */
export interface Caller {
  readonly account: CallerAccount;
  readonly project: CallerProject;
  /** Identifies the key, not its secret: `platform:7`, `managed:12`. */
  readonly credential: string;
  /** Scopes of a managed key; the platform key has `*`. */
  readonly scopes: ReadonlySet<string>;
  /** Whether the key was made for one project and sees that alone. */
  readonly projectBound: boolean;
  /** Whether that project has been deleted; live. */
  readonly projectDeleted: boolean;
  /** Whether the key has been revoked since it was looked up; live. */
  readonly revoked: boolean;
  /** When the key ends, epoch milliseconds; null when it does not. Live. */
  readonly endsAt: number | null;
  /** Whether it is a platform key in its grace: a rotation has put a newer one in its place. Live. */
  readonly superseded: boolean;
  /** The addresses that the key works from; null or left out: any. Live. */
  readonly allowedIps?: AddressRanges | null;
  /** The browser session that stands for the key, if one does. */
  readonly session?: CallerSession;
}

/** A browser session, which stands for the key that it was opened with. */
export interface CallerSession {
  /** Tells it from others; no secret. */
  readonly id: number;
  /** The key's, as {@link Caller.credential} has it. */
  readonly credential: string;
  /** SHA-256 of the key, hex. */
  readonly digest: string;
  /** Epoch milliseconds; the key may end before. */
  readonly endsAt: number;
}

/** Finds the caller of a key. Supplied by the areas that keep keys. */
export interface Authenticator {
  /**
   * The caller of the key with this SHA-256 (hex), or null when it is unknown, revoked, expired or past its grace.
   * The key's form and checksum have been checked.
   */
  authenticate(digest: string): Caller | null;
}

/** Finds the caller behind a browser session's cookie. Supplied by the area that keeps sessions. */
export interface SessionAuthenticator {
  /**
   * Null where a request carries no cookie of this server, or one of a session that has ended.
   * @throws ApiError `forbidden` when the cookie came from another page than this server's own, `not_found` for a project
   *   that the request names and the caller does not see.
   */
  authenticateSession(from: PageRequest): Caller | null;
}

/** Takes credits. Supplied by the area that keeps accounts. */
export interface Charger {
  /**
   * Takes `cost` credits for an operation within the unit of work; accounts of tier `unlimited` pay nothing.
   * @throws ApiError `insufficient_balance` with `balance` and `user_id`.
   */
  charge(tx: Tx, account: CallerAccount, operation: string, cost: number): void;
  /** Gives back what {@link charge} took, in a later unit of work. */
  refund(tx: Tx, account: CallerAccount, operation: string, cost: number): void;
}

/**
 * Looks at what may change at any moment, at the gates and once more within the unit of work: the body may have taken
 * its time, and a unit queued before this one may have revoked the key or deleted the project.
 *
 * @throws ApiError `unauthorized`, `forbidden`
 */
export function assertStillValid(caller: Caller): void {
  if (caller.revoked) throw new ApiError("unauthorized", "This key has just been revoked or paused.");
  if (caller.account.suspended) throw new ApiError("forbidden", "This account is suspended.");
  if (caller.projectDeleted) {
    throw new ApiError("forbidden", "The project of this key has been deleted. Use a key of another one.");
  }
}

/** @throws ApiError `forbidden` when the caller's key does not work from an address. */
export function assertAllowedFrom({ allowedIps }: Caller, address: string): void {
  if (!allowedIps || allowedIps.includes(address)) return;
  throw new ApiError(
    "forbidden",
    `This key does not work from ${echoed(address)}: it is bound to other addresses.`,
  );
}

/**
 * A leaked key must not outlive its end: in its grace a platform key changes no keys, and no key that ends is answered
 * with one that does not.
 *
 * @throws ApiError `forbidden`
 */
export function assertMayChangeKeys(caller: Caller, operation: Operation): void {
  if (!operation.changesKeys) return;
  if (caller.superseded) {
    throw new ApiError(
      "forbidden",
      "A newer platform key has been made: until its end this one serves requests, but changes no keys. Use the newest one.",
    );
  }
  if (operation.grantsEverything && caller.endsAt !== null) {
    throw new ApiError(
      "forbidden",
      "This key ends, and the new one would not: no key gives what it lacks. Use a key without an end.",
    );
  }
}

/** Whether it is the operator: by its platform key, or by one of the whole account that has every scope. */
export function isOperator({ account, projectBound, scopes }: Caller): boolean {
  return isUnlimited(account.tier) && !projectBound && scopes.has("*");
}

/** Whether the caller's key carries a scope: itself, the area's `*`, or `*`. */
export function hasScope(caller: Caller, scope: Scope | string): boolean {
  const scopes = caller.scopes;
  if (scopes.has("*") || scopes.has(scope)) return true;
  return scopes.has(`${scope.slice(0, scope.indexOf(":"))}:*`);
}
