// The test command: every check and every test, or only some tests.
//   scripts/test                    everything
//   scripts/test PATH…              the tests in these files and folders
//   scripts/test --only PATTERN     the tests whose name matches PATTERN
import { existsSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { runTests, type TestRun } from "./steps/bun-test.ts";
import { findChromium, installChromium } from "./steps/chromium.ts";
import { reportStep, runCheck, type StepResult } from "./steps/step.ts";

const BINARY_TESTS = "test/binary";
const PAGE_TESTS = "test/pages";
const MAIN = "src/main.ts";
const EXECUTABLE = "dist/ninefold";

const CHECKS: readonly (readonly [name: string, command: readonly string[]])[] = [
  ["format, lint", ["sh", "scripts/lint"]],
  ["types", [process.execPath, "node_modules/typescript/bin/tsc", "--noEmit"]],
  ["tidy", ["sh", "scripts/tidy"]],
];

const results: StepResult[] = [];

function record(step: StepResult): void {
  reportStep(step);
  results.push(step);
}

async function runChecks(): Promise<void> {
  if (availableParallelism() > 1) {
    const running = CHECKS.map(([name, command]) => runCheck(name, command));
    for (const step of running) record(await step);
  } else {
    for (const [name, command] of CHECKS) record(await runCheck(name, command));
  }
}

/** The test files at a path, which may be a file or a folder. */
function testFiles(path: string): string[] {
  if (!existsSync(path)) return [];
  if (!statSync(path).isDirectory()) return [path];
  return [...new Bun.Glob("**/*.test.ts").scanSync(path)].map((file) => `${path}/${file}`).sort();
}

async function runSources(
  files: readonly string[],
  options: Pick<TestRun, "only" | "verbose">,
): Promise<void> {
  const withPages = files.some((file) => file.startsWith(`${PAGE_TESTS}/`));
  if (withPages && findChromium() === undefined) record(await installChromium());
  record(await runTests({ name: "tests", files, ...options }));
}

/** Builds the executable, then tests it. Without a build there is nothing to test. */
async function runBinary(
  files: readonly string[],
  options: Pick<TestRun, "only" | "verbose">,
): Promise<void> {
  if (existsSync(MAIN)) {
    const build = await runCheck("build", ["sh", "scripts/build"]);
    record(build);
    if (build.failed > 0) return;
  } else {
    console.log(`skip  build: there is no ${MAIN}`);
  }
  if (!existsSync(BINARY_TESTS)) {
    console.log(`skip  binary: there is no ${BINARY_TESTS}`);
    return;
  }
  const env = { NINEFOLD_BINARY: `${process.cwd()}/${EXECUTABLE}` };
  record(await runTests({ name: "binary", files, env, ...options }));
}

async function runAll(): Promise<void> {
  const options = { only: undefined, verbose: false };
  await runChecks();
  await runSources(
    testFiles("test").filter((file) => !file.startsWith(`${BINARY_TESTS}/`)),
    options,
  );
  await runBinary(testFiles(BINARY_TESTS), options);
}

async function runSome(paths: readonly string[], only: string | undefined): Promise<void> {
  const chosen = paths.map((path) => path.replace(/^\.\//, "").replace(/\/+$/, ""));
  const missing = chosen.filter((path) => testFiles(path).length === 0);
  if (missing.length > 0)
    throw new Error(`no tests at ${missing.join(", ")}; name files or folders under test/`);
  const files = [...new Set((chosen.length > 0 ? chosen : ["test"]).flatMap(testFiles))];
  const binary = files.filter((file) => file.startsWith(`${BINARY_TESTS}/`));
  const sources = files.filter((file) => !binary.includes(file));
  const options = { only, verbose: true };
  if (sources.length > 0) await runSources(sources, options);
  // A pattern alone stays with the quick tests; the executable is built only when its tests are named.
  if (binary.length > 0 && chosen.length > 0) await runBinary(binary, options);
}

function finish(): void {
  const passed = results.reduce((sum, step) => sum + step.passed, 0);
  const failed = results.reduce((sum, step) => sum + step.failed, 0);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
  console.log(`${passed} passed, ${failed} failed`);
}

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { only: { type: "string" } },
  });
  if (positionals.length === 0 && values.only === undefined) await runAll();
  else await runSome(positionals, values.only);
} catch (error) {
  const output = `scripts/test: ${error instanceof Error ? error.message : String(error)}`;
  record({ name: "run", passed: 0, failed: 1, seconds: 0, note: "did not finish", output });
}
finish();
