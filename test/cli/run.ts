import { join } from "node:path";
import { plainEnvironment, SOURCE_COMMAND } from "../../scripts/processes/server-process.ts";

/** What a command has left. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

/** How a command is run, where it differs. */
export interface RunOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

const TIMEOUT_MS = 20_000;

/** The repository's root. */
export const ROOT = join(import.meta.dir, "..", "..");

/** Runs `ninefold` from source to its end, as a process of its own. */
export async function ninefold(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return runToEnd([...SOURCE_COMMAND, ...args], options);
}

/** Runs a program to its end. One that does not end is killed, which shows in its exit code. */
export async function runToEnd(command: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const child = Bun.spawn([...command], {
    env: plainEnvironment(options.environment),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: TIMEOUT_MS,
    killSignal: "SIGKILL",
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, error };
}
