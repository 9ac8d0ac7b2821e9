import { describe, expect, test } from "bun:test";
import { ROOT } from "../harness/processes/server-process.ts";
import { patternOf, readPage, shellBlocks, stepsOf } from "./page.ts";
import { Reader } from "./reader.ts";
import { surprise } from "./surprise.ts";

/** A page has dozens of requests, and commands from source. */
const TIMEOUT_MS = 180_000;

/** Pages whose commands are not pasted as a whole, with the reason. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "docs/client.md": "test/client installs the package and runs every example",
  "docs/high-availability.md": "test/archive runs its commands against an object store",
  "docs/guides/quick-starts.md": "quick-starts.test.ts runs each section on a server of its own",
  "docs/deployment.md": "changes the whole machine: test/deployment installs into a folder",
};
/** Pages for each installation: runbooks.test.ts runs their commands. */
const RUNBOOKS = "docs/runbooks/";
const PAGES = ["README.md", ...new Bun.Glob("docs/**/*.md").scanSync(ROOT)].sort();
const GUIDES = PAGES.filter(
  (page) => !(page in ELSEWHERE) && !page.startsWith(RUNBOOKS) && shellBlocks(readPage(page)).length > 0,
);

describe("pasted from top to bottom into a fresh server, every command does what the page says", () => {
  test.each(GUIDES)(
    "%s",
    async (page) => {
      await using reader = new Reader();
      const steps = stepsOf(readPage(page));
      expect(steps.length).toBeGreaterThan(0);
      const surprises = (await reader.paste(steps)).map(([step, outcome]) => surprise(step, outcome));
      expect(surprises.filter((surprise) => surprise !== null).join("\n\n")).toBe("");
    },
    TIMEOUT_MS,
  );
});

describe("what every page keeps to", () => {
  test("no command hides in a block that is not marked as one", () => {
    const hidden = PAGES.flatMap((page) =>
      [...readPage(page).matchAll(/^```(\w*)\n(.*?)^```$/gms)]
        .filter(([, language]) => language !== "sh")
        .flatMap(
          ([, , block = ""]) => block.match(/^(?:curl|ninefold|scripts\/\w+|sudo|docker) .*$/gm) ?? [],
        ),
    );
    expect(hidden).toEqual([]);
  });

  // An interactive shell such as zsh does not treat it as a comment and would run the words after the sign.
  test("no comment stands behind a command", () => {
    const lines = PAGES.flatMap((page) => shellBlocks(readPage(page)).flatMap((block) => block.split("\n")));
    expect(lines.length).toBeGreaterThan(100);
    expect(lines.filter((line) => /\S\s+# /.test(line) && !line.startsWith("# "))).toEqual([]);
  });

  test("address and key are called URL and AUTH, and a key has one name in the environment", () => {
    const names = PAGES.flatMap(
      (page) => readPage(page).match(/\$\{?(?:KEY|OPERATOR|NINEFOLD_KEY)\b/g) ?? [],
    );
    expect(names).toEqual([]);
  });
});

describe("what a page is read as", () => {
  test("commands with all of their lines, and what is said of each", () => {
    const page =
      "```sh\nA=1\n\ncurl a -d '{\n  \"b\": 1}'\n# 200 {}\n# more\n```\ntext\n```js\nx\n```\n```sh\nls\n```\n";
    expect(stepsOf(page)).toEqual([
      { command: "A=1", says: [] },
      { command: "curl a -d '{\n  \"b\": 1}'", says: ["200 {}", "more"] },
      { command: "ls", says: [] },
    ]);
    expect(() => stepsOf("```sh\necho 'a\n```\n")).toThrow("a command without its end");
  });

  test.each([
    ["{…}", '{"a":1}', true],
    ['{"a":…}', '{"a":1}', true],
    ['{"a":1}', '{"a":2}', false],
    ['{"a":…', '{"b":1}', false],
  ])("%p of %p: %p", (pattern, text, matches) => expect(patternOf(pattern).test(text)).toBe(matches));

  test("a wrong response, a wrong status, a failure, a variable that is not set and a word on standard error show", async () => {
    const commands = [
      ["curl http://127.0.0.1:9909/v1/ping", '200 {"pong":false}'],
      ["curl http://127.0.0.1:9909/v1/ping", "201"],
      ["curl http://127.0.0.1:9909/v1/keys"],
      ["false"],
      ["echo one >&2"],
      ["echo one", "two"],
      ["curl http://127.0.0.1:9909/v1/ping", '200 {"pong":true}'],
      ["echo $NEVER_SET"],
      ["true"],
    ] as const;
    await using reader = new Reader();
    const pasted = await reader.paste(commands.map(([command, ...says]) => ({ command, says })));
    expect(pasted.map(([step, outcome]) => surprise(step, outcome) !== null)).toEqual([
      ...[true, true, true, true, true, true],
      false,
      // The shell ends there: no later step passes.
      ...[true, true],
    ]);
  });
});
