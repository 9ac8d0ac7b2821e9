import { resolve } from "node:path";
import { flagsGiven } from "../config/sources.ts";
import { type FolderConfig, resolveFolderConfig } from "../config.ts";
import { type Given, readArguments } from "./arguments.ts";
import { commandNamed } from "./table.ts";

/** What `backup` and `restore` are given: a file, and the configuration of the server whose folder it is about. */
export interface FileAndFolder {
  readonly given: Given;
  /** With its whole path. */
  readonly file: string;
  readonly config: FolderConfig;
}

/** @throws UsageError, StartupError */
export function readFileAndFolder(command: "backup" | "restore", args: readonly string[]): FileAndFolder {
  const given = readArguments(commandNamed(command), args);
  return { given, file: resolve(given.words[0] ?? ""), config: resolveFolderConfig(flagsGiven(given.line)) };
}
