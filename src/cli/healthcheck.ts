import { ask } from "../api/http-api.ts";
import { UsageError } from "../config/command-line.ts";
import { readClientSettings } from "../config/sources.ts";
import { resolveConfig } from "../config.ts";
import { urlOf } from "../kernel/data/addresses.ts";
import type { Arguments } from "./arguments.ts";
import { print, printError } from "./output.ts";

/** A healthy server responds in milliseconds; Docker gives up after 30 s. */
const TIMEOUT_S_DEFAULT = 5;
const TIMEOUT_S_MAX = 3_600;

/** `ninefold healthcheck`. Resolves to the exit code: 0 if the server is healthy, else 1. */
export async function healthcheck(args: Arguments): Promise<number> {
  const seconds = args.integer("--timeout") ?? TIMEOUT_S_DEFAULT;
  if (seconds < 1 || seconds > TIMEOUT_S_MAX) {
    throw new UsageError(`--timeout must be a number of seconds from 1 to ${TIMEOUT_S_MAX}.`);
  }
  const settings = readClientSettings({ url: args.text("--url") });
  const url = settings.url ?? urlOf(resolveConfig(new Map()));
  const path = args.has("--live") ? "/healthz" : "/readyz";
  const { status } = await ask({ url, key: settings.key, timeoutMs: seconds * 1000 }, "GET", path);
  if (status === 200) {
    print(args.has("--live") ? "alive\n" : "ready\n");
    return 0;
  }
  printError(`ninefold: ${url} returned ${status} at ${path}.`);
  return 1;
}
