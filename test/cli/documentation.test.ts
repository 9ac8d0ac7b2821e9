import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "../../src/cli/arguments.ts";
import { COMMANDS } from "../../src/cli/table.ts";
import { startTestServer } from "../support/server.ts";
import { ninefold, ROOT } from "./run.ts";

const TEXT = readFileSync(join(ROOT, "docs", "command-line.md"), "utf8");

/** The section of a heading, with its subsections. */
function section(heading: string): string {
  const match = new RegExp(`^(#+) ${heading}$`, "m").exec(TEXT);
  if (match === null) throw new Error(`docs/command-line.md has no section ${heading}`);
  const rest = TEXT.slice(match.index + match[0].length);
  const end = rest.search(new RegExp(`^#{2,${match[1]?.length ?? 2}} `, "m"));
  return end < 0 ? rest : rest.slice(0, end);
}

/** The command lines in the examples of a text, as words. */
function examples(text: string): string[][] {
  const blocks = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map((match) => match[1] ?? "");
  return blocks
    .flatMap((block) => block.split("\n"))
    .filter((line) => line.startsWith("ninefold ") || line.includes("<(ninefold "))
    .map((line) => line.replace(/^.*<\(/, "").replace(/\).*$| [>|#&].*$/, ""))
    .map((line) =>
      line
        .split(/ +/)
        .map((word) => word.replaceAll("'", ""))
        .slice(1),
    );
}

/** Commands that call a server have their common options in one section, to which the others link. */
function described(name: string): string {
  const own = section(name);
  const isShared = /^(account|key) /.test(name) || own.includes("](#account-and-key)");
  return isShared ? own + section("account and key") : own;
}

describe("docs/command-line.md", () => {
  test.each(COMMANDS)("has $name with a valid example and all options", (command) => {
    const text = described(command.name);
    const own = examples(section(command.name)).filter((words) => words.join(" ").startsWith(command.name));
    expect(own.length).toBeGreaterThan(0);
    for (const words of own) readArguments(command, words.slice(command.name.split(" ").length));
    // The options of serve are listed once; other commands refer to them.
    const listed =
      command.name === "doctor" || command.name === "config print" ? text + section("serve") : text;
    for (const { flag, placeholder } of command.options) {
      const usage = placeholder === undefined ? flag : `${flag} ${placeholder.replaceAll("|", "\\|")}`;
      const plain = placeholder === undefined ? flag : `${flag} ${placeholder}`;
      expect(listed.replace(/\s+/g, " ")).toMatch(new RegExp(`\`(${escaped(usage)}|${escaped(plain)})\``));
    }
    for (const [name] of command.name === "serve" ? [] : command.variables)
      expect(text).toContain(`\`${name}\``);
  });

  test("has no section of a command that does not exist", () => {
    const headings = [...TEXT.matchAll(/^##+ (.*)$/gm)].map((match) => match[1]);
    const names = COMMANDS.map(({ name }) => name as string);
    expect(headings.filter((heading) => !names.includes(heading ?? ""))).toEqual(["account and key"]);
  });
});

test("has a valid example in the help of each command", () => {
  for (const command of COMMANDS) {
    const [words = []] = examples(`\`\`\`sh\n${command.example}\n\`\`\``);
    const length = command.name.split(" ").length;
    expect(words.slice(0, length).join(" ")).toBe(command.name);
    readArguments(command, words.slice(length));
  }
});

test("openapi prints the document at /openapi.json", async () => {
  const server = await startTestServer();
  const { code, out, error } = await ninefold(["openapi"]);
  expect([code, error]).toEqual([0, ""]);
  expect(JSON.parse(out)).toEqual((await server.operator.get("/openapi.json")).body);
  await server.stop();
});

function escaped(text: string): string {
  return text.replaceAll(/[|\\.*+?()[\]{}^$]/g, "\\$&");
}
