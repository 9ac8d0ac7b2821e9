import { Kind, type Static, type TSchema, Type } from "@sinclair/typebox";
import { named, orNull, text } from "../../../kernel/data/schema.ts";
import { DESCRIPTION_LENGTH_MAX } from "../domain.ts";
import { DEFINITION } from "./schema.ts";

/**
 * A field that the route accepts with any value. The service validates it together with the stored fields and rejects it
 * with `gate.rule_invalid`.
 */
function unchecked<Schema extends TSchema>(schema: Schema) {
  return Type.Optional(Type.Unsafe<Static<Schema>>({ ...schema, [Kind]: "Any" }));
}

/** The same for a field where null restores the default. */
export function uncheckedOrNull<Schema extends TSchema>(schema: Schema) {
  return unchecked(orNull(schema));
}

/** The switch in a body: any value, which the service checks. */
export const Enabled = Type.Any({
  type: "boolean",
  errorMessage: "must be true or false",
  description: "Whether the flag is on. While it is off, `off_variant` is served to everyone.",
  examples: [true],
});

/** The optional settings of a flag. The service rejects values of wrong types with `gate.rule_invalid`. */
export const SETTINGS = {
  description: Type.Optional(
    Type.Union([text({ min: 0, max: DESCRIPTION_LENGTH_MAX }), Type.Null()], {
      errorMessage: `must be a string of at most ${DESCRIPTION_LENGTH_MAX} characters`,
      description:
        "Description for people. Omit it to leave it unchanged; null removes it. The same applies to all fields below.",
    }),
  ),
  type: uncheckedOrNull(DEFINITION.type),
  variants: uncheckedOrNull(DEFINITION.variants),
  default: unchecked(
    orNull(DEFINITION.default, {
      description:
        "Result if no rule matches. Default: the variant `on`; required for other types than `boolean`.",
    }),
  ),
  off_variant: unchecked(DEFINITION.off_variant),
  rules: uncheckedOrNull(DEFINITION.rules),
  tags: uncheckedOrNull(DEFINITION.tags),
  metadata: uncheckedOrNull(DEFINITION.metadata),
  server_only: uncheckedOrNull(DEFINITION.server_only),
  archived: uncheckedOrNull(
    Type.Boolean({ description: "Whether the flag is omitted from lists and never evaluated." }),
  ),
};

/** A change of a flag: fields of a save. */
export const FlagChange = named(
  "FlagChange",
  { enabled: Type.Optional(Enabled), ...SETTINGS },
  {
    description:
      "Fields of a save. Omitted fields stay as they are, null restores the default; `enabled` of a new flag is true.",
    examples: [{ enabled: true }],
  },
);
export type FlagChange = Static<typeof FlagChange>;
