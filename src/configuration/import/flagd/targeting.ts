import { RULES_MAX, type Rule, type Serve } from "../../../areas/flags/definitions/schema.ts";
import { isObject, shown } from "../source.ts";
import { ALWAYS, type Alternatives, both, Conditions, NotConvertible } from "./conditions.ts";

/** The default bucketing of flagd: the flag's key, then this attribute. */
const TARGETING_KEY = "targetingKey";
const FLAG_KEY = "$flagd.flagKey";

/** What a flag serves, as rules. */
export interface Targeting {
  readonly rules: readonly Rule[];
  readonly fallback: Serve;
}

/** The flag whose targeting is converted. */
export interface TargetedFlag {
  readonly key: string;
  /** Names in the file by their names in flagd. */
  readonly variants: ReadonlyMap<string, string>;
  /** Served where targeting has no result. */
  readonly fallback: Serve;
  readonly evaluators: ReadonlyMap<string, unknown>;
}

/** Converts targeting to rules. @throws NotConvertible if a part has no counterpart: the rest would have another meaning */
export function convertTargeting(flag: TargetedFlag, expression: unknown): Targeting {
  return new Conversion(flag).convert(expression);
}

class Conversion {
  private readonly conditions: Conditions;
  private readonly rules: Rule[] = [];

  constructor(private readonly flag: TargetedFlag) {
    this.conditions = new Conditions(flag.evaluators);
  }

  convert(expression: unknown): Targeting {
    this.result(expression, ALWAYS);
    // The last rule without conditions is the default; those behind it are never reached.
    const end = this.rules.findIndex(({ when }) => when.length === 0);
    const fallback = this.rules[end]?.serve ?? this.flag.fallback;
    const rules = end < 0 ? this.rules : this.rules.slice(0, end);
    if (rules.length > RULES_MAX) throw new NotConvertible(`has more than ${RULES_MAX} rules`);
    // Null ends targeting in flagd, but continues with the next rule here.
    if (rules.some(({ serve }) => serve.split?.some(({ variant }) => variant === null)))
      throw new NotConvertible("has the result null in a condition, and the flag has no default variant");
    return { rules, fallback };
  }

  /** Adds the rules of a result that holds where `when` matches. */
  private result(expression: unknown, when: Alternatives): void {
    if (when.length === 0) return;
    if (this.rules.length > RULES_MAX) throw new NotConvertible(`has more than ${RULES_MAX} rules`);
    if (!isObject(expression)) {
      this.serve(this.variant(expression), when);
      return;
    }
    const found = this.conditions.operation(expression);
    if (found === null) throw new NotConvertible("has a result that is no operation");
    const [operator, operands] = found;
    if (operator === "if" || operator === "?:") this.branches(operands, when);
    else if (operator === "fractional") this.serve(this.split(operands), when);
    else {
      // A condition: its result, true or false, names the variant.
      this.serve(this.variant(true), both(when, this.conditions.of({ [operator]: operands }, false)));
      this.serve(this.variant(false), when);
    }
  }

  private branches(operands: readonly unknown[], when: Alternatives): void {
    let index = 0;
    for (; index + 1 < operands.length; index += 2)
      this.result(operands[index + 1], both(when, this.conditions.of(operands[index], false)));
    this.result(operands[index] ?? null, when);
  }

  private serve(serve: Serve, when: Alternatives): void {
    for (const conditions of when) this.rules.push({ when: [...conditions], serve });
  }

  private variant(result: unknown): Serve {
    if (result === null) return this.flag.fallback;
    return { variant: this.nameOf(result) };
  }

  private nameOf(result: unknown): string {
    const name = typeof result === "boolean" ? String(result) : result;
    const variant = typeof name === "string" ? this.flag.variants.get(name) : undefined;
    if (variant === undefined)
      throw new NotConvertible(`has the result ${shown(JSON.stringify(name))}, which is no variant`);
    return variant;
  }

  private split(operands: readonly unknown[]): Serve {
    const [first, ...others] = operands;
    const isDefault = Array.isArray(first);
    const bucket = isDefault ? { by: TARGETING_KEY, seed: this.flag.key } : this.bucket(first);
    const entries = isDefault ? operands : others;
    const split = entries.map((entry) => {
      const [name, weight = 1] = Array.isArray(entry) ? entry : [entry];
      if (typeof weight !== "number" || !Number.isInteger(weight))
        throw new NotConvertible("has a computed weight");
      const variant = name === null ? (this.flag.fallback.variant ?? null) : this.nameOf(name);
      return { variant, weight };
    });
    return { split, ...bucket, hash: "m3" };
  }

  /** An attribute, or a text or the flag's key before one. */
  private bucket(expression: unknown): { readonly by: string; readonly seed: string } {
    const found = this.conditions.operation(expression);
    if (found?.[0] === "var") return { by: this.conditions.variable(expression) ?? "", seed: "" };
    const [prefix, attribute, ...more] = found?.[0] === "cat" ? found[1] : [];
    const isKey = isObject(prefix) && [prefix["var"]].flat()[0] === FLAG_KEY;
    const seed = isKey ? this.flag.key : prefix;
    const by = attribute === undefined ? null : this.conditions.variable(attribute);
    if (typeof seed !== "string" || by === null || more.length > 0)
      throw new NotConvertible("has buckets by something else than one attribute");
    return { by, seed };
  }
}
