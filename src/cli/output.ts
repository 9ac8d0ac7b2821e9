import { writeSync } from "node:fs";
import { errorCode, errorText, StartupError } from "../kernel/errors.ts";
import { realPause } from "../kernel/time/clock.ts";

const STDOUT = 1;
const STDERR = 2;
const OUTPUTS: Readonly<Record<number, string>> = { [STDOUT]: "Standard output", [STDERR]: "Standard error" };
/** Wait before writing to a full pipe again. */
const RETRY_MS = 5;

/** The reader of the output has gone: the command exits without an error. */
export class BrokenPipe extends Error {}

/**
 * Writes all of the text to standard output before it returns, so that nothing is lost at exit.
 * @throws BrokenPipe if the reader has gone, StartupError if it cannot be written, for example to a full disk.
 */
export function print(text: string): void {
  write(STDOUT, text);
}

/** The same for bytes. */
export function printBytes(bytes: Uint8Array): void {
  write(STDOUT, bytes);
}

/** Characters that a terminal interprets, or that change the text direction. */
const ACTING = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** Text from others as one safe line: control characters are escaped as in JSON. */
export function oneLine(text: string): string {
  return text.replace(ACTING, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Writes one line to standard error. Never throws. */
export function printError(message: string): void {
  try {
    write(STDERR, `${oneLine(message)}\n`);
  } catch {
    // The reader has gone.
  }
}

/** Prints a value as formatted JSON. */
export function printJson(value: unknown): void {
  print(`${JSON.stringify(value, null, 2)}\n`);
}

/** Prints rows in aligned columns; the first row is the heading. */
export function printTable(rows: readonly (readonly string[])[]): void {
  print(tableText(rows.map((row) => row.map(oneLine))));
}

/** Prints names and values, aligned. */
export function printFields(fields: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...fields.map(([name]) => name.length)) + 2;
  print(fields.map(([name, value]) => `${name.padEnd(width)}${oneLine(value)}\n`).join(""));
}

function tableText(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

function write(descriptor: number, output: string | Uint8Array): void {
  const bytes = Buffer.from(output);
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(descriptor, bytes, written);
    } catch (error) {
      const code = errorCode(error);
      if (code === "EPIPE") throw new BrokenPipe();
      // A full non-blocking pipe.
      if (code !== "EAGAIN")
        throw new StartupError(`${OUTPUTS[descriptor]} cannot be written (${errorText(error)}).`);
      realPause(RETRY_MS);
    }
  }
}

/** Aborted when the process is to stop: long work then removes its partial results. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => controller.abort());
  return controller.signal;
}
