import { plainEnvironment } from "../harness/processes/server-process.ts";

/** What a program that ends by itself has left. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

/** How a program is run. */
export interface RunOptions {
  /** Time that it has. */
  readonly timeoutMs: number;
  /** Set besides the plain environment. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Runs a program to its end. One that does not end in time is killed, which shows in its exit code. */
export async function endOf(command: readonly string[], options: RunOptions): Promise<Ended> {
  const child = Bun.spawn([...command], {
    env: plainEnvironment(options.environment),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: options.timeoutMs,
    killSignal: "SIGKILL",
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, error };
}
