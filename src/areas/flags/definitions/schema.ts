import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, orNull, text } from "../../../kernel/data/schema.ts";

/** Variants of one flag. */
export const VARIANTS_MAX = 50;
/** Longest name of a variant. */
export const VARIANT_NAME_LENGTH_MAX = 64;
/** Rules of one flag. */
export const RULES_MAX = 50;
/** Longest name of a rule, in characters. */
export const RULE_NAME_LENGTH_MAX = 100;
/** Conditions of one rule. */
export const CONDITIONS_MAX = 20;
/** Values of one condition. */
export const VALUES_MAX = 1_000;
/** Longest value of a condition, in characters. */
export const VALUE_LENGTH_MAX = 256;
/** Longest name of an attribute, in characters. */
export const ATTRIBUTE_LENGTH_MAX = 128;
/** Entries of one split. */
export const SPLIT_ENTRIES_MAX = 50;
/** Largest weight of one entry: percentages to four places. */
export const WEIGHT_MAX = 1_000_000;
/** Longest seed, in characters. */
export const SEED_LENGTH_MAX = 128;
/** Tags of one flag. */
export const TAGS_MAX = 20;
/** Longest tag. */
export const TAG_LENGTH_MAX = 50;
/** Entries of a flag's metadata. */
export const METADATA_MAX = 20;

/** What the values of a flag can be. */
const FLAG_TYPES = ["boolean", "string", "number", "object"] as const;

/** How a condition compares. */
const CONDITION_OPS = [
  ...(["in", "starts_with", "ends_with", "contains"] as const),
  ...(["gt", "gte", "lt", "lte", "before", "after"] as const),
  ...(["semver_eq", "semver_gt", "semver_gte", "semver_lt", "semver_lte", "exists"] as const),
] as const;
/** One of {@link CONDITION_OPS}. */
export type ConditionOp = (typeof CONDITION_OPS)[number];

const STRICT = { additionalProperties: false } as const;
const VARIANT_PATTERN = `^[A-Za-z0-9][A-Za-z0-9_.-]{0,${VARIANT_NAME_LENGTH_MAX - 1}}$`;

const VariantName = Type.String({
  pattern: VARIANT_PATTERN,
  errorMessage: `must be the name of a variant: 1 to ${VARIANT_NAME_LENGTH_MAX} letters, digits, dots, dashes or underscores, beginning with a letter or digit`,
  examples: ["on"],
});

/** A tag, as a flag has it and as a query asks for it. */
export const Tag = Type.String({
  pattern: `^[a-z0-9][a-z0-9:_.-]{0,${TAG_LENGTH_MAX - 1}}$`,
  errorMessage: `must be 1 to ${TAG_LENGTH_MAX} lower-case letters, digits or :_.-, beginning with a letter or digit`,
  examples: ["team:checkout"],
});

const Attribute = text({ min: 1, max: ATTRIBUTE_LENGTH_MAX, examples: ["plan"] });

/** What is served: one variant, or a split of several. */
const Serve = named(
  "FlagServe",
  {
    variant: Type.Optional(VariantName),
    split: Type.Optional(
      Type.Array(
        Type.Object(
          {
            variant: orNull(VariantName, {
              description: "Null: on with the next rule; in `default`, `off_variant`.",
            }),
            weight: Type.Integer({
              minimum: 0,
              maximum: WEIGHT_MAX,
              errorMessage: `must be a whole number from 0 to ${WEIGHT_MAX}`,
              examples: [25],
            }),
          },
          STRICT,
        ),
        {
          minItems: 1,
          maxItems: SPLIT_ENTRIES_MAX,
          errorMessage: `must be a list of 1 to ${SPLIT_ENTRIES_MAX} entries with variant and weight`,
        },
      ),
    ),
    by: Type.Optional({
      ...Attribute,
      description: "The attribute that decides who falls where; `targetingKey` when left out.",
    }),
    seed: Type.Optional(
      text({
        min: 0,
        max: SEED_LENGTH_MAX,
        description: "Splits with the same seed cut alike; the flag's key when left out.",
        examples: ["spring-rollout"],
      }),
    ),
    hash: Type.Optional(
      Type.Literal("m3", { errorMessage: "must be m3", description: "MurmurHash3 x86 32 over UTF-8." }),
    ),
  },
  { ...STRICT, errorMessage: 'must be {"variant": name} or {"split": [{"variant", "weight"}, …]}' },
);
/** As it is stored and sent. It has a variant or a split. */
export type Serve = Static<typeof Serve>;

const Condition = named(
  "FlagCondition",
  {
    attribute: Type.Unsafe<string>({
      ...Attribute,
      description: "A member of the context, by dots also within objects; `$now` is the server's time.",
    }),
    op: oneOf(CONDITION_OPS),
    values: Type.Optional(
      Type.Array(
        Type.Union([text({ min: 0, max: VALUE_LENGTH_MAX }), Type.Number(), Type.Boolean()], {
          errorMessage: `must be a text of at most ${VALUE_LENGTH_MAX} characters, a number, true or false`,
        }),
        {
          maxItems: VALUES_MAX,
          errorMessage: `must be a list of at most ${VALUES_MAX} values`,
          examples: [["pro", "scale"]],
        },
      ),
    ),
    not: Type.Optional(Type.Boolean({ errorMessage: "must be true or false" })),
    ignore_case: Type.Optional(Type.Boolean({ errorMessage: "must be true or false" })),
  },
  { ...STRICT, errorMessage: "must be an object with attribute, op and values" },
);
/** As it is stored and sent. */
export type Condition = Static<typeof Condition>;

const Rule = named(
  "FlagRule",
  {
    name: Type.Optional(text({ min: 0, max: RULE_NAME_LENGTH_MAX, examples: ["Paying customers"] })),
    when: Type.Array(Condition, {
      minItems: 1,
      maxItems: CONDITIONS_MAX,
      errorMessage: `must be a list of 1 to ${CONDITIONS_MAX} conditions`,
    }),
    serve: Serve,
  },
  { ...STRICT, errorMessage: "must be an object with when and serve" },
);
/** As it is stored and sent. */
export type Rule = Static<typeof Rule>;

const flag = Type.Boolean({ errorMessage: "must be true or false" });

/** What a flag can have beyond its switch, as it is stored once it has been checked. */
export const DEFINITION = {
  type: oneOf(FLAG_TYPES),
  variants: Type.Record(Type.String({ pattern: VARIANT_PATTERN }), Type.Unknown(), {
    ...STRICT,
    minProperties: 1,
    maxProperties: VARIANTS_MAX,
    errorMessage: `must be an object of 1 to ${VARIANTS_MAX} values by name: 1 to ${VARIANT_NAME_LENGTH_MAX} letters, digits, dots, dashes or underscores, beginning with a letter or digit`,
    examples: [{ on: true, off: false }],
  }),
  default: Serve,
  off_variant: orNull(VariantName, {
    errorMessage: "must be the name of a variant, or null for no value",
    description: "Served while the flag is off; null: no value, the caller's own default.",
  }),
  rules: Type.Array(Rule, {
    maxItems: RULES_MAX,
    errorMessage: `must be a list of at most ${RULES_MAX} rules`,
  }),
  tags: Type.Array(Tag, {
    maxItems: TAGS_MAX,
    uniqueItems: true,
    errorMessage: `must be a list of at most ${TAGS_MAX} different tags`,
    examples: [["team:checkout"]],
  }),
  metadata: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
    // A name with a line break would escape the pattern that stands for all names.
    ...STRICT,
    maxProperties: METADATA_MAX,
    errorMessage: `must be an object of at most ${METADATA_MAX} texts, numbers, true or false`,
    examples: [{ owner: "checkout" }],
  }),
  server_only: flag,
};

/** What has been said of a flag beyond its switch; what is left out has its default. */
export const StoredDefinition = Type.Partial(Type.Object(DEFINITION));
export type StoredDefinition = Static<typeof StoredDefinition>;

/** A definition with everything said. */
export type WholeDefinition = {
  readonly [Field in keyof StoredDefinition]-?: Exclude<StoredDefinition[Field], undefined>;
};
