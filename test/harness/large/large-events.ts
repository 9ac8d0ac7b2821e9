import { join } from "node:path";
import { type Command, ServerProcess } from "../processes/server-process.ts";
import { describeMeasured, type Measured, secondsText, Watch } from "../processes/watch.ts";

/** Settings of a run. */
export interface LargeLoad {
  readonly command: Command;
  /** An empty folder; the data folder is created in it. */
  readonly folder: string;
  /** Events that are sent at the same time, from so many networks, each with so many bytes. */
  readonly events: number;
  readonly networks: number;
  readonly bytes: number;
}

/** What the senders are told. */
export interface Orders extends Pick<LargeLoad, "events" | "networks" | "bytes"> {
  readonly buckets: readonly string[];
  /** Forwarded events that they wait for. */
  readonly forwarded: number;
}

/** What the senders have seen once all is sent. */
export interface SentReport {
  readonly accepted: number;
  /** Some of the other responses. */
  readonly other: readonly string[];
  readonly sentMs: number;
}

/** What they have seen once all is forwarded. */
export interface ForwardedReport {
  readonly forwardedMs: number;
  readonly forwardedEqual: boolean;
}

/** Measurements of a run, while the events were sent, and while they were forwarded. */
export interface LargeLoadResult extends SentReport, ForwardedReport {
  readonly sending: Measured;
  readonly forwarding: Measured;
}

/** Buckets of the accounts that receive the events. */
const BUCKETS = 10;

/** Sends many large events at the same time, while another account reads, and measures both. */
export async function runLargeLoad({
  command,
  folder,
  events,
  networks,
  bytes,
}: LargeLoad): Promise<LargeLoadResult> {
  const args = ["--port", "0", "--data", join(folder, "data"), "--log-level", "warn"];
  args.push("--trust-proxy", "127.0.0.1", "--allow-private-targets", "loopback");
  const server = await ServerProcess.start({ command, args });
  const senders = Bun.spawn([process.execPath, join(import.meta.dir, "senders.ts"), server.url], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = linesOf(senders.stdout);
  try {
    const { target } = JSON.parse(await lines()) as { target: string };
    const owner = await newAccount(server, "receiver");
    const buckets = await Promise.all(
      Array.from({ length: BUCKETS }, () =>
        post<{ id: string }>(server, owner, "/v1/catch/buckets", { target_url: target, state: "live" }),
      ),
    );
    const reader = await newAccount(server, "reader");
    const watch = await Watch.start(server, reader);
    const orders: Orders = {
      events,
      networks,
      bytes,
      buckets: buckets.map(({ id }) => id),
      forwarded: events,
    };
    senders.stdin.write(`${JSON.stringify(orders)}\n`);
    await senders.stdin.flush();
    const sent = JSON.parse(await lines()) as SentReport;
    const sending = watch.take();
    const forwarded = JSON.parse(await lines()) as ForwardedReport;
    const forwarding = watch.take();
    await watch.stop();
    return { ...sent, ...forwarded, sending, forwarding };
  } finally {
    senders.kill();
    await senders.exited;
    await server.stop();
  }
}

/** The lines of a stream, one by one. */
function linesOf(stream: ReadableStream<Uint8Array>): () => Promise<string> {
  const reader = stream
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>;
  let text = "";
  return async () => {
    for (;;) {
      const end = text.indexOf("\n");
      if (end >= 0) {
        const line = text.slice(0, end);
        text = text.slice(end + 1);
        return line;
      }
      const { done, value } = await reader.read();
      if (done) throw new Error(`the senders ended: ${text}`);
      text += value;
    }
  };
}

async function post<T>({ url }: ServerProcess, key: string | null, path: string, body: object): Promise<T> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

async function newAccount(server: ServerProcess, name: string): Promise<string> {
  const account = { email: `${name}@example.com`, tier: "unlimited" };
  return (await post<{ api_key: string }>(server, server.key, "/v1/admin/accounts", account)).api_key;
}

/** The measurements as lines of text. */
export function describeLargeLoad(result: LargeLoadResult): string {
  const { accepted, sentMs, forwardedMs, sending, forwarding } = result;
  return [
    `${accepted} accepted in ${secondsText(sentMs)}: ${describeMeasured(sending)}`,
    `all forwarded in ${secondsText(forwardedMs)}: ${describeMeasured(forwarding)}`,
  ].join("\n");
}
