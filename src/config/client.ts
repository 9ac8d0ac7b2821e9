import { readText } from "./read-text.ts";

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
  return { url: url === "" ? null : url, key: key === "" ? keyIn(file) : key.trim() };
}

function keyIn(path: string): string | null {
  return path === "" ? null : readText(path, "NINEFOLD_API_KEY_FILE").trim();
}
