import { Type } from "@sinclair/typebox";

/** The field of creations and responses that marks what `ninefold apply` has created. */
export const MANAGED = {
  managed_by: Type.Optional(
    Type.Literal("apply", {
      errorMessage: "must be apply, or omitted",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
      examples: [],
    }),
  ),
};

/** The field of responses that identifies secrets. */
export const SECRET_DIGEST = {
  secret_digest: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description:
        "Salted digests of the secrets, by field. Only keys with `:read` and `:write` of the area receive them.",
      examples: [],
    }),
  ),
};

/** Who manages a resource, as it is stored; null for nobody. */
export type ManagedBy = "apply" | null;

/** The field `managed_by` of a response. */
export function managedView(managedBy: ManagedBy): { managed_by?: "apply" } {
  return managedBy === null ? {} : { managed_by: managedBy };
}

/** How the resources of a path stand in a configuration file. The operation that creates one declares it. */
export interface FileFacts {
  /** The section of the file. */
  readonly section: string;
  /** The field that names a resource: unique in its project. */
  readonly name: string;
  /** Fields of a request that a file does not have. */
  readonly omitted?: readonly string[];
  /** Path of the list, where it is not the path of the creation. */
  readonly listPath?: string;
  /** Whether the operation of the creation also changes it. */
  readonly isSave?: boolean;
  /** Whether it is created when it is missing, and not compared afterwards. */
  readonly createOnly?: boolean;
  /** Whether a project has one, without a name. */
  readonly isSingle?: boolean;
  /** Values of omitted fields, which an export leaves out. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /**
   * Fields that a change accepts, but cannot change, with the value that an omitted one stands for; undefined where the omitted
   * one keeps its value.
   */
  readonly fixed?: Readonly<Record<string, unknown>>;
  /** Fields of which a resource has one: a file that sets one must clear the other. */
  readonly alternatives?: readonly [string, string];
  /** A field whose values are unique in the project. */
  readonly unique?: string;
  /** An object whose fields stand beside the others in the file. */
  readonly flattened?: string;
  /** Fields of a response that a file cannot have, given the others. */
  readonly computed?: (shown: Readonly<Record<string, unknown>>) => readonly string[];
  /** Checks a creation that its schema accepts, as far as no server is needed. @throws ApiError `validation_error` */
  readonly check?: (body: never) => void;
}
