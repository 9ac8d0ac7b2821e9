import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bashCompletions } from "../../src/cli/completions/bash.ts";
import { fishCompletions } from "../../src/cli/completions/fish.ts";
import { zshCompletions } from "../../src/cli/completions/zsh.ts";
import { commands, commandsOf, firstWords, groups } from "../../src/cli/table.ts";
import { ninefold } from "./run.ts";
import { complete, type ShellName } from "./shells.ts";

const SCRIPTS = { bash: bashCompletions(), zsh: zshCompletions(), fish: fishCompletions() };
const folder = mkdtempSync(join(tmpdir(), "ninefold-completions-"));
beforeAll(() => {
  writeFileSync(join(folder, "receipts.jsonl"), "");
  mkdirSync(join(folder, "data"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const FIRST = firstWords().map(({ word }) => word);
const flags = (name: string): string[] => [
  ...(commands().find((command) => command.name === name)?.options ?? []).map(({ flag }) => flag),
  "--help",
];

const LINES: readonly (readonly [line: string, words: readonly string[]])[] = [
  ["ninefold ", FIRST],
  ["ninefold ver", ["verify", "version"]],
  ["ninefold --", ["--help", "--version"]],
  ...groups().map((group) => [`ninefold ${group} `, commandsOf(group).map(({ word }) => word)] as const),
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
  ["ninefold verify --", ["--help", "--public-key"]],
  ["ninefold key create --scope meter:read --sc", ["--scope"]],
  ["ninefold completions ", ["bash", "fish", "zsh"]],
  ["ninefold help ", FIRST],
  ["ninefold help key ", ["create", "list", "revoke"]],
  ["ninefold nonsense ", []],
  ...commands()
    .filter(({ name }) => name !== "help")
    .map(({ name }) => [`ninefold ${name} --`, flags(name)] as const),
];

const SHELLS: readonly ShellName[] = ["bash", "zsh", "fish"];
const present = SHELLS.filter((shell) => Bun.which(shell) !== null);
for (const shell of SHELLS.filter((name) => !present.includes(name))) {
  console.warn(`${shell} is not installed: its completions are looked at, but not run by it.`);
}

describe.each(present)("in %s", (shell) => {
  let offered: string[][] = [];
  beforeAll(async () => {
    const lines = LINES.map(([line]) => line);
    offered = await complete(shell, SCRIPTS[shell], lines, folder);
  });

  test.each(LINES.map(([line, words], index) => [line, index, words] as const))("%s", (_, index, words) => {
    expect(offered[index]).toEqual([...words].sort());
  });
});

describe.each(SHELLS)("the script for %s", (shell) => {
  test("is what the command prints, the same every time", async () => {
    expect(await ninefold(["completions", shell])).toEqual({ code: 0, out: SCRIPTS[shell], error: "" });
  });

  test("knows every option of every command", () => {
    for (const { options } of commands()) {
      for (const { flag } of options) {
        expect(SCRIPTS[shell]).toContain(shell === "fish" ? `-l ${flag.slice(2)} ` : flag);
      }
    }
  });
});
