import {
  type ArgumentSpec,
  type CommandOption,
  type CommandSpec,
  commandAt,
  commandsOf,
  firstWords,
  groups,
  HELP_OPTION,
} from "./table.ts";

/** A word that a shell may offer, and what it means. */
interface Candidate {
  readonly word: string;
  readonly summary?: string;
}

const HELP: Candidate = { word: HELP_OPTION.flag, summary: HELP_OPTION.help };
const VERSION: Candidate = { word: "--version", summary: "Print the version" };

/**
 * The answer to `ninefold __complete WORD…`: what can stand in the place of the last of the words that follow `ninefold`,
 * a line for each, with a tab before what it means. `:f` and `:d` stand for files and folders, which a shell completes by
 * itself. What does not begin as the word does is for the shell to leave out: it may be set up to ignore case.
 */
export function completionLines(words: readonly string[]): string {
  // bash takes --flag=value for three words.
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
  if (before.length === 1 && groups().includes(first)) return isFlag ? [HELP] : commandsOf(first);
  const command = commandAt(before);
  if (command === null) return [];
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
  return valuesOf(command.arguments[words.length]);
}

/** What can stand in the place of a value, behind what the word begins with. */
function valuesOf(place: CommandOption | ArgumentSpec | undefined, prefix = ""): Candidate[] {
  if (place?.choices !== undefined) return place.choices.map((word) => ({ word: `${prefix}${word}` }));
  const name = place !== undefined && "name" in place ? place.name : place?.placeholder;
  return name === "FILE" ? [{ word: ":f" }] : name === "FOLDER" ? [{ word: ":d" }] : [];
}
