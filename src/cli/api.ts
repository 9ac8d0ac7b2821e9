import { UsageError } from "../config/command-line.ts";
import { StartupError } from "../kernel/errors.ts";
import type { Given } from "./arguments.ts";
import { printFields, printJson, printTable } from "./output.ts";

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The API of a running server, or of the folder of a stopped one. */
export interface Api {
  /** Resolves to the body of a success. @throws StartupError with the server's own message for a refusal. */
  send(method: string, path: string, body?: JsonObject): Promise<JsonObject>;
  close(): Promise<void>;
}

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

/** The error to throw for an answer that is no success: what the server says about it. */
export function refusal(status: number, body: JsonObject): StartupError {
  const error = body["error"] as { readonly message?: unknown } | undefined;
  const message = typeof error?.message === "string" ? error.message : "It gives no reason.";
  const hint = status === 401 ? " Look at NINEFOLD_API_KEY." : "";
  return new StartupError(`The server refuses (${status}): ${message}${hint}`);
}

/** Prints an answer: some of its members by name, or all of it with `--json`. */
export function showAnswer(given: Given, answer: JsonObject, names: readonly string[]): void {
  if (given.has("--json")) printJson(answer);
  else printFields(names.map((name) => [name, cell(answer[name])]));
}

/** Prints a list as a table, or whole with `--json`. */
export function showList(
  given: Given,
  { items }: ListSpec,
  found: readonly JsonObject[],
  columns: readonly string[],
): void {
  if (given.has("--json")) printJson({ [items]: found });
  else printTable([columns, ...found.map((item) => columns.map((name) => cell(item[name])))]);
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "-";
  return Array.isArray(value) ? value.join(" ") : String(value);
}
