import { readFileSync } from "node:fs";
import { errorText, StartupError } from "../kernel/errors.ts";

/** Where a server listens unless it is told otherwise. */
export const DEFAULT_URL = "http://127.0.0.1:9909";

/** What the environment tells commands that talk to a running server. */
export interface ClientSettings {
  readonly url: string | null;
  /** The API key. Never a flag: a command line can be read by every user of the machine. */
  readonly key: string | null;
}

/** @throws StartupError when the file named by `NINEFOLD_API_KEY_FILE` cannot be read. */
export function readClientSettings(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): ClientSettings {
  const {
    NINEFOLD_URL: url = "",
    NINEFOLD_API_KEY: key = "",
    NINEFOLD_API_KEY_FILE: file = "",
  } = environment;
  return { url: url === "" ? null : url, key: key === "" ? readKeyFile(file) : key.trim() };
}

function readKeyFile(path: string): string | null {
  if (path === "") return null;
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new StartupError(`NINEFOLD_API_KEY_FILE: ${path} cannot be read (${errorText(error)}).`);
  }
}
