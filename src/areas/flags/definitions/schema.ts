import { type Static, Type } from "@sinclair/typebox";
import { flag, listOf, named, oneOf, orNull, text } from "../../../kernel/data/schema.ts";

/** Variants per flag. */
export const VARIANTS_MAX = 50;
/** Maximum characters of a variant's name. */
export const VARIANT_NAME_LENGTH_MAX = 64;
/** Rules per flag. */
export const RULES_MAX = 50;
/** Maximum characters of a rule's name. */
export const RULE_NAME_LENGTH_MAX = 100;
/** Conditions per rule. */
export const CONDITIONS_MAX = 20;
/** Values per condition. */
export const VALUES_MAX = 1_000;
/** Maximum characters of a condition's value. */
export const VALUE_LENGTH_MAX = 256;
/** Maximum characters of an attribute's name. */
export const ATTRIBUTE_LENGTH_MAX = 128;
/** Entries per split. */
export const SPLIT_ENTRIES_MAX = 50;
/** Maximum weight of an entry: percentages with four decimal places. */
export const WEIGHT_MAX = 1_000_000;
/** Maximum characters of a seed. */
export const SEED_LENGTH_MAX = 128;
/** Tags per flag. */
export const TAGS_MAX = 20;
/** Maximum characters of a tag. */
export const TAG_LENGTH_MAX = 50;
/** Entries in a flag's metadata. */
export const METADATA_MAX = 20;

/** Types of a flag's values. */
const FLAG_TYPES = ["boolean", "string", "number", "object"] as const;

/** Operators of conditions. */
const CONDITION_OPS = [
  "in",
  "starts_with",
  "ends_with",
  "contains",
  "gt",
  "gte",
  "lt",
  "lte",
  "before",
  "after",
  "semver_eq",
  "semver_gt",
  "semver_gte",
  "semver_lt",
  "semver_lte",
  "exists",
] as const;
export type ConditionOp = (typeof CONDITION_OPS)[number];

const STRICT = { additionalProperties: false } as const;
const VARIANT_PATTERN = `^[A-Za-z0-9][A-Za-z0-9_.-]{0,${VARIANT_NAME_LENGTH_MAX - 1}}$`;

const VariantName = Type.String({
  pattern: VARIANT_PATTERN,
  errorMessage: `must be the name of a variant: 1 to ${VARIANT_NAME_LENGTH_MAX} letters, digits, dots, dashes or underscores, starting with a letter or digit`,
  examples: ["on"],
});

/** A tag of a flag or of a query. */
export const Tag = Type.String({
  pattern: `^[a-z0-9][a-z0-9:_.-]{0,${TAG_LENGTH_MAX - 1}}$`,
  errorMessage: `must be 1 to ${TAG_LENGTH_MAX} lower-case letters, digits or :_.-, starting with a letter or digit`,
  examples: ["team:checkout"],
});

const Attribute = text({ min: 1, max: ATTRIBUTE_LENGTH_MAX, examples: ["plan"] });

/** Result of a rule: one variant, or a split between several. */
const Serve = named(
  "FlagServe",
  {
    variant: Type.Optional({
      ...VariantName,
      description: "Name of the variant that is served to everyone.",
    }),
    split: Type.Optional(
      listOf(
        Type.Object(
          {
            variant: orNull(VariantName, {
              description:
                "Name of a variant. Null continues with the next rule; in `default` it serves `off_variant`.",
            }),
            weight: Type.Integer({
              minimum: 0,
              maximum: WEIGHT_MAX,
              errorMessage: `must be a whole number from 0 to ${WEIGHT_MAX}`,
              description: "Share of the variant, relative to the sum of all weights.",
              examples: [25],
            }),
          },
          STRICT,
        ),
        {
          min: 1,
          max: SPLIT_ENTRIES_MAX,
          of: "entries with variant and weight",
          description: "Variants with weights, instead of `variant`.",
        },
      ),
    ),
    by: Type.Optional({
      ...Attribute,
      description:
        "Name of the attribute that is hashed. Default: `targetingKey`. If it is missing, empty or an object, the next rule applies; in `default`, `off_variant`.",
    }),
    seed: Type.Optional(
      text({
        min: 0,
        max: SEED_LENGTH_MAX,
        description: "Seed of the hash: splits with the same seed assign alike. Default: the flag's key.",
        examples: ["spring-rollout"],
      }),
    ),
    hash: Type.Optional(
      Type.Literal("m3", {
        errorMessage: "must be m3",
        default: "m3",
        description: "Hash algorithm: MurmurHash3 x86 32 over UTF-8.",
      }),
    ),
  },
  { ...STRICT, errorMessage: 'must be {"variant": name} or {"split": [{"variant", "weight"}, …]}' },
);
export type Serve = Static<typeof Serve>;

const Condition = named(
  "FlagCondition",
  {
    attribute: Type.Unsafe<string>({
      ...Attribute,
      description:
        "Name of a context attribute; dots select members of objects. `$now` is the server's time.",
    }),
    op: oneOf(CONDITION_OPS, { description: "Comparison of the attribute with the values." }),
    values: Type.Optional(
      listOf(
        Type.Union([text({ min: 0, max: VALUE_LENGTH_MAX }), Type.Number(), Type.Boolean()], {
          errorMessage: `must be a string of at most ${VALUE_LENGTH_MAX} characters, a number, true or false`,
        }),
        {
          max: VALUES_MAX,
          of: "values",
          description:
            "Values to compare with; exactly one for numbers, dates and versions, none for `exists`.",
          examples: [["pro", "scale"]],
        },
      ),
    ),
    not: Type.Optional(flag({ description: "Whether the result is inverted." })),
    ignore_case: Type.Optional(
      flag({
        description: "Whether texts are compared in lower case.",
      }),
    ),
  },
  { ...STRICT, errorMessage: "must be an object with attribute, op and values" },
);
export type Condition = Static<typeof Condition>;

const Rule = named(
  "FlagRule",
  {
    name: Type.Optional(text({ min: 0, max: RULE_NAME_LENGTH_MAX, examples: ["Paying customers"] })),
    when: listOf(Condition, {
      min: 1,
      max: CONDITIONS_MAX,
      of: "conditions",
    }),
    serve: Serve,
  },
  { ...STRICT, errorMessage: "must be an object with when and serve" },
);
export type Rule = Static<typeof Rule>;

/** The fields of a definition, as they are stored after validation. */
export const DEFINITION = {
  type: oneOf(FLAG_TYPES, { description: "Type of the values. Default: `boolean`." }),
  variants: Type.Record(Type.String({ pattern: VARIANT_PATTERN }), Type.Unknown(), {
    ...STRICT,
    minProperties: 1,
    maxProperties: VARIANTS_MAX,
    errorMessage: `must be an object of 1 to ${VARIANTS_MAX} values by name: 1 to ${VARIANT_NAME_LENGTH_MAX} letters, digits, dots, dashes or underscores, starting with a letter or digit`,
    description:
      "Values by name, at most 16 KiB each. Default: `on` true and `off` false; required for other types than `boolean`.",
    examples: [{ on: true, off: false }],
  }),
  default: Serve,
  off_variant: orNull(VariantName, {
    errorMessage: "must be the name of a variant, or null for no value",
    description:
      "Name of the variant that is served while the flag is off. Null serves no value, so that the caller uses its own default. Default: `off`; null if you set `variants`.",
  }),
  rules: listOf(Rule, {
    max: RULES_MAX,
    of: "rules",
    description: "Rules in the order in which they are evaluated: `name`, `when` and `serve`.",
  }),
  tags: listOf(Tag, {
    max: TAGS_MAX,
    of: "different tags",
    uniqueItems: true,

    description: "Tags by which flags can be listed.",
    examples: [["team:checkout"]],
  }),
  metadata: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
    // Without this, a name with a line break would not match the pattern for all names.
    ...STRICT,
    maxProperties: METADATA_MAX,
    errorMessage: `must be an object of at most ${METADATA_MAX} strings, numbers and booleans`,
    description: "Your own data, 2 KiB as JSON, returned with every evaluation.",
    examples: [{ owner: "checkout" }],
  }),
  server_only: flag({
    description:
      "Whether the flag is hidden from evaluations by keys without `gate:read`, such as those in browsers.",
  }),
};

/** The stored part of a definition. Omitted fields have their defaults. */
export const StoredDefinition = Type.Partial(Type.Object(DEFINITION));
export type StoredDefinition = Static<typeof StoredDefinition>;

/** A definition with all defaults filled in. */
export type CompleteDefinition = {
  readonly [Field in keyof StoredDefinition]-?: Exclude<StoredDefinition[Field], undefined>;
};
