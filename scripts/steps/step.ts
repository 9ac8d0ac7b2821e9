/** What one step came to; a step that is no test run counts as one test. */
export interface StepResult {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
  /** What to say in addition to the result, such as why it failed. */
  readonly note: string;
  /** What the step printed, if it did not print by itself. */
  readonly output: string;
  /** Flaky test files that failed, and passed when they ran again alone. */
  readonly rerun?: readonly string[];
}

/** Runs a command as one step, with more variables than ours if it is said. Keeps its output until it is needed. */
export async function runCheck(
  name: string,
  command: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<StepResult> {
  const begun = performance.now();
  const child = Bun.spawn([...command], {
    env: { ...process.env, ...environment },
    ...({ stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const),
  });
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return {
    name,
    passed: code === 0 ? 1 : 0,
    failed: code === 0 ? 0 : 1,
    seconds: secondsSince(begun),
    note: code === 0 ? "" : `exit code ${code}`,
    output: code === 0 ? "" : out + error,
  };
}

/** One line for a step, below its output if it failed. */
export function reportStep(step: StepResult): void {
  if (step.output !== "") console.log(step.output.trimEnd());
  const state = step.failed === 0 ? "ok  " : "FAIL";
  const note = step.note === "" ? "" : `  (${step.note})`;
  console.log(`${state}  ${step.name.padEnd(14)} ${step.seconds.toFixed(1).padStart(6)} s${note}`);
}

/** Seconds since a time of `performance.now()`. */
export function secondsSince(begun: number): number {
  return (performance.now() - begun) / 1000;
}
