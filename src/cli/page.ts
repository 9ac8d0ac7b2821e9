import type { Api, JsonObject } from "../api/http-api.ts";
import { readText } from "../config/sources.ts";
import { INPUT_BYTES_MAX } from "../configuration/import/source.ts";
import { type ImportedAddress, readSubscribers } from "../configuration/import/statuspage/subscribers.ts";
import { StartupError } from "../kernel/errors.ts";
import { wallMs } from "../kernel/time/clock.ts";
import { type ListSpec, listAll, pathSegment, withApi } from "./api.ts";
import type { Arguments } from "./arguments.ts";
import { print, printError, printJson } from "./output.ts";

const PAGES: ListSpec = { path: "/v1/pulse/pages", items: "pages", cursor: "cursor" };
/** Addresses in a request: the maximum of the API. */
const PER_REQUEST = 200;
/** Rejected addresses that are printed: those that a person reads. */
const LISTED_MAX = 20;
/** Exit code when addresses were rejected; all others were imported. */
const REJECTED = 1;

const FULL = "page_full";
const REASONS: Readonly<Record<string, string>> = {
  invalid_address: "is no e-mail address",
  [FULL]: "does not fit: the page has the maximum number of subscribers",
};

/** `ninefold page subscribers import SLUG FILE`. Resolves to the exit code. */
export async function pageSubscribersImport(args: Arguments): Promise<number> {
  const [slug = "", path = ""] = args.words;
  const text = readText(path === "-" ? "/dev/stdin" : path, "page subscribers import", {
    bytesMax: INPUT_BYTES_MAX,
  });
  const { addresses, skipped } = readSubscribers(text, path, wallMs());
  const result = await withApi(args, async (api) => importAll(api, await pageIdOf(api, slug), addresses));
  const all = { ...result, skipped };
  // That they left is respected, and nothing to be corrected.
  const rejected = result.rejected.filter(({ reason }) => reason !== "unsubscribed");
  if (args.has("--json")) printJson(all);
  else {
    print(`${result.imported} imported, ${result.known} had subscribed already.\n`);
    const left = result.rejected.length - rejected.length;
    if (left > 0) printError(`${left} skipped: they have unsubscribed from the page.`);
    for (const [reason, count] of Object.entries(skipped)) printError(`${count} skipped: ${reason}.`);
    for (const { email, reason } of rejected.slice(0, LISTED_MAX))
      printError(`${email} ${REASONS[reason] ?? reason}.`);
    if (rejected.length > LISTED_MAX)
      printError(`${rejected.length - LISTED_MAX} others were rejected: --json lists all.`);
  }
  return rejected.length === 0 ? 0 : REJECTED;
}

async function pageIdOf(api: Api, slug: string): Promise<string> {
  const found = (await listAll(api, PAGES)).find((page) => page["slug"] === slug);
  if (found === undefined)
    throw new StartupError(`There is no status page with the slug ${slug} in the project.`);
  return String(found["id"]);
}

async function importAll(api: Api, pageId: string, addresses: readonly ImportedAddress[]) {
  const path = `${PAGES.path}/${pathSegment("SLUG", pageId)}/subscribers/import`;
  let [imported, known] = [0, 0];
  const rejected: { readonly email: string; readonly reason: string }[] = [];
  for (let from = 0; from < addresses.length; from += PER_REQUEST) {
    const part = addresses.slice(from, from + PER_REQUEST);
    const response = await api.send("POST", path, { subscribers: part });
    imported += Number(response["imported"]);
    known += Number(response["known"]);
    for (const { index, reason } of response["rejected"] as readonly JsonObject[])
      rejected.push({ email: part[Number(index)]?.email ?? "", reason: String(reason) });
    // No other address has room, either.
    if (rejected.at(-1)?.reason !== FULL) continue;
    for (const { email } of addresses.slice(from + PER_REQUEST)) rejected.push({ email, reason: FULL });
    break;
  }
  return { imported, known, rejected };
}
