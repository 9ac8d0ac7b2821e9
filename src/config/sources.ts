import { errorText, StartupError } from "../kernel/errors.ts";
import { type CommandLine, type Flag, readCommandLine } from "./command-line.ts";
import {
  environmentNameOf,
  fileNameOf,
  flagOf,
  OPTIONS,
  type OptionName,
  type OptionSpec,
} from "./options.ts";
import { readText } from "./read-text.ts";

/** Where a value comes from. */
export type Source = "flag" | "variable" | "file" | "default";

/** A value as its source gave it, and which source that was. */
export interface GivenValue {
  readonly value: unknown;
  readonly source: Source;
  /** The flag, the variable, or the file and the name in it: what a message about the value begins with. */
  readonly origin: string;
}

/** Values by option; what no source gives is left out. */
export type Given = Map<OptionName, GivenValue>;

/** The options of `ninefold serve` as they stand on a command line. */
const CONFIG_FLAGS: readonly Flag[] = listed()
  .filter((option) => option.noFlag !== true)
  .map((option) => ({ flag: flagOf(option), takesValue: option.kind !== "flag" }));

/** @throws UsageError for an unknown flag, a stray word, or a flag without its value. */
export function readFlags(args: readonly string[]): Given {
  return flagsGiven(readCommandLine(args, CONFIG_FLAGS, "ninefold serve"));
}

/** What a command line gives for the options of `ninefold serve`; the last one counts where one is repeated. */
export function flagsGiven({ values }: CommandLine): Given {
  const given: Given = new Map();
  for (const option of listed()) {
    const origin = flagOf(option);
    const value = values.get(origin)?.at(-1);
    if (value !== undefined) given.set(option.name as OptionName, { value, source: "flag", origin });
  }
  return given;
}

/**
 * Of all options, or of those named alone.
 * @throws StartupError when a file named by `NINEFOLD_…_FILE` cannot be read.
 */
export function readEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  names?: readonly OptionName[],
): Given {
  const given: Given = new Map();
  for (const option of listed()) {
    if (option.flagOnly === true || names?.includes(option.name as OptionName) === false) continue;
    const name = environmentNameOf(option);
    const text = environment[name];
    const file = option.secret === true ? environment[`${name}_FILE`] : undefined;
    if (text !== undefined && text !== "")
      given.set(option.name as OptionName, { value: text, source: "variable", origin: name });
    else if (file !== undefined && file !== "") {
      given.set(option.name as OptionName, {
        value: readText(file, `${name}_FILE`).trim(),
        source: "variable",
        origin: `${name}_FILE`,
      });
    }
  }
  return given;
}

/** The configuration file: its options, and its tables for tiers. */
export interface ConfigFile {
  readonly given: Given;
  readonly tiers: unknown;
}

/** @throws StartupError when the file cannot be read, is not TOML, or names something unknown. */
export function readConfigFile(path: string): ConfigFile {
  let table: Record<string, unknown>;
  try {
    table = Bun.TOML.parse(readText(path, "--config")) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw new StartupError(`${path} is not a TOML file (${errorText(error)}).`);
  }
  const { tiers, ...rest } = table;
  const given: Given = new Map();
  for (const option of listed()) {
    const holder = option.section === undefined ? rest : sectionOf(rest, option.section, path);
    if (!(option.name in holder) || option.name === "config" || option.flagOnly === true) continue;
    given.set(option.name as OptionName, {
      value: holder[option.name],
      source: "file",
      origin: `${path}: ${fileNameOf(option)}`,
    });
    delete holder[option.name];
  }
  const unknown = leftOver(rest);
  if (unknown !== undefined) throw new StartupError(`${path}: there is no option "${unknown}".`);
  return { given, tiers };
}

function listed(): readonly OptionSpec[] {
  return OPTIONS;
}

function sectionOf(table: Record<string, unknown>, name: string, path: string): Record<string, unknown> {
  const section = table[name] ?? {};
  if (typeof section !== "object")
    throw new StartupError(`${path}: ${name} must be a table, such as [${name}].`);
  return section as Record<string, unknown>;
}

function leftOver(rest: Record<string, unknown>): string | undefined {
  for (const [name, value] of Object.entries(rest)) {
    const isSection = listed().some((option) => option.section === name);
    if (!isSection) return name;
    const inner = Object.keys(value as object)[0];
    if (inner !== undefined) return `${name}.${inner}`;
  }
  return undefined;
}
