import { murmur3, positionOf } from "./bucketing.ts";
import { type CompiledCondition, compileCondition } from "./conditions.ts";
import { attributeReader, Effort, type EvaluationContext, textOf } from "./context.ts";
import { resolved } from "./definition.ts";
import type { Serve, StoredDefinition, WholeDefinition } from "./definition-schema.ts";

export type { EvaluationContext } from "./context.ts";

/** A value as JSON has it. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

/** Why an outcome is what it is, in OpenFeature's words. */
export type Reason = "STATIC" | "DEFAULT" | "TARGETING_MATCH" | "SPLIT" | "DISABLED";

/** What a flag is for a context. Without `value` and `variant` it is the caller's own default. */
export interface Outcome {
  readonly value?: JsonValue;
  readonly variant?: string;
  readonly reason: Reason;
  readonly metadata: Readonly<Record<string, string | number | boolean>>;
}

/** A flag made ready for any number of evaluations. */
export interface CompiledFlag {
  readonly key: string;
  readonly enabled: boolean;
  /** Only for those who may read the definitions. */
  readonly serverOnly: boolean;
  /** While it is switched off. */
  readonly off: Outcome;
  readonly rules: readonly CompiledRule[];
  readonly fallback: CompiledServe;
  /** Where the split for all others decides nothing. */
  readonly missed: Outcome;
}

interface CompiledRule {
  readonly when: readonly CompiledCondition[];
  readonly serve: CompiledServe;
}

/** Null: it decides nothing for this context. */
type CompiledServe = (context: EvaluationContext, effort: Effort) => Outcome | null;

/** What decides who falls where, unless a split says otherwise: what OpenFeature calls the subject. */
const TARGETING_KEY = "targetingKey";

/** Makes a flag ready. What is stored of it has been checked. */
export function compileFlag(key: string, enabled: boolean, stored: StoredDefinition | null): CompiledFlag {
  if (stored === null) return { ...PLAIN, key, enabled };
  const definition = resolved(stored);
  const outcomes = outcomesOf(definition);
  const { rules } = definition;
  return {
    key,
    enabled,
    serverOnly: definition.server_only,
    off: outcomes(definition.off_variant, "DISABLED"),
    rules: rules.map(({ when, serve }) => ({
      when: when.map(compileCondition),
      serve: compileServe(key, serve, "TARGETING_MATCH", outcomes),
    })),
    fallback: compileServe(key, definition.default, rules.length === 0 ? "STATIC" : "DEFAULT", outcomes),
    missed: outcomes(definition.off_variant, "DEFAULT"),
  };
}

/** What a flag is for a context at a moment. @throws ApiError `validation_error` when it takes too long to find out. */
export function evaluate(
  flag: CompiledFlag,
  context: EvaluationContext,
  now: number,
  effort = new Effort(),
): Outcome {
  if (!flag.enabled) return flag.off;
  for (const { when, serve } of flag.rules) {
    if (!when.every((holds) => holds(context, now, effort))) continue;
    const outcome = serve(context, effort);
    if (outcome !== null) return outcome;
  }
  return flag.fallback(context, effort) ?? flag.missed;
}

type Outcomes = (variant: string | null, reason: Reason) => Outcome;

function outcomesOf({ variants, metadata }: WholeDefinition): Outcomes {
  return (variant, reason) =>
    variant === null
      ? { reason, metadata }
      : { value: variants[variant] as JsonValue, variant, reason, metadata };
}

function compileServe(flagKey: string, serve: Serve, reason: Reason, outcomes: Outcomes): CompiledServe {
  const { variant = null, split, by = TARGETING_KEY, seed = flagKey } = serve;
  if (split === undefined) {
    const outcome = outcomes(variant, reason);
    return () => outcome;
  }
  let weight = 0;
  const entries = split.map((entry) => {
    weight += entry.weight;
    // Its end is the first position that is no longer its own.
    return { end: weight, outcome: entry.variant === null ? null : outcomes(entry.variant, "SPLIT") };
  });
  const read = attributeReader(by);
  return (context, effort) => {
    const text = textOf(read(context));
    if (text === null || text === "") return null;
    effort.spendText(text);
    const position = positionOf(murmur3(seed + text), weight);
    return entries.find(({ end }) => end > position)?.outcome ?? null;
  };
}

/** Of flags that are a switch and nothing else. */
const PLAIN = compileFlag("", true, {});
