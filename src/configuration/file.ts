import { dirname, resolve } from "node:path";
import { readRegularText, readText, variableNamed } from "../config/sources.ts";
import type { Kind } from "./kinds.ts";
import { type FileProject, readConfiguration } from "./read.ts";

/** Reads a configuration file with the secrets that it refers to. `-` is standard input. @throws StartupError */
export function readFile(path: string, kinds: readonly Kind[]): FileProject[] {
  const text = readText(path === "-" ? "/dev/stdin" : path, "configuration", {
    hint: "split it into several files, such as one for each project",
  });
  return readConfiguration(path, text, kinds, {
    variable: variableNamed,
    file: (name) => readRegularText(resolve(path === "-" ? "." : dirname(path), name), "file"),
  });
}
