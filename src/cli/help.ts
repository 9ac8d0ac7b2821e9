import { didYouMean, UsageError } from "../config/command-line.ts";
import {
  COMMANDS,
  type CommandOption,
  type CommandSpec,
  commandsOf,
  firstWords,
  HELP_OPTION,
} from "./table.ts";

/** Maximum width of the left column. */
const COLUMN_MAX = 42;

/** `ninefold --help`. */
export function overview(): string {
  const title = "Ninefold: nine backend services in one binary, on one SQLite file.";
  return `${title}\n\n${listed("ninefold", COMMANDS)}`;
}

/** `ninefold account --help`: the commands of a group. */
export function groupHelp(group: string): string {
  return listed(
    `ninefold ${group}`,
    COMMANDS.filter(({ name }) => name.startsWith(`${group} `)),
  );
}

function listed(called: string, commands: readonly CommandSpec[]): string {
  return [
    `Usage: ${called} COMMAND [OPTIONS]`,
    "",
    "Commands:",
    ...rows(commands.map((command) => [words(command), command.summary])),
    "",
    `${called} COMMAND --help prints the help of a command.`,
    "",
  ].join("\n");
}

/** `ninefold serve --help`. */
export function commandHelp(command: CommandSpec): string {
  const options = [...command.options, HELP_OPTION];
  const lines = [
    `${command.summary}.`,
    "",
    `Usage: ninefold ${words(command)}${optionsHint(command)}${command.runs === true ? " -- COMMAND…" : ""}`,
  ];
  if (command.arguments.length > 0) {
    lines.push("", ...rows(command.arguments.map(({ name, help }) => [name, help])));
  }
  lines.push("", "Options (defaults in parentheses):");
  lines.push(...rows(options.map((option) => [usageOf(option), option.help])));
  if (command.variables.length > 0) lines.push("", "Environment variables:", ...rows(command.variables));
  if (command.details !== undefined) lines.push("", command.details);
  lines.push("", "Example:", `  ${command.example}`, "");
  return lines.join("\n");
}

/** `ninefold help account create`: the help of a command or group. ¶ @throws UsageError for an unknown one. */
export function helpFor(words: readonly string[]): string {
  const name = words.join(" ");
  if (name === "") return overview();
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (command !== undefined) return commandHelp(command);
  if (commandsOf(name).length > 0) return groupHelp(name);
  throw unknownCommand(words);
}

/** The error for an unknown command. */
export function unknownCommand([first = "", second, third]: readonly string[]): UsageError {
  const group = `${first} ${second}`;
  const thirds = commandsOf(group).map(({ word }) => word);
  if (thirds.length > 0 && third === undefined)
    return new UsageError(`${group} needs a command: ${thirds.join(", ")}. Try ninefold ${group} --help.`);
  const seconds = commandsOf(first).map(({ word }) => word);
  const help = seconds.length === 0 ? "Try ninefold --help." : `Try ninefold ${first} --help.`;
  if (seconds.length === 0)
    return missing(
      first,
      firstWords().map(({ word }) => word),
      help,
    );
  if (second === undefined || second.startsWith("-")) {
    return new UsageError(`${first} needs a command: ${seconds.join(", ")}. ${help}`);
  }
  return missing(
    `${first} ${second}`,
    seconds.map((word) => `${first} ${word}`),
    help,
  );
}

function missing(name: string, names: readonly string[], help: string): UsageError {
  return new UsageError(`there is no command "${name}".${didYouMean(name, names)} ${help}`);
}

/** A command's name and arguments: `verify FILE`. */
function words(command: CommandSpec): string {
  const names = command.arguments.map(({ name: word, optional, several }) => {
    const name = several === true ? `${word}…` : word;
    return optional === true ? `[${name}]` : name;
  });
  return [command.name, ...names].join(" ");
}

function optionsHint(command: CommandSpec): string {
  return command.options.length > 0 ? " [OPTIONS]" : "";
}

function usageOf({ flag, placeholder }: CommandOption): string {
  return placeholder === undefined ? flag : `${flag} ${placeholder}`;
}

type Row = readonly [left: string, right: string];

/** Two columns. The right one moves to its own line after a long left entry. */
function rows(entries: readonly Row[]): string[] {
  const lengths = entries.map(([left]) => left.length).filter((length) => length <= COLUMN_MAX);
  const column = Math.max(...lengths, 0) + 2;
  return entries.map(([left, right]) =>
    left.length <= COLUMN_MAX
      ? `  ${left.padEnd(column)}${right}`
      : `  ${left}\n  ${"".padEnd(column)}${right}`,
  );
}
