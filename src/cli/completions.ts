import { readArguments } from "./arguments.ts";
import { bashCompletions } from "./completions/bash.ts";
import { fishCompletions } from "./completions/fish.ts";
import { zshCompletions } from "./completions/zsh.ts";
import { print } from "./output.ts";
import { commandNamed } from "./table.ts";

const SHELLS: Readonly<Record<string, () => string>> = {
  bash: bashCompletions,
  zsh: zshCompletions,
  fish: fishCompletions,
};

/** `ninefold completions SHELL`. Resolves to the exit code. */
export function completions(args: readonly string[]): number {
  const given = readArguments(commandNamed("completions"), args);
  const render = SHELLS[given.words[0] ?? ""];
  if (render === undefined) throw new Error(`no completions for ${given.words[0]}`);
  print(render());
  return 0;
}
