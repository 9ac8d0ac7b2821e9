import type { Api, JsonObject } from "../api/http-api.ts";
import { UsageError } from "../config/command-line.ts";
import { readClientSettings } from "../config/sources.ts";
import { StartupError } from "../kernel/errors.ts";
import type { Arguments } from "./arguments.ts";
import { printFields, printJson, printTable } from "./output.ts";

/** Page size: the maximum of the API. */
const PAGE_LIMIT = 100;

/** A list of the API that is read page by page. */
export interface ListSpec {
  readonly path: string;
  /** Member of a page that contains the items. */
  readonly items: string;
  /** Member of a page that contains the next cursor. */
  readonly cursor: string;
}

/**
 * An id as a path segment. `name` is the argument's name.
 * @throws UsageError for an empty id and for dots, which would address another endpoint.
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
      throw new StartupError("The server returned the same cursor twice, so the list would not end.");
    cursor = typeof next === "string" ? next : null;
  } while (cursor !== null);
  return found;
}

/** Runs a command. Resolves to the exit code. */
type Run = (args: Arguments) => Promise<number>;

/**
 * A command that prints the response of one call: selected members, or all of it with `--json`. `prepare` validates
 * the arguments before a server is called.
 */
export function printingResponse(
  names: readonly string[],
  prepare: (args: Arguments) => (api: Api) => Promise<JsonObject>,
): Run {
  return async (args) => {
    const response = await withApi(args, prepare(args));
    if (args.has("--json")) printJson(response);
    else printFields(names.map((name) => [name, cell(response[name])]));
    return 0;
  };
}

/** A column of a table: a member of the items, or what `of` makes of an item. */
export type Column = string | { readonly name: string; readonly of: (item: JsonObject) => unknown };

/** A command that prints a list as a table, or as JSON with `--json`. `isShown`: of which items; all by default. */
export function listing(
  list: ListSpec,
  columns: readonly Column[],
  isShown: (item: JsonObject) => boolean = () => true,
): Run {
  const heading = columns.map((column) => (typeof column === "string" ? column : column.name));
  return async (args) => {
    const found = (await withApi(args, (api) => listAll(api, list))).filter(isShown);
    const rowOf = (item: JsonObject) =>
      columns.map((column) => cell(typeof column === "string" ? item[column] : column.of(item)));
    if (args.has("--json")) printJson({ [list.items]: found });
    else printTable([heading, ...found.map(rowOf)]);
    return 0;
  };
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "-";
  return Array.isArray(value) ? value.join(" ") : String(value);
}

/**
 * Opens the server or folder that the options and environment name, runs `work`, and closes it. @throws UsageError,
 * StartupError
 */
export async function withApi<T>(args: Arguments, work: (api: Api) => Promise<T>): Promise<T> {
  const api = await openApi(args);
  try {
    return await work(api);
  } finally {
    await api.close();
  }
}

async function openApi(args: Arguments): Promise<Api> {
  const folder = args.text("--data");
  const url = args.text("--url");
  if (folder !== null && url !== null) {
    throw new UsageError("--url is for a running server and --data for a stopped one. Use one of them.");
  }
  if (folder !== null) return (await import("../api/folder-api.ts")).openFolderApi(folder, args.line);
  if (args.text("--config") !== null) {
    throw new UsageError("--config requires --data: a running server has its configuration already.");
  }
  const settings = readClientSettings({ url, keyFile: args.text("--api-key-file") });
  if (settings.key === null) {
    throw new StartupError(
      "Set NINEFOLD_API_KEY or NINEFOLD_API_KEY_FILE to call the server, run ninefold login, or work on the folder of a stopped one with --data FOLDER.",
    );
  }
  return (await import("../api/http-api.ts")).openHttpApi(settings);
}
