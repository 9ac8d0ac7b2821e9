import type { Arguments } from "./arguments.ts";
import { print } from "./output.ts";
import {
  type ArgumentSpec,
  type CommandOption,
  type CommandSpec,
  commandAt,
  commandsOf,
  firstWords,
  HELP_OPTION,
  type Word,
} from "./table.ts";

/** A completion and its description. */
type Candidate = Pick<Word, "word"> & Partial<Word>;

const HELP: Candidate = { word: HELP_OPTION.flag, summary: HELP_OPTION.help };
const VERSION: Candidate = { word: "--version", summary: "Print the version" };

/**
 * The response to `ninefold __complete WORD…`: what can stand in the place of the last of the words that follow `ninefold`,
 * a line for each, with a tab before what it means. `:f` and `:d` stand for files and folders, which a shell completes by
 * itself. What does not begin as the word does is for the shell to leave out: it may be set up to ignore case.
 */
export function completionLines(words: readonly string[]): string {
  // bash splits --flag=value into three words.
  const typed = [...words, ...(words.at(-1) === "=" ? [""] : [])].filter((word) => word !== "=");
  const found = candidates(typed.slice(0, -1), typed.at(-1) ?? "");
  return found
    .map(({ word, summary }) => (summary === undefined ? `${word}\n` : `${word}\t${summary}\n`))
    .join("");
}

function candidates(before: readonly string[], current: string): readonly Candidate[] {
  const [first] = before;
  const isFlag = current.startsWith("-");
  if (first === undefined) return isFlag ? [HELP, VERSION] : firstWords();
  const command = commandAt(before);
  if (command === null)
    return isFlag && commandsOf(before.join(" ")).length > 0 ? [HELP] : commandsOf(before.join(" "));
  return inCommand(command, before.slice(command.name.split(" ").length), current);
}

function inCommand(command: CommandSpec, before: readonly string[], current: string): readonly Candidate[] {
  const options: readonly CommandOption[] = [...command.options, HELP_OPTION];
  const named = (flag: string) => options.find((option) => option.flag === flag);
  const words: string[] = [];
  let unfinished: CommandOption | undefined;
  for (const word of before) {
    if (unfinished !== undefined) unfinished = undefined;
    else if (!word.startsWith("-")) words.push(word);
    else if (named(word)?.placeholder !== undefined) unfinished = named(word);
  }
  if (unfinished !== undefined) return valuesOf(unfinished);
  const [flag = "", value] = current.split("=", 2);
  if (value !== undefined) return valuesOf(named(flag), `${flag}=`);
  if (current.startsWith("-")) {
    const left = options.filter((option) => option.repeatable === true || !before.includes(option.flag));
    return left.map(({ flag: word, help: summary }) => ({ word, summary }));
  }
  if (command.name === "help") return words.length === 0 ? firstWords() : commandsOf(words.join(" "));
  const last = command.arguments.at(-1);
  return valuesOf(command.arguments[words.length] ?? (last?.several === true ? last : undefined));
}

/** Completions of a value, after the word's prefix. */
function valuesOf(place: CommandOption | ArgumentSpec | undefined, prefix = ""): Candidate[] {
  if (place?.choices !== undefined) return place.choices.map((word) => ({ word: `${prefix}${word}` }));
  const name = place !== undefined && "name" in place ? place.name : place?.placeholder;
  return name === "FILE" ? [{ word: ":f" }] : name === "FOLDER" ? [{ word: ":d" }] : [];
}

/**
 * Scripts for each shell that call `ninefold __complete` with the words up to the cursor (see {@link
 * completionLines}).
 */
const SCRIPTS: Readonly<Record<string, string>> = {
  // From bash 3.2, the version of macOS.
  bash: `# bash completions of ninefold; load them with: source <(ninefold completions bash)
_ninefold() {
  local current=\${COMP_WORDS[COMP_CWORD]} word path
  # bash takes --flag=value for three words.
  [[ $current == = ]] && current=
  COMPREPLY=()
  while IFS=$'\\t' read -r word _; do
    if [[ $word == :* ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen "-\${word#:}" -- "$current")
    elif [[ $word == "$current"* ]]; then
      COMPREPLY+=("$word")
    fi
  done < <(ninefold __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _ninefold ninefold
`,
  zsh: `#compdef ninefold
# zsh completions of ninefold; put them into a folder of $fpath as _ninefold, or: source <(ninefold completions zsh)
_ninefold() {
  local line
  local -a entries
  for line in "\${(@f)$(ninefold __complete "\${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
    case $line in
      :*) compset -P '--*='; if [[ $line == :d ]]; then _files -/; else _files; fi ;;
      ?*) entries+=("\${\${line//:/\\\\:}/$'\\t'/:}") ;;
    esac
  done
  (( $#entries )) && _describe ninefold entries
}
if [[ $funcstack[1] == _ninefold ]]; then
  _ninefold "$@"
else
  compdef _ninefold ninefold
fi
`,
  fish: `# fish completions of ninefold; put them into ~/.config/fish/completions/ninefold.fish
function __ninefold_complete
    set -l words (commandline -opc)[2..-1]
    set -l current (commandline -ct)
    set -l flag (string match -r -- '^--[^=]*=' "$current")
    set -l value (string replace -r -- '^--[^=]*=' '' "$current")
    for line in (ninefold __complete $words "$current" 2>/dev/null)
        switch $line
            case :f
                printf '%s\\n' "$flag"(complete -C "'' $value")
            case :d
                printf '%s\\n' "$flag"(__fish_complete_directories "$value")
            case '*'
                printf '%s\\n' $line
        end
    end
end
complete -c ninefold -f -a '(__ninefold_complete)'
`,
};

/** `ninefold completions SHELL`. Resolves to the exit code. */
export function completions(args: Arguments): number {
  const [shell = ""] = args.words;
  print(SCRIPTS[shell] ?? "");
  return 0;
}
