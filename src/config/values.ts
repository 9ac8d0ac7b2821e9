import { StartupError } from "../kernel/errors.ts";
import {
  accountCeiling,
  DEFAULT_TIERS,
  TIER_NAMES,
  type TierLimits,
  type Tiers,
} from "../kernel/limits/tiers.ts";
import { didYouMean, UsageError } from "./command-line.ts";
import type { Schema, Value } from "./options.ts";
import type { SourcedValue, TierTables } from "./sources.ts";

/** A given value, once it is read. */
export interface ReadValue extends SourcedValue {
  readonly value: Value;
}

type Read = readonly [value: Value | undefined, wanted: string];

/** Reads a given value as its schema says. @throws StartupError (for a flag a UsageError) naming where it came from. */
export function readValue(schema: Schema, sourced: SourcedValue): Value {
  const [value, wanted] = read(schema, sourced.value);
  if (value !== undefined) return value;
  const message = `${sourced.origin} must be ${wanted}.`;
  throw sourced.source === "flag" ? new UsageError(message) : new StartupError(message);
}

/** Flags and variables give texts, the file gives values as well. */
function read(schema: Schema, value: unknown): Read {
  switch (schema.type) {
    case "boolean":
      return [readBoolean(value), "true or false"];
    case "integer":
    case "number":
      return [readNumber(schema, value), `${schema.title} from ${schema.minimum} to ${schema.maximum}`];
    case "list":
      return [readList(value), "a list of texts"];
    case "table":
      return [readTable(value), 'a table of texts such as { ops = "admin" }'];
    case "string": {
      const { enum: choices } = schema;
      const isOne = typeof value === "string" && (choices?.includes(value) ?? value !== "");
      return [isOne ? value : undefined, choices === undefined ? "a text" : `one of ${choices.join(", ")}`];
    }
  }
}

function readBoolean(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (value === "true" || value === "1") return true;
  return value === "false" || value === "0" ? false : undefined;
}

function readNumber(
  { type, minimum, maximum }: Extract<Schema, { type: "integer" | "number" }>,
  value: unknown,
): number | undefined {
  const form = type === "integer" ? /^\d{1,9}$/ : /^\d{1,9}(?:\.\d{1,3})?$/;
  const number = typeof value === "string" && form.test(value) ? Number(value) : value;
  if (typeof number !== "number" || (type === "integer" && !Number.isInteger(number))) return undefined;
  return number >= minimum && number <= maximum ? number : undefined;
}

function readList(value: unknown): string[] | undefined {
  if (typeof value === "string") return itemsIn(value);
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) return undefined;
  return withoutBlanks(value);
}

/** The items of a list with commas. */
export function itemsIn(text: string): string[] {
  return withoutBlanks(text.split(","));
}

function withoutBlanks(items: readonly string[]): string[] {
  return items.map((item) => item.trim()).filter((item) => item !== "");
}

/** A table of texts as a list such as `ops=admin`; a variable gives the list itself. */
function readTable(value: unknown): string[] | undefined {
  if (typeof value === "string")
    return readList(value)?.every((item) => item.includes("=")) ? readList(value) : undefined;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value);
  return entries.every(([, member]) => typeof member === "string")
    ? entries.map(([name, member]) => `${name}=${member}`)
    : undefined;
}

/** The figures of a tier, as the configuration file names them: `requests_per_minute`. */
export const FIGURE_NAMES: ReadonlyMap<string, keyof TierLimits> = new Map(
  Object.keys(DEFAULT_TIERS.free).map((figure) => [
    figure.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    figure as keyof TierLimits,
  ]),
);

/** The table of tiers, with the file's `[tiers.<name>]` laid over it. @throws StartupError */
export function readTiers({ tables, placeOf }: TierTables): Tiers {
  const tiers = { ...DEFAULT_TIERS };
  for (const [tier, overrides] of entriesOf(
    tables ?? {},
    `${placeOf("")}: tiers`,
    "tables such as [tiers.free]",
  )) {
    const name = TIER_NAMES.find((candidate) => candidate === tier);
    if (name === undefined)
      throw new StartupError(
        `${placeOf(tier)}: there is no tier "${tier}": ${TIER_NAMES.join(", ")}.${didYouMean(tier, TIER_NAMES)}`,
      );
    const limits = readLimits(overrides, tier, placeOf);
    const { requestsPerMinute } = limits;
    const derived =
      requestsPerMinute === undefined ? {} : { accountRequestsPerMinute: accountCeiling(requestsPerMinute) };
    tiers[name] = { ...tiers[name], ...derived, ...limits };
  }
  return tiers;
}

function readLimits(overrides: unknown, tier: string, placeOf: TierTables["placeOf"]): Partial<TierLimits> {
  const entries = entriesOf(overrides, `${placeOf(tier)}: tiers.${tier}`, "a table");
  const limits = entries.map(([name, value]) => {
    const limit = FIGURE_NAMES.get(name);
    if (limit === undefined)
      throw new StartupError(
        `${placeOf(tier, name)}: tiers.${tier}: there is no figure "${name}".${didYouMean(name, [...FIGURE_NAMES.keys()])}`,
      );
    // Credits may be none; everything else divides or bounds something, and starts at one.
    const minimum = limit === "monthlyCredits" ? 0 : 1;
    const schema = {
      type: "integer",
      title: "an integer",
      minimum,
      maximum: Number.MAX_SAFE_INTEGER,
    } as const;
    const origin = `${placeOf(tier, name)}: tiers.${tier}.${name}`;
    return [limit, readValue(schema, { value, source: "file", origin })];
  });
  return Object.fromEntries(limits);
}

function entriesOf(table: unknown, where: string, wanted: string): [string, unknown][] {
  if (typeof table === "object" && table !== null) return Object.entries(table);
  throw new StartupError(`${where} must be ${wanted}.`);
}
