import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { withEnvironment } from "../../config/sources.ts";
import { errorCode } from "../../kernel/errors.ts";
import { realDelay } from "../../kernel/time/clock.ts";
import { printError } from "../output.ts";

/** The exit code for a command that does not exist, as in shells. */
const EXIT_MISSING = 127;
/** The same for one that cannot be executed. */
const EXIT_NOT_EXECUTABLE = 126;
/** Added to the number of the signal that ended a command. */
const EXIT_SIGNAL = 128;
/** Signals that are passed on. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Time for output that is still in the pipes when the command has ended: its own children may hold them open. */
const OUTPUT_MS = 500;

/** How a command is run. */
export interface ChildOptions {
  /** Additional variables. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Receives the output, which is otherwise written where that of this process is. */
  readonly onOutput?: (bytes: Uint8Array, stream: "stdout" | "stderr") => void;
}

/** A running command. */
export interface Child {
  /** Its exit code, or 128 and the number of the signal that ended it; 126 or 127 if it could not be run. */
  readonly ended: Promise<number>;
  kill(signal: "SIGTERM" | "SIGKILL"): void;
}

/** Runs a command. Signals to this process are passed on to it. */
export function runChild([program = "", ...args]: readonly string[], options: ChildOptions = {}): Child {
  const { onOutput, environment = {} } = options;
  const piped = onOutput === undefined ? "inherit" : "pipe";
  const env = withEnvironment(environment);
  let child: ChildProcess | undefined;
  // Before the command begins, which may be signalled immediately.
  for (const signal of SIGNALS) process.on(signal, () => child?.kill(signal));
  try {
    child = spawn(program, args, { env, stdio: ["inherit", piped, piped] });
  } catch (error) {
    // Some reasons are reported in this way, others as an event.
    return { ended: Promise.resolve(notRun(program, error)), kill: () => undefined };
  }
  const running = child;
  for (const stream of ["stdout", "stderr"] as const)
    running[stream]?.on("data", (bytes: Uint8Array) => onOutput?.(bytes, stream));
  const closed = new Promise<void>((resolve) => {
    running.once("close", () => resolve());
  });
  const ended = new Promise<number>((resolve) => {
    running.once("error", (error) => resolve(notRun(program, error)));
    running.once("exit", (code, signal) => {
      const exit = code ?? EXIT_SIGNAL + (signal === null ? 0 : constants.signals[signal]);
      void Promise.race([closed, realDelay(OUTPUT_MS)]).then(() => resolve(exit));
    });
  });
  return { ended, kill: (signal) => void running.kill(signal) };
}

/** Reports a command that could not be run. Returns the exit code. */
function notRun(program: string, error: unknown): number {
  const code = errorCode(error);
  printError(`ninefold: ${program} could not be run (${code ?? "unknown error"}).`);
  return code === "ENOENT" ? EXIT_MISSING : EXIT_NOT_EXECUTABLE;
}
