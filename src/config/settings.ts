import { TIER_NAMES, type Tiers } from "../kernel/tiers.ts";
import { fileNameOf, OPTIONS, type OptionName, type OptionSpec } from "./options.ts";
import type { GivenValue, Source } from "./sources.ts";
import { FIGURE_NAMES } from "./values.ts";

/** A value of the configuration, and where it comes from. */
export interface Setting {
  /** As the configuration file names it: `port`, `keys.rotation_grace_hours`, `tiers.free.buckets`. */
  readonly name: string;
  /** Null where nothing is set and nothing is the default. */
  readonly value: string | number | boolean | readonly string[] | null;
  readonly source: Source;
  /** The flag, the variable, or the path of the file; null for a default. */
  readonly origin: string | null;
  readonly secret: boolean;
}

/** The tables of tiers in the configuration file, and what they came to. */
export interface TierSources {
  readonly table: unknown;
  readonly tiers: Tiers;
  /** The configuration file. */
  readonly path: string;
}

/** Every option in the order of the help, then every figure of every tier. */
export function settingsOf(
  values: { readonly resolved: ReadonlyMap<OptionName, GivenValue> },
  tiers: TierSources,
): Setting[] {
  const options: readonly OptionSpec[] = OPTIONS;
  const settings = options.flatMap((option) => {
    const given = values.resolved.get(option.name as OptionName);
    return given === undefined ? [] : [settingOf(option, given)];
  });
  return [...settings, ...figures(tiers)];
}

function settingOf(option: OptionSpec, { value, source, origin }: GivenValue): Setting {
  const name = fileNameOf(option);
  return {
    name,
    value: value as Setting["value"],
    source,
    // The name in the file is the setting's own.
    origin: source === "default" ? null : source === "file" ? origin.slice(0, -`: ${name}`.length) : origin,
    secret: option.secret === true,
  };
}

function figures({ table, tiers, path }: TierSources): Setting[] {
  return TIER_NAMES.flatMap((tier) =>
    Object.entries(FIGURE_NAMES).map(([name, figure]): Setting => {
      const isGiven = memberOf(memberOf(table, tier), name) !== undefined;
      return {
        name: `tiers.${tier}.${name}`,
        value: tiers[tier][figure],
        source: isGiven ? "file" : "default",
        origin: isGiven ? path : null,
        secret: false,
      };
    }),
  );
}

function memberOf(table: unknown, name: string): unknown {
  if (typeof table !== "object" || table === null || !Object.hasOwn(table, name)) return undefined;
  return (table as Record<string, unknown>)[name];
}
