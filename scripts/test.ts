// The test command: every check and every test, or only some tests.
//   scripts/test                    everything
//   scripts/test PATH…              the tests in these files and folders
//   scripts/test --only PATTERN     the tests whose name matches PATTERN
//   scripts/test --long             the long forms: the tests that repeat something, as often as they ever do
//   scripts/test --update-timings   everything; writes down how long each file takes, by which the next runs are planned
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { COMPILER, COMPILER_ENVIRONMENT } from "./packages/build.ts";
import { flakyFiles, runTests, type TestRun } from "./steps/bun-test.ts";
import { installHeadlessShell, installMissing } from "./steps/debian.ts";
import { reportStep, runCheck, type StepResult } from "./steps/step.ts";

const INSTALL_PACKAGE = "test/client/install.ts";
const EXECUTABLE = "dist/ninefold";

const CHECKS: readonly (readonly [name: string, command: readonly string[]])[] = [
  ["format, lint", ["sh", "scripts/lint"]],
  ["types", typeCheck()],
  ["types, console", typeCheck("-p", "src/pages/dashboard")],
  ["types, portal", typeCheck("-p", "src/pages/portal")],
  ["tidy", ["sh", "scripts/tidy"]],
];

/** The compiler without its further threads, each of which would check the shared types again: the tests take the other core. */
function typeCheck(...args: readonly string[]): string[] {
  return [process.execPath, COMPILER, "--noEmit", "--singleThreaded", ...args];
}

const results: StepResult[] = [];

function record(step: StepResult): void {
  reportStep(step);
  results.push(step);
}

/** The test files at a path, which may be a file or a folder. */
function testFiles(path: string): string[] {
  if (!existsSync(path)) return [];
  if (!statSync(path).isDirectory()) return [path];
  const files = [...new Bun.Glob("**/*.test.ts").scanSync(path)].map((file) => `${path}/${file}`);
  return files.filter((file) => !file.includes("node_modules/")).sort();
}

/** What the tests with a long form import, and the variable that it reads. */
const LONG_FORM = { module: "support/long-form.ts", env: { NINEFOLD_TEST_LONG: "1" } };

/** The test files that have a long form. */
function longFiles(): string[] {
  return testFiles("test").filter((file) => readFileSync(file, "utf8").includes(LONG_FORM.module));
}

/** What is made once for the tests of a folder, which find it by a variable. */
interface Preparation {
  /** Where those tests are: the start of a path. */
  readonly tests: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly make: () => Promise<StepResult>;
  /** Whether it is worth making for some files, too: the tests do not make it by themselves. */
  readonly forSome: boolean;
}

/** `folder` is a temporary one, and empty. */
function preparations(folder: string, isLong: boolean): readonly Preparation[] {
  const install = [process.execPath, "--no-env-file", "--no-install", INSTALL_PACKAGE, folder];
  return [
    {
      tests: isLong ? ["test/binary/", "test/crash/"] : ["test/binary/"],
      // All other tests that start servers take the executable, too: it starts in half the time.
      env: { NINEFOLD_BINARY: `${process.cwd()}/${EXECUTABLE}` },
      make: () => runCheck("build", ["sh", "scripts/build"]),
      forSome: true,
    },
    {
      tests: ["test/client/", "test/binary/testing-npm.test.ts"],
      env: { NINEFOLD_INSTALLED: folder },
      make: () => runCheck("package", install),
      forSome: false,
    },
  ];
}

/**
 * Tests that measure processor time, or need the disk and a second thread at the pace of the first. They run one after another
 * when nothing else does: what shares a core with them counts too.
 */
const MEASUREMENTS = [
  "test/api/event-loop.test.ts",
  "test/areas/incidents/timeline-largest.test.ts",
  "test/areas/notary/redaction/event-loop.test.ts",
  "test/kernel/storage/log-preallocation.test.ts",
];

async function runAll(measure: boolean, flaky: readonly string[]): Promise<void> {
  const checks = CHECKS.map(([name, command]) => runCheck(name, command, COMPILER_ENVIRONMENT));
  const together = testFiles("test").filter((file) => !MEASUREMENTS.includes(file));
  await runFiles(together, true, { verbose: false, measure, flaky });
  for (const check of checks) record(await check);
  const alone = { name: "measurements", files: MEASUREMENTS, processes: 1 };
  record(await runTests({ ...alone, verbose: false, flaky }));
}

async function runSome(paths: readonly string[], only: string | undefined): Promise<void> {
  const chosen = paths.map((path) => path.replace(/^\.\//, "").replace(/\/+$/, ""));
  const missing = chosen.filter((path) => testFiles(path).length === 0);
  if (missing.length > 0)
    throw new Error(`no tests at ${missing.join(", ")}; name files or folders under test/`);
  const named = [...new Set(chosen.flatMap(testFiles))];
  // A pattern alone stays with the quick tests; the executable is built only when its tests are named.
  const all = testFiles("test").filter((file) => !file.startsWith("test/binary/"));
  await runFiles(chosen.length > 0 ? named : all, false, { verbose: true, only });
}

/** Installs what tests need of the system. For all of them also what makes them quicker. */
async function install(files: readonly string[], whole: boolean): Promise<StepResult[]> {
  // One after the other: there is one package manager.
  const steps = [await installMissing(files), whole ? await installHeadlessShell() : null];
  return steps.filter((step) => step !== null);
}

async function runFiles(
  files: readonly string[],
  whole: boolean,
  { env: given, ...options }: Omit<TestRun, "name" | "files">,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-installed-"));
  try {
    const isOf = (file: string, { tests }: Preparation) => tests.some((start) => file.startsWith(start));
    const wanted = preparations(folder, given === LONG_FORM.env).filter(
      (one) => (one.forSome || whole) && files.some((file) => isOf(file, one)),
    );
    const installing = install(files, whole);
    const made = await Promise.all(wanted.map(async (one) => ({ ...one, step: await one.make() })));
    for (const { step } of made) record(step);
    for (const installed of await installing) record(installed);
    const failed = made.filter(({ step }) => step.failed > 0);
    // Tests of what could not be made would only repeat its failure.
    const left = files.filter((file) => !failed.some((one) => isOf(file, one)));
    const succeeded = made.filter((one) => !failed.includes(one));
    const env = Object.assign({}, given, ...succeeded.map((one) => one.env));
    if (left.length > 0) record(await runTests({ ...options, name: "tests", files: left, env }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function finish(): void {
  const passed = results.reduce((sum, step) => sum + step.passed, 0);
  const failed = results.reduce((sum, step) => sum + step.failed, 0);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
  for (const file of results.flatMap(({ rerun = [] }) => rerun))
    console.log(
      `REPAIR  ${file}: it failed, and passed when it ran again alone; record it in test/flaky.json`,
    );
  console.log(`${passed} passed, ${failed} failed`);
}

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: "string" },
      long: { type: "boolean", default: false },
      "update-timings": { type: "boolean", default: false },
    },
  });
  const flaky = flakyFiles(readFileSync("test/flaky.json", "utf8"));
  if (values.long) await runFiles(longFiles(), false, { verbose: false, env: LONG_FORM.env, flaky });
  else if (positionals.length === 0 && values.only === undefined)
    await runAll(values["update-timings"], flaky);
  else await runSome(positionals, values.only);
} catch (error) {
  const output = `scripts/test: ${error instanceof Error ? error.message : String(error)}`;
  record({ name: "run", passed: 0, failed: 1, seconds: 0, note: "did not finish", output });
}
finish();
