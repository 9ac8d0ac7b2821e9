import { Kind, type Static, type TSchema, Type } from "@sinclair/typebox";
import { dateTime, flag, listOf, named, oneOf, orNull, text } from "../../kernel/data/schema.ts";
import { MANAGED } from "../../kernel/resources/managed.ts";
import { DEFINITION, Tag } from "./definitions/schema.ts";
import { DESCRIPTION_LENGTH_MAX, FLAG_KEY_LENGTH_MAX, PREVIEWED_CONTEXTS_MAX } from "./domain.ts";
import { REASONS } from "./evaluation/evaluation.ts";
import { Context } from "./evaluation/schema.ts";

export const FlagKey = Type.String({
  pattern: `^[a-z0-9][a-z0-9_-]{0,${FLAG_KEY_LENGTH_MAX - 1}}$`,
  errorMessage: `must be 1 to ${FLAG_KEY_LENGTH_MAX} lower-case letters, digits, dashes or underscores, starting with a letter or digit`,
  description: "Key of the flag, unique within the project; `config` is reserved.",
  examples: ["new-checkout"],
});

const FlagKeyText = Type.String({ examples: FlagKey["examples"] });
const Version = Type.Integer({
  description: "Version of the flag: the project's change counter at the flag's last change.",
  examples: [7],
});

/** Path of a flag. */
export const FlagParams = Type.Object({ flagKey: FlagKey });

/**
 * A field that the route accepts with any value. The service validates it together with the stored fields and rejects it
 * with `gate.rule_invalid`.
 */
function unchecked<Schema extends TSchema>(schema: Schema) {
  return Type.Optional(Type.Unsafe<Static<Schema>>({ ...schema, [Kind]: "Any" }));
}

/** The same for a field where null restores the default. */
function uncheckedOrNull<Schema extends TSchema>(schema: Schema) {
  return unchecked(orNull(schema));
}

const Enabled = Type.Any({
  type: "boolean",
  errorMessage: "must be true or false",
  description: "Whether the flag is on. While it is off, `off_variant` is served to everyone.",
  examples: [true],
});

/** The optional settings of a flag. The service rejects values of wrong types with `gate.rule_invalid`. */
const SETTINGS = {
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
export const FlagChange = named("FlagChange", { enabled: Type.Optional(Enabled), ...SETTINGS });
export type FlagChange = Static<typeof FlagChange>;

/** Body of a save. */
export const FlagBody = named("FlagBody", {
  flag_key: FlagKey,
  enabled: Enabled,
  ...SETTINGS,
  ...MANAGED,
  if_version: uncheckedOrNull(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        "Expected version of the flag. If the flag has another version, the save is rejected with 409 `conflict`.",
    }),
  ),
});
export type FlagBody = Static<typeof FlagBody>;

export const FlagSaved = named("FlagSaved", {
  success: Type.Literal(true),
  flag_key: FlagKeyText,
  version: Version,
});
export type FlagSaved = Static<typeof FlagSaved>;

export const FlagKeys = named("FlagKeys", { flags: Type.Array(FlagKeyText) });
export type FlagKeys = Static<typeof FlagKeys>;

/** A flag in the configuration. */
const Flag = named("Flag", {
  flag_key: FlagKeyText,
  enabled: Type.Boolean(),
  description: Type.Optional(Type.String({ examples: ["The new checkout"] })),
});

export const FlagDefinition = named("FlagDefinition", {
  flag_key: FlagKeyText,
  enabled: Type.Boolean(),
  description: orNull(Type.String({ examples: ["The new checkout"] })),
  ...DEFINITION,
  archived: Type.Boolean({ examples: [false] }),
  ...MANAGED,
  version: Version,
  created_at: orNull(dateTime(), { description: "Creation time; null for flags older than this field." }),
  updated_at: dateTime(),
  last_evaluated_at: orNull(dateTime(), {
    description: "Hour of the last individual evaluation; bulk evaluations are not counted.",
  }),
  stale: Type.Boolean({
    description:
      "Whether the flag is unchanged for 30 days, and in this time either not individually evaluated, or limited to one possible outcome.",
    examples: [false],
  }),
});
export type FlagDefinition = Static<typeof FlagDefinition>;

export const FlagConfigQuery = Type.Object({
  full: Type.Optional(
    flag({
      description: "Whether to return complete definitions.",
    }),
  ),
  tag: Type.Optional(Type.Unsafe<string>({ ...Tag, description: "Returns only flags with this tag." })),
  archived: Type.Optional(
    flag({
      description: "Whether to include archived flags.",
    }),
  ),
});
export type FlagConfigQuery = Static<typeof FlagConfigQuery>;

export const FlagConfig = named("FlagConfig", {
  flags: Type.Array(Type.Union([Flag, FlagDefinition])),
});
export type FlagConfig = Static<typeof FlagConfig>;

export const FlagEvaluation = named("FlagEvaluation", { enabled: Type.Boolean(), flag_key: FlagKeyText });
export type FlagEvaluation = Static<typeof FlagEvaluation>;

export const FlagPreviewBody = named("FlagPreviewBody", {
  contexts: listOf(Context, {
    min: 1,
    max: PREVIEWED_CONTEXTS_MAX,
    of: "contexts",
    description: "Evaluation contexts, such as attributes of users: JSON objects with at most 8 levels.",
    examples: [[{ targetingKey: "user-1", plan: "pro" }]],
  }),
  definition: Type.Optional(
    Type.Unsafe<FlagChange>({
      ...FlagChange,
      description:
        "Change to preview: fields of a save, applied to the stored flag but not saved. The flag need not exist.",
    }),
  ),
});
export type FlagPreviewBody = Static<typeof FlagPreviewBody>;

export const FlagPreview = named("FlagPreview", {
  results: Type.Array(
    named("FlagPreviewResult", {
      value: Type.Unknown({
        description: "Value for this context; null if the caller uses its own default.",
        examples: [true],
      }),
      variant: orNull(Type.String(), { examples: ["on"] }),
      reason: oneOf(REASONS, {}),
      rule: orNull(Type.Integer(), {
        description: "Position in `rules` of the rule that decided, from 0; null if none did.",
        examples: [0],
      }),
    }),
    { description: "One result per context, in their order." },
  ),
});
export type FlagPreview = Static<typeof FlagPreview>;

export const FlagDeleted = named("FlagDeleted", { success: Type.Literal(true) });
export type FlagDeleted = Static<typeof FlagDeleted>;
