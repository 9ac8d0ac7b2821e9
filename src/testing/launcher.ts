#!/usr/bin/env node
/** `ninefold` as npm installs it: runs the executable of the package for this platform. */
import { spawn } from "node:child_process";
import { realpathSync } from "node:fs";
import { findCommand, surroundingsOf } from "./executable.ts";

/**
 * Signals that are passed on. The server handles a repeated signal once, so Ctrl-C may also reach it from the
 * terminal.
 */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

function fail(why: string): void {
  process.stderr.write(`ninefold: ${why}\n`);
  process.exitCode = 1;
}

function launch(): void {
  const { NINEFOLD_BINARY } = process.env;
  // Not from the PATH, where this launcher itself is found.
  const [program, ...args] = findCommand({
    ...surroundingsOf(import.meta.url),
    environment: { NINEFOLD_BINARY },
  });
  if (realpathSync(program) === realpathSync(process.argv[1] ?? ""))
    throw new Error(
      "NINEFOLD_BINARY is set to npm's launcher. Set it to the executable itself, or unset it.",
    );
  const child = spawn(program, [...args, ...process.argv.slice(2)], { stdio: "inherit" });
  child.once("error", (error) => fail(`${program} could not be run (${error.message}).`));
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
  child.once("exit", (code, signal) => {
    if (code !== null) process.exitCode = code;
    if (signal === null) return;
    for (const signalName of SIGNALS) process.removeAllListeners(signalName);
    process.kill(process.pid, signal);
  });
}

try {
  launch();
} catch (error) {
  fail(error instanceof Error ? error.message : String(error));
}
