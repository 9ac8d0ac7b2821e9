import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SOURCE_COMMAND } from "../harness/processes/server-process.ts";
import { runToEnd } from "./run.ts";

/** A shell whose completions are tested. */
export type ShellName = "bash" | "zsh" | "fish";

/** Options that ignore the user's settings. */
const BARE = { bash: ["--norc", "--noprofile"], zsh: ["-f"], fish: ["--no-config"] } as const;
const END = "<end>";

/**
 * Runs a real shell in `folder`, loads the script with the completions, and returns the completions at the end of each
 * line, sorted.
 */
export async function complete(
  shell: ShellName,
  script: string,
  lines: readonly string[],
  folder: string,
): Promise<string[][]> {
  const scratch = mkdtempSync(join(tmpdir(), "ninefold-shell-"));
  try {
    const path = join(scratch, "ask");
    writeFileSync(path, PROGRAMS[shell](script, lines, join(scratch, "inner")));
    const own = join(scratch, "ninefold");
    writeFileSync(own, `#!/bin/sh\nexec ${SOURCE_COMMAND.map(quoted).join(" ")} "$@"\n`, { mode: 0o755 });
    const environment = { PATH: `${scratch}:${process.env["PATH"]}` };
    const { out, error, code } = await runToEnd([shell, ...BARE[shell], path], { cwd: folder, environment });
    if (code !== 0 || error !== "") throw new Error(`${shell} ended with ${code}:\n${error}${out}`);
    return out.split(`${END}\n`).slice(0, -1).map(wordsIn);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Completions without descriptions, the flag before a value, and the slash after a folder. */
function wordsIn(text: string): string[] {
  const words = text.split("\n").filter((line) => line !== "");
  const bare = words
    .map((word) => word.replace(/\t.*/, "").replace(/^--[\w-]+=(?=.)/, ""))
    .map((word) => word.replace(/\/$/, "").trim());
  // zsh uses several methods, and may find a word by more than one.
  return [...new Set(bare)].sort();
}

/** The text of a program that prints the completions. */
type Program = (script: string, lines: readonly string[], innerPath: string) => string;

const PROGRAMS: Readonly<Record<ShellName, Program>> = {
  bash: (script, lines) => {
    const asked = lines.map((line) => {
      // bash splits at = as well.
      const words = line.replaceAll("=", " = ").split(/ +/);
      if (line.endsWith("=")) words.pop();
      const list = words.map(quoted).join(" ");
      const ask = `COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _ninefold`;
      return `${ask}; printf '%s\\n' "\${COMPREPLY[@]}" '${END}'`;
    });
    return `${script}\n${asked.join("\n")}\n`;
  },
  fish: (script, lines) =>
    `${script}\n${lines.map((line) => `complete -C ${quoted(line)}; echo '${END}'`).join("\n")}\n`,
  zsh: (script, lines, innerPath) => {
    const asked = lines.map(
      (line) => `zpty -w -n z ${quoted(line)}$'\\t'; until_seen '${END}' | tr -d '\\r' | sed -n ${ZSH_PICK}`,
    );
    return [
      "zmodload zsh/zpty",
      "zpty z zsh -f -i",
      `print -r -- ${quoted(zshInner(script))} > ${innerPath}`,
      `zpty -w z 'source ${innerPath}'`,
      "until_seen() { local line; while zpty -r z line; do print -r -- $line; [[ $line == *$1* ]] && break; done }",
      "until_seen '<ready>' > /dev/null",
      ...asked,
    ].join("\n");
  },
};

const ZSH_PICK = `-e 's/.*found://p' -e 's/.*${END}.*/${END}/p'`;

/** zsh completes only in a terminal: it runs in a separate one, which prints the completions. */
function zshInner(script: string): string {
  return [
    "PROMPT= RPROMPT= LISTMAX=0; stty -echo",
    "autoload -Uz compinit; compinit -u -D",
    script,
    "zstyle ':completion:*' menu no; zstyle ':completion:*' verbose no",
    "compadd() {",
    '  if [[ $@[1,(i)(-|--)] == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi',
    '  local -a hits; builtin compadd -O hits "$@"',
    "  (( $#hits )) && print -rl -- found:$^hits > /dev/tty",
    '  builtin compadd "$@"',
    "}",
    `ended() { print -r -- '${END}' > /dev/tty }`,
    "ask() { comppostfuncs=(ended); zle complete-word; zle kill-whole-line }",
    "zle -N ask; bindkey '^I' ask",
    "print '<ready>'",
  ].join("\n");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
