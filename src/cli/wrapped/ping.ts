import { UsageError } from "../../config/command-line.ts";
import { DEFAULT_URL, readClientSettings, readPingKey } from "../../config/sources.ts";
import { StartupError } from "../../kernel/errors.ts";
import { OutboundClient } from "../../kernel/outbound/client.ts";
import { writeAll } from "../../kernel/storage/folders.ts";
import { realDelay } from "../../kernel/time/clock.ts";
import type { Arguments } from "../arguments.ts";
import { printError } from "../output.ts";
import { runChild } from "./child.ts";

/** Bytes of the output that the last ping has: as many as the server stores. */
const OUTPUT_BYTES_MAX = 10_000;
/** Attempts of a ping, the wait between them, and the time that each has. */
const ATTEMPTS = 4;
const RETRY_MS = 1_000;
const TIMEOUT_MS = 10_000;

const DESCRIPTORS = { stdout: 1, stderr: 2 } as const;

/** `ninefold ping URL -- COMMAND`: runs a command and reports its start and its end. Resolves to its exit code. */
export async function ping(args: Arguments): Promise<number> {
  const url = pingUrl(args);
  const run = crypto.randomUUID();
  const send = (suffix: string, body: Uint8Array | null) => sendPing(`${url}${suffix}?rid=${run}`, body);
  // Next to the command, which an unreachable server must not delay.
  const started = send("/start", null);
  const tail = new Tail();
  const child = runChild(args.rest, {
    onOutput(bytes, stream) {
      tail.add(bytes);
      passOn(DESCRIPTORS[stream], bytes);
    },
  });
  const code = await child.ended;
  await started;
  await send(`/${code}`, tail.bytes());
  return code;
}

/** @throws UsageError, StartupError */
function pingUrl(args: Arguments): string {
  const slug = args.text("--slug");
  const [url] = args.words;
  if ((slug === null) === (url === undefined)) throw new UsageError("ping needs a URL, or --slug SLUG.");
  if (url !== undefined) {
    const parsed = URL.parse(url);
    if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.search !== "")
      throw new UsageError("URL must be a ping URL, such as https://ninefold.example.com/ping/…");
    return parsed.href.replace(/\/$/, "");
  }
  if (slug === null || !/^[a-z0-9_-]{1,64}$/.test(slug))
    throw new UsageError("--slug must be 1 to 64 lower-case letters, digits, dashes and underscores.");
  const key = readPingKey();
  if (key === null)
    throw new StartupError("Set NINEFOLD_PING_KEY to the ping key of the project, or give the ping URL.");
  const server = readClientSettings({ url: args.text("--url") }).url ?? DEFAULT_URL;
  return `${server.replace(/\/$/, "")}/ping/${encodeURIComponent(key)}/${slug}`;
}

/** Sends a ping. A failure is a warning: the command matters more. */
async function sendPing(url: string, body: Uint8Array | null): Promise<void> {
  const outbound = new OutboundClient(["all"], { trustLoopback: true });
  try {
    for (let attempt = 1; ; attempt += 1) {
      const problem = await attemptPing(outbound, url, body);
      if (problem === null) return;
      if (problem.isTemporary && attempt < ATTEMPTS) await realDelay(RETRY_MS);
      else return printError(`ninefold: the ping could not be sent: ${problem.message}`);
    }
  } finally {
    outbound.close();
  }
}

/** Why a ping was not accepted. */
interface Problem {
  readonly message: string;
  /** Whether a retry may succeed. */
  readonly isTemporary: boolean;
}

/** Null if the ping was accepted. */
async function attemptPing(
  outbound: OutboundClient,
  url: string,
  body: Uint8Array | null,
): Promise<Problem | null> {
  const outcome = await outbound.send({
    account: null,
    method: "POST",
    url,
    headers: { "content-type": "text/plain" },
    body: body ?? new Uint8Array(),
    timeoutMs: TIMEOUT_MS,
    bodyBytesMax: 1_024,
    keepsBody: true,
    longerBody: "truncate",
    redirectsMax: 0,
    reuseConnection: false,
  });
  if (!outcome.answered) return { message: outcome.failure.message, isTemporary: true };
  if (outcome.status < 300) return null;
  const said = Buffer.from(outcome.body).toString("utf8").trim().slice(0, 200);
  return {
    message: `the server returned ${outcome.status} ${said}`,
    isTemporary: outcome.status === 429 || outcome.status >= 500,
  };
}

/** The last bytes of an output. */
class Tail {
  private pieces: Uint8Array[] = [];
  private size = 0;

  add(bytes: Uint8Array): void {
    this.pieces.push(bytes);
    this.size += bytes.length;
    if (this.size > 2 * OUTPUT_BYTES_MAX) this.pieces = [this.bytes()];
    this.size = this.pieces.reduce((sum, piece) => sum + piece.length, 0);
  }

  bytes(): Uint8Array {
    return Buffer.concat(this.pieces).subarray(-OUTPUT_BYTES_MAX);
  }
}

/** Writes output as it is. A reader that has gone does not end the command. */
function passOn(descriptor: number, bytes: Uint8Array): void {
  try {
    writeAll(descriptor, bytes);
  } catch {
    // A closed pipe, or a full one that nobody reads.
  }
}
