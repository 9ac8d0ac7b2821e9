import { existsSync } from "node:fs";
import { healthchecksKey, readText } from "../config/sources.ts";
import { Draft } from "../configuration/import/draft.ts";
import { importFlagd, parseFlagd } from "../configuration/import/flagd/flagd.ts";
import { importHealthchecks } from "../configuration/import/healthchecks.ts";
import { readKumaDatabase } from "../configuration/import/kuma/database.ts";
import { importKuma } from "../configuration/import/kuma/kuma.ts";
import { type ImportOptions, INPUT_BYTES_MAX, parseJson } from "../configuration/import/source.ts";
import { readStatuspage } from "../configuration/import/statuspage/read.ts";
import { importStatuspage } from "../configuration/import/statuspage/statuspage.ts";
import { importConvoy } from "../configuration/import/webhooks/convoy/convoy.ts";
import { importHookdeck } from "../configuration/import/webhooks/hookdeck/hookdeck.ts";
import { importQstash } from "../configuration/import/webhooks/qstash.ts";
import { importSvix } from "../configuration/import/webhooks/svix.ts";
import { errorText, StartupError } from "../kernel/errors.ts";
import { OutboundClient } from "../kernel/outbound/client.ts";
import { writeDurably } from "../kernel/storage/folders.ts";
import { isSqlite } from "../kernel/storage/foreign-database.ts";
import { wallMs } from "../kernel/time/clock.ts";
import type { Arguments } from "./arguments.ts";
import { declaredKinds } from "./configuration.ts";
import { print, printError } from "./output.ts";

/** Timeout of a request to another product. */
const TIMEOUT_MS = 30_000;

/** `ninefold import convoy FILE`. Resolves to the exit code. */
export function importConvoyFile(args: Arguments): Promise<number> {
  return printed(args, (draft) => importConvoy(draft, fileJson(args)));
}

/** `ninefold import hookdeck FILE`. Resolves to the exit code. */
export function importHookdeckFile(args: Arguments): Promise<number> {
  return printed(args, (draft) => importHookdeck(draft, fileJson(args)));
}

/** `ninefold import qstash FILE`. Resolves to the exit code. */
export function importQstashFile(args: Arguments): Promise<number> {
  return printed(args, (draft) => importQstash(draft, fileJson(args)));
}

/** `ninefold import flagd FILE`. Resolves to the exit code. */
export function importFlagdFile(args: Arguments): Promise<number> {
  const [path = ""] = args.words;
  return printed(args, (draft) => importFlagd(draft, parseFlagd(fileText(path), path)));
}

/** `ninefold import healthchecks SOURCE`. Resolves to the exit code. */
export function importHealthchecksProject(args: Arguments): Promise<number> {
  const [source = ""] = args.words;
  return printed(args, async (draft) => {
    const isUrl = /^https?:\/\//i.test(source);
    const value = isUrl
      ? await loadHealthchecks(source, healthchecksKey(args.text("--api-key-file")))
      : parseJson(fileText(source), source);
    importHealthchecks(draft, value, optionsOf(args));
  });
}

/** `ninefold import kuma FILE`. Resolves to the exit code. */
export function importKumaFile(args: Arguments): Promise<number> {
  const [path = ""] = args.words;
  return printed(args, (draft) =>
    importKuma(
      draft,
      path !== "-" && isSqlite(path) ? readKumaDatabase(path) : parseJson(fileText(path), path),
      optionsOf(args),
    ),
  );
}

/** `ninefold import svix FILE`. Resolves to the exit code. */
export function importSvixFile(args: Arguments): Promise<number> {
  return printed(args, (draft) => importSvix(draft, fileJson(args), args.text("--owner")));
}

/** `ninefold import statuspage FILE…`. Resolves to the exit code. */
export function importStatuspageFiles(args: Arguments): Promise<number> {
  const files = args.words.map((path) => ({ path, text: fileText(path) }));
  return printed(args, (draft) => importStatuspage(draft, readStatuspage(files), wallMs()));
}

function optionsOf(args: Arguments): ImportOptions {
  return { keepsIds: args.has("--keep-ids") };
}

async function printed(args: Arguments, run: (draft: Draft) => void | Promise<void>): Promise<number> {
  const out = args.text("--env-out");
  // It may be the file of another program, and its secrets must not be lost.
  if (out !== null && existsSync(out))
    throw new StartupError(`--env-out: ${out} exists. Choose another path, or delete it first.`);
  const draft = new Draft(await declaredKinds());
  await run(draft);
  const text = draft.text();
  if (out !== null) writeVariables(out, draft);
  print(text);
  for (const note of draft.notes) printError(note);
  if (out !== null) printError(variablesText(out, draft));
  return 0;
}

function writeVariables(path: string, { environment }: Draft): void {
  try {
    writeDurably(path, environment);
  } catch (error) {
    throw new StartupError(`--env-out: ${path} cannot be written (${errorText(error)}).`);
  }
}

function variablesText(path: string, { variableCounts: { all, unknown } }: Draft): string {
  const missing =
    unknown === 0 ? "" : `, ${unknown} of them without a value, which the source does not contain`;
  return `${path} has ${all} environment variables${missing}.`;
}

/** The JSON of the file that the command names. */
function fileJson(args: Arguments): unknown {
  const [path = ""] = args.words;
  return parseJson(fileText(path), path);
}

function fileText(path: string): string {
  return readText(path === "-" ? "/dev/stdin" : path, "import", { bytesMax: INPUT_BYTES_MAX });
}

/** Loads checks and integrations. @throws StartupError with the URL and the reason. */
async function loadHealthchecks(source: string, key: string | null): Promise<unknown> {
  if (key === null)
    throw new StartupError("Set HEALTHCHECKS_API_KEY, or name a file with the key by --api-key-file.");
  const url = URL.parse(source);
  if (url === null || `${url.username}${url.password}${url.search}${url.hash}` !== "")
    throw new StartupError("The URL must look like https://healthchecks.io, without a password or query.");
  const [root = ""] = url.pathname.split("/api/", 1);
  const base = `${url.origin}${root.replace(/\/$/, "")}/api/v3`;
  const outbound = new OutboundClient(["all"]);
  try {
    const checks = await load(outbound, `${base}/checks/`, key);
    // A read-only key cannot list the integrations.
    const channels = await load(outbound, `${base}/channels/`, key, [401]);
    return { ...(checks as object), ...(channels as object | null) };
  } finally {
    outbound.close();
  }
}

/** Null for one of the statuses `without`. */
async function load(
  outbound: OutboundClient,
  url: string,
  key: string,
  without: readonly number[] = [],
): Promise<unknown> {
  const outcome = await outbound.send({
    account: null,
    method: "GET",
    url,
    headers: { accept: "application/json", "x-api-key": key },
    body: null,
    timeoutMs: TIMEOUT_MS,
    bodyBytesMax: INPUT_BYTES_MAX,
    keepsBody: true,
    longerBody: "fail",
    // The key goes to this server only.
    redirectsMax: 0,
    reuseConnection: false,
  });
  if (!outcome.answered) throw new StartupError(`${url} could not be loaded: ${outcome.failure.message}.`);
  if (without.includes(outcome.status)) return null;
  const hint = outcome.status === 401 ? " Check the API key." : "";
  if (outcome.status !== 200)
    throw new StartupError(`${url} could not be loaded: status ${outcome.status}.${hint}`);
  const value = parseJson(Buffer.from(outcome.body).toString("utf8"), url);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new StartupError(`${url} returned no JSON object: is it a Healthchecks server?`);
}
