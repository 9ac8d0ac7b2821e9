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
import type { GivenValue, TierTables } from "./sources.ts";

/** A given value, once it is read. */
export interface ReadValue extends GivenValue {
  readonly value: Value;
}

type Read = readonly [value: Value | undefined, wanted: string];

/** Reads a given value as its schema says. @throws StartupError (for a flag a UsageError) naming where it came from. */
export function readValue(schema: Schema, given: GivenValue): Value {
  const [value, wanted] = read(schema, given.value);
  if (value !== undefined) return value;
  const message = `${given.origin} must be ${wanted}.`;
  throw given.source === "flag" ? new UsageError(message) : new StartupError(message);
}

/** Flags and variables give texts, the file gives values as well. */
function read(schema: Schema, given: unknown): Read {
  switch (schema.type) {
    case "boolean":
      return [readBoolean(given), "true or false"];
    case "integer":
    case "number":
      return [readNumber(schema, given), `${schema.title} from ${schema.minimum} to ${schema.maximum}`];
    case "list":
      return [readList(given), "a list of texts"];
    case "string": {
      const { enum: choices } = schema;
      const isOne = typeof given === "string" && (choices?.includes(given) ?? given !== "");
      return [isOne ? given : undefined, choices === undefined ? "a text" : `one of ${choices.join(", ")}`];
    }
  }
}

function readBoolean(given: unknown): boolean | undefined {
  if (typeof given === "boolean") return given;
  if (given === "true" || given === "1") return true;
  return given === "false" || given === "0" ? false : undefined;
}

function readNumber(
  { type, minimum, maximum }: Extract<Schema, { type: "integer" | "number" }>,
  given: unknown,
): number | undefined {
  const form = type === "integer" ? /^\d{1,9}$/ : /^\d{1,9}(?:\.\d{1,3})?$/;
  const number = typeof given === "string" && form.test(given) ? Number(given) : given;
  if (typeof number !== "number" || (type === "integer" && !Number.isInteger(number))) return undefined;
  return number >= minimum && number <= maximum ? number : undefined;
}

function readList(given: unknown): string[] | undefined {
  const items = typeof given === "string" ? given.split(",") : given;
  if (!Array.isArray(items) || !items.every((item) => typeof item === "string")) return undefined;
  return items.map((item) => item.trim()).filter((item) => item !== "");
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
    const given = readLimits(overrides, tier, placeOf);
    const { requestsPerMinute } = given;
    const derived =
      requestsPerMinute === undefined ? {} : { accountRequestsPerMinute: accountCeiling(requestsPerMinute) };
    tiers[name] = { ...tiers[name], ...derived, ...given };
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
