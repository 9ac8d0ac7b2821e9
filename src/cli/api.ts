import { UsageError } from "../config/command-line.ts";
import { readClientSettings } from "../config/sources.ts";
import { StartupError } from "../kernel/errors.ts";
import type { Given } from "./arguments.ts";
import type { Api, JsonObject } from "./http-api.ts";
import { printFields, printJson, printTable } from "./output.ts";

/** Items asked for at once: as many as a page can have. */
const PAGE_LIMIT = 100;

/** A list of the API, page by page to its end. */
export interface ListSpec {
  readonly path: string;
  /** The member of a page that has the items. */
  readonly items: string;
  /** The member of a page that leads to the next one. */
  readonly cursor: string;
}

/**
 * An id as it stands in a path. `name` is what the command line calls it.
 * @throws UsageError for nothing and for dots: they would lead to another path, and so to another endpoint.
 */
export function pathSegment(name: string, id: string): string {
  if (/^\.{0,2}$/.test(id)) throw new UsageError(`${name} must be an id, not "${id}".`);
  return encodeURIComponent(id);
}

/** All items of a list. @throws StartupError */
export async function listAll(api: Api, list: ListSpec): Promise<readonly JsonObject[]> {
  const found: JsonObject[] = [];
  let cursor: string | null = null;
  do {
    const from: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page = await api.send("GET", `${list.path}?limit=${PAGE_LIMIT}${from}`);
    found.push(...((page[list.items] ?? []) as readonly JsonObject[]));
    const next = page[list.cursor];
    if (typeof next === "string" && next === cursor)
      throw new StartupError("The server's list does not end: its cursor stands still.");
    cursor = typeof next === "string" ? next : null;
  } while (cursor !== null);
  return found;
}

/** Runs a command. Resolves to the exit code. */
type Run = (given: Given) => Promise<number>;

/**
 * A command that prints the answer to one call: some of its members by name, or all of it with `--json`. `prepare` reads what
 * was given, and only then is a server called.
 */
export function answering(
  names: readonly string[],
  prepare: (given: Given) => (api: Api) => Promise<JsonObject>,
): Run {
  return async (given) => {
    const answer = await withApi(given, prepare(given));
    if (given.has("--json")) printJson(answer);
    else printFields(names.map((name) => [name, cell(answer[name])]));
    return 0;
  };
}

/** A command that prints a list as a table, or whole with `--json`. */
export function listing(list: ListSpec, columns: readonly string[]): Run {
  return async (given) => {
    const found = await withApi(given, (api) => listAll(api, list));
    if (given.has("--json")) printJson({ [list.items]: found });
    else printTable([columns, ...found.map((item) => columns.map((name) => cell(item[name])))]);
    return 0;
  };
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "-";
  return Array.isArray(value) ? value.join(" ") : String(value);
}

/** Opens what the options and the environment name, runs `work`, and closes it again. @throws UsageError, StartupError */
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
