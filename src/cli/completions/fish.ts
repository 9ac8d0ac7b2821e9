import {
  type ArgumentSpec,
  type CommandOption,
  type CommandSpec,
  type Completes,
  commands,
  commandsOf,
  firstWords,
  groups,
  HELP_OPTION,
} from "../table.ts";

/** The completions for fish. */
export function fishCompletions(): string {
  const lines = [
    "# fish completions of ninefold; put them into ~/.config/fish/completions/ninefold.fish",
    "",
    "# Whether the words before the one under the cursor are these.",
    "function __ninefold_at",
    "    set -l words (commandline -opc)[2..-1]",
    '    test "$words" = "$argv"',
    "end",
    "",
    "# Whether the words begin with these.",
    "function __ninefold_in",
    "    set -l words (commandline -opc)[2..-1]",
    "    set -l length (count $argv)",
    '    test (count $words) -ge $length; and test "$words[1..$length]" = "$argv"',
    "end",
    "",
    "complete -c ninefold -f",
    ...wordLines("", firstWords()),
    ...wordLines("help", firstWords()),
    ...groups().flatMap((group) => [
      ...wordLines(group, commandsOf(group)),
      ...wordLines(`help ${group}`, commandsOf(group)),
    ]),
    `complete -c ninefold -l ${nameOf(HELP_OPTION)} -d ${quoted(HELP_OPTION.help)}`,
    "complete -c ninefold -n __ninefold_at -l version -d 'Print the version'",
    ...commands().flatMap(commandLines),
  ];
  return `${lines.join("\n")}\n`;
}

function wordLines(before: string, entries: readonly { word: string; summary: string }[]): string[] {
  const at = quoted(`__ninefold_at ${before}`.trimEnd());
  return entries.map(({ word, summary }) => `complete -c ninefold -n ${at} -a ${word} -d ${quoted(summary)}`);
}

function commandLines(command: CommandSpec): string[] {
  const inCommand = `complete -c ninefold -n ${quoted(`__ninefold_in ${command.name}`)}`;
  const places = command.arguments.flatMap((argument) => argumentPart(argument) ?? []);
  return [
    ...command.options.map((option) => `${inCommand} ${optionPart(option)}`),
    ...places.map((part) => `${inCommand} ${part}`),
  ];
}

function optionPart(option: CommandOption): string {
  const value = option.placeholder === undefined ? "" : ` ${valuePart(option.choices, option.completes)}`;
  return `-l ${nameOf(option)}${value} -d ${quoted(option.help)}`;
}

function argumentPart({ choices, completes }: ArgumentSpec): string | null {
  if (choices !== undefined) return `-a ${quoted(choices.join(" "))}`;
  if (completes === undefined) return null;
  return completes === "file" ? "-F" : "-a '(__fish_complete_directories)'";
}

function valuePart(choices: readonly string[] | undefined, completes: Completes | undefined): string {
  if (choices !== undefined) return `-x -a ${quoted(choices.join(" "))}`;
  if (completes === undefined) return "-x";
  return completes === "file" ? "-r -F" : "-x -a '(__fish_complete_directories)'";
}

/** `--port` → `port`. */
function nameOf({ flag }: { readonly flag: string }): string {
  return flag.slice(2);
}

function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
}
