import { withDefaults } from "../definitions/definition.ts";
import type { Serve, StoredDefinition } from "../definitions/schema.ts";
import { PrefixedHash, positionOf } from "./bucketing.ts";
import { type CompiledCondition, compileCondition, conditionMatches } from "./conditions.ts";
import {
  type Attribute,
  attributeNamed,
  attributeValue,
  Effort,
  type EvaluationContext,
  textOf,
} from "./context.ts";

export type { EvaluationContext } from "./context.ts";

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

/** Reasons of outcomes, as defined by OpenFeature. */
export const REASONS = ["STATIC", "DEFAULT", "TARGETING_MATCH", "SPLIT", "DISABLED"] as const;
export type Reason = (typeof REASONS)[number];

/** Result of an evaluation. Without `value` and `variant`, the caller uses its own default. */
export interface Outcome {
  /** Key of the flag. */
  readonly key: string;
  readonly value?: JsonValue;
  readonly variant?: string;
  readonly reason: Reason;
  readonly metadata: Readonly<Record<string, string | number | boolean>>;
}

/** A flag compiled for repeated evaluation, with precomputed outcomes. */
export interface CompiledFlag {
  readonly key: string;
  readonly enabled: boolean;
  /** Visible only to keys with access to the definitions. */
  readonly serverOnly: boolean;
  /** Outcome while the flag is off. */
  readonly off: Outcome;
  readonly rules: readonly CompiledRule[];
  /** Applies if no rule matches. */
  readonly fallback: CompiledServe;
  /** Outcome if the fallback has none. */
  readonly noMatch: Outcome;
}

interface CompiledRule {
  readonly when: readonly CompiledCondition[];
  readonly serve: CompiledServe;
}

/** Either an outcome or a split. */
type CompiledServe = Outcome | Split;

/** Assigns one of several outcomes by a hash. */
class Split {
  constructor(
    private readonly by: Attribute,
    private readonly hash: PrefixedHash,
    /** For each entry, the first position after it. */
    private readonly boundaries: readonly number[],
    private readonly outcomes: readonly (Outcome | null)[],
  ) {}

  /** Returns null if the split assigns nothing for this context. */
  outcomeOf(context: EvaluationContext, effort: Effort): Outcome | null {
    const text = textOf(attributeValue(context, this.by));
    if (text === null || text === "") return null;
    effort.spendText(text);
    const { boundaries } = this;
    const position = positionOf(this.hash.of(text), boundaries.at(-1) ?? 0);
    for (let index = 0; index < boundaries.length; index += 1)
      if ((boundaries[index] as number) > position) return this.outcomes[index] ?? null;
    return null;
  }
}

/** Default attribute of splits: the subject in OpenFeature. */
const TARGETING_KEY = "targetingKey";
const NO_DEFINITION = {};

/** Compiles a flag. The stored definition is valid. */
export function compileFlag(key: string, enabled: boolean, stored: StoredDefinition | null): CompiledFlag {
  const {
    variants,
    metadata,
    off_variant,
    rules,
    default: fallback,
    server_only,
  } = withDefaults(stored ?? NO_DEFINITION);
  const outcome = (variant: string | null, reason: Reason): Outcome =>
    variant === null
      ? { key, reason, metadata }
      : { key, value: variants[variant] as JsonValue, variant, reason, metadata };
  const compiled = ({ variant, split, by = TARGETING_KEY, seed = key }: Serve, reason: Reason) => {
    if (split === undefined) return outcome(variant ?? null, reason);
    const outcomes = split.map((entry) => (entry.variant === null ? null : outcome(entry.variant, "SPLIT")));
    return new Split(attributeNamed(by), new PrefixedHash(seed), boundariesOf(split), outcomes);
  };
  return {
    key,
    enabled,
    serverOnly: server_only,
    off: outcome(off_variant, "DISABLED"),
    rules: rules.map(({ when, serve }) => ({
      when: when.map(compileCondition),
      serve: compiled(serve, "TARGETING_MATCH"),
    })),
    fallback: compiled(fallback, rules.length === 0 ? "STATIC" : "DEFAULT"),
    noMatch: outcome(off_variant, "DEFAULT"),
  };
}

/** Returns the cumulative weights. */
function boundariesOf(split: readonly { readonly weight: number }[]): number[] {
  const boundaries: number[] = [];
  for (const { weight } of split) boundaries.push((boundaries.at(-1) ?? 0) + weight);
  return boundaries;
}

/** What an evaluation finds out in addition to its outcome. */
export interface Explanation {
  /** Position of the rule that decided; null if none did. */
  rule: number | null;
}

/**
 * Evaluates a flag for a context at a time, and writes into `explanation` what decided.
 * @throws ApiError `validation_error` above the effort limit.
 */
export function evaluate(
  flag: CompiledFlag,
  context: EvaluationContext,
  now: number,
  effort = new Effort(),
  explanation?: Explanation,
): Outcome {
  if (!flag.enabled) return flag.off;
  const { rules } = flag;
  for (let index = 0; index < rules.length; index += 1) {
    const { when, serve } = rules[index] as CompiledRule;
    if (!allMatch(when, context, now, effort)) continue;
    const outcome = resolveServe(serve, context, effort);
    if (outcome === null) continue;
    if (explanation !== undefined) explanation.rule = index;
    return outcome;
  }
  return resolveServe(flag.fallback, context, effort) ?? flag.noMatch;
}

/** The outcome that a flag has for every context; null if it depends on the context. */
export function outcomeForAll({ enabled, off, rules, fallback }: CompiledFlag): Outcome | null {
  if (!enabled) return off;
  return rules.length > 0 || fallback instanceof Split ? null : fallback;
}

function allMatch(
  when: readonly CompiledCondition[],
  context: EvaluationContext,
  now: number,
  effort: Effort,
): boolean {
  for (const condition of when) if (!conditionMatches(condition, context, now, effort)) return false;
  return true;
}

function resolveServe(serve: CompiledServe, context: EvaluationContext, effort: Effort): Outcome | null {
  return serve instanceof Split ? serve.outcomeOf(context, effort) : serve;
}
