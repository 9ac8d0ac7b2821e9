import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../harness/processes/server-process.ts";
import { Project, RUNTIMES, TIMEOUT_MS } from "./support.ts";

const project = new Project();
beforeAll(() => project.create(), TIMEOUT_MS);
afterAll(() => project.remove());

/** A whole test file of the guide: its first line names it, and the runner that it is for. */
interface Example {
  readonly file: string;
  readonly runner: string;
  readonly text: string;
}

const GUIDE = readFileSync(join(ROOT, "docs", "testing.md"), "utf8");
const EXAMPLES = [...GUIDE.matchAll(/^```js\n(\/\/ (\S+), for (.+)\n[\s\S]*?)^```$/gm)].map(
  ([, text = "", file = "", runner = ""]): Example => ({ file, runner, text }),
);
/** The first lines of the guide: no test, but a program. */
const OPENING = /^```js\n(import [\s\S]*?)^```$/m.exec(GUIDE)?.[1] ?? "";

const [BUN = "", NODE] = RUNTIMES;
/** How to run a file in a runner, and what the runner says when its tests have passed. */
const RUNNERS: Readonly<Record<string, { command: readonly string[]; passed: RegExp }>> = {
  "bun test": { command: [BUN, "test"], passed: /^ 2 pass\n 0 fail$/m },
  ...(NODE === undefined
    ? {}
    : {
        vitest: {
          command: [
            NODE,
            join(ROOT, "node_modules", "vitest", "vitest.mjs"),
            "run",
            "--no-color",
            "--no-cache",
          ],
          passed: /^ *Tests {2}1 passed \(1\)$/m,
        },
        "node --test": { command: [NODE, "--test"], passed: /^(# |ℹ )pass 1\n(# |ℹ )fail 0$/m },
      }),
};

test("the guide has an example for every runner", () => {
  expect(EXAMPLES.map(({ runner }) => runner)).toEqual(["bun test", "vitest", "node --test"]);
});

test.each(
  EXAMPLES.filter(({ runner }) => runner in RUNNERS).map((example) => [example.file, example] as const),
)(
  "the guide's example %s works unchanged",
  async (_, { file, runner, text }) => {
    project.write(file, text);
    const { command = [], passed } = RUNNERS[runner] ?? {};
    const ended = await project.run([...command, file]);
    expect(ended.output).toMatch(passed ?? /none/);
    expect(ended.code).toBe(0);
    expect(project.leftFolders()).toEqual([]);
  },
  TIMEOUT_MS,
);

test.each(RUNTIMES)(
  "the guide's first lines work unchanged in %s",
  async (runtime) => {
    const ended = await project.run([runtime, project.write("opening.mjs", OPENING)]);
    expect(ended).toEqual({ code: 0, output: "" });
    expect(project.leftFolders()).toEqual([]);
  },
  TIMEOUT_MS,
);

test("the built module imports only what every runtime has", async () => {
  const text = readFileSync(join(project.folder, "node_modules", "ninefold", "testing.js"), "utf8");
  const imported = new Bun.Transpiler({ loader: "js" }).scanImports(text).map(({ path }) => path);
  expect(imported.length).toBeGreaterThan(0);
  expect(imported.filter((path) => !path.startsWith("node:"))).toEqual([]);
  expect(text).not.toMatch(/\bBun\./);
});
