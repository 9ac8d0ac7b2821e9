import { updateDefinition } from "../../../areas/flags/definitions/definition.ts";
import { type Serve, VARIANT_NAME_LENGTH_MAX } from "../../../areas/flags/definitions/schema.ts";
import {
  EXACT_NUMBER_PROBLEM,
  findExactNumber,
  parseJson as parseExactJson,
  pathText,
} from "../../../json-text.ts";
import { rejectionBy, StartupError } from "../../../kernel/errors.ts";
import { parseDocuments, plainOf } from "../../document.ts";
import type { Draft } from "../draft.ts";
import { INPUT_BYTES_MAX, isObject, parseJson, SourceObject, shown } from "../source.ts";
import { NotConvertible } from "./conditions.ts";
import { convertTargeting } from "./targeting.ts";

/** Serves no value: the caller uses its own default. */
const NO_VALUE: Serve = { split: [{ variant: null, weight: 1 }], hash: "m3" };

/** Parses flag definitions, JSON or YAML. @throws StartupError */
export function parseFlagd(text: string, what: string): unknown {
  if (/^\s*\{/.test(text)) return parseJson(text, what, parseExactJson);
  if (Buffer.byteLength(text) > INPUT_BYTES_MAX)
    throw new StartupError(`${what} is larger than ${INPUT_BYTES_MAX} bytes.`);
  const [document] = parseDocuments(what, text);
  return document === undefined ? null : plainOf(document);
}

/** Imports flag definitions of flagd. @throws StartupError */
export function importFlagd(draft: Draft, value: unknown): void {
  const set = new SourceObject(draft, "flagd", value);
  const flags = set.any("flags");
  if (!isObject(flags)) throw new StartupError('The flag definitions of flagd must have {"flags": {…}}.');
  const shared = membersOf(set.any("metadata"), "metadata");
  const evaluators = new Map(Object.entries(membersOf(set.any("$evaluators"), "$evaluators")));
  set.ignore("$schema");
  set.rest();
  for (const [key, flag] of Object.entries(flags)) flagOf(draft, key, flag, { shared, evaluators });
}

interface Context {
  readonly shared: Readonly<Record<string, unknown>>;
  readonly evaluators: ReadonlyMap<string, unknown>;
}

function flagOf(draft: Draft, key: string, value: unknown, { shared, evaluators }: Context): void {
  const flag = new SourceObject(draft, `flag ${shown(key)}`, value, "flag");
  const exact = findExactNumber({ ...membersOf(value, flag.label), $shared: shared });
  if (exact !== null) {
    flag.noteLoss(pathText(exact), `${EXACT_NUMBER_PROBLEM}. The flag is not carried over`);
    return;
  }
  const source = membersOf(flag.any("variants"), `${flag.label}: variants`);
  const variants = variantNames(flag, Object.keys(source));
  const type = typeOf(Object.values(source));
  const state = flag.text("state");
  const defaultVariant = flag.text("defaultVariant");
  const metadata = { ...shared, ...membersOf(flag.any("metadata"), `${flag.label}: metadata`) };
  const targeting = flag.any("targeting");
  flag.ignore("$schema");
  flag.rest();
  const fallback = defaultOf(flag, defaultVariant, variants);
  if (type === null)
    flag.noteLoss("variants", "must have values of one type: boolean, string, number or object");
  if (type === null || fallback === null) return;
  const served = targetingOf(flag, targeting, { key, variants, fallback, evaluators });
  const values = {
    enabled: state !== "DISABLED",
    type,
    variants: Object.fromEntries(
      Object.entries(source).map(([name, member]) => [variants.get(name) ?? name, member]),
    ),
    ...served,
    metadata: Object.keys(metadata).length === 0 ? null : metadata,
  };
  const fitting = accepted(flag, values);
  if (fitting !== null) draft.add({ section: "flags", name: key, subject: flag, values: fitting });
}

/** The fields without those that a server would not accept; null if a flag cannot exist without them. */
function accepted(
  flag: SourceObject,
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> | null {
  const { enabled, ...definition } = values;
  const rejection = rejectionBy(() => updateDefinition(null, definition));
  if (rejection === null) return values;
  const fields = (rejection.details.fields ?? {}) as Readonly<Record<string, readonly string[]>>;
  for (const [field, [message = ""]] of Object.entries(fields))
    flag.note(field, `${message}: not carried over`);
  const dropped = new Set(Object.keys(fields).map((field) => field.split(/[.[]/, 1)[0] ?? field));
  if (dropped.size > 0 && dropped.isSubsetOf(new Set(["rules", "metadata"])))
    return Object.fromEntries(Object.entries(values).filter(([name]) => !dropped.has(name)));
  flag.noteLoss("variants", "the flag is not carried over");
  return null;
}

function targetingOf(
  flag: SourceObject,
  targeting: unknown,
  context: Parameters<typeof convertTargeting>[0],
): Readonly<Record<string, unknown>> {
  const isNone = targeting === null || (isObject(targeting) && Object.keys(targeting).length === 0);
  if (isNone) return { default: context.fallback };
  try {
    const { rules, fallback } = convertTargeting(context, targeting);
    return { rules: rules.length === 0 ? null : rules, default: fallback };
  } catch (error) {
    if (!(error instanceof NotConvertible)) throw error;
    flag.note("targeting", `${error.message}: not carried over, everyone gets the default variant`);
    return { default: context.fallback };
  }
}

/** Null if there is no such variant. */
function defaultOf(
  flag: SourceObject,
  name: string | null,
  variants: ReadonlyMap<string, string>,
): Serve | null {
  if (name === null) return NO_VALUE;
  const variant = variants.get(name);
  if (variant !== undefined) return { variant };
  flag.noteLoss("defaultVariant", `${shown(name)} is no variant: the flag is not carried over`);
  return null;
}

/** Valid names by the given ones. */
function variantNames(flag: SourceObject, names: readonly string[]): ReadonlyMap<string, string> {
  const valid = new Map<string, string>();
  const taken = new Set<string>();
  for (const name of names) {
    const base = name.replaceAll(/[^A-Za-z0-9_.-]+/g, "-").slice(0, VARIANT_NAME_LENGTH_MAX - 4);
    const plain = /^[A-Za-z0-9]/.test(base) ? base : `v${base}`;
    let unique = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(name) ? name : plain;
    for (let number = 2; taken.has(unique); number += 1) unique = `${plain}-${number}`;
    taken.add(unique);
    valid.set(name, unique);
    if (unique !== name) flag.noteChange(`variants.${name}`, `is named ${unique}`);
  }
  return valid;
}

/** Null for values of several types. */
function typeOf(values: readonly unknown[]): string | null {
  const types = new Set(
    values.map((value) => (isObject(value) ? "object" : Array.isArray(value) ? "list" : typeof value)),
  );
  const [type] = types;
  if (type === undefined || types.size > 1 || type === "list") return null;
  return ["boolean", "string", "number", "object"].includes(type) ? type : null;
}

function membersOf(value: unknown, label: string): Readonly<Record<string, unknown>> {
  if (value === null) return {};
  if (isObject(value)) return value;
  throw new StartupError(`${label} must be an object.`);
}
