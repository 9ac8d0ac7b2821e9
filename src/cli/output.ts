import { writeSync } from "node:fs";
import { errorCode } from "../kernel/errors.ts";
import { realPause } from "../kernel/time/clock.ts";

const STDOUT = 1;
const STDERR = 2;
/** Wait before a reader that is slower than we are is tried again. */
const RETRY_MS = 5;

/** Whoever read the output has gone: the command ends, quietly. */
export class BrokenPipe extends Error {}

/**
 * Prints to standard output, whole, before it returns: nothing is lost when the process ends right after.
 * @throws BrokenPipe when nobody reads it any more.
 */
export function print(text: string): void {
  write(STDOUT, text);
}

/** Characters that a terminal acts on, or that change the order of others: nobody's text may do that to its reader. */
const ACTING = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** Text that others may have written, as one harmless line: what a terminal would act on is written as in JSON. */
export function oneLine(text: string): string {
  return text.replace(ACTING, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Prints one line to standard error. Never throws: there would be nowhere left to say so. */
export function printError(message: string): void {
  try {
    write(STDERR, `${oneLine(message)}\n`);
  } catch {
    // Nobody is there to read it.
  }
}

/** Prints a value as JSON that people can read too. */
export function printJson(value: unknown): void {
  print(`${JSON.stringify(value, null, 2)}\n`);
}

/** Prints rows in aligned columns; the first row is the headline. */
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

function write(descriptor: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(descriptor, bytes, written);
    } catch (error) {
      const code = errorCode(error);
      if (code === "EPIPE") throw new BrokenPipe();
      // A pipe that does not block and is full.
      if (code !== "EAGAIN") throw error;
      realPause(RETRY_MS);
    }
  }
}

/** Aborted when the process is told to end: long work then takes away what it has begun, and ends by itself. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => controller.abort());
  return controller.signal;
}
