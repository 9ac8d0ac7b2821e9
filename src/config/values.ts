import { StartupError } from "../kernel/errors.ts";
import { accountCeiling, DEFAULT_TIERS, TIER_NAMES, type TierFigures, type Tiers } from "../kernel/tiers.ts";
import { UsageError } from "./command-line.ts";
import { OPTIONS, type OptionKind, type OptionName, type OptionSpec } from "./options.ts";
import type { GivenValue } from "./sources.ts";

/** Longest grace of a rotated key: ten years, which is to say that it was typed wrongly. */
const GRACE_HOURS_MAX = 10 * 365 * 24;
/** Most backups that are kept: a year of hourly ones, and more than a folder is pleasant with. */
const COUNT_MAX = 10_000;

/** Reads a given value by the kind of its option. @throws StartupError (for a flag a UsageError) naming where it came from. */
export function readValue(name: OptionName, given: GivenValue): unknown {
  const options: readonly OptionSpec[] = OPTIONS;
  const option = options.find((candidate) => candidate.name === name);
  if (option === undefined) throw new Error(`no option ${name}`);
  try {
    return read(option.kind, given.value, given.origin);
  } catch (error) {
    throw given.source === "flag" && error instanceof StartupError ? new UsageError(error.message) : error;
  }
}

function read(kind: OptionKind, value: unknown, origin: string): unknown {
  if (typeof kind === "object") return readChoice(kind.oneOf, value, origin);
  switch (kind) {
    case "text":
      return readText(value, origin);
    case "port":
      return readInteger(value, 0, 65_535, origin, "a port from 0 to 65535");
    case "hours":
      return readInteger(value, 0, GRACE_HOURS_MAX, origin, `a number of hours from 0 to ${GRACE_HOURS_MAX}`);
    case "count":
      return readInteger(value, 1, COUNT_MAX, origin, `a number from 1 to ${COUNT_MAX}`);
    case "flag":
      return readFlag(value, origin);
    case "list":
      return readList(value, origin);
  }
}

function readText(value: unknown, origin: string): string {
  if (typeof value !== "string" || value === "") throw wrong(origin, "a text");
  return value;
}

function readChoice(choices: readonly string[], value: unknown, origin: string): string {
  if (typeof value !== "string" || !choices.includes(value))
    throw wrong(origin, `one of ${choices.join(", ")}`);
  return value;
}

function readInteger(value: unknown, lowest: number, highest: number, origin: string, what: string): number {
  const number = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : value;
  if (typeof number !== "number" || !Number.isInteger(number) || number < lowest || number > highest) {
    throw wrong(origin, what);
  }
  return number;
}

function readFlag(value: unknown, origin: string): boolean {
  if (typeof value === "boolean") return value;
  if (value === "true" || value === "1") return true;
  if (value === "false" || value === "0") return false;
  throw wrong(origin, "true or false");
}

function readList(value: unknown, origin: string): string[] {
  const items = typeof value === "string" ? value.split(",") : value;
  if (!Array.isArray(items) || !items.every((item) => typeof item === "string"))
    throw wrong(origin, "a list of texts");
  return items.map((item) => item.trim()).filter((item) => item !== "");
}

/** The figures of a tier, as the configuration file names them. */
export const FIGURE_NAMES: Readonly<Record<string, keyof TierFigures>> = {
  requests_per_minute: "requestsPerMinute",
  account_requests_per_minute: "accountRequestsPerMinute",
  monitor_requests_per_minute: "monitorRequestsPerMinute",
  monitor_burst: "monitorBurst",
  monthly_credits: "monthlyCredits",
  monitor_interval_min_ms: "monitorIntervalMinMs",
  buckets: "buckets",
  event_retention_hours: "eventRetentionHours",
  events_per_bucket: "eventsPerBucket",
  catch_per_minute: "catchPerMinute",
  projects: "projects",
  keys: "keys",
  monitors: "monitors",
};

/** The table of tiers, with the file's `[tiers.<name>]` laid over it. @throws StartupError */
export function readTiers(table: unknown, path: string): Tiers {
  if (table === undefined) return DEFAULT_TIERS;
  if (typeof table !== "object" || table === null)
    throw wrong(`${path}: tiers`, "tables such as [tiers.free]");
  const tiers: Record<string, TierFigures> = { ...DEFAULT_TIERS };
  for (const [tier, overrides] of Object.entries(table)) {
    const base = Object.hasOwn(tiers, tier) ? tiers[tier] : undefined;
    if (base === undefined)
      throw new StartupError(`${path}: there is no tier "${tier}": ${TIER_NAMES.join(", ")}.`);
    const given = readFigures(overrides, `${path}: tiers.${tier}`);
    const { requestsPerMinute } = given;
    const derived =
      requestsPerMinute === undefined ? {} : { accountRequestsPerMinute: accountCeiling(requestsPerMinute) };
    tiers[tier] = { ...base, ...derived, ...given };
  }
  return tiers as Tiers;
}

function readFigures(overrides: unknown, where: string): Partial<TierFigures> {
  if (typeof overrides !== "object" || overrides === null) throw wrong(where, "a table");
  const figures: Partial<Record<keyof TierFigures, number>> = {};
  for (const [name, value] of Object.entries(overrides)) {
    const figure = Object.hasOwn(FIGURE_NAMES, name) ? FIGURE_NAMES[name] : undefined;
    if (figure === undefined) throw new StartupError(`${where}: there is no figure "${name}".`);
    // Credits may be none; everything else divides or bounds something, and starts at one.
    const lowest = figure === "monthlyCredits" ? 0 : 1;
    const range = `an integer from ${lowest} to ${Number.MAX_SAFE_INTEGER}`;
    figures[figure] = readInteger(value, lowest, Number.MAX_SAFE_INTEGER, `${where}.${name}`, range);
  }
  return figures;
}

function wrong(origin: string, wanted: string): StartupError {
  return new StartupError(`${origin} must be ${wanted}.`);
}
