import type { ErrorCode } from "../errors.ts";
import { type BodyBounds, SMALL_BODY } from "./body.ts";

/** A scope that an operation can require: the area's word, and whether it is changed. */
export type Scope = `${string}:${"read" | "write"}`;

/** Who may call: anyone, the operator, or a key with this scope. */
export type Access = "public" | "operator" | Scope;

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
  /** Whether `Idempotency-Key` is honoured: on every change by a key, but where the request's own token does it. */
  readonly idempotent?: boolean;
  /** Lists: the cursor is a value that the items show anyway, and goes out as it is. */
  readonly openCursor?: boolean;
  /** Bounds of the body where {@link SMALL_BODY} does not do. */
  readonly bodyBounds?: BodyBounds;
  /** Codes that this endpoint adds to those which every endpoint of its kind can give. */
  readonly errors?: readonly ErrorCode[];
  /** A body that works. */
  readonly example?: Readonly<Record<string, unknown>>;
  /**
   * Public endpoints that take any bytes instead of a JSON object: says what they are. Nothing is read before the
   * handler asks for it, and no input is refused.
   */
  readonly anyBody?: string;
  /** Public endpoints: a gate that every attempt passes before its input is looked at. Throws an ApiError to refuse. */
  readonly admit?: (clientAddress: string) => void;
}

/** An operation with everything said. */
export type Operation = OperationSpec &
  Required<Omit<OperationSpec, "description" | "errors" | "example" | "anyBody" | "admit">>;

/** Fills in what an operation leaves to its access. */
export function operationOf(spec: OperationSpec): Operation {
  const { access } = spec;
  return {
    cost: 0,
    limit: access === "public" ? "none" : "general",
    accountOnly: false,
    grantsEverything: false,
    changesKeys: access === "keys:write",
    monitoring: false,
    secret: false,
    changesProject: access.endsWith(":write"),
    idempotent: access !== "public",
    openCursor: false,
    bodyBounds: SMALL_BODY,
    ...spec,
  };
}
