import { version as ownVersion } from "../../../package.json" with { type: "json" };
import { UsageError } from "../../config/command-line.ts";
import { readUpgradeSettings } from "../../config/sources.ts";
import { StartupError } from "../../kernel/errors.ts";
import { OutboundClient } from "../../kernel/outbound/client.ts";
import type { Arguments } from "../arguments.ts";
import { oneLine, print } from "../output.ts";
import { readPublicKey, signatureProblem } from "./minisign.ts";

/** The newest release, as the signed feed describes it. */
interface Feed {
  readonly version: string;
  /** When it was made, ISO 8601 in UTC. */
  readonly date: string;
  /** Where to get it. */
  readonly url: string;
}

/** Exit code if there is a newer version; distinct from a failure, which is 1. */
const EXIT_NEWER = 2;
/** A slow connection still loads a few hundred bytes in this time. */
const TIMEOUT_MS = 15_000;
/** A feed has a few hundred bytes. */
export const FEED_BYTES_MAX = 16 * 1024;
/** Code hosts redirect downloads to their storage, once or twice. */
const REDIRECTS_MAX = 5;
const VERSION = /^\d{1,9}\.\d{1,9}\.\d{1,9}(-[0-9A-Za-z.-]{1,64})?$/;

/**
 * `ninefold upgrade --check`: compares this version with the newest release in a signed feed. Nothing is installed. Resolves to
 * the exit code: 0 if this version is up to date, 2 if there is a newer one.
 *
 * @throws StartupError without a feed or key, if the feed cannot be loaded, or if its signature is not valid.
 */
export async function upgrade(args: Arguments): Promise<number> {
  if (!args.has("--check")) {
    throw new UsageError("ninefold upgrade installs nothing. Add --check to look for a newer version.");
  }
  const settings = readUpgradeSettings();
  const url = args.text("--feed") ?? settings.feed;
  const keyText = args.text("--public-key") ?? settings.publicKey;
  if (url === null || keyText === null) {
    throw new StartupError(
      "Set the URL of the feed with --feed or NINEFOLD_UPGRADE_FEED, and its public key with --public-key or NINEFOLD_UPGRADE_PUBLIC_KEY.",
    );
  }
  const publicKey = readPublicKey(keyText);
  if (publicKey === null) {
    throw new StartupError(
      "The public key is not one of minisign (56 characters that begin with RW, from its .pub file).",
    );
  }
  const outbound = new OutboundClient(["all"]);
  try {
    const [file, signature] = await Promise.all([load(outbound, url), load(outbound, `${url}.minisig`)]);
    const problem = signatureProblem(file, Buffer.from(signature).toString("utf8"), publicKey);
    if (problem !== null) throw new StartupError(`${url} ${problem}. Nothing in it is used.`);
    return report(feedIn(file, url), args.has("--json"));
  } finally {
    outbound.close();
  }
}

/** Loads a file. @throws StartupError with its URL and the reason. */
async function load(outbound: OutboundClient, url: string): Promise<Uint8Array> {
  const outcome = await outbound.send({
    account: null,
    method: "GET",
    url,
    headers: { accept: "*/*" },
    body: null,
    timeoutMs: TIMEOUT_MS,
    bodyBytesMax: FEED_BYTES_MAX,
    keepsBody: true,
    longerBody: "fail",
    redirectsMax: REDIRECTS_MAX,
    reuseConnection: false,
  });
  if (!outcome.answered) throw new StartupError(`${url} could not be loaded: ${outcome.failure.message}.`);
  if (outcome.status !== 200) throw new StartupError(`${url} could not be loaded: status ${outcome.status}.`);
  return outcome.body;
}

/** @throws StartupError for anything that is no feed. */
function feedIn(file: Uint8Array, url: string): Feed {
  const text = Buffer.from(file).toString("utf8");
  let read: Partial<Record<keyof Feed, unknown>> | null;
  try {
    read = JSON.parse(text) as typeof read;
  } catch {
    read = null;
  }
  const { version, date, url: release } = read ?? {};
  const isFeed = typeof version === "string" && typeof date === "string" && typeof release === "string";
  if (!isFeed || !VERSION.test(version)) throw new StartupError(`${url} is not a feed of releases.`);
  return { version, date, url: release };
}

function report({ version, date, url }: Feed, isJson: boolean): number {
  const isNewer = Bun.semver.order(version, ownVersion) > 0;
  if (isJson)
    print(`${JSON.stringify({ version: ownVersion, newest: version, date, url, newer: isNewer })}\n`);
  else if (isNewer) print(`${oneLine(`Version ${version} of ${date} is available: ${url}`)}\n`);
  else print(`Version ${ownVersion} is up to date\n`);
  return isNewer ? EXIT_NEWER : 0;
}
