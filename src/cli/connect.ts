import { readClientSettings } from "../config/client.ts";
import { UsageError } from "../config/command-line.ts";
import { StartupError } from "../kernel/errors.ts";
import type { Api } from "./api.ts";
import type { Given } from "./arguments.ts";

/**
 * Opens what the options and the environment name, runs `work`, and closes it again.
 * @throws UsageError, StartupError
 */
export async function withApi<T>(given: Given, work: (api: Api) => Promise<T>): Promise<T> {
  const api = await openApi(given);
  try {
    return await work(api);
  } finally {
    await api.close();
  }
}

async function openApi(given: Given): Promise<Api> {
  const folder = given.text("--data");
  const url = given.text("--url");
  if (folder !== null && url !== null) {
    throw new UsageError("--url is for a running server and --data for a stopped one: give one of them.");
  }
  if (folder !== null) return (await import("./folder-api.ts")).openFolderApi(folder, given.line);
  if (given.text("--config") !== null) {
    throw new UsageError("--config goes with --data: a running server has its configuration already.");
  }
  const settings = readClientSettings();
  if (settings.key === null) {
    throw new StartupError(
      "Set NINEFOLD_API_KEY or NINEFOLD_API_KEY_FILE to call the server, or work on the folder of a stopped one with --data FOLDER.",
    );
  }
  return (await import("./http-api.ts")).openHttpApi({ ...settings, url: url ?? settings.url });
}
