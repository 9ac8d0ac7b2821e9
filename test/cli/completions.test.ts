import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { completionLines } from "../../src/cli/completions.ts";
import { COMMANDS, commandsOf, firstWords } from "../../src/cli/table.ts";
import { ninefold } from "./run.ts";
import { complete, type ShellName } from "./shells.ts";

/** First words of commands that have two. */
const GROUPS = ["account", "key", "config"];

const folder = mkdtempSync(join(tmpdir(), "ninefold-completions-"));
beforeAll(() => {
  writeFileSync(join(folder, "receipts.jsonl"), "");
  mkdirSync(join(folder, "data"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const FIRST = firstWords().map(({ word }) => word);
const flags = (name: string): string[] => [
  ...(COMMANDS.find((command) => command.name === name)?.options ?? []).map(({ flag }) => flag),
  "--help",
];

const LINES: readonly (readonly [line: string, words: readonly string[]])[] = [
  ["ninefold ", FIRST],
  ["ninefold ver", ["verify", "verify-signature", "version"]],
  ["ninefold --", ["--help", "--version"]],
  ...GROUPS.map((group) => [`ninefold ${group} `, commandsOf(group).map(({ word }) => word)] as const),
  ["ninefold account --", ["--help"]],
  ["ninefold account set --s", ["--suspended"]],
  ["ninefold account set --suspended ", ["true", "false"]],
  ["ninefold account create --tier s", ["starter", "scale"]],
  ["ninefold serve --signup ", ["closed", "free", "open"]],
  ["ninefold serve --signup=", ["closed", "free", "open"]],
  ["ninefold serve --signup=o", ["open"]],
  ["ninefold serve --port ", []],
  ["ninefold serve --data ", ["data"]],
  ["ninefold serve --json --data d", ["data"]],
  ["ninefold serve --config r", ["receipts.jsonl"]],
  ["ninefold verify ", ["data", "receipts.jsonl"]],
  [
    "ninefold verify --",
    ["--bundle", "--checkpoint", "--help", "--log", "--public-key", "--quorum", "--vkey", "--witness"],
  ],
  ["ninefold key create --scope meter:read --sc", ["--scope"]],
  ["ninefold completions ", ["bash", "fish", "zsh"]],
  ["ninefold help ", FIRST],
  ["ninefold help key ", ["create", "import", "list", "revoke"]],
  ["ninefold nonsense ", []],
  ...COMMANDS.filter(({ name }) => name !== "help").map(
    ({ name }) => [`ninefold ${name} --`, flags(name)] as const,
  ),
];

/** Each line starts the program. */
const TIMEOUT_MS = 180_000;
const SHELLS: readonly ShellName[] = ["bash", "zsh", "fish"];
const present = SHELLS.filter((shell) => Bun.which(shell) !== null);
for (const shell of SHELLS.filter((name) => !present.includes(name))) {
  console.warn(`${shell} is not installed: its completions are not run.`);
}

describe.each(present)("in %s", (shell) => {
  let offered: string[][] = [];
  beforeAll(async () => {
    const { code, out, error } = await ninefold(["completions", shell]);
    expect([code, error]).toEqual([0, ""]);
    const lines = LINES.map(([line]) => line);
    offered = await complete(shell, out, lines, folder);
  }, TIMEOUT_MS);

  test.each(LINES.map(([line, words], index) => [line, index, words] as const))("%s", (_, index, words) => {
    expect(offered[index]).toEqual([...words].sort());
  });
});

/** The completions of shells for a line, without their own files and those that do not start with the last word. */
function told(line: string): string[] {
  const words = line.split(/ +/).slice(1);
  const lines = completionLines(words).split("\n").slice(0, -1);
  return lines.filter((text) => text.startsWith(words.at(-1) ?? ""));
}

describe("queries of the shells", () => {
  test("returns each word with its meaning, one per line", () => {
    expect(completionLines([""])).toContain(
      "\nbackup\tBack up the database, whether the server is running or not\n",
    );
    expect(completionLines(["account", "l"])).toBe(
      commandsOf("account")
        .map(({ word, summary }) => `${word}\t${summary}\n`)
        .join(""),
    );
    expect(told("ninefold serve --sig")).toEqual(["--signup\tWho may sign up (closed)"]);
  });

  test.each([
    ["ninefold serve --signup=o", ["--signup=open"]],
    // Split as bash splits it.
    ["ninefold serve --signup =", ["closed", "free", "open"]],
    ["ninefold serve --signup = o", ["open"]],
    ["ninefold serve --data = x --durability = ", ["full", "normal", "none"]],
    ["ninefold serve --nonsense=", []],
    ["ninefold serve --data ", [":d"]],
    ["ninefold serve --data=", [":d"]],
    ["ninefold backup ", [":f"]],
    ["ninefold backup --force ", [":f"]],
    ["ninefold backup a.db ", []],
    ["ninefold help key create ", []],
    ["ninefold nonsense --", []],
    ["ninefold account nonsense --", []],
  ])("%s", (line, words) => {
    const asked = line.split(/ +/).slice(1);
    const begun = asked.at(-1) === "=" || /=$/.test(line) ? "" : (asked.at(-1) ?? "");
    const lines = completionLines(asked).split("\n").slice(0, -1);
    expect(lines.filter((text) => text.startsWith(":") || text.startsWith(begun))).toEqual(words.map(String));
  });

  test("omits options that were given, unless they are repeatable", () => {
    expect(told("ninefold serve --json --js")).toEqual([]);
    expect(told("ninefold key create --scope a --name b --")).toContainEqual(
      expect.stringContaining("--scope"),
    );
    expect(told("ninefold key create --scope a --name b --")).not.toContainEqual(
      expect.stringContaining("--name"),
    );
  });
});
