import { Kind, type Static, type TSchema, Type } from "@sinclair/typebox";
import { named, orNull, text } from "../../kernel/data/schema.ts";
import { DEFINITION, Tag } from "./definitions/schema.ts";
import { DESCRIPTION_LENGTH_MAX, FLAG_KEY_LENGTH_MAX } from "./domain.ts";

/** What a flag is called. */
export const FlagKey = Type.String({
  pattern: `^[a-z0-9][a-z0-9_-]{0,${FLAG_KEY_LENGTH_MAX - 1}}$`,
  errorMessage: `must be 1 to ${FLAG_KEY_LENGTH_MAX} lower-case letters, digits, dashes or underscores, beginning with a letter or digit`,
  examples: ["new-checkout"],
});

const Shown = Type.String({ examples: FlagKey["examples"] });
const Version = Type.Integer({
  description: "One counter per project: its value at the flag's last change.",
  examples: [7],
});
const DateTime = Type.String({ format: "date-time" });

/** Path of a flag. */
export const FlagParams = Type.Object({ flagKey: FlagKey });

/**
 * A field that the route lets pass whatever it is, and the service refuses with `gate.rule_invalid`: it has to be looked at
 * together with what is stored.
 */
function loose<Schema extends TSchema>(schema: Schema) {
  return Type.Optional(Type.Unsafe<Static<Schema>>({ ...schema, [Kind]: "Any" }));
}

/** The same, where null is the default. */
function looseOrNull<Schema extends TSchema>(schema: Schema) {
  return loose(orNull(schema));
}

/**
 * Body of a flag's creation or change. The schema lets a value of the wrong type pass: the rule refuses it, with
 * `gate.rule_invalid`.
 */
export const FlagBody = named("FlagBody", {
  flag_key: FlagKey,
  enabled: Type.Any({ type: "boolean", errorMessage: "must be true or false", examples: [true] }),
  description: Type.Optional(
    Type.Union([text({ min: 0, max: DESCRIPTION_LENGTH_MAX }), Type.Null()], {
      errorMessage: `must be a text of at most ${DESCRIPTION_LENGTH_MAX} characters`,
      description: "Left out, an existing one stays; null clears it. So it is with all fields.",
    }),
  ),
  type: looseOrNull(DEFINITION.type),
  variants: looseOrNull(DEFINITION.variants),
  default: looseOrNull(DEFINITION.default),
  off_variant: loose(DEFINITION.off_variant),
  rules: looseOrNull(DEFINITION.rules),
  tags: looseOrNull(DEFINITION.tags),
  metadata: looseOrNull(DEFINITION.metadata),
  server_only: looseOrNull(DEFINITION.server_only),
  archived: looseOrNull(Type.Boolean()),
  if_version: looseOrNull(
    Type.Integer({
      minimum: 0,
      description:
        "Refuses the change (409 `conflict` with `version`) when the flag has another version by now.",
    }),
  ),
});
export type FlagBody = Static<typeof FlagBody>;

/** Answer to a creation or change. */
export const FlagSaved = named("FlagSaved", {
  success: Type.Literal(true),
  flag_key: Shown,
  version: Version,
});
export type FlagSaved = Static<typeof FlagSaved>;

/** The keys of all flags. */
export const FlagKeys = named("FlagKeys", { flags: Type.Array(Shown) });
export type FlagKeys = Static<typeof FlagKeys>;

/** A flag in the configuration. */
const Flag = named("Flag", {
  flag_key: Shown,
  enabled: Type.Boolean(),
  description: Type.Optional(Type.String({ examples: ["The new checkout"] })),
});

/** All that is known of a flag. */
export const FlagDefinition = named("FlagDefinition", {
  flag_key: Shown,
  enabled: Type.Boolean(),
  description: orNull(Type.String({ examples: ["The new checkout"] })),
  ...DEFINITION,
  archived: Type.Boolean({ examples: [false] }),
  version: Version,
  created_at: orNull(DateTime, { description: "Null for a flag that is older than this field." }),
  updated_at: DateTime,
  last_evaluated_at: orNull(DateTime, {
    description: "The hour of its last evaluation by itself; evaluations of all flags together do not count.",
  }),
  stale: Type.Boolean({
    description:
      "Unchanged for 30 days, and in that time either not evaluated by itself, or with one possible outcome.",
    examples: [false],
  }),
});
export type FlagDefinition = Static<typeof FlagDefinition>;

/** Which flags, and how much of them. */
export const FlagConfigQuery = Type.Object({
  full: Type.Optional(
    Type.Boolean({ errorMessage: "must be true or false", description: "Whole definitions." }),
  ),
  tag: Type.Optional(Type.Unsafe<string>({ ...Tag, description: "Flags with this tag alone." })),
  archived: Type.Optional(
    Type.Boolean({ errorMessage: "must be true or false", description: "Archived flags too." }),
  ),
});
export type FlagConfigQuery = Static<typeof FlagConfigQuery>;

/** All flags; whole definitions where they were asked for. */
export const FlagConfig = named("FlagConfig", {
  flags: Type.Array(Type.Union([Flag, FlagDefinition])),
});
export type FlagConfig = Static<typeof FlagConfig>;

/** Answer to an evaluation. */
export const FlagEvaluation = named("FlagEvaluation", { enabled: Type.Boolean(), flag_key: Shown });
export type FlagEvaluation = Static<typeof FlagEvaluation>;

/** Answer to a deletion. */
export const FlagDeleted = named("FlagDeleted", { success: Type.Literal(true) });
export type FlagDeleted = Static<typeof FlagDeleted>;
