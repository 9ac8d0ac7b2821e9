import { isExactNumber } from "../../json-text.ts";
import { slices, type TimeSlices } from "../background/time-slices.ts";
import type { CompiledSchema, JsonType, SchemaNode } from "./compile.ts";
import { canonicalText, compared, isMultiple, isNumber, isWhole, sizeOf } from "./values.ts";

/** Steps after which a value counts as invalid. A step applies a schema or looks at a member. */
export const STEPS_MAX = 100_000;
/** Errors that are reported of one value. */
export const SCHEMA_ERRORS_MAX = 5;
/** Schemas that are applied within each other: each has a frame of the stack. */
const DEPTH_MAX = 1_000;
/** Steps between two checks of the time. */
const STEPS_PER_CHECK = 256;
/** Characters of a text that count as a step: they are counted one by one. */
const CHARACTERS_PER_STEP = 1_024;
/** Names that are looked up in a step. */
const NAMES_PER_STEP = 8;

/** What is wrong with a value. */
export interface SchemaError {
  /** The place in the value: names and indexes. */
  readonly path: readonly (string | number)[];
  /** The end of a sentence about the place. */
  readonly message: string;
}

/** Validates a value, in time slices. At most {@link SCHEMA_ERRORS_MAX} errors; none for a valid value. */
export async function validate(
  schema: CompiledSchema,
  value: unknown,
  turns: Pick<TimeSlices, "isOver" | "next"> = slices,
): Promise<readonly SchemaError[]> {
  const run = new Validation(schema.tracksEvaluated);
  try {
    const steps = run.apply(schema.root, value, [], true);
    for (let next = steps.next(); next.done !== true; next = steps.next())
      if (turns.isOver) await turns.next();
    return run.errors;
  } catch (error) {
    if (error !== TOO_LONG) throw error;
    return [
      {
        path: [],
        message: `takes more than ${STEPS_MAX} steps to validate: send less, or simplify the schema`,
      },
    ];
  }
}

const TOO_LONG = new Error("the limit of steps is reached");

/** Names of an object that are listed once for all schemas that are applied to it: a large object takes milliseconds. */
const MANY_NAMES = 64;

/** What the schemas of one place have evaluated. */
interface Evaluated {
  names: Set<string>;
  items: Set<number>;
}

type Path = readonly (string | number)[];
/** Pauses between steps. Its result: whether the value is valid. */
type Steps = Generator<undefined, boolean, undefined>;

class Validation {
  readonly errors: SchemaError[] = [];
  private steps = 0;
  private depth = 0;
  private checkedAt = 0;
  /** The names of large objects. */
  private readonly names = new Map<object, readonly string[]>();

  constructor(readonly tracksEvaluated: boolean) {}

  /** Applies a schema. `reports`: whether its errors are reported; otherwise the first one ends it. */
  *apply(node: SchemaNode, value: unknown, path: Path, reports: boolean, evaluated = newEvaluated()): Steps {
    this.count(1);
    if (this.steps - this.checkedAt >= STEPS_PER_CHECK) {
      this.checkedAt = this.steps;
      yield;
    }
    if (!node.admits) return this.fail(reports, path, "must be omitted: the schema allows nothing here");
    this.depth += 1;
    if (this.depth > DEPTH_MAX) throw TOO_LONG;
    let isValid = this.assert(node, value, path, reports);
    for (const part of PARTS) {
      if (!isValid && this.isEnough(reports)) break;
      if (!part.isIn(node)) continue;
      const result = yield* part.run(this, { node, value, path, reports, evaluated });
      isValid = result && isValid;
    }
    this.depth -= 1;
    return isValid;
  }

  /** Applies a schema whose evaluated places count only if the value is valid. */
  *inPlace(node: SchemaNode, of: Place, reports: boolean): Steps {
    if (!this.tracksEvaluated) return yield* this.apply(node, of.value, of.path, reports);
    const evaluated = newEvaluated();
    const isValid = yield* this.apply(node, of.value, of.path, reports, evaluated);
    if (isValid) merge(of.evaluated, evaluated);
    return isValid;
  }

  /** The names of an object's members. */
  namesOf(value: object): readonly string[] {
    const known = this.names.size === 0 ? undefined : this.names.get(value);
    if (known !== undefined) return known;
    const names = Object.keys(value);
    if (names.length >= MANY_NAMES) this.names.set(value, names);
    return names;
  }

  /** Whether nothing more is to be found out of an invalid value. */
  isEnough(reports: boolean): boolean {
    return !reports || this.errors.length >= SCHEMA_ERRORS_MAX;
  }

  count(steps: number): void {
    this.steps += steps;
    if (this.steps > STEPS_MAX) throw TOO_LONG;
  }

  fail(reports: boolean, path: Path, message: string): false {
    if (reports && this.errors.length < SCHEMA_ERRORS_MAX) this.errors.push({ path, message });
    return false;
  }

  /** The keywords without schemas. */
  private assert(node: SchemaNode, value: unknown, path: Path, reports: boolean): boolean {
    const { type, enum: values, enumLength = 0 } = node;
    if (type !== undefined && !type.some((name) => isOfType(name, value)))
      return this.fail(reports, path, `must be ${type.map(typeName).join(" or ")}`);
    if (values !== undefined && !this.isAmong(values, enumLength, value))
      return this.fail(reports, path, `must be ${listOf(values)}`);
    const message = isNumber(value)
      ? numberProblem(node, value)
      : typeof value === "string"
        ? this.textProblem(node, value)
        : Array.isArray(value)
          ? this.listProblem(node, value)
          : null;
    if (message !== null) return this.fail(reports, path, message);
    return isMembers(value) ? this.assertMembers(node, value, path, reports) : true;
  }

  /** `longest`: the length of the longest of the texts. */
  private isAmong(values: ReadonlySet<string>, longest: number, value: unknown): boolean {
    const size = sizeOf(value, STEPS_MAX);
    this.count(size);
    // Each value has at least one character.
    return size <= longest && values.has(canonicalText(value));
  }

  private textProblem({ minLength, maxLength }: SchemaNode, value: string): string | null {
    if (minLength === undefined && maxLength === undefined) return null;
    this.count(Math.floor(value.length / CHARACTERS_PER_STEP));
    const length = characters(value);
    if (minLength !== undefined && length < minLength) return `must have at least ${minLength} characters`;
    return maxLength !== undefined && length > maxLength ? `must have at most ${maxLength} characters` : null;
  }

  private listProblem({ minItems, maxItems, uniqueItems }: SchemaNode, value: unknown[]): string | null {
    if (minItems !== undefined && value.length < minItems) return `must have at least ${minItems} items`;
    if (maxItems !== undefined && value.length > maxItems) return `must have at most ${maxItems} items`;
    if (uniqueItems !== true) return null;
    this.count(sizeOf(value, STEPS_MAX));
    return new Set(value.map(canonicalText)).size < value.length ? "must have items that all differ" : null;
  }

  private assertMembers(node: SchemaNode, value: object, path: Path, reports: boolean): boolean {
    const { minProperties, maxProperties, required = [], dependentRequired } = node;
    const size = minProperties === undefined && maxProperties === undefined ? 0 : this.namesOf(value).length;
    if (minProperties !== undefined && size < minProperties)
      return this.fail(reports, path, `must have at least ${minProperties} members`);
    if (maxProperties !== undefined && size > maxProperties)
      return this.fail(reports, path, `must have at most ${maxProperties} members`);
    let isValid = this.assertRequired(required, value, path, reports);
    for (const [name, names] of dependentRequired ?? []) {
      this.count(1);
      if (!Object.hasOwn(value, name)) continue;
      const areThere = this.assertRequired(names, value, path, reports);
      isValid = areThere && isValid;
    }
    return isValid;
  }

  private assertRequired(names: readonly string[], value: object, path: Path, reports: boolean): boolean {
    this.count(Math.floor(names.length / NAMES_PER_STEP));
    const missing = names.filter((name) => !Object.hasOwn(value, name));
    for (const name of missing) this.fail(reports, [...path, name], "is required");
    return missing.length === 0;
  }
}

/** A schema that is applied to a place in a value. */
interface Place {
  readonly node: SchemaNode;
  readonly value: unknown;
  readonly path: Path;
  readonly reports: boolean;
  readonly evaluated: Evaluated;
}

/** Keywords with schemas, in the order in which they are applied. */
interface Part {
  isIn(node: SchemaNode): boolean;
  run(validation: Validation, place: Place): Steps;
}

const PARTS: readonly Part[] = [
  { isIn: ({ reference }) => reference !== undefined, run: applyReference },
  { isIn: ({ allOf }) => allOf !== undefined, run: applyAll },
  { isIn: ({ anyOf }) => anyOf !== undefined, run: applyAny },
  { isIn: ({ oneOf }) => oneOf !== undefined, run: applyOne },
  { isIn: ({ not }) => not !== undefined, run: applyNot },
  { isIn: ({ if: condition }) => condition !== undefined, run: applyCondition },
  { isIn: ({ dependentSchemas }) => dependentSchemas !== undefined, run: applyDependent },
  { isIn: ({ prefixItems, items }) => prefixItems !== undefined || items !== undefined, run: applyItems },
  { isIn: ({ contains }) => contains !== undefined, run: applyContains },
  {
    isIn: ({ properties, additionalProperties }) =>
      properties !== undefined || additionalProperties !== undefined,
    run: applyProperties,
  },
  { isIn: ({ propertyNames }) => propertyNames !== undefined, run: applyNames },
  { isIn: ({ unevaluatedItems }) => unevaluatedItems !== undefined, run: applyUnevaluatedItems },
  {
    isIn: ({ unevaluatedProperties }) => unevaluatedProperties !== undefined,
    run: applyUnevaluatedProperties,
  },
];

function* applyReference(validation: Validation, place: Place): Steps {
  const { reference } = place.node;
  return reference === undefined || (yield* validation.inPlace(reference, place, place.reports));
}

function* applyAll(validation: Validation, place: Place): Steps {
  let isValid = true;
  for (const schema of place.node.allOf ?? []) {
    const result = yield* validation.inPlace(schema, place, place.reports);
    isValid = result && isValid;
    if (!isValid && validation.isEnough(place.reports)) break;
  }
  return isValid;
}

function* applyAny(validation: Validation, place: Place): Steps {
  let isValid = false;
  for (const schema of place.node.anyOf ?? []) {
    const result = yield* validation.inPlace(schema, place, false);
    isValid = result || isValid;
    if (isValid && !validation.tracksEvaluated) break;
  }
  return (
    isValid || validation.fail(place.reports, place.path, "must be valid by one of the schemas of anyOf")
  );
}

function* applyOne(validation: Validation, place: Place): Steps {
  let valid = 0;
  for (const schema of place.node.oneOf ?? []) {
    if (yield* validation.inPlace(schema, place, false)) valid += 1;
    if (valid > 1) break;
  }
  return (
    valid === 1 ||
    validation.fail(place.reports, place.path, "must be valid by exactly one of the schemas of oneOf")
  );
}

function* applyNot(validation: Validation, { node, value, path, reports }: Place): Steps {
  const isMatch = node.not !== undefined && (yield* validation.apply(node.not, value, path, false));
  return !isMatch || validation.fail(reports, path, "must not be valid by the schema of not");
}

function* applyCondition(validation: Validation, place: Place): Steps {
  const { if: condition, then: positive, else: negative } = place.node;
  const holds = condition === undefined || (yield* validation.inPlace(condition, place, false));
  const schema = holds ? positive : negative;
  return schema === undefined || (yield* validation.inPlace(schema, place, place.reports));
}

function* applyDependent(validation: Validation, place: Place): Steps {
  const { node, value, reports } = place;
  if (!isMembers(value)) return true;
  let isValid = true;
  for (const [name, schema] of node.dependentSchemas ?? []) {
    validation.count(1);
    if (!Object.hasOwn(value, name)) continue;
    const result = yield* validation.inPlace(schema, place, reports);
    isValid = result && isValid;
  }
  return isValid;
}

function* applyItems(validation: Validation, { node, value, path, reports, evaluated }: Place): Steps {
  if (!Array.isArray(value)) return true;
  const { prefixItems = [], items } = node;
  let isValid = true;
  const count = items === undefined ? Math.min(prefixItems.length, value.length) : value.length;
  for (let at = 0; at < count; at += 1) {
    const schema = prefixItems[at] ?? items;
    if (schema === undefined) break;
    evaluated.items.add(at);
    const result = yield* validation.apply(schema, value[at], [...path, at], reports);
    isValid = result && isValid;
    if (!isValid && validation.isEnough(reports)) break;
  }
  return isValid;
}

function* applyContains(validation: Validation, { node, value, path, reports, evaluated }: Place): Steps {
  const { contains, minContains = 1, maxContains = Number.POSITIVE_INFINITY } = node;
  if (!Array.isArray(value) || contains === undefined) return true;
  let matching = 0;
  for (const [at, item] of value.entries()) {
    if (!(yield* validation.apply(contains, item, path, false))) continue;
    matching += 1;
    evaluated.items.add(at);
  }
  if (matching < minContains)
    return validation.fail(
      reports,
      path,
      `must have at least ${minContains} items as the schema of contains`,
    );
  return (
    matching <= maxContains ||
    validation.fail(reports, path, `must have at most ${maxContains} items as the schema of contains`)
  );
}

function* applyProperties(validation: Validation, { node, value, path, reports, evaluated }: Place): Steps {
  if (!isMembers(value)) return true;
  const { properties, additionalProperties } = node;
  let isValid = true;
  for (const name of validation.namesOf(value)) {
    validation.count(1);
    const schema = properties?.get(name) ?? additionalProperties;
    if (schema === undefined) continue;
    evaluated.names.add(name);
    const result = yield* validation.apply(schema, memberOf(value, name), [...path, name], reports);
    isValid = result && isValid;
    if (!isValid && validation.isEnough(reports)) break;
  }
  return isValid;
}

function* applyNames(validation: Validation, { node, value, path, reports }: Place): Steps {
  const { propertyNames } = node;
  if (!isMembers(value) || propertyNames === undefined) return true;
  let isValid = true;
  for (const name of validation.namesOf(value)) {
    if (yield* validation.apply(propertyNames, name, [...path, name], false)) continue;
    isValid = validation.fail(reports, [...path, name], "has a name that the schema does not allow");
    if (validation.isEnough(reports)) break;
  }
  return isValid;
}

function* applyUnevaluatedItems(validation: Validation, place: Place): Steps {
  const { node, value, path, reports, evaluated } = place;
  const { unevaluatedItems: schema } = node;
  if (!Array.isArray(value) || schema === undefined) return true;
  let isValid = true;
  for (const [at, item] of value.entries()) {
    validation.count(1);
    if (evaluated.items.has(at)) continue;
    evaluated.items.add(at);
    const result = yield* validation.apply(schema, item, [...path, at], reports);
    isValid = result && isValid;
    if (!isValid && validation.isEnough(reports)) break;
  }
  return isValid;
}

function* applyUnevaluatedProperties(validation: Validation, place: Place): Steps {
  const { node, value, path, reports, evaluated } = place;
  const { unevaluatedProperties: schema } = node;
  if (!isMembers(value) || schema === undefined) return true;
  let isValid = true;
  for (const name of validation.namesOf(value)) {
    validation.count(1);
    if (evaluated.names.has(name)) continue;
    evaluated.names.add(name);
    const result = yield* validation.apply(schema, memberOf(value, name), [...path, name], reports);
    isValid = result && isValid;
    if (!isValid && validation.isEnough(reports)) break;
  }
  return isValid;
}

function newEvaluated(): Evaluated {
  return { names: new Set(), items: new Set() };
}

/** Adds to the larger set, so that a chain of references to a large value does not copy it at each of them. */
function merge(into: Evaluated, from: Evaluated): void {
  into.names = union(into.names, from.names);
  into.items = union(into.items, from.items);
}

function union<Value>(left: Set<Value>, right: Set<Value>): Set<Value> {
  const [larger, smaller] = left.size < right.size ? [right, left] : [left, right];
  for (const value of smaller) larger.add(value);
  return larger;
}

function memberOf(value: object, name: string): unknown {
  return (value as Readonly<Record<string, unknown>>)[name];
}

/** Whether a value has members: an object that is neither a list nor a number. */
function isMembers(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isExactNumber(value);
}

function isOfType(type: JsonType, value: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isMembers(value);
  if (type === "number") return isNumber(value);
  if (type === "integer") return isNumber(value) && isWhole(value);
  return typeof value === type;
}

function typeName(type: JsonType): string {
  if (type === "null") return "null";
  return type === "integer" || type === "array" || type === "object" ? `an ${type}` : `a ${type}`;
}

/** Values that an error lists. */
const LISTED_MAX = 10;
const LISTED_LENGTH_MAX = 200;

function listOf(values: ReadonlySet<string>): string {
  const shown = [...values].slice(0, LISTED_MAX).join(", ");
  const more = values.size > LISTED_MAX || shown.length > LISTED_LENGTH_MAX ? "…" : "";
  return `one of ${shown.slice(0, LISTED_LENGTH_MAX)}${more}`;
}

function numberProblem(node: SchemaNode, value: number | ReturnType<typeof JSON.rawJSON>): string | null {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = node;
  if (minimum !== undefined && compared(value, minimum) < 0) return `must be at least ${shown(minimum)}`;
  if (maximum !== undefined && compared(value, maximum) > 0) return `must be at most ${shown(maximum)}`;
  if (exclusiveMinimum !== undefined && compared(value, exclusiveMinimum) <= 0)
    return `must be above ${shown(exclusiveMinimum)}`;
  if (exclusiveMaximum !== undefined && compared(value, exclusiveMaximum) >= 0)
    return `must be below ${shown(exclusiveMaximum)}`;
  return multipleOf !== undefined && !isMultiple(value, multipleOf)
    ? `must be a multiple of ${shown(multipleOf)}`
    : null;
}

function shown(number: unknown): string {
  return JSON.stringify(number);
}

/** The number of characters, of which some take two units. */
function characters(text: string): number {
  let length = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const isPair = code >= 0xd800 && code < 0xdc00 && isLow(text.charCodeAt(at + 1));
    if (isPair) at += 1;
    length += 1;
  }
  return length;
}

function isLow(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000;
}
