import { TIER_NAMES, type Tiers } from "../kernel/tiers.ts";
import { OPTIONS, type OptionName, type Value } from "./options.ts";
import type { Source } from "./sources.ts";
import { FIGURE_NAMES, type ReadValue } from "./values.ts";

/** A value of the configuration, and where it comes from. */
export interface Setting {
  /** As the configuration file names it: `port`, `keys.rotation_grace_hours`, `tiers.free.buckets`. */
  readonly name: string;
  readonly value: Value;
  readonly source: Source;
  /** The flag, the variable, or the path of the file; null for a default. */
  readonly origin: string | null;
  readonly secret: boolean;
}

/** Every option in the order of the help, then every figure of every tier. `table` is what the file at `path` has of those. */
export function settingsOf(
  options: ReadonlyMap<OptionName, ReadValue>,
  tiers: Tiers,
  table: unknown,
  path: string,
): Setting[] {
  const setting = (name: string, { value, source, origin }: ReadValue, secret = false): Setting => {
    const from = { default: null, file: path, flag: origin, variable: origin }[source];
    return { name, value, source, origin: from, secret };
  };
  const given = new Map(Object.entries((table ?? {}) as Record<string, object>));
  return [
    ...OPTIONS.flatMap(({ name, fileName, secret }) => {
      const read = options.get(name);
      return read === undefined ? [] : [setting(fileName, read, secret)];
    }),
    ...TIER_NAMES.flatMap((tier) =>
      [...FIGURE_NAMES].map(([name, figure]) => {
        const source = Object.hasOwn(given.get(tier) ?? {}, name) ? "file" : "default";
        return setting(`tiers.${tier}.${name}`, { value: tiers[tier][figure], source, origin: "" });
      }),
    ),
  ];
}
