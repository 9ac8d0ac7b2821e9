import { type Static, Type } from "@sinclair/typebox";
import { dateTime, flag, listOf, named, oneOf, orNull } from "../../kernel/data/schema.ts";
import { MANAGED } from "../../kernel/resources/managed.ts";
import { Enabled, FlagChange, SETTINGS, uncheckedOrNull } from "./definitions/change.ts";
import { DEFINITION, Tag } from "./definitions/schema.ts";
import { FLAG_KEY_LENGTH_MAX, PREVIEWED_CONTEXTS_MAX } from "./domain.ts";
import { REASONS } from "./evaluation/evaluation.ts";
import { Context } from "./evaluation/schema.ts";
import { SCHEDULED, ScheduledFlagChange } from "./scheduled/schema.ts";

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

/** Body of a save. */
export const FlagBody = named("FlagBody", {
  flag_key: FlagKey,
  enabled: Enabled,
  ...SETTINGS,
  ...SCHEDULED,
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

/** Path of a scheduled change. */
export const ScheduledParams = Type.Object({
  flagKey: FlagKey,
  id: Type.String({ maxLength: 64, examples: ["chg_018f3c5e7a4b7cc09d3e5f6a7b8c9d0e"] }),
});

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
  scheduled: Type.Array(ScheduledFlagChange, {
    description:
      "Changes that apply later, and those that could not be applied, in the order of their times.",
    examples: [[]],
  }),
  ...MANAGED,
  version: Version,
  created_at: orNull(dateTime(), { description: "Creation time; null for flags older than this field." }),
  updated_at: dateTime(),
  last_evaluated_at: orNull(dateTime(), {
    description: "Hour of the last individual evaluation; bulk evaluations are not counted.",
  }),
  stale: Type.Boolean({
    description:
      "Whether the flag can probably be removed: it is unchanged for 30 days, and one of the reasons in `stale_reason` applies.",
    examples: [false],
  }),
  stale_reason: orNull(oneOf(["unused", "one_outcome", "one_value"], {}), {
    description:
      "In the last 30 days: `unused`, not individually evaluated; `one_outcome`, it has neither rules nor a split; `one_value`, all individual evaluations had the same variant. Null if it is not stale.",
    examples: [null],
  }),
});
export type FlagDefinition = Static<typeof FlagDefinition>;

const Stale = Type.Optional(flag({ description: "Whether to return only stale flags." }));

export const FlagKeysQuery = Type.Object({ stale: Stale });

export const FlagConfigQuery = Type.Object({
  stale: Stale,
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

export const FlagEvaluations = named("FlagEvaluations", {
  from: dateTime(),
  to: dateTime(),
  granularity: oneOf(["hour", "day"], {}),
  data: Type.Array(
    Type.Object({
      from: dateTime({ description: "Start of the hour or day, UTC." }),
      total: Type.Integer({ description: "Number of individual evaluations.", examples: [12] }),
      variants: Type.Record(Type.String(), Type.Integer(), {
        description: "Number of evaluations by variant.",
        examples: [{ on: 9, off: 3 }],
      }),
      no_value: Type.Integer({ description: "Number of evaluations without a value.", examples: [0] }),
      switch_reads: Type.Integer({
        description: "Number of reads of the switch alone, of a flag whose variant depends on a context.",
        examples: [0],
      }),
    }),
    { description: "Hours or days in which the flag was evaluated, oldest first." },
  ),
});
export type FlagEvaluations = Static<typeof FlagEvaluations>;

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
  definition: Type.Optional(FlagChange),
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
