import type { TSchema } from "@sinclair/typebox";
import { JSON_LEVELS_MAX } from "../../json-text.ts";
import type { Caller, Scope } from "../callers/caller.ts";
import type { Role } from "../callers/role.ts";
import { ApiError, type ErrorCode } from "../errors.ts";
import { MINUTE_MS } from "../time/units.ts";
import type { FileFacts, ResourceFacts } from "./resource-facts.ts";

/** Largest request body. Catch has its own rule for the same size. */
export const BODY_BYTES_MAX = 1024 * 1024;
/** Largest body where nothing large is to be said: parsing it takes a fraction of a millisecond. */
export const SMALL_BODY_BYTES_MAX = 64 * 1024;

/** What a body may be. */
export interface BodyLimits {
  readonly bytesMax: number;
  /** Levels of objects and arrays, the body itself included. */
  readonly levelsMax: number;
}

/** The limits of most bodies. */
const SMALL_BODY: BodyLimits = { bytesMax: SMALL_BODY_BYTES_MAX, levelsMax: JSON_LEVELS_MAX };

/** The limits of bodies with the user's own data: `levelsAround` levels, around data of {@link JSON_LEVELS_MAX} levels. */
export function largeBody(levelsAround = 0): BodyLimits {
  return { bytesMax: BODY_BYTES_MAX, levelsMax: JSON_LEVELS_MAX + levelsAround };
}

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
  /**
   * The least role of people who may call it, which {@link leastRole} derives from the access; null: none, it is for keys
   * only.
   */
  readonly role?: Role | null;
  /** Whether people must have logged in within the last {@link STEP_UP_MS}. */
  readonly stepUp?: boolean;
  /** Whether it shows or changes the account itself, so that people with roles in single projects are rejected. */
  readonly ofAccount?: boolean;
  /** Whether it works without a selected project, for people with roles in single projects. */
  readonly anyProject?: boolean;
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

/** How long after a login people may do what requires a step-up. */
export const STEP_UP_MS = 15 * MINUTE_MS;

/** The least role by the required scope, where an area is not like the others. */
const ROLES_BY_ACCESS: Readonly<Partial<Record<Access, Role>>> = {
  any: "viewer",
  "*": "admin",
  operator: "owner",
  "keys:read": "admin",
  "keys:write": "admin",
  "people:read": "admin",
  "people:write": "admin",
};

/** The least role of people for an access: reads are for viewers, changes for editors, keys and people for admins. */
function leastRole({ access, forProxies, byPortal, takesApiKeyHeader }: OperationSpec): Role | null {
  // What other programs call by a protocol of their own is for keys.
  if (access === "public" || forProxies || byPortal || takesApiKeyHeader) return null;
  return ROLES_BY_ACCESS[access] ?? (access.endsWith(":read") ? "viewer" : "editor");
}

/** Fills in the defaults that follow from `access`. */
export function operationOf(spec: OperationSpec): Operation {
  const { access } = spec;
  const colon = access.indexOf(":");
  return {
    area: colon < 0 ? null : access.slice(0, colon),
    role: leastRole(spec),
    stepUp: false,
    ofAccount: spec.accountOnly === true,
    anyProject: false,
    cost: 0,
    chargesLater: false,
    limit: access === "public" ? "none" : "general",
    accountOnly: false,
    grantsEverything: false,
    changesKeys: access === "keys:write",
    monitoring: false,
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
