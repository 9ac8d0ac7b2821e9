import { chmod, mkdtemp, readFile, rm, statfs } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { type StepResult, secondsSince } from "./step.ts";

/** How to run a set of test files. */
export interface TestRun {
  readonly name: string;
  readonly files: readonly string[];
  /** Only tests whose name matches this regular expression. */
  readonly only?: string | undefined;
  /** Whether to print passing tests too. */
  readonly verbose: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** Maximum that run concurrently. Default: two more than there are cores. */
  readonly processes?: number;
  /** Whether to write down how long each file takes, for the runs to come. */
  readonly measure?: boolean;
  /** Files that have failed before and passed alone; null: no file runs a second time. See `runTests`. */
  readonly flaky?: readonly string[] | null;
}

/** How long each file takes, milliseconds: those that take longest are begun first. */
const TIMINGS = `${import.meta.dir}/../../test/timings.json`;
/** Tests also wait: for time to pass, for the disk, and for the programs that they start. */
const PROCESSES = availableParallelism() + 2;
/** More concurrent processes would take the memory of a large machine for a second or two. */
const PROCESSES_MAX = 8;

/** Tests of what must never fail, not even once: they never run a second time, and may not be recorded as flaky. */
const NEVER_FLAKY = ["test/crash/", "test/storm/", "test/kernel/storage/"];
/** Files that run a second time at the most: where more fail, the change is broken. */
const RERUN_MAX = 3;

/**
 * The files of `test/flaky.json`, a list of `{ file, date, reason }`: each failed once and passed alone. It waits for
 * its repair, and may not fail again until then.
 *
 * @throws Error for an entry without a date or a reason, for a second entry of a file, and for a file that may not be there
 */
export function flakyFiles(json: string): string[] {
  const files: string[] = [];
  for (const entry of JSON.parse(json) as Partial<Record<"file" | "date" | "reason", string>>[]) {
    const { file = "", date = "", reason = "" } = entry;
    const fail = (what: string): never => {
      throw new Error(`test/flaky.json: ${JSON.stringify(entry)} ${what}`);
    };
    if (!file.endsWith(".test.ts")) fail("names no test file");
    if (!/^\d{4}-\d\d-\d\d$/.test(date) || reason.trim() === "")
      fail("needs a date (2026-01-31) and a reason");
    if (isNeverFlaky(file)) fail("may not be flaky; repair it");
    if (files.includes(file)) fail("failed twice; repair it");
    files.push(file);
  }
  return files;
}

function isNeverFlaky(file: string): boolean {
  return NEVER_FLAKY.some((folder) => file.startsWith(folder));
}

/** The counts in a JUnit report. */
export interface Counts {
  readonly tests: number;
  readonly failures: number;
  readonly skipped: number;
  /** The files with failures. */
  readonly failing: readonly string[];
}

interface Ran extends StepResult {
  readonly failing: readonly string[];
}

/**
 * Runs test files under `bun test`, which prints for itself, and counts by its JUnit report.
 *
 * At most {@link RERUN_MAX} files that failed run once more with nothing else running, and the second run counts. A file that
 * passes then is named in the result, and is recorded as flaky. The failure of a recorded file stands, and so does that of a
 * test of what must never fail.
 */
export async function runTests(run: TestRun): Promise<StepResult> {
  const first = await runOnce(run);
  const { failing } = first;
  const { flaky = null } = run;
  if (flaky === null || failing.length === 0 || failing.length > RERUN_MAX) return first;
  if (failing.some((file) => flaky.includes(file) || isNeverFlaky(file))) return first;
  const again = { failed: 0, seconds: 0 };
  const rerun: string[] = [];
  for (const file of failing) {
    const { passed, failed, seconds } = await runOnce({
      ...run,
      files: [file],
      verbose: true,
      measure: false,
    });
    if (passed > 0 && failed === 0) rerun.push(file);
    again.failed += failed;
    again.seconds += seconds;
  }
  return {
    ...first,
    passed: first.passed + Math.max(0, first.failed - again.failed),
    failed: again.failed,
    seconds: first.seconds + again.seconds,
    note: `${first.note}; ${rerun.length} of ${failing.length} failing files passed when run again alone`,
    rerun,
  };
}

/** A file system in memory, as Linux has it, and the space that concurrent tests may take, with much to spare. */
const IN_MEMORY = "/dev/shm";
const ROOM_BYTES = 4 * 1024 ** 3;

/**
 * The folder for temporary files: in memory where there is space and programs may run from there, since tests wait for a
 * disk that they do not need. What must survive a power cut is tested on a disk that keeps only what was synced.
 */
async function temporaryFolder(): Promise<string> {
  const { bavail, bsize } = await statfs(IN_MEMORY).catch(() => ({ bavail: 0, bsize: 0 }));
  const mounts = (await readFile("/proc/mounts", "utf8").catch(() => "")).split("\n");
  // Containers often forbid it.
  const runsPrograms = mounts.some((line) => line.includes(` ${IN_MEMORY} `) && !line.includes("noexec"));
  const isFit = runsPrograms && bavail * bsize >= ROOM_BYTES;
  return process.env["TMPDIR"] === undefined && isFit ? IN_MEMORY : tmpdir();
}

/**
 * Freed memory stays with the process that runs the tests, which needs it again soon: giving it back and getting it again takes a
 * twentieth of its processor time. A test that measures memory calls `Bun.gc(true)`, which gives it back. Servers that tests start get
 * an environment of their own.
 */
const KEEP_MEMORY = { MIMALLOC_PURGE_DELAY: "600000" };

/**
 * The files of a process share a browser. Its own folders are in the run's, which is removed when the process has ended and the
 * browser with it.
 */
const KEEP_BROWSER = { NINEFOLD_TEST_KEEP_BROWSER: "1" };

/**
 * Without the last stage of the JIT, which pays for what runs for minutes: the code of a test runs briefly, and compiling it
 * so took more processor time than it saved. Tests that measure run with it, as servers do.
 */
const SHORT_RUNS = { BUN_JSC_useFTLJIT: "0" };

/** Other users may enter the folder and not list it. */
const PASSABLE = 0o711;

async function runOnce(run: TestRun): Promise<Ran> {
  const begun = performance.now();
  const temporary = await temporaryFolder();
  const folder = await mkdtemp(`${temporary}/ninefold-test-`);
  try {
    // A database server that runs as another user has its folder in it.
    await chmod(folder, PASSABLE);
    const report = `${folder}/junit.xml`;
    const child = Bun.spawn(testCommand(run, report), {
      env: {
        ...process.env,
        ...KEEP_MEMORY,
        ...KEEP_BROWSER,
        ...(run.processes === 1 ? {} : SHORT_RUNS),
        TMPDIR: folder,
        ...run.env,
      },
      stdio: ["ignore", "inherit", "inherit"],
    });
    const code = await child.exited;
    const file = Bun.file(report);
    const counts = (await file.exists()) ? readCounts(await file.text()) : undefined;
    const failing = counts?.failing ?? [];
    return { name: run.name, ...judge(counts, code), seconds: secondsSince(begun), output: "", failing };
  } finally {
    // A browser that is about to end may still write.
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Long enough for a test that starts servers on a machine with many times the work it can do; a test that hangs still ends. */
const TEST_TIMEOUT_MS = 180_000;

function testCommand(run: TestRun, report: string): string[] {
  const command = [
    process.execPath,
    "--no-env-file",
    "test",
    "--reporter=junit",
    `--reporter-outfile=${report}`,
    `--timeout=${TEST_TIMEOUT_MS}`,
  ];
  const { processes: processesMax = PROCESSES } = run;
  const processes = Math.min(run.files.length, processesMax, PROCESSES_MAX);
  // The files of a process share what they import: --isolate would read the sources again for each.
  if (processes > 1) command.push(`--parallel=${processes}`, "--no-isolate", `--timings=${TIMINGS}`);
  if (run.measure === true) command.push("--update-timings");
  if (!run.verbose) command.push("--only-failures");
  if (run.only !== undefined) command.push("--test-name-pattern", run.only);
  return [...command, ...run.files.map((file) => `./${file}`)];
}

/** The totals of a JUnit report; undefined if it has none. */
export function readCounts(xml: string): Counts | undefined {
  const totals = /<testsuites\b[^>]*>/.exec(xml)?.[0];
  if (totals === undefined) return undefined;
  const read = (name: string): number => Number(new RegExp(`\\s${name}="(\\d+)"`).exec(totals)?.[1] ?? 0);
  return {
    tests: read("tests"),
    failures: read("failures"),
    skipped: read("skipped"),
    failing: [...new Set(xml.split("<testsuite ").slice(1).flatMap(failingFile))],
  };
}

/** The file of a suite that has failures, from what follows its tag's name. */
function failingFile(suite: string): string[] {
  const tag = suite.slice(0, suite.indexOf(">"));
  const file = /\sfile="([^"]+)"/.exec(tag)?.[1];
  return file === undefined || !/\sfailures="[1-9]/.test(tag) ? [] : [file];
}

/** A run fails also when it broke off, when something failed outside of a test, and when no test ran. */
export function judge(
  counts: Counts | undefined,
  code: number,
): Pick<StepResult, "passed" | "failed" | "note"> {
  if (!counts) return { passed: 0, failed: 1, note: `broke off with exit code ${code}` };
  const passed = Math.max(0, counts.tests - counts.failures - counts.skipped);
  const ran = passed + counts.failures;
  if (ran === 0) return { passed: 0, failed: 1, note: "no test ran" };
  if (code !== 0 && counts.failures === 0) {
    return {
      passed,
      failed: 1,
      note: `all that ran passed, but exit code ${code}: something failed outside of the tests`,
    };
  }
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} not run` : "";
  return { passed, failed: counts.failures, note: `${ran} ${ran === 1 ? "test" : "tests"}${skipped}` };
}
