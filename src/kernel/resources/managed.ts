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
