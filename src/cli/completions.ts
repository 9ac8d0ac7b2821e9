import type { Given } from "./arguments.ts";
import { print } from "./output.ts";

/** For each shell, what asks `ninefold __complete` at every Tab, with the words up to the cursor (see complete.ts). */
const SCRIPTS: Readonly<Record<string, string>> = {
  // From 3.2 on: that is the one on macOS.
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
export function completions(given: Given): number {
  const [shell = ""] = given.words;
  print(SCRIPTS[shell] ?? "");
  return 0;
}
