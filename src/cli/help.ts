import { didYouMean, UsageError } from "../config/command-line.ts";
import { type CommandOption, type CommandSpec, commands, firstWords, groups, HELP_OPTION } from "./table.ts";

/** Longest left column that the right one is moved for. */
const COLUMN_MAX = 42;

/** `ninefold --help`. */
export function overview(): string {
  return [
    "Ninefold: nine backend services in one binary, on one SQLite file.",
    "",
    "Usage: ninefold COMMAND [OPTIONS]",
    "",
    "Commands:",
    ...rows(commands().map((command) => [words(command), command.summary])),
    "",
    "ninefold COMMAND --help tells what a command takes.",
    "",
  ].join("\n");
}

/** `ninefold account --help`: the commands that begin with a word. */
export function groupHelp(group: string): string {
  const own = commands().filter(({ name }) => name.startsWith(`${group} `));
  return [
    `Usage: ninefold ${group} COMMAND [OPTIONS]`,
    "",
    "Commands:",
    ...rows(own.map((command) => [words(command), command.summary])),
    "",
    `ninefold ${group} COMMAND --help tells what a command takes.`,
    "",
  ].join("\n");
}

/** `ninefold serve --help`. */
export function commandHelp(command: CommandSpec): string {
  const options = [...command.options, HELP_OPTION];
  const lines = [`${command.summary}.`, "", `Usage: ninefold ${words(command)}${optionsHint(command)}`];
  if (command.arguments.length > 0) {
    lines.push("", ...rows(command.arguments.map(({ name, help }) => [name, help])));
  }
  lines.push("", "Options (defaults in brackets):");
  lines.push(...rows(options.map((option) => [usageOf(option), option.help])));
  if (command.variables.length > 0) lines.push("", "In the environment:", ...rows(command.variables));
  if (command.details !== undefined) lines.push("", command.details);
  lines.push("", "Example:", `  ${command.example}`, "");
  return lines.join("\n");
}

/**
 * `ninefold help account create`: the help of the command or group that the words name.
 * @throws UsageError when they name none.
 */
export function helpFor(given: readonly string[]): string {
  const name = given.join(" ");
  if (name === "") return overview();
  const command = commands().find((candidate) => candidate.name === name);
  if (command !== undefined) return commandHelp(command);
  if (groups().includes(name)) return groupHelp(name);
  throw unknownCommand(given);
}

/** What is said to words that are no command. */
export function unknownCommand(given: readonly string[]): UsageError {
  const [first = "", second] = given;
  if (!groups().includes(first)) {
    const meant = didYouMean(
      first,
      firstWords().map(({ word }) => word),
    );
    return new UsageError(`there is no command "${first}".${meant} Try ninefold --help.`);
  }
  const own = commands().flatMap(({ name }) => (name.startsWith(`${first} `) ? [name] : []));
  const seconds = own.map((name) => name.slice(first.length + 1));
  if (second === undefined || second.startsWith("-")) {
    return new UsageError(`${first} needs a command: ${seconds.join(", ")}. Try ninefold ${first} --help.`);
  }
  const meant = didYouMean(`${first} ${second}`, own);
  return new UsageError(`there is no command "${first} ${second}".${meant} Try ninefold ${first} --help.`);
}

/** A command's words and arguments: `verify FILE`. */
function words(command: CommandSpec): string {
  const names = command.arguments.map(({ name, optional }) => (optional === true ? `[${name}]` : name));
  return [command.name, ...names].join(" ");
}

function optionsHint(command: CommandSpec): string {
  return command.options.length > 0 ? " [OPTIONS]" : "";
}

function usageOf({ flag, placeholder }: CommandOption): string {
  return placeholder === undefined ? flag : `${flag} ${placeholder}`;
}

type Row = readonly [left: string, right: string];

/** Two columns; the right one of a left entry that is too long begins on a line of its own. */
function rows(entries: readonly Row[]): string[] {
  const lengths = entries.map(([left]) => left.length).filter((length) => length <= COLUMN_MAX);
  const column = Math.max(...lengths, 0) + 2;
  return entries.map(([left, right]) =>
    left.length <= COLUMN_MAX
      ? `  ${left.padEnd(column)}${right}`
      : `  ${left}\n  ${"".padEnd(column)}${right}`,
  );
}
