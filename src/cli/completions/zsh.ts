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

type Entry = { readonly word: string; readonly summary: string };

const HELP_ENTRY: Entry = { word: HELP_OPTION.flag, summary: HELP_OPTION.help };

/** The completions for zsh: a file for `$fpath`, which can be sourced as well. */
export function zshCompletions(): string {
  return `#compdef ninefold
# zsh completions of ninefold; put them into a folder of $fpath as _ninefold, or: source <(ninefold completions zsh)

_ninefold() {
  local -a entries
  local command=$words[2] length=1
  if (( CURRENT == 2 )); then
    if [[ $PREFIX == -* ]]; then
      ${describe([HELP_ENTRY, { word: "--version", summary: "Print the version" }])}
    else
      ${describe(firstWords())}
    fi
    return
  fi
  case $command in
${groups().map(groupCase).join("\n")}
    help)
      if (( CURRENT == 3 )); then
        ${describe(firstWords())}
      elif (( CURRENT == 4 )); then
        case $words[3] in
${groups().map(helpCase).join("\n")}
        esac
      fi
      return
      ;;
  esac
  # _arguments reads the words of the command alone.
  words=("$command" "\${(@)words[length + 2,-1]}")
  (( CURRENT -= length ))
  case $command in
${commands()
  .filter(({ name }) => name !== "help")
  .map(commandCase)
  .join("\n")}
  esac
}

if [[ $funcstack[1] == _ninefold ]]; then
  _ninefold "$@"
else
  compdef _ninefold ninefold
fi
`;
}

function groupCase(group: string): string {
  return `    ${group})
      if (( CURRENT == 3 )); then
        if [[ $PREFIX == -* ]]; then
          ${describe([HELP_ENTRY])}
        else
          ${describe(commandsOf(group))}
        fi
        return
      fi
      command="$command $words[3]" length=2
      ;;`;
}

function helpCase(group: string): string {
  return `          ${group}) ${describe(commandsOf(group))} ;;`;
}

function describe(entries: readonly Entry[]): string {
  const list = entries.map(({ word, summary }) => quoted(`${word}:${summary.replaceAll(":", "\\:")}`));
  return `entries=(${list.join(" ")}); _describe 'ninefold command' entries`;
}

function commandCase(command: CommandSpec): string {
  const specs = [...command.options, HELP_OPTION].map(optionSpec);
  specs.push(...command.arguments.map(argumentSpec));
  return [
    `    "${command.name}")`,
    "      _arguments \\",
    specs.map((spec) => `        ${spec}`).join(" \\\n"),
    "      ;;",
  ].join("\n");
}

function optionSpec({ flag, placeholder, help, choices, completes, repeatable }: CommandOption): string {
  const mark = repeatable === true ? "*" : "";
  const about = `[${help.replaceAll(/[[\]:\\]/g, "\\$&")}]`;
  if (placeholder === undefined) return quoted(`${mark}${flag}${about}`);
  return quoted(`${mark}${flag}=${about}:${wordOf(placeholder)}:${action(choices, completes)}`);
}

function argumentSpec({ name, choices, completes }: ArgumentSpec, index: number): string {
  return quoted(`${index + 1}:${wordOf(name)}:${action(choices, completes)}`);
}

function action(choices: readonly string[] | undefined, completes: Completes | undefined): string {
  if (choices !== undefined) return `(${choices.join(" ")})`;
  if (completes === undefined) return " ";
  return completes === "folder" ? "_files -/" : "_files";
}

/** A colon would end the word. */
function wordOf(placeholder: string): string {
  return placeholder.replaceAll(":", "\\:");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
