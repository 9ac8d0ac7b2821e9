import { type Static, Type } from "@sinclair/typebox";
import { text } from "../../kernel/schema.ts";
import { DESCRIPTION_LENGTH_MAX, FLAG_KEY_LENGTH_MAX } from "./domain.ts";

const FlagKey = Type.String({
  pattern: `^[a-z0-9][a-z0-9_-]{0,${FLAG_KEY_LENGTH_MAX - 1}}$`,
  errorMessage: `must be 1 to ${FLAG_KEY_LENGTH_MAX} lower-case letters, digits, dashes or underscores, beginning with a letter or digit`,
  examples: ["new-checkout"],
});

const Shown = Type.String({ examples: FlagKey["examples"] });

/** Path of a flag. */
export const FlagParams = Type.Object({ flagKey: FlagKey });

/**
 * Body of a flag's creation or change. The schema lets a value of the wrong type pass: the rule refuses it, with
 * `gate.rule_invalid`.
 */
export const FlagBody = Type.Object(
  {
    flag_key: FlagKey,
    enabled: Type.Any({ type: "boolean", errorMessage: "must be true or false", examples: [true] }),
    description: Type.Optional(
      Type.Union([text({ min: 0, max: DESCRIPTION_LENGTH_MAX }), Type.Null()], {
        errorMessage: `must be a text of at most ${DESCRIPTION_LENGTH_MAX} characters`,
        description: "Left out, an existing one stays; null clears it.",
      }),
    ),
  },
  { $id: "FlagBody" },
);

/** Answer to a creation or change. */
export const FlagSaved = Type.Object({ success: Type.Literal(true), flag_key: Shown }, { $id: "FlagSaved" });
export type FlagSaved = Static<typeof FlagSaved>;

/** The keys of all flags. */
export const FlagKeys = Type.Object({ flags: Type.Array(Shown) }, { $id: "FlagKeys" });
export type FlagKeys = Static<typeof FlagKeys>;

/** A flag in the configuration. */
const Flag = Type.Object(
  {
    flag_key: Shown,
    enabled: Type.Boolean(),
    description: Type.Optional(Type.String({ examples: ["The new checkout"] })),
  },
  { $id: "Flag" },
);

/** All flags. */
export const FlagConfig = Type.Object({ flags: Type.Array(Flag) }, { $id: "FlagConfig" });
export type FlagConfig = Static<typeof FlagConfig>;

/** Answer to an evaluation. */
export const FlagEvaluation = Type.Object(
  { enabled: Type.Boolean(), flag_key: Shown },
  { $id: "FlagEvaluation" },
);
export type FlagEvaluation = Static<typeof FlagEvaluation>;

/** Answer to a deletion. */
export const FlagDeleted = Type.Object({ success: Type.Literal(true) }, { $id: "FlagDeleted" });
export type FlagDeleted = Static<typeof FlagDeleted>;
