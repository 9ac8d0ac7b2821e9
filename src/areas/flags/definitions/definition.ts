import { TypeCompiler } from "@sinclair/typebox/compiler";
import { echoed, type FieldMessages } from "../../../kernel/errors.ts";
import { FIELD_ERRORS_MAX, fieldMessages } from "../../../kernel/http/requests/validate.ts";
import { ruleInvalid } from "../domain.ts";
import { timestampOf, versionOf } from "../evaluation/conditions.ts";
import {
  type Condition,
  type ConditionOp,
  DEFINITION,
  type Serve,
  StoredDefinition,
  type WholeDefinition,
} from "./schema.ts";

/** Largest definition, in bytes of its JSON. */
export const DEFINITION_BYTES_MAX = 64 * 1024;
/** Largest value of a variant, in bytes of its JSON. */
export const VALUE_BYTES_MAX = 16 * 1024;
/** Largest metadata of a flag, in bytes of their JSON: they go out with every evaluation. */
export const METADATA_BYTES_MAX = 2 * 1024;

/** Fills in what a definition leaves out. A flag without variants is a switch: on or off. */
export function resolved(stored: StoredDefinition): WholeDefinition {
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
 * A definition with the fields of a body changed in it: left out, a field stays; null, it gets its default. Null where
 * nothing is left but a switch. The hash of a split is stored with it: another one may come, and moves nobody.
 *
 * @throws ApiError `gate.rule_invalid` with the path of each fault.
 */
export function changedDefinition(
  before: StoredDefinition | null,
  body: Readonly<Record<string, unknown>>,
): StoredDefinition | null {
  const said = Object.keys(DEFINITION).filter((name) => body[name] !== undefined);
  if (said.length === 0) return before;
  const fields = new Map<string, unknown>(Object.entries(before ?? {}));
  for (const name of said) {
    // No value is a value of its own here.
    if (body[name] === null && name !== "off_variant") fields.delete(name);
    else fields.set(name, body[name]);
  }
  if (fields.size === 0) return null;
  const definition = withHashes(checked(Object.fromEntries(fields)));
  if (jsonBytes(definition) > DEFINITION_BYTES_MAX)
    throw ruleInvalid({ body: [`must define the flag in at most ${DEFINITION_BYTES_MAX} bytes of JSON`] });
  return definition;
}

function checked(fields: unknown): StoredDefinition {
  check ??= TypeCompiler.Compile(StoredDefinition);
  if (!check.Check(fields)) throw ruleInvalid(fieldMessages(StoredDefinition, fields, pathOf));
  const faults = faultsOf(fields);
  if (Object.keys(faults).length > 0) throw ruleInvalid(faults);
  return fields;
}

/** Compiled at its first use, as the checks of endpoints are. */
let check: ReturnType<typeof TypeCompiler.Compile<typeof StoredDefinition>> | undefined;

/** Bytes of a value's JSON in UTF-8. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** `rules/1/when/0/op` as `rules[1].when[0].op`. Names of variants may look like numbers, and are none. */
function pathOf(path: string): string {
  const [first = "", ...more] = path.split("/");
  const isList = first !== "variants" && first !== "metadata";
  return more.reduce(
    (name, part) => (isList && DIGITS.test(part) ? `${name}[${part}]` : `${name}.${part}`),
    first,
  );
}

const DIGITS = /^\d+$/;

/** What is wrong with a definition beyond the form of its fields. */
function faultsOf(stored: StoredDefinition): FieldMessages {
  const faults: Record<string, string[]> = {};
  const note = (path: string, message: string): void => {
    if (Object.keys(faults).length < FIELD_ERRORS_MAX) faults[echoed(path)] ??= [message];
  };
  const definition = resolved(stored);
  const { type, variants, off_variant, rules, metadata } = definition;
  if (type !== "boolean") {
    for (const name of ["variants", "default"] as const)
      if (stored[name] === undefined) note(name, `is required for a flag of type ${type}`);
    // What is said of variants that are not there says nothing.
    if (Object.keys(faults).length > 0) return faults;
  }
  for (const [name, value] of Object.entries(variants)) {
    const path = `variants.${name}`;
    if (!IS_OF_TYPE[type](value)) note(path, `must be ${NAMED_TYPE[type]}, as the flag's type says`);
    else if (jsonBytes(value) > VALUE_BYTES_MAX)
      note(path, `must have at most ${VALUE_BYTES_MAX} bytes as JSON`);
  }
  const noteVariant = (path: string, name: string | null): void => {
    if (name !== null && !Object.hasOwn(variants, name))
      note(path, "must be the name of one of the flag's variants");
  };
  noteVariant("off_variant", off_variant);
  const noteServe = (path: string, serve: Serve): void => {
    for (const [place, message] of serveFaults(serve)) note(`${path}${place}`, message);
    if (serve.variant !== undefined) noteVariant(path, serve.variant);
    for (const [index, { variant }] of (serve.split ?? []).entries())
      noteVariant(`${path}.split[${index}].variant`, variant);
  };
  noteServe("default", definition.default);
  for (const [rule, { when, serve }] of rules.entries()) {
    for (const [index, condition] of when.entries()) {
      const message = wantedValues(condition);
      if (message !== null) note(`rules[${rule}].when[${index}].values`, message);
    }
    noteServe(`rules[${rule}].serve`, serve);
  }
  if (jsonBytes(metadata) > METADATA_BYTES_MAX)
    note("metadata", `must have at most ${METADATA_BYTES_MAX} bytes as JSON`);
  return faults;
}

type Type = WholeDefinition["type"];

const IS_OF_TYPE: Readonly<Record<Type, (value: unknown) => boolean>> = {
  boolean: (value) => typeof value === "boolean",
  string: (value) => typeof value === "string",
  number: Number.isFinite,
  object: (value) =>
    typeof value === "object" && value !== null && !Array.isArray(value) && isStorable(value),
};

/** JSON of a number beyond 1.8e308 would be null. */
function isStorable(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value !== "object" || value === null || Object.values(value).every(isStorable);
}

const NAMED_TYPE: Readonly<Record<Type, string>> = {
  boolean: "true or false",
  string: "a text",
  number: "a number",
  object: "an object",
};

function serveFaults({ variant, split, by, seed, hash }: Serve): [place: string, message: string][] {
  if ((variant === undefined) === (split === undefined))
    return [["", "must have either a variant or a split"]];
  if (split === undefined)
    return [by, seed, hash].some((field) => field !== undefined)
      ? [["", "must have by, seed and hash with a split alone"]]
      : [];
  return split.some(({ weight }) => weight > 0) ? [] : [[".split", "must have a weight above 0"]];
}

/** What the values of a condition should be; null when they are. */
function wantedValues({ op, values = [] }: Condition): string | null {
  if (op === "exists") return values.length === 0 ? null : "must be left out: exists takes none";
  if (values.length === 0) return "must be a list of at least 1 value";
  const wanted = ONE_VALUE[op];
  if (wanted !== undefined)
    return values.length === 1 && wanted.takes(values[0])
      ? null
      : `must be a list of exactly one value: ${wanted.what}`;
  return op !== "in" && values.includes("") ? "must hold no empty text" : null;
}

interface OneValue {
  readonly takes: (value: unknown) => boolean;
  readonly what: string;
}

const NUMBER: OneValue = { takes: Number.isFinite, what: "a number" };
const MOMENT: OneValue = {
  takes: (value) => timestampOf(value) !== null,
  what: "an RFC 3339 date-time, or a number of milliseconds since 1970",
};
const VERSION: OneValue = {
  takes: (value) => versionOf(value) !== null,
  what: "a version by SemVer, as a text",
};

const ONE_VALUE: Readonly<Partial<Record<ConditionOp, OneValue>>> = {
  gt: NUMBER,
  gte: NUMBER,
  lt: NUMBER,
  lte: NUMBER,
  before: MOMENT,
  after: MOMENT,
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
