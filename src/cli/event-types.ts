import type { JsonObject } from "../api/http-api.ts";
import type { RelayEventTypesImported } from "../areas/relay/event-types/schema.ts";
import { readText } from "../config/sources.ts";
import { FileError, parseDocuments, plainOf } from "../configuration/document.ts";
import { withApi } from "./api.ts";
import type { Arguments } from "./arguments.ts";
import { print, printError, printJson, printTable } from "./output.ts";

/** Exit code when webhooks of the document were not imported; all others were. */
const SKIPPED = 1;

/** `ninefold event-types import FILE`: describes the messages of a project by an OpenAPI document. Resolves to the exit code. */
export async function eventTypesImport(args: Arguments): Promise<number> {
  const openapi = documentIn(args.words[0] ?? "");
  const isDryRun = args.has("--dry-run");
  const body = { openapi, ...(isDryRun ? { dry_run: true } : {}) };
  const imported = (await withApi(args, (api) =>
    api.send("POST", "/v1/relay/event-types/import", body),
  )) as RelayEventTypesImported;
  if (args.has("--json")) printJson(imported);
  else show(imported, isDryRun);
  return imported.skipped.length === 0 ? 0 : SKIPPED;
}

/** Reads JSON or YAML. @throws StartupError for anything but one mapping */
function documentIn(path: string): JsonObject {
  const text = readText(path === "-" ? "/dev/stdin" : path, "event-types import", {
    hint: "import it in parts",
  });
  const [document, second] = parseDocuments(path, text);
  const start = { line: 1, column: 1 };
  if (document === undefined) throw new FileError(path, start, "is empty");
  if (second !== undefined)
    throw new FileError(path, second.at, "a second document begins: import each from a file of its own");
  if (document.kind !== "map")
    throw new FileError(path, document.at, "must be an OpenAPI document, which is a mapping");
  return plainOf(document) as JsonObject;
}

function show({ created, updated, unchanged, skipped }: RelayEventTypesImported, isDryRun: boolean): void {
  const rows = [
    ...created.map((name) => ["created", name]),
    ...updated.map((name) => ["updated", name]),
    ...unchanged.map((name) => ["unchanged", name]),
    ...skipped.map(({ name }) => ["skipped", name]),
  ];
  if (rows.length === 0) print("The document has no webhooks.\n");
  else printTable([["result", "name"], ...rows]);
  if (isDryRun) print("Nothing was changed.\n");
  for (const { name, reason } of skipped) printError(`${name} was skipped: ${reason}`);
}
