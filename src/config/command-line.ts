import { parseArgs } from "node:util";
import { nearestName } from "../kernel/data/nearest-name.ts";
import { StartupError } from "../kernel/errors.ts";

/** A command line that cannot be read. Printed as one line like every {@link StartupError}; exit code 2. */
export class UsageError extends StartupError {
  override readonly name = "UsageError";
}

/** An option as it stands on the command line. */
export interface Flag {
  /** With its dashes: `--port`. */
  readonly flag: string;
  /** What stands for its value; none for one that takes none. */
  readonly placeholder?: string | undefined;
}

/** A command line, taken apart. */
export interface CommandLine {
  /** The values of each option that was given, in their order; `true` for one that takes none. */
  readonly values: ReadonlyMap<string, readonly (string | true)[]>;
  readonly positionals: readonly string[];
}

/**
 * Takes the arguments of a command apart. `command` is how it is called, for messages: `ninefold serve`.
 *
 * @throws UsageError for an unknown option, one without its value, or more than `positionalsMax` other words.
 */
export function readCommandLine(
  args: readonly string[],
  flags: readonly Flag[],
  command: string,
  positionalsMax = 0,
): CommandLine {
  const options = Object.fromEntries(
    flags.map(({ flag, placeholder }) => [
      flag.slice(2),
      { type: placeholder === undefined ? "boolean" : "string" } as const,
    ]),
  );
  // Not strict: the messages are ours, and name what would be right.
  const { tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  const values = new Map<string, (string | true)[]>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const flag = flags.find((candidate) => candidate.flag === token.rawName);
    if (flag === undefined) throw unknownOption(token.rawName, flags, command);
    const earlier = values.get(flag.flag) ?? [];
    values.set(flag.flag, [...earlier, valueGiven(flag, token.value, token.inlineValue === true, command)]);
  }
  const stray = positionals[positionalsMax];
  if (stray !== undefined) throw new UsageError(`Unexpected argument '${stray}'. ${tryHelp(command)}`);
  return { values, positionals };
}

/** "Try ninefold serve --help." */
export function tryHelp(command: string): string {
  return `Try ${command} --help.`;
}

/** The name that was probably meant, as a sentence with a space before it; empty when none is near. */
export function didYouMean(name: string, names: readonly string[]): string {
  const near = nearestName(name, names);
  return near === null ? "" : ` Did you mean ${near}?`;
}

function valueGiven(flag: Flag, value: string | undefined, inline: boolean, command: string): string | true {
  if (flag.placeholder === undefined) {
    if (inline) throw new UsageError(`${flag.flag} takes no value. ${tryHelp(command)}`);
    return true;
  }
  if (value === undefined) throw new UsageError(`${flag.flag} needs a value. ${tryHelp(command)}`);
  // Otherwise `--data --json` would make a folder called --json.
  if (!inline && value.startsWith("-") && value !== "-") {
    throw new UsageError(
      `${flag.flag} needs a value; one that begins with a dash is given as ${flag.flag}=${value}.`,
    );
  }
  return value;
}

function unknownOption(option: string, flags: readonly Flag[], command: string): UsageError {
  const meant = didYouMean(
    option,
    flags.map(({ flag }) => flag),
  );
  return new UsageError(`Unknown option '${option}'.${meant} ${tryHelp(command)}`);
}
