import { EXACT_NUMBER_PROBLEM } from "../../../json-text.ts";
import { echoed, type FieldMessages } from "../../../kernel/errors.ts";
import { exactNumberIn } from "../../../kernel/http/requests/body.ts";
import { compiledCheck } from "../../../kernel/http/requests/compiled-check.ts";
import { FIELD_ERRORS_MAX, fieldMessages } from "../../../kernel/http/requests/validate.ts";
import { invalidRuleError } from "../domain.ts";
import { timestampOf, versionOf } from "./condition-values.ts";
import {
  type CompleteDefinition,
  type Condition,
  type ConditionOp,
  DEFINITION,
  type Serve,
  StoredDefinition,
} from "./schema.ts";

/** Maximum bytes of a definition's JSON. */
export const DEFINITION_BYTES_MAX = 64 * 1024;
/** Maximum bytes of a variant value's JSON. */
export const VALUE_BYTES_MAX = 16 * 1024;
/** Maximum bytes of a flag's metadata as JSON. Every evaluation returns them. */
export const METADATA_BYTES_MAX = 2 * 1024;

/** Completes a definition with defaults. A flag without variants is a switch: on or off. */
export function withDefaults(stored: StoredDefinition): CompleteDefinition {
  const isSwitch = stored.variants === undefined;
  return {
    type: "boolean",
    variants: { on: true, off: false },
    default: { variant: "on" },
    off_variant: isSwitch ? "off" : null,
    rules: [],
    tags: [],
    metadata: {},
    server_only: false,
    ...stored,
  };
}

/**
 * Applies a body to a definition: omitted fields stay unchanged, null restores the default. Returns null for a plain switch.
 * The hash algorithm is stored with each split, so that a future algorithm does not reassign anyone.
 *
 * @throws ApiError `gate.rule_invalid` with the path of each problem.
 */
export function updateDefinition(
  before: StoredDefinition | null,
  body: Readonly<Record<string, unknown>>,
): StoredDefinition | null {
  const names = Object.keys(DEFINITION).filter((name) => body[name] !== undefined);
  if (names.length === 0) return before;
  const fields = new Map<string, unknown>(Object.entries(before ?? {}));
  for (const name of names) {
    // For `off_variant`, null is a value.
    if (body[name] === null && name !== "off_variant") fields.delete(name);
    else fields.set(name, body[name]);
  }
  if (fields.size === 0) return null;
  const definition = withHashes(validated(Object.fromEntries(fields)));
  if (jsonBytes(definition) > DEFINITION_BYTES_MAX)
    throw invalidRuleError({
      body: [`must define the flag in at most ${DEFINITION_BYTES_MAX} bytes of JSON`],
    });
  return definition;
}

/**
 * Rejects a body whose members have a number that a double cannot hold: evaluations would serve, or compare, another one.
 * @throws ApiError `gate.rule_invalid` with the number's path.
 */
export function assertDefinitionHeld(bodyText: string, members = Object.keys(DEFINITION)): void {
  const path = exactNumberIn(bodyText, members);
  if (path !== null) throw invalidRuleError({ [echoed(fieldPath(path.join("/")))]: [EXACT_NUMBER_PROBLEM] });
}

function validated(fields: unknown): StoredDefinition {
  if (!compiledCheck(StoredDefinition).Check(fields))
    throw invalidRuleError(fieldMessages(StoredDefinition, fields, fieldPath));
  const problems = problemsOf(fields);
  if (Object.keys(problems).length > 0) throw invalidRuleError(problems);
  return fields;
}

/** Returns the bytes of a value's JSON in UTF-8. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Converts `rules/1/when/0/op` to `rules[1].when[0].op`. Names of variants stay names, even if they are digits. */
export function fieldPath(path: string): string {
  const [first = "", ...more] = path.split("/");
  let isList = !NAMED.has(first);
  let name = first;
  for (const part of more) {
    name += isList && DIGITS.test(part) ? `[${part}]` : `.${part}`;
    isList &&= !NAMED.has(part);
  }
  return name;
}

/** Fields whose members have names that people choose. */
const NAMED: ReadonlySet<string> = new Set(["variants", "metadata"]);

const DIGITS = /^\d+$/;

/** Returns the problems of a definition that its schema does not cover. */
function problemsOf(stored: StoredDefinition): FieldMessages {
  const problems: Record<string, string[]> = {};
  const note = (path: string, message: string): void => {
    if (Object.keys(problems).length < FIELD_ERRORS_MAX) problems[echoed(path)] ??= [message];
  };
  const definition = withDefaults(stored);
  const { type, variants, off_variant, rules, metadata } = definition;
  if (type !== "boolean") {
    for (const name of ["variants", "default"] as const)
      if (stored[name] === undefined) note(name, `is required for a flag of type ${type}`);
    // Further messages about missing variants would not help.
    if (Object.keys(problems).length > 0) return problems;
  }
  for (const [name, value] of Object.entries(variants)) {
    const path = `variants.${name}`;
    if (!IS_OF_TYPE[type](value)) note(path, `must be ${NAMED_TYPE[type]}, like the flag's type`);
    else if (jsonBytes(value) > VALUE_BYTES_MAX)
      note(path, `must have at most ${VALUE_BYTES_MAX} bytes as JSON`);
  }
  const noteVariant = (path: string, name: string | null): void => {
    if (name !== null && !Object.hasOwn(variants, name))
      note(path, "must be the name of one of the flag's variants");
  };
  noteVariant("off_variant", off_variant);
  const noteServe = (path: string, serve: Serve): void => {
    for (const [subPath, message] of serveProblems(serve)) note(`${path}${subPath}`, message);
    if (serve.variant !== undefined) noteVariant(path, serve.variant);
    for (const [index, { variant }] of (serve.split ?? []).entries())
      noteVariant(`${path}.split[${index}].variant`, variant);
  };
  noteServe("default", definition.default);
  for (const [rule, { when, serve }] of rules.entries()) {
    for (const [index, condition] of when.entries()) {
      const message = valuesProblem(condition);
      if (message !== null) note(`rules[${rule}].when[${index}].values`, message);
    }
    noteServe(`rules[${rule}].serve`, serve);
  }
  if (jsonBytes(metadata) > METADATA_BYTES_MAX)
    note("metadata", `must have at most ${METADATA_BYTES_MAX} bytes as JSON`);
  return problems;
}

type Type = CompleteDefinition["type"];

const IS_OF_TYPE: Readonly<Record<Type, (value: unknown) => boolean>> = {
  boolean: (value) => typeof value === "boolean",
  string: (value) => typeof value === "string",
  number: Number.isFinite,
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
};

const NAMED_TYPE: Readonly<Record<Type, string>> = {
  boolean: "true or false",
  string: "a string",
  number: "a number",
  object: "an object",
};

function serveProblems({ variant, split, by, seed, hash }: Serve): [path: string, message: string][] {
  if ((variant === undefined) === (split === undefined))
    return [["", "must have either a variant or a split"]];
  if (split === undefined)
    return [by, seed, hash].some((field) => field !== undefined)
      ? [["", "must not have by, seed or hash without a split"]]
      : [];
  return split.some(({ weight }) => weight > 0) ? [] : [[".split", "must have a weight above 0"]];
}

/** Returns the problem of a condition's values; null if they are valid. */
function valuesProblem({ op, values = [] }: Condition): string | null {
  if (op === "exists") return values.length === 0 ? null : "must be omitted for the op exists";
  if (values.length === 0) return "must be a list of at least 1 value";
  const expected = ONE_VALUE[op];
  if (expected !== undefined)
    return values.length === 1 && expected.matches(values[0])
      ? null
      : `must be a list of exactly one value: ${expected.description}`;
  return op !== "in" && values.includes("") ? "must not contain an empty string" : null;
}

interface OneValue {
  readonly matches: (value: unknown) => boolean;
  readonly description: string;
}

const NUMBER: OneValue = { matches: Number.isFinite, description: "a number" };
const TIMESTAMP: OneValue = {
  matches: (value) => timestampOf(value) !== null,
  description: "an RFC 3339 date-time, or epoch milliseconds",
};
const VERSION: OneValue = {
  matches: (value) => typeof value === "string" && versionOf(value) !== null,
  description: "a SemVer version as a string",
};

const ONE_VALUE: Readonly<Partial<Record<ConditionOp, OneValue>>> = {
  gt: NUMBER,
  gte: NUMBER,
  lt: NUMBER,
  lte: NUMBER,
  before: TIMESTAMP,
  after: TIMESTAMP,
  semver_eq: VERSION,
  semver_gt: VERSION,
  semver_gte: VERSION,
  semver_lt: VERSION,
  semver_lte: VERSION,
};

function withHashes(definition: StoredDefinition): StoredDefinition {
  const hashed = (serve: Serve): Serve => (serve.split === undefined ? serve : { ...serve, hash: "m3" });
  const { rules, default: fallback } = definition;
  return {
    ...definition,
    ...(rules === undefined ? {} : { rules: rules.map((rule) => ({ ...rule, serve: hashed(rule.serve) })) }),
    ...(fallback === undefined ? {} : { default: hashed(fallback) }),
  };
}
