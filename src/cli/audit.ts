import type { Api, JsonObject } from "../api/http-api.ts";
import { UsageError } from "../config/command-line.ts";
import { realDelay } from "../kernel/time/clock.ts";
import { withApi } from "./api.ts";
import type { Arguments } from "./arguments.ts";
import { interruption, oneLine, print } from "./output.ts";

/** Entries printed at first, and page size: the maximum of the API. */
const LAST_ENTRIES = 100;
/** Polling interval for new entries. */
const LOOK_MS = 1_000;

/** `ninefold audit`: prints the last entries, newest last, and new ones with `--follow`. */
export function audit(args: Arguments): Promise<number> {
  const follows = args.has("--follow");
  if (follows && args.text("--data") !== null) {
    throw new UsageError("--follow requires a running server: a stopped one has no new entries.");
  }
  const path = args.has("--all") ? "/v1/admin/audit" : "/v1/audit";
  const write = args.has("--json")
    ? (entry: JsonObject) => print(`${JSON.stringify(entry)}\n`)
    : (entry: JsonObject) => print(`${oneLine(lineOf(entry))}\n`);
  return withApi(args, async (api) => {
    const { signal } = { signal: follows ? interruption() : AbortSignal.abort() };
    let last = 0;
    do {
      for (const entry of await entriesAfter(api, path, last)) {
        write(entry);
        last = Number(entry["sequence"]);
      }
      if (!signal.aborted) await realDelay(LOOK_MS);
    } while (!signal.aborted);
    return 0;
  });
}

/** Entries after a sequence number, oldest first; for 0 the last ones. */
async function entriesAfter(api: Api, path: string, after: number): Promise<readonly JsonObject[]> {
  const found: JsonObject[] = [];
  let cursor = "";
  for (;;) {
    const page = await api.send("GET", `${path}?limit=${LAST_ENTRIES}${cursor}`);
    const entries = (page["entries"] ?? []) as readonly JsonObject[];
    const fresh = entries.filter(({ sequence }) => Number(sequence) > after);
    found.push(...fresh);
    const isAll = after === 0 || fresh.length < entries.length || typeof page["cursor"] !== "string";
    if (isAll) return found.reverse();
    cursor = `&cursor=${encodeURIComponent(String(page["cursor"]))}`;
  }
}

function lineOf({ at, action, summary, actor }: JsonObject): string {
  const { type, key_name, user_id } = actor as Record<string, string | null>;
  return `${at}  ${action}  ${summary}  (${[type, key_name, user_id].filter((part) => part).join(" ")})`;
}
