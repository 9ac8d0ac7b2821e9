import { type CommandLine, readCommandLine, tryHelp, UsageError } from "../config/command-line.ts";
import type { CommandSpec } from "./table.ts";

/** Validated arguments of a command. */
export interface Arguments {
  readonly line: CommandLine;
  /** The positional arguments. */
  readonly words: readonly string[];
  /** The command after `--`, of commands that run one. */
  readonly rest: readonly string[];
  /** Whether a flag was given. */
  has(flag: string): boolean;
  /** The value of an option; null if it was not given. The last one wins. */
  text(flag: string): string | null;
  /** The values of a repeatable option. */
  texts(flag: string): readonly string[];
  /** The value of an integer option, 0 or more. @throws UsageError for anything else. */
  integer(flag: string): number | null;
}

/** Arguments of a command that takes several: a list with hundreds of pages is put together before. */
const WORDS_MAX = 100;

/** Parses the arguments of a command. @throws UsageError with one line that describes the error. */
export function readArguments(command: CommandSpec, args: readonly string[]): Arguments {
  const called = `ninefold ${command.name}`;
  const end = command.runs === true ? args.indexOf("--") : -1;
  const rest = end < 0 ? [] : args.slice(end + 1);
  const options = end < 0 ? args : args.slice(0, end);
  const isSeveral = command.arguments.at(-1)?.several === true;
  const wordsMax = isSeveral ? WORDS_MAX : command.arguments.length;
  const line = readCommandLine(options, command.options, called, wordsMax);
  if (command.runs === true && rest.length === 0)
    throw new UsageError(`${command.name} needs a command after --. ${tryHelp(called)}`);
  checkWords(command, line.positionals, called);
  const texts = (flag: string): string[] =>
    (line.values.get(flag) ?? []).filter((value): value is string => typeof value === "string");
  for (const { flag, choices } of command.options) {
    for (const text of texts(flag)) checkChoice(flag, text, choices);
  }
  return {
    line,
    words: line.positionals,
    rest,
    has: (flag) => line.values.has(flag),
    text: (flag) => texts(flag).at(-1) ?? null,
    texts,
    integer: (flag) => readInteger(flag, texts(flag).at(-1) ?? null),
  };
}

function checkWords(command: CommandSpec, words: readonly string[], called: string): void {
  for (const [index, { name, optional, choices }] of command.arguments.entries()) {
    const word = words[index];
    // An unset variable in a shell becomes an empty string.
    if (word === "") throw new UsageError(`${name} must not be empty. ${tryHelp(called)}`);
    if (word !== undefined) checkChoice(name, word, choices);
    else if (optional !== true) throw new UsageError(`${command.name} needs ${name}. ${tryHelp(called)}`);
  }
}

function checkChoice(name: string, value: string, choices: readonly string[] | undefined): void {
  if (choices === undefined || choices.includes(value)) return;
  throw new UsageError(`${name} must be one of ${choices.join(", ")}.`);
}

function readInteger(flag: string, text: string | null): number | null {
  if (text === null) return null;
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(value)) {
    throw new UsageError(`${flag} must be an integer from 0 to ${Number.MAX_SAFE_INTEGER}.`);
  }
  return value;
}
