import { environmentNameOf, flagOf, OPTIONS, type OptionSpec } from "../config/options.ts";

const COLUMN = 42;

/** The help text. */
export function help(): string {
  const options: readonly OptionSpec[] = OPTIONS;
  const flags = options
    .filter((option) => option.noFlag !== true)
    .map((option) => row(usage(option), option.help));
  const others = options
    .filter((option) => option.noFlag === true)
    .map((option) => row(environmentNameOf(option), option.help));
  return [
    "Ninefold: nine backend services in one binary, on one SQLite file.",
    "",
    "Usage:",
    "  ninefold serve [OPTIONS]    Run the server",
    "  ninefold verify FILE        Check a receipt, or a chain as JSON lines, without a server",
    "  ninefold backup FILE        Copy the database into a file, while the server runs or not",
    "                              [--data FOLDER] [--verify] [--force]",
    "  ninefold restore FILE       Put a backup in the place of the database",
    "                              [--data FOLDER] [--force]",
    "  ninefold version            Print the version",
    "  ninefold help               Print this text",
    "",
    "Options of serve (defaults in brackets):",
    ...flags,
    "",
    "In the environment or the configuration file only:",
    ...others,
    "",
    "Every option can also be set as NINEFOLD_… in the environment (such as NINEFOLD_PORT) or in the",
    "configuration file (such as port = 9909). Flags win over the environment, and the environment over the",
    "file. Secrets can be read from a file named by NINEFOLD_…_FILE.",
    "",
  ].join("\n");
}

function usage(option: OptionSpec): string {
  return option.placeholder === undefined ? flagOf(option) : `${flagOf(option)} ${option.placeholder}`;
}

function row(left: string, right: string): string {
  return `  ${left.padEnd(COLUMN)}${right}`;
}
