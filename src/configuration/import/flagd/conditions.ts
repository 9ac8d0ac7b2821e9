import { CONDITIONS_MAX, type Condition } from "../../../areas/flags/definitions/schema.ts";
import { SECOND_MS } from "../../../kernel/time/units.ts";
import { isObject, shown } from "../source.ts";

/** Alternatives of a condition: more than the rules of a flag. */
const ALTERNATIVES_MAX = 50;
/** Steps in which one flag is converted: references to evaluators could repeat parts without end. */
export const STEPS_MAX = 2_000;

/** A part of targeting that has no counterpart. The message is the end of a sentence. */
export class NotConvertible extends Error {}

/** Conditions of which all must match. */
export type All = readonly Condition[];
/** Alternatives of which one must match; none for a condition that never matches. */
export type Alternatives = readonly All[];

/** A condition that always matches. */
export const ALWAYS: Alternatives = [[]];
const NEVER: Alternatives = [];

/** The members of flagd's context that the server knows. */
const TIMESTAMP = "$flagd.timestamp";
const NOW = "$now";

const OPPOSITE = { "<": ">", "<=": ">=", ">": "<", ">=": "<=" } as const;
type Comparison = keyof typeof OPPOSITE;
const NUMERIC = { "<": "lt", "<=": "lte", ">": "gt", ">=": "gte" } as const;

/** Converts conditions of JsonLogic, with the evaluators to which they refer. */
export class Conditions {
  private steps = 0;

  constructor(private readonly evaluators: ReadonlyMap<string, unknown>) {}

  /** The only operator of an expression and its operands, after references; null for anything that is no operation. */
  operation(expression: unknown): readonly [operator: string, operands: readonly unknown[]] | null {
    this.steps += 1;
    if (this.steps > STEPS_MAX) throw new NotConvertible(`has more than ${STEPS_MAX} operations`);
    if (!isObject(expression)) return null;
    const entries = Object.entries(expression);
    const [first] = entries;
    if (first === undefined || entries.length !== 1) return null;
    const [operator, operand] = first;
    if (operator !== "$ref") return [operator, Array.isArray(operand) ? operand : [operand]];
    if (typeof operand !== "string" || !this.evaluators.has(operand))
      throw new NotConvertible(`refers to ${shown(String(operand))}, which is not in $evaluators`);
    return this.operation(this.evaluators.get(operand));
  }

  /** The alternatives of a condition, or of its opposite. @throws NotConvertible */
  of(expression: unknown, isNegated: boolean): Alternatives {
    if (typeof expression === "boolean") return expression !== isNegated ? ALWAYS : NEVER;
    const found = this.operation(expression);
    if (found === null) throw new NotConvertible("has a condition that is no operation");
    const [operator, operands] = found;
    if (operator === "!" || operator === "!!") return this.of(operands[0], (operator === "!") !== isNegated);
    if (operator === "and" || operator === "or") {
      const parts = operands.map((operand) => this.of(operand, isNegated));
      return (operator === "and") !== isNegated ? allOf(parts) : anyOf(parts);
    }
    if (operator === "sem_ver" && operands[1] === "!=") {
      // A text that is no version is neither equal nor different.
      const [left, , right] = operands;
      return this.of({ or: ["<", ">"].map((sign) => ({ sem_ver: [left, sign, right] })) }, isNegated);
    }
    const conditions = this.simple(operator, operands);
    if (!isNegated) return [conditions];
    return conditions.map((condition) => [negated(condition)]);
  }

  /** The conditions of an operator that compares an attribute; all must match. */
  private simple(operator: string, operands: readonly unknown[]): All {
    const [left, right] = operands;
    switch (operator) {
      case "==":
      case "===":
      case "!=":
      case "!==": {
        const condition = this.equals(left, right);
        return [operator.startsWith("!") ? negated(condition) : condition];
      }
      case "in":
        return [this.member(left, right)];
      case "starts_with":
      case "ends_with":
        return [
          { attribute: this.attribute(left, operator), op: operator, values: [textOf(right, operator)] },
        ];
      case "sem_ver":
        return this.version(operands);
      case "<":
      case "<=":
      case ">":
      case ">=":
        return this.compared(operator, operands);
      case "var":
        return this.truthy(this.attribute({ var: operands }, "var"));
      default:
        throw new NotConvertible(`uses the operator ${shown(operator)}`);
    }
  }

  private equals(left: unknown, right: unknown): Condition {
    const name = this.variable(left);
    const attribute = name ?? this.attribute(right, "==");
    const value = name === null ? left : right;
    if (value === null) return { attribute, op: "exists", not: true };
    return { attribute, op: "in", values: [plainValue(value, "==")] };
  }

  private member(left: unknown, right: unknown): Condition {
    if (!Array.isArray(right))
      return { attribute: this.attribute(right, "in"), op: "contains", values: [textOf(left, "in")] };
    const attribute = this.attribute(left, "in");
    const values = right.map((item) => plainValue(item, "in"));
    // Nothing is in an empty list: this never matches.
    if (values.length === 0) throw new NotConvertible("compares with an empty list");
    return { attribute, op: "in", values };
  }

  private compared(operator: Comparison, operands: readonly unknown[]): All {
    const [left, middle, right] = operands;
    if (operands.length === 3)
      return [...this.compared(operator, [left, middle]), ...this.compared(operator, [middle, right])];
    const name = this.variable(left);
    const attribute = name ?? this.attribute(middle, operator);
    const number = name === null ? left : middle;
    if (typeof number !== "number") throw new NotConvertible(`compares with no number (${operator})`);
    const comparison = name === null ? OPPOSITE[operator] : operator;
    if (attribute !== NOW) return [{ attribute, op: NUMERIC[comparison], values: [number] }];
    // Timestamps of flagd are whole seconds.
    const from = comparison === ">" || comparison === "<=" ? Math.floor(number) + 1 : Math.ceil(number);
    return [
      {
        attribute: NOW,
        op: comparison === "<" || comparison === "<=" ? "before" : "after",
        values: [from * SECOND_MS],
      },
    ];
  }

  private version([left, operator, right]: readonly unknown[]): All {
    const attribute = this.attribute(left, "sem_ver");
    const version = textOf(right, "sem_ver");
    const [major = "", minor = "0"] = version.replace(/^v/i, "").split(/[.+-]/);
    const condition = (op: Condition["op"], value: string): Condition => ({ attribute, op, values: [value] });
    // The lowest version of a range is a pre-release.
    const range = (from: string, to: string) => [
      condition("semver_gte", `${from}-0`),
      condition("semver_lt", `${to}-0`),
    ];
    switch (operator) {
      case "=":
        return [condition("semver_eq", version)];
      case "<":
        return [condition("semver_lt", version)];
      case "<=":
        return [condition("semver_lte", version)];
      case ">":
        return [condition("semver_gt", version)];
      case ">=":
        return [condition("semver_gte", version)];
      case "^":
        return range(`${major}.0.0`, `${Number(major) + 1}.0.0`);
      case "~":
        return range(`${major}.${minor}.0`, `${major}.${Number(minor) + 1}.0`);
      default:
        throw new NotConvertible(`compares versions with ${shown(String(operator))}`);
    }
  }

  /** JsonLogic takes every value except these and empty lists for true. */
  private truthy(attribute: string): All {
    const falsy = { attribute, op: "in", values: [false, 0, ""], not: true } as const;
    return [
      { attribute, op: "exists" },
      { ...falsy, values: [...falsy.values] },
    ];
  }

  /** The attribute that an expression reads; null for anything else. */
  variable(expression: unknown): string | null {
    const found = this.operation(expression);
    if (found?.[0] !== "var") return null;
    const [name, fallback] = found[1].flat();
    if (typeof name !== "string" || name === "" || (fallback ?? null) !== null)
      throw new NotConvertible("reads an attribute with a default");
    if (name === TIMESTAMP) return NOW;
    if (name.startsWith("$flagd.")) throw new NotConvertible(`reads ${shown(name)}`);
    return name;
  }

  private attribute(expression: unknown, operator: string): string {
    const name = this.variable(expression);
    if (name === null) throw new NotConvertible(`compares something else than an attribute (${operator})`);
    return name;
  }
}

function allOf(parts: readonly Alternatives[]): Alternatives {
  return parts.reduce<Alternatives>((before, part) => both(before, part), ALWAYS);
}

/** The alternatives in which both match. @throws NotConvertible if there are too many */
export function both(a: Alternatives, b: Alternatives): Alternatives {
  if (a.length * b.length > ALTERNATIVES_MAX)
    throw new NotConvertible(`has more than ${ALTERNATIVES_MAX} alternatives`);
  return a.flatMap((left) => b.map((right) => limited([...left, ...right])));
}

function anyOf(parts: readonly Alternatives[]): Alternatives {
  const alternatives = parts.flat();
  if (alternatives.some((alternative) => alternative.length === 0)) return ALWAYS;
  if (alternatives.length > ALTERNATIVES_MAX)
    throw new NotConvertible(`has more than ${ALTERNATIVES_MAX} alternatives`);
  return alternatives;
}

function limited(conditions: All): All {
  if (conditions.length > CONDITIONS_MAX)
    throw new NotConvertible(`has more than ${CONDITIONS_MAX} conditions of which all must match`);
  return conditions;
}

function negated({ not, ...condition }: Condition): Condition {
  return not === true ? condition : { ...condition, not: true };
}

function plainValue(value: unknown, operator: string): string | number | boolean {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
  throw new NotConvertible(`compares with a computed value (${operator})`);
}

function textOf(value: unknown, operator: string): string {
  if (typeof value === "string") return value;
  throw new NotConvertible(`compares with no text (${operator})`);
}
