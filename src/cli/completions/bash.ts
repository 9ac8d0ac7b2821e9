import {
  type CommandOption,
  type CommandSpec,
  type Completes,
  commands,
  commandsOf,
  firstWords,
  groups,
  HELP_OPTION,
} from "../table.ts";

/** The completions for bash, from 3.2 on: that is the one on macOS. */
export function bashCompletions(): string {
  return `# bash completions of ninefold; load them with: source <(ninefold completions bash)

_ninefold_words() {
  local word
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$1" -- "$current")
}

_ninefold_paths() {
  local path
  compopt -o filenames 2>/dev/null
  while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen "$1" -- "$current")
}

_ninefold() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command=\${COMP_WORDS[1]}
  COMPREPLY=()
  # bash takes --flag=value for three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if ((COMP_CWORD == 1)); then
    if [[ $current == -* ]]; then
      _ninefold_words "${HELP_OPTION.flag} --version"
    else
      _ninefold_words "${wordsOf(firstWords()).join(" ")}"
    fi
    return
  fi
  case $command in
${groups().map(groupCase).join("\n")}
  esac
  case "$command $previous" in
${commands().flatMap(valueCases).join("\n")}
  esac
  case $command in
${commands().map(commandCase).join("\n")}
  esac
}

complete -F _ninefold ninefold
`;
}

function groupCase(group: string): string {
  return `    ${group})
      if ((COMP_CWORD == 2)); then
        if [[ $current == -* ]]; then
          _ninefold_words "${HELP_OPTION.flag}"
        else
          _ninefold_words "${wordsOf(commandsOf(group)).join(" ")}"
        fi
        return
      fi
      command="$command \${COMP_WORDS[2]}"
      ;;`;
}

/** What follows an option that takes a value. */
function valueCases({ name, options }: CommandSpec): string[] {
  return options
    .filter(({ placeholder }) => placeholder !== undefined)
    .map((option) => `    "${name} ${option.flag}") ${valueWords(option)}return ;;`);
}

function valueWords({ choices, completes }: CommandOption): string {
  const words = placeWords(choices, completes);
  return words === null ? "" : `${words}; `;
}

function placeWords(choices: readonly string[] | undefined, completes: Completes | undefined): string | null {
  if (choices !== undefined) return `_ninefold_words "${choices.join(" ")}"`;
  if (completes === undefined) return null;
  return `_ninefold_paths ${completes === "folder" ? "-d" : "-f"}`;
}

/** A command's options, and what stands in the place of its argument. */
function commandCase(command: CommandSpec): string {
  const options = `_ninefold_words "${[...command.options, HELP_OPTION].map(({ flag }) => flag).join(" ")}"`;
  const place = argumentWords(command);
  const lines =
    place === null
      ? [`      ${options}`]
      : [
          "      if [[ $current == -* ]]; then",
          `        ${options}`,
          "      else",
          ...place.map((line) => `        ${line}`),
          "      fi",
        ];
  return [`    "${command.name}")`, ...lines, "      ;;"].join("\n");
}

function argumentWords(command: CommandSpec): string[] | null {
  if (command.name === "help") return helpWords();
  for (const { choices, completes } of command.arguments) {
    const words = placeWords(choices, completes);
    if (words !== null) return [words];
  }
  return null;
}

/** After `help`, the commands themselves. */
function helpWords(): string[] {
  return [
    'case "$COMP_CWORD $previous" in',
    `  2\\ *) _ninefold_words "${wordsOf(firstWords()).join(" ")}" ;;`,
    ...groups().map(
      (group) => `  "3 ${group}") _ninefold_words "${wordsOf(commandsOf(group)).join(" ")}" ;;`,
    ),
    "esac",
  ];
}

function wordsOf(entries: readonly { readonly word: string }[]): string[] {
  return entries.map(({ word }) => word);
}
