import { resolved } from "../definitions/definition.ts";
import type { Serve, StoredDefinition } from "../definitions/schema.ts";
import { PrefixedHash, positionOf } from "./bucketing.ts";
import { type CompiledCondition, compileCondition, holds } from "./conditions.ts";
import {
  type Attribute,
  attributeNamed,
  attributeValue,
  Effort,
  type EvaluationContext,
  textOf,
} from "./context.ts";

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
  /** The flag's. */
  readonly key: string;
  readonly value?: JsonValue;
  readonly variant?: string;
  readonly reason: Reason;
  readonly metadata: Readonly<Record<string, string | number | boolean>>;
}

/** A flag made ready for any number of evaluations: each of its outcomes stands there already. */
export interface CompiledFlag {
  readonly key: string;
  readonly enabled: boolean;
  /** Only for those who may read the definitions. */
  readonly serverOnly: boolean;
  /** While it is switched off. */
  readonly off: Outcome;
  readonly rules: readonly CompiledRule[];
  /** For those whom no rule decides about. */
  readonly fallback: CompiledServe;
  /** Where not even that decides. */
  readonly missed: Outcome;
}

interface CompiledRule {
  readonly when: readonly CompiledCondition[];
  readonly serve: CompiledServe;
}

/** Either an outcome or a split. */
type CompiledServe = Outcome | Split;

/** Several outcomes, and who gets which. */
class Split {
  constructor(
    private readonly by: Attribute,
    private readonly hash: PrefixedHash,
    /** The first position that is no longer an entry's own. */
    private readonly ends: readonly number[],
    private readonly outcomes: readonly (Outcome | null)[],
  ) {}

  /** Null where it decides nothing for this context. */
  outcomeOf(context: EvaluationContext, effort: Effort): Outcome | null {
    const text = textOf(attributeValue(context, this.by));
    if (text === null || text === "") return null;
    effort.spendText(text);
    const position = positionOf(this.hash.of(text), this.ends.at(-1) ?? 0);
    return this.outcomes[this.ends.findIndex((end) => end > position)] ?? null;
  }
}

/** What decides who falls where, unless a split says otherwise: what OpenFeature calls the subject. */
const TARGETING_KEY = "targetingKey";
const NOTHING = {};

/** Makes a flag ready. What is stored of it has been checked. */
export function compileFlag(key: string, enabled: boolean, stored: StoredDefinition | null): CompiledFlag {
  const {
    variants,
    metadata,
    off_variant,
    rules,
    default: fallback,
    server_only,
  } = resolved(stored ?? NOTHING);
  const outcome = (variant: string | null, reason: Reason): Outcome =>
    variant === null
      ? { key, reason, metadata }
      : { key, value: variants[variant] as JsonValue, variant, reason, metadata };
  const compiled = ({ variant, split, by = TARGETING_KEY, seed = key }: Serve, reason: Reason) => {
    if (split === undefined) return outcome(variant ?? null, reason);
    const outcomes = split.map((entry) => (entry.variant === null ? null : outcome(entry.variant, "SPLIT")));
    return new Split(attributeNamed(by), new PrefixedHash(seed), endsOf(split), outcomes);
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
    missed: outcome(off_variant, "DEFAULT"),
  };
}

/** Where each entry ends: the weights, added up. */
function endsOf(split: readonly { readonly weight: number }[]): number[] {
  const ends: number[] = [];
  for (const { weight } of split) ends.push((ends.at(-1) ?? 0) + weight);
  return ends;
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
    if (!allHold(when, context, now, effort)) continue;
    const outcome = served(serve, context, effort);
    if (outcome !== null) return outcome;
  }
  return served(flag.fallback, context, effort) ?? flag.missed;
}

function allHold(
  when: readonly CompiledCondition[],
  context: EvaluationContext,
  now: number,
  effort: Effort,
): boolean {
  for (const condition of when) if (!holds(condition, context, now, effort)) return false;
  return true;
}

function served(serve: CompiledServe, context: EvaluationContext, effort: Effort): Outcome | null {
  return serve instanceof Split ? serve.outcomeOf(context, effort) : serve;
}
