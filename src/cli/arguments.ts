import { type CommandLine, readCommandLine, tryHelp, UsageError } from "../config/command-line.ts";
import type { CommandSpec } from "./table.ts";

/** What a command was given, checked against its row in the table of commands. */
export interface Given {
  readonly line: CommandLine;
  /** The words that stand in the places of the command's arguments. */
  readonly words: readonly string[];
  /** Whether an option without a value was given. */
  has(flag: string): boolean;
  /** The value of an option; null when it was not given. The last one counts. */
  text(flag: string): string | null;
  /** The values of an option that can be repeated. */
  texts(flag: string): readonly string[];
  /** The value of an option that takes a whole number from 0. @throws UsageError for anything else. */
  integer(flag: string): number | null;
}

/** Reads what follows a command. @throws UsageError with one line that says what is wrong. */
export function readArguments(command: CommandSpec, args: readonly string[]): Given {
  const called = `ninefold ${command.name}`;
  const line = readCommandLine(args, command.options, called, command.arguments.length);
  checkWords(command, line.positionals, called);
  const texts = (flag: string): string[] =>
    (line.values.get(flag) ?? []).filter((value): value is string => typeof value === "string");
  for (const { flag, choices } of command.options) {
    for (const text of texts(flag)) checkChoice(flag, text, choices);
  }
  return {
    line,
    words: line.positionals,
    has: (flag) => line.values.has(flag),
    text: (flag) => texts(flag).at(-1) ?? null,
    texts,
    integer: (flag) => readInteger(flag, texts(flag).at(-1) ?? null),
  };
}

function checkWords(command: CommandSpec, words: readonly string[], called: string): void {
  for (const [index, { name, optional, choices }] of command.arguments.entries()) {
    const word = words[index];
    // What a shell makes of a variable that is not set.
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
