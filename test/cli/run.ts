import { join } from "node:path";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { type Ended, endOf, type RunOptions as HowToRun } from "../support/ended.ts";

/** Options of a run. */
export type RunOptions = Omit<HowToRun, "timeoutMs">;

const TIMEOUT_MS = 180_000;

/** The repository's root. */
export const ROOT = join(import.meta.dir, "..", "..");

/** Runs `ninefold` from source to its end, as a separate process. */
export function ninefold(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return runToEnd([...NINEFOLD_COMMAND, ...args], options);
}

/** Runs a program to its end. After the timeout it is killed, which the exit code shows. */
export function runToEnd(command: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return endOf(command, { ...options, timeoutMs: TIMEOUT_MS });
}
