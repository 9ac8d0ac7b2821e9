import { afterAll, expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { StartupError } from "../../src/kernel/errors.ts";
import { Scratch, thrown } from "./support.ts";

/** A temporary folder for the tests of the file that calls it. */
export function configFolder() {
  const scratch = new Scratch();
  afterAll(() => scratch.remove());
  let files = 0;
  /** Writes a configuration file and returns its path. */
  const file = (text: string): string => {
    files += 1;
    const path = scratch.path(`file-${files}.toml`);
    writeFileSync(path, text);
    return path;
  };
  return { file };
}

/** The message of the {@link StartupError} that a function must throw. */
export function refusal(run: () => unknown): string {
  const error = thrown(run);
  expect(error).toBeInstanceOf(StartupError);
  return (error as StartupError).message;
}
