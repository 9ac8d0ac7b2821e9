import { type Environment, secretIn } from "./sources.ts";

/** Where a server listens unless it is told otherwise. */
export const DEFAULT_URL = "http://127.0.0.1:9909";

/** What the environment tells commands that talk to a running server. */
export interface ClientSettings {
  readonly url: string | null;
  /** The API key. Never a flag: a command line can be read by every user of the machine. */
  readonly key: string | null;
}

/** @throws StartupError when the file named by `NINEFOLD_API_KEY_FILE` cannot be read. */
export function readClientSettings(environment: Environment = process.env): ClientSettings {
  const { NINEFOLD_URL: url = "" } = environment;
  const key = secretIn(environment, "NINEFOLD_API_KEY").value?.trim();
  return { url: url === "" ? null : url, key: key ?? null };
}
